/* What each instruction does, by itself, against what "Parallel Thread Execution ISA" says of it;
 * and that what is wrong is told. mma.sync and ldmatrix against another reading of that book:
 * CUTLASS's layouts (include/cute/atom/mma_traits_sm80.hpp, SM80_16x8x16_F32BF16BF16F32_TN, and
 * copy_traits_sm75.hpp, SM75_U32x4_LDSM_N and SM75_U16x8_LDSM_T), which are strides from lane and
 * value to the place in a matrix. async_instructions.cc has those of compute capability 9.0. */
#include "tests/ptx/instruction_test.h"

using namespace ptx;

namespace
{

/* ---- one lane's result, in %r1 ---- */

const result_row results[] = {
    {"add.s32 %r1, -1, 3;", 2},
    {"sub.s64 %rd2, 1, 2; shr.s64 %rd2, %rd2, 32; cvt.u32.u64 %r1, %rd2;", 0xffffffff},
    {"mul.lo.s32 %r1, 65537, 65537;", 0x20001},
    {"mad.lo.s32 %r1, 3, -2, 10;", 4},
    {"mul.wide.s32 %rd2, -3, 5; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r1, %rd2;", 0xffffffff},
    {"mul.wide.u32 %rd2, -1, 2; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r1, %rd2;", 1},
    {"div.s64 %rd2, -7, 2; cvt.u32.u64 %r1, %rd2;", (uint32_t)-3},
    {"div.u32 %r1, -7, 2;", 0x7ffffffc},
    {"neg.s64 %rd2, 5; cvt.u32.u64 %r1, %rd2;", (uint32_t)-5},
    {"neg.s32 %r1, 5;", (uint32_t)-5},
    {"min.s32 %r1, -1, 1;", (uint32_t)-1},
    {"max.s64 %rd2, -1, 1; cvt.u32.u64 %r1, %rd2;", 1},
    {"shl.b32 %r1, 1, 31;", 0x80000000},
    {"shl.b32 %r1, 1, 32;", 0},
    {"shr.u32 %r1, 0x80000000, 31;", 1},
    {"shr.u32 %r1, 0x80000000, 32;", 0},
    {"shr.s32 %r1, -8, 1;", (uint32_t)-4},
    {"shr.s32 %r1, -8, 40;", 0xffffffff},
    {"xor.b32 %r1, 12, 10;", 6},
    {"not.b32 %r1, 5;", 0xfffffffa},
    {"not.b64 %rd2, 5; shr.u64 %rd2, %rd2, 1; cvt.u32.u64 %r1, %rd2;", 0xfffffffd},
    {"and.b32 %r1, 12, 10;", 8},
    {"or.b32 %r1, 12, 10;", 14},
    {"bfi.b32 %r1, -1, 0, 4, 1;", 0x10},
    {"bfi.b32 %r1, 5, -1, 8, 4;", 0xfffff5ff},
    {"bfi.b32 %r1, -1, 7, 0, 0;", 7},
    {"bfi.b64 %rd2, -1, 0, 30, 4; cvt.u32.u64 %r1, %rd2;", 0xc0000000},
    {"cvt.s64.s32 %rd2, -1; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r1, %rd2;", 0xffffffff},
    {"cvt.u64.u32 %rd2, -1; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r1, %rd2;", 0},
    {"cvt.u16.u32 %rs1, 65537; setp.eq.s16 %p1, %rs1, 1; selp.b32 %r1, 1, 2, %p1;", 1},
    {"cvt.rn.f32.s32 %f1, 16777217; mov.b32 %r1, %f1;", 0x4b800000},
    {"cvt.rn.bf16x2.f32 %r1, 0f3F808000, 0f3F818000;", 0x3f803f82}, /* ties go to even */
    {"cvt.rn.bf16x2.f32 %r1, 0f3F808001, 0fBF80FFFF;", 0x3f81bf81},
    {"cvt.rn.bf16x2.f32 %r1, 0f7F800001, 0fFF800000;", 0x7fffff80},
    {"add.f32 %f1, 0f3F800000, 0f33800000; mov.b32 %r1, %f1;", 0x3f800000},
    {"add.rn.f32 %f1, 0f3F800000, 0f33800000; mov.b32 %r1, %f1;", 0x3f800000},
    {"sub.f32 %f1, 0f3F800000, 0f40000000; mov.b32 %r1, %f1;", 0xbf800000},
    {"mul.f32 %f1, 0f00800000, 0f3F000000; mov.b32 %r1, %f1;", 0x00400000}, /* subnormal */
    {"mul.rn.f32 %f1, 0f3F800001, 0f3F800001; mov.b32 %r1, %f1;", 0x3f800002},
    {"fma.rn.f32 %f1, 0f3F800001, 0f3F800001, 0fBF800002; mov.b32 %r1, %f1;", 0}, /* twice */
    {"rcp.rn.f32 %f1, 0f40400000; mov.b32 %r1, %f1;", 0x3eaaaaab},
    {"max.f32 %f1, 0f7FC00000, 0f3F800000; mov.b32 %r1, %f1;", 0x3f800000},
    {"max.f32 %f1, 0f80000000, 0f00000000; mov.b32 %r1, %f1;", 0},
    {"neg.f32 %f1, 0f00000000; mov.b32 %r1, %f1;", 0x80000000},
    {"ex2.approx.ftz.f32 %f1, 0f40400000; mov.b32 %r1, %f1;", 0x41000000},
    {"ex2.approx.ftz.f32 %f1, 0fC3020000; mov.b32 %r1, %f1;", 0}, /* 2^-130 */
    {"ex2.approx.ftz.f32 %f1, 0fFF800000; mov.b32 %r1, %f1;", 0},
    {"setp.lt.f32 %p1, 0f7FC00000, 0f00000000; selp.b32 %r1, 1, 2, %p1;", 2},
    {"setp.neu.f32 %p1, 0f7FC00000, 0f7FC00000; selp.b32 %r1, 1, 2, %p1;", 1},
    {"setp.leu.f32 %p1, 0f40000000, 0f3F800000; selp.b32 %r1, 1, 2, %p1;", 2},
    {"setp.gt.s32 %p1, -1, 1; selp.b32 %r1, 1, 2, %p1;", 2},
    {"setp.gt.u32 %p1, -1, 1; selp.b32 %r1, 1, 2, %p1;", 1},
    {"setp.ge.u32 %p1, -1, 1; selp.b32 %r1, 1, 2, %p1;", 1},
    {"setp.le.u32 %p1, 1, 1; selp.b32 %r1, 1, 2, %p1;", 1},
    {"setp.lt.s64 %p1, -1, 1; setp.eq.s32 %p2, 1, 2; and.pred %p3, %p1, %p2; not.pred %p3, %p3; "
     "selp.b32 %r1, 1, 2, %p3;",
     1},
    {"setp.ne.b32 %p1, 1, 2; selp.b32 %r1, 1, 2, %p1;", 1},
    {"{ .reg .pred mine; setp.ne.b32 mine, 1, 2; selp.b32 %r1, 1, 2, mine; }", 1},
    {"{ .reg .b32 %r1; mov.u32 %r1, 7; } mov.u32 %r1, 8; { .reg .b32 x; mov.u32 x, 9; }", 8},
    {"mov.u32 %r1, %laneid;", 9, 9},
    {"mov.u32 %r1, 5; setp.lt.u32 %p1, %r0, 7; @%p1 bra $L; mov.u32 %r1, 6; $L:", 5, 6},
    {"mov.u32 %r1, 5; setp.lt.u32 %p1, %r0, 7; @%p1 bra $L; mov.u32 %r1, 6; $L:", 6, 7},
    {"mov.u32 %r1, 5; setp.lt.u32 %p1, %r0, 7; @!%p1 mov.u32 %r1, 6;", 6, 7},
    {"mov.u32 %r1, 0; $L: add.s32 %r1, %r1, 2; setp.lt.u32 %p1, %r1, %r0; @%p1 bra $L;", 6, 5},
    {"shfl.sync.bfly.b32 %r1|%p1, %r0, 2, 31, -1;", 7, 5},
    {"shfl.sync.bfly.b32 %r1|%p1, %r0, 4, 7199, -1;", 1, 1}, /* beyond its segment of 4 lanes */
    {"setp.eq.s32 %p1, %r0, 31; vote.sync.any.pred %p2, %p1, -1; selp.b32 %r1, 1, 2, %p2;", 1},
    {"setp.eq.s32 %p1, %r0, 32; vote.sync.any.pred %p2, %p1, -1; selp.b32 %r1, 1, 2, %p2;", 2},
    {"ld.global.s32 %rd2, [%rd0+4]; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r1, %rd2;", 0xffffffff},
    {"ld.global.v4.u32 {%r2, %r3, %r1, %r4}, [%rd0];", 3 * 16 + 2, 3},
    {"shl.b32 %r2, %r0, 2; mov.u32 %r3, bytes; add.s32 %r2, %r2, %r3; st.shared.u32 [%r2+0], %r0; "
     "bar.sync 0; xor.b32 %r4, %r2, 124; ld.shared.u32 %r1, [%r4];",
     28, 3},
    {"shl.b32 %r2, %r0, 3; mov.u32 %r3, bytes; add.s32 %r2, %r2, %r3; mov.b32 %f1, %r0; "
     "mov.f32 %f2, 0f3F800000; st.shared.v2.f32 [%r2+0], {%f2, %f1}; ld.shared.u32 %r1, [%r2+4];",
     3, 3},
    {"shl.b32 %r2, %r0, 3; mov.u32 %r3, bytes; add.s32 %r2, %r2, %r3; st.shared.u32 [%r2+0], 7; "
     "st.shared.u32 [%r2+4], %r0; ld.shared.v2.f32 {%f1, %f2}, [%r2]; mov.b32 %r1, %f2;",
     3, 3},
    {"mov.u32 %r2, bytes; ld.shared.u32 %r1, [%r2];", 0xffffffff},
    {"mov.u32 %r2, bytes; cp.async.ca.shared.global [%r2], [%rd1], 4, 4; ld.shared.u32 %r1, [%r2];",
     0xffffffff}, /* not before it is waited for */
    {"mov.u32 %r2, bytes; cp.async.ca.shared.global [%r2], [%rd1+128], 4, 4; cp.async.wait_all; "
     "ld.shared.u32 %r1, [%r2];",
     32},
    {"mov.u32 %r2, bytes; cp.async.cg.shared.global [%r2], [%rd1+128], 16, 0; cp.async.wait_all; "
     "ld.shared.u32 %r1, [%r2+12];",
     0},
};

/* ---- faults ---- */

const fault_row faults[] = {
    {"add.s17 %r1, %r0, 1;", "test.ptx:16: unknown instruction: add.s17"},
    {"add.s32 %r1, %r0;", "takes 3 operands, here are 2"},
    {"add.s32 %r1, %r99, 1;", "no such register: %r99"},
    {"add.s32 %r1, nothing, 1;", "not a register, a number or a name that was declared: nothing"},
    {"add.s32 %rd2, %r0, 1;", "operand 1 of add.s32, %rd2, has 8 bytes, not 4"},
    {"add.s32 1, %r0, 1;", "operand 1 of add.s32 is to be a register"},
    {"add.s32 %r1, [%r0], 1;", "operand 2 of add.s32 is to be a value"},
    {"add.s32 _, %r0, 1;", "operand 1 of add.s32 is to be a value"},
    {"{ .reg .pred mine; setp.ne.b32 mine, 1, 2; } selp.b32 %r1, 1, 2, mine;",
     "not a register, a number or a name that was declared: mine"},
    {"bra $L;", "no such label: $L"},
    {"@%p99 ret;", "no such predicate: %p99"},
    {".local .b8 x[4];", "unknown in a kernel: .local"},
    {"add.s32 %r1, %r9, 1;", "%r9 is read and was not written (block 0, thread 0)"},
    {"setp.eq.s32 %p1, %r0, 1; @%p1 mov.u32 %r9, 1; add.s32 %r1, %r9, 1;",
     "%r9 is read and was not written (block 0, thread 0)"},
    {"ld.global.u32 %r1, [%rd0+2];", "is no multiple of 4"},
    {"ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+8];", "is no multiple of 16"},
    {"ld.global.u32 %r1, [%rd0+65536];", "are not in device memory"},
    {"mov.u32 %r2, bytes; st.shared.u32 [%r2+32768], %r0;", "are not in shared memory"},
    {"ld.shared.u32 %r1, [0];", "are not in shared memory"},
    {"mov.u32 %r2, bytes; cp.async.cg.shared.global [%r2], [%rd1], 16, 8;",
     "8 of 16 bytes, not 16 or none of 16"},
    {"mov.u32 %r2, bytes; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r2+8];",
     "is no multiple of 16"},
    {"setp.eq.s32 %p1, %r0, 1; mov.u32 %r2, bytes; @%p1 bra $L; "
     "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r2]; $L:",
     "only some lanes of the warp come here"},
    {"setp.eq.s32 %p1, %r0, 1; @%p1 bra $L; bar.sync 0; $L:",
     "only some lanes of the warp come to this barrier"},
    {"bar.warp.sync 15;", "the mask names other lanes than those that are here"},
    {"$L: bra $L;", "instructions"},
};

/* ---- matrices ---- */

/* CUTLASS's ((4, 8), (2, 2, 2)) layouts: lane and value to row + rows * column. */
int place_of(int lane, int value, const int (&lanes)[2], const int (&values)[3])
{
    return lane % 4 * lanes[0] + lane / 4 * lanes[1] + (value & 1) * values[0] +
           (value >> 1 & 1) * values[1] + (value >> 2) * values[2];
}
int in_a(int lane, int value) /* m + 16 k */
{
    return place_of(lane, value, {32, 1}, {16, 8, 128});
}
int in_b(int lane, int value) /* n + 8 k */
{
    return place_of(lane, value, {16, 1}, {8, 64, 0});
}
int in_c(int lane, int value) /* m + 16 n */
{
    return place_of(lane, value, {32, 1}, {16, 8, 0});
}

uint32_t bits(float x)
{
    return (uint32_t)bits_of(x);
}
/* Whole numbers, which bf16 and the sums hold exactly. */
float element(int which, int place)
{
    return (float)((place * place * (which + 3) + 5 * place) % 23 - 11);
}

void test_mma()
{
    std::vector<uint32_t> words(WORDS * LANES);
    auto pair = [](int which, int low, int high) {
        return bits(element(which, low)) >> 16 | (bits(element(which, high)) & 0xffff0000);
    };
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t *at = &words[(size_t)lane * WORDS];
        for (int r = 0; r < 4; r++)
            at[r] = pair(0, in_a(lane, 2 * r), in_a(lane, 2 * r + 1));
        for (int r = 0; r < 2; r++)
            at[4 + r] = pair(1, in_b(lane, 2 * r), in_b(lane, 2 * r + 1));
        for (int r = 0; r < 4; r++)
            at[8 + r] = bits(element(2, in_c(lane, r)));
    }
    run("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0]; ld.global.u32 %r5, [%rd0+16]; "
        "ld.global.u32 %r6, [%rd0+20]; ld.global.v4.u32 {%r11, %r12, %r13, %r14}, [%rd0+32]; "
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, "
        "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r11, %r12, %r13, %r14}; "
        "st.global.v4.u32 [%rd0], {%f1, %f2, %f3, %f4};",
        WARP_THREADS, &words);
    bool good = true;
    for (int lane = 0; lane < LANES; lane++)
        for (int r = 0; r < 4; r++) {
            int place = in_c(lane, r), m = place % 16, n = place / 16;
            float sum = element(2, place);
            for (int k = 0; k < 16; k++)
                sum += element(0, m + 16 * k) * element(1, n + 8 * k);
            good = good && words[(size_t)(lane * WORDS + r)] == bits(sum);
        }
    report(good, "mma.sync has CUTLASS's layouts");
}

/* Byte b of shared memory belongs to the row that lane b / 16 points to. */
void test_ldmatrix(bool transposed)
{
    std::vector<uint32_t> words(WORDS * LANES);
    for (int i = 0; i < WORDS * LANES; i++) /* 16-bit numbers in order, 8 a lane */
        words[(size_t)i] =
            i % WORDS < 4 ? (uint32_t)(8 * (i / WORDS) + 2 * (i % WORDS)) * 0x10001 + 0x10000 : 0;
    run(std::string("shl.b32 %r2, %r0, 4; mov.u32 %r3, bytes; add.s32 %r2, %r2, %r3; "
                    "cp.async.cg.shared.global [%r2], [%rd0], 16, 16; cp.async.wait_all; "
                    "bar.sync 0; ldmatrix.sync.aligned.m8n8.x4") +
            (transposed ? ".trans" : "") +
            ".shared.b16 {%r4, %r5, %r6, %r7}, [%r2]; st.global.v4.u32 [%rd0], {%r4, %r5, %r6, "
            "%r7};",
        WARP_THREADS, &words);
    bool good = true;
    for (int lane = 0; lane < LANES; lane++)
        for (int value = 0; value < 8; value++) { /* half, and then register */
            int half = value % 2, r = value / 2;
            int bit = transposed ? 256 * (lane % 4) + 16 * (lane / 4) + 128 * half + 1024 * r
                                 : 32 * lane + 16 * half + 1024 * r;
            uint32_t got = words[(size_t)(lane * WORDS + r)] >> 16 * half & 0xffff;
            good = good && got == (uint32_t)bit / 16;
        }
    report(good,
           transposed ? "ldmatrix.trans has CUTLASS's layout" : "ldmatrix has CUTLASS's layout");
}

} // namespace

int main()
{
    for (const result_row &it : results)
        test_result(it, WARP_THREADS);
    for (const fault_row &it : faults)
        test_fault(it, WARP_THREADS);
    test_mma();
    test_ldmatrix(false);
    test_ldmatrix(true);
    test_async_instructions();
    return end_of_tests();
}
