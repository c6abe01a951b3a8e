/* Instructions of compute capability 9.0, by themselves. Which thread holds what of a product is
 * held against CUTLASS's layouts (include/cute/atom/mma_traits_sm90_gmma.hpp: CLayout_64xN,
 * ALayout_64x16), which are strides from thread and value to row + 64 * column; where TMA writes 16
 * bytes against CuTe's Swizzle<3, 4, 3> (include/cute/swizzle.hpp). */
#include "tests/emulation/async_block.h"
#include "tests/ptx/instruction_test.h"

#include <functional>

namespace ptx
{
namespace
{

#define INIT                                                                                       \
    "setp.eq.s32 %p1, %r0, 0; mov.u32 %r2, bytes; @%p1 mbarrier.init.shared::cta.b64 [%r2], "
#define BARRIER INIT "1; bar.sync 0; "
#define ARRIVE  "mbarrier.arrive.shared::cta.b64 _, [%r2]; "
#define TRY     "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], "
#define WAIT    "$W: " TRY "0; @!%p2 bra $W; "
#define TOLD    "selp.b32 %r1, 1, 2, %p2;"
#define COPY    "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"

#define PLAIN "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"

const result_row results[] = {
    {BARRIER TRY "0; " TOLD, 2},
    {BARRIER TRY "1; " TOLD, 1, 77}, /* of a new barrier the phase before is over */
    {BARRIER "@%p1 " ARRIVE WAIT "mov.u32 %r1, 7;", 7, 127},
    {BARRIER "@%p1 " ARRIVE TRY "1; " TOLD, 2, 64},
    {INIT "128; bar.sync 0; " ARRIVE WAIT "mov.u32 %r1, 7;", 7, 3},
    {BARRIER "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16; " TRY "0; " TOLD, 2},
    {BARRIER "@%p1 " ARRIVE WAIT "bar.sync 0; @%p1 " ARRIVE "$V: " TRY "1; @!%p2 bra $V; " TRY
             "0; " TOLD,
     2, 5},
    {BARRIER "@!%p1 bra $W; fence.proxy.async.shared::cta; "
             "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 32; " PLAIN
             " [%r2+16], [%rd1+64], 32, [%r2]; " WAIT "ld.shared.u32 %r1, [%r2+44];",
     23, 9},
    {"setmaxnreg.dec.sync.aligned.u32 24; setmaxnreg.inc.sync.aligned.u32 168; mov.u32 %r1, 7;", 7},
    /* three warps wait for what the last one gives */
    {"setp.lt.s32 %p1, %r0, 96; @%p1 bra $L; setmaxnreg.dec.sync.aligned.u32 24; bra $M; "
     "$L: setmaxnreg.inc.sync.aligned.u32 216; $M: mov.u32 %r1, 7;",
     7, 1},
};

const fault_row faults[] = {
    {"mov.u32 %r2, bytes; mbarrier.init.shared::cta.b64 [%r2+4], 1;", "is no multiple of 8"},
    {"mbarrier.init.shared::cta.b64 [0], 1;", "are not in shared memory"},
    {INIT "0;", "a barrier for 0 arrivals"},
    {BARRIER "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;", "is made twice"},
    {BARRIER "mbarrier.arrive.shared::cta.b64 _, [%r2+8];", "there is no barrier at 0x408"},
    {BARRIER "mbarrier.arrive.shared::cta.b64 %rd2, [%r2];",
     "operand 1 of mbarrier.arrive.shared::cta.b64 is to be _"},
    {INIT "2; bar.sync 0; @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1; " ARRIVE,
     "more than 2 arrive at the barrier at 0x400 in one phase"},
    {BARRIER "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1048576;",
     "more bytes are expected than a barrier counts"},
    {INIT "2; bar.sync 0; @%p1 " ARRIVE WAIT,
     "no warp can go on: phase 0 of the barrier at 0x400: 1 of 2 arrivals and 0 bytes are missing"},
    {BARRIER "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16; " WAIT,
     "0 of 1 arrivals and 16 bytes are missing (block 0, warp 0)"},
    {BARRIER "@%p1 " COPY " [%r2+1024], [%rd8, {0, 0, 0, 0}], [%r2];", "what is no tensor map"},
    {BARRIER "@%p1 " COPY " [%r2+1024], [%rd8+256, {0, 0, 0, 0}], [%r2];",
     "no parameter is where the tensor map is to be"},
    {BARRIER "@%p1 " PLAIN " [%r2+16], [%rd1], 8, [%r2];", "a copy of 8 bytes, no multiple of 16"},
    {BARRIER "@%p1 " PLAIN " [%r2+8], [%rd1], 16, [%r2];", "is no multiple of 16"},
    {BARRIER "@%p1 " PLAIN " [%r2+16], [%rd1+8], 16, [%r2];", "is no multiple of 16"},
    {BARRIER "@%p1 " PLAIN " [%r2+16], [%rd1+8176], 32, [%r2];", "are not in device memory"},
    {BARRIER "@%p1 " PLAIN " [%r2+32752], [%rd1], 32, [%r2];", "are not in shared memory"},
    {BARRIER "@%p1 " PLAIN " [%r2+16], [%rd1], 16, [%r2];", "TMA need not see the barrier"},
    {"setmaxnreg.dec.sync.aligned.u32 36;", "36 registers, no multiple of 8 from 24 to 256"},
    {"setmaxnreg.dec.sync.aligned.u32 176;", "to 176 registers from 168"},
    {"setmaxnreg.inc.sync.aligned.u32 160;", "to 160 registers from 168"},
    {"setmaxnreg.inc.sync.aligned.u32 176;", "no warp can go on: the pool has 0 registers"},
};

/* ---- a tensor that TMA brings, [1, ROWS, 1, COLUMNS] of bf16 ---- */

enum { ROWS = 192, COLUMNS = 64, BOX = 64, BOX_BYTES = BOX * COLUMNS * 2 };
uint16_t tensor[ROWS][COLUMNS];

std::vector<unsigned char> map_of_tensor()
{
    emulation::map_fields fields = {emulation::MAP_MAGIC,
                                    (const unsigned char *)tensor,
                                    {COLUMNS, 1, ROWS, 1},
                                    {COLUMNS * 2, COLUMNS * 2, sizeof tensor},
                                    {COLUMNS, 1, BOX, 1}};
    std::vector<unsigned char> map(sizeof fields);
    memcpy(map.data(), &fields, sizeof fields);
    return map;
}

/* The first thread brings boxes from these rows on, one behind the other; all wait for them. The
 * barrier is behind four. */
std::string bring(const std::vector<int> &from)
{
    std::string text = "mov.u32 %r2, bytes; add.s32 %r3, %r2, 32000; setp.ne.s32 %p1, %r0, 0; "
                       "@%p1 bra $L; mbarrier.init.shared::cta.b64 [%r3], 1; "
                       "fence.proxy.async.shared::cta; "
                       "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], " +
                       std::to_string(BOX_BYTES * from.size()) + "; ";
    for (size_t i = 0; i < from.size(); i++)
        text += COPY " [%r2+" + std::to_string(i * BOX_BYTES) + "], [%rd8, {0, 0, " +
                std::to_string(from[i]) + ", 0}], [%r3]; ";
    return text + "$L: bar.sync 0; $W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; "
                  "@!%p2 bra $W; ";
}

/* Fills the tensor, runs, and looks at what each thread has left: PER_THREAD words. */
void test_tensor(const std::string &what, const std::function<uint16_t(int, int)> &fill,
                 const std::string &body, std::vector<uint32_t> words,
                 const std::function<bool(const std::vector<uint32_t> &)> &is_right)
{
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            tensor[row][column] = fill(row, column);
    std::string why = "other numbers";
    bool good = false;
    try {
        run(body, GROUP_THREADS, &words, map_of_tensor());
        good = is_right(words);
    } catch (const fault &f) {
        why = f.what();
    }
    report(good, what, why);
}

/* From row 160 on there are 32. */
void test_swizzle()
{
    enum { EACH = BOX_BYTES / 4 / GROUP_THREADS };
    std::string body = bring({160}) + "shl.b32 %r4, %r0, 6; add.s32 %r4, %r4, %r2; ";
    for (int i = 0; i < EACH; i++) {
        std::string at = std::to_string(4 * i);
        body += "ld.shared.u32 %r1, [%r4+" + at + "]; st.global.u32 [%rd0+" + at + "], %r1; ";
    }
    auto number = [](int row, int column) { return (uint16_t)(row * COLUMNS + column); };
    test_tensor("TMA writes CuTe's swizzle, and zeros beyond the last row", number, body,
                std::vector<uint32_t>(EACH * GROUP_THREADS), [&](const auto &words) {
                    for (size_t i = 0; i < 2 * words.size(); i++) {
                        size_t row = i / COLUMNS, chunk = i / 8 % 8, column = i % 8;
                        column += (chunk ^ row % 8) * 8;
                        uint16_t wanted = row < 32 ? number((int)row + 160, (int)column) : 0;
                        if ((uint16_t)(words[i / 2] >> 16 * (i % 2)) != wanted)
                            return false;
                    }
                    return true;
                });
}

/* ---- products ---- */

uint16_t bf16(float x)
{
    return (uint16_t)((uint32_t)bits_of(x) >> 16);
}
/* Whole numbers, which bf16 and the sums hold exactly. */
float small(int row, int column)
{
    return (float)((row * row * 3 + row * column * 7 + 5 * column) % 23 - 11);
}
uint16_t small_bits(int row, int column)
{
    return bf16(small(row, column));
}

/* Both layouts are ((4, 8, 4), (2, 2, n)) : ((128, 1, 16), (64, 8, 512)). */
void place_of(int thread, int value, int *row, int *column)
{
    int place = thread % 4 * 128 + thread / 4 % 8 + thread / 32 * 16 + value % 2 * 64 +
                value / 2 % 2 * 8 + value / 4 * 512;
    *row = place % 64;
    *column = place / 64;
}

std::string names(const char *prefix, int first, int count)
{
    std::string all = "{";
    for (int i = 0; i < count; i++)
        all += (i ? ", " : "") + std::string(prefix) + std::to_string(first + i);
    return all + "}";
}

/* The swizzle of 128 bytes; eight rows from the next 1024 bytes. */
std::string descriptor(int at, int leading)
{
    uint64_t d =
        (SHARED_AT + (uint64_t)at) >> 4 | (uint64_t)leading >> 4 << 16 | 64ull << 32 | 1ull << 62;
    return std::to_string(d);
}

std::string zero_sums(int count)
{
    std::string text;
    for (int i = 0; i < count; i++)
        text += "mov.f32 %f" + std::to_string(i) + ", 0f00000000; ";
    return text;
}

std::string store_sums(int count)
{
    std::string text;
    for (int i = 0; i < count; i++)
        text += "st.global.f32 [%rd0+" + std::to_string(4 * i) + "], %f" + std::to_string(i) + "; ";
    return text;
}

#define PRODUCT "wgmma.mma_async.sync.aligned.m64n"
#define OF_BF16 "k16.f32.bf16.bf16 "
#define DONE    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; "

/* Each thread's sums are those of `formula`(row, column). */
std::function<bool(const std::vector<uint32_t> &)>
sums_are(int n, const std::function<float(int, int)> &formula)
{
    return [=](const std::vector<uint32_t> &words) {
        for (int i = 0; i < 64 * n; i++) {
            int row, column, each = n / 2;
            place_of(i / each, i % each, &row, &column);
            if (words[(size_t)i] != (uint32_t)bits_of(formula(row, column)))
                return false;
        }
        return true;
    };
}

/* A is rows 0 .. 64, B the n behind them; 64 deep. b_times: imm-scale-b. */
void test_both_in_shared_memory(int n, int b_times)
{
    std::string body = bring({0, 64, 128}) + "setp.eq.s32 %p3, 0, 1; setp.eq.s32 %p4, 1, 1; "
                                             "wgmma.fence.sync.aligned; ";
    for (int k = 0; k < 4; k++)
        body += PRODUCT + std::to_string(n) + OF_BF16 + names("%f", 0, n / 2) + ", " +
                descriptor(32 * k, 0) + ", " + descriptor(BOX_BYTES + 32 * k, 0) +
                (k ? ", %p4" : ", %p3") + ", 1, " + std::to_string(b_times) + ", 0, 0; ";
    auto formula = [=](int row, int column) {
        float sum = 0;
        for (int k = 0; k < 64; k++)
            sum += (float)b_times * small(row, k) * small(64 + column, k);
        return sum;
    };
    test_tensor("wgmma of two tiles has CUTLASS's layouts, n " + std::to_string(n) + ", B times " +
                    std::to_string(b_times),
                small_bits, body + DONE + store_sums(n / 2),
                std::vector<uint32_t>((size_t)(n / 2) * GROUP_THREADS), sums_are(n, formula));
}

/* A is transposed, too: rows 0 .. 16 by columns of the first box, times those of the second. */
void test_both_transposed()
{
    std::string body = bring({0, 64, 128}) + "setp.eq.s32 %p3, 0, 1; wgmma.fence.sync.aligned; " +
                       PRODUCT "128" OF_BF16 + names("%f", 0, 64) + ", " + descriptor(0, 0) + ", " +
                       descriptor(BOX_BYTES, BOX_BYTES) + ", %p3, 1, 1, 1, 1; ";
    auto formula = [](int row, int column) {
        float sum = 0;
        for (int k = 0; k < 16; k++)
            sum += small(k, row) * small(64 + column / 64 * 64 + k, column % 64);
        return sum;
    };
    test_tensor("wgmma of two transposed tiles has CUTLASS's layouts", small_bits,
                body + DONE + store_sums(64), std::vector<uint32_t>(64 * GROUP_THREADS),
                sums_are(128, formula));
}

/* A in registers: small(200 + row, k). B transposed: 16 rows from 16 on, 64 columns, and 64 more in
 * the next box. */
void test_a_in_registers(int n)
{
    std::vector<uint32_t> words((size_t)(n / 2) * GROUP_THREADS);
    for (int i = 0; i < GROUP_THREADS * 8; i++) {
        int row, k;
        place_of(i / 8, i % 8, &row, &k);
        words[(size_t)(i / 8 * (n / 2) + i % 8 / 2)] |= (uint32_t)small_bits(200 + row, k)
                                                        << 16 * (i % 2);
    }
    std::string body = bring({0, 64}) + zero_sums(n / 2) + "setp.eq.s32 %p4, 1, 1; ";
    for (int i = 0; i < 4; i++)
        body += "ld.global.u32 %r" + std::to_string(10 + i) + ", [%rd0+" + std::to_string(4 * i) +
                "]; ";
    body += "wgmma.fence.sync.aligned; " PRODUCT + std::to_string(n) + OF_BF16 +
            names("%f", 0, n / 2) + ", " + names("%r", 10, 4) + ", " +
            descriptor(16 * COLUMNS * 2, BOX_BYTES) + ", %p4, 1, 1, 1; ";
    auto formula = [](int row, int column) {
        float sum = 0;
        for (int k = 0; k < 16; k++)
            sum += small(200 + row, k) * small(16 + k + column / 64 * 64, column % 64);
        return sum;
    };
    test_tensor("wgmma of registers has CUTLASS's layouts, n " + std::to_string(n), small_bits,
                body + DONE + store_sums(n / 2), words, sums_are(n, formula));
}

/* ---- what is wrong with copies and products ---- */

const std::string fence = "wgmma.fence.sync.aligned; ";

/* Before a product of registers; and that product, of 64 columns. */
std::string registers_of_product()
{
    std::string text = zero_sums(32) + "setp.eq.s32 %p4, 1, 1; ";
    for (int i = 10; i < 14; i++)
        text += "mov.u32 %r" + std::to_string(i) + ", 0; ";
    return text;
}
std::string product_of(const std::string &b, const char *rest = ", %p4, 1, 1, 1; ")
{
    return PRODUCT "64" OF_BF16 + names("%f", 0, 32) + ", " + names("%r", 10, 4) + ", " + b + rest;
}

std::vector<fault_row> wrong_rows()
{
    const std::string tile = descriptor(0, 0), begin = registers_of_product();
    const std::string good = begin + fence + product_of(tile);
    auto with = [&](int bit) {
        return begin + fence + product_of(std::to_string(std::stoull(tile) ^ 1ull << bit)) + DONE;
    };
    std::string copies = bring({0}), unfenced = copies, odd = copies, beyond = copies;
    auto replace = [](std::string *in, const std::string &what, const std::string &by) {
        in->replace(in->find(what), what.size(), by);
    };
    replace(&unfenced, "fence.proxy.async.shared::cta; ", "");
    replace(&odd, "[%r2+0]", "[%r2+64]");
    replace(&beyond, "[%r2+0]", "[%r2+24704]");
    return {
        {unfenced, "TMA need not see the barrier at 0x8100: no fence since it was made"},
        {odd, "a copy to 0x440, which is no multiple of 128"},
        {beyond, "are not in shared memory"},
        {copies.substr(0, copies.find("$L:")) + "$L:", "a block ends while a copy is under way"},
        {begin + product_of(tile), "no wgmma.fence comes before"},
        {begin + fence + "mov.f32 %f3, 0f00000000; " + product_of(tile),
         "%f3 was written since the last wgmma.fence"},
        {begin + fence + "mov.u32 %r12, 0; " + product_of(tile),
         "%r12 was written since the last wgmma.fence"},
        {good + "add.f32 %f40, %f31, %f31;", "%f31 of a product under way is read"},
        {good + "mov.f32 %f0, 0f00000000;", "%f0 of a product under way is written"},
        {good + "mov.u32 %r10, 0;", "%r10 of a product under way is written"},
        {good + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1; mov.f32 %f40, "
                "%f0;",
         "%f0 of a product under way is read"},
        {good, "a block ends while a product is under way"},
        {"setp.eq.s32 %p4, 1, 1; " + begin.substr(zero_sums(32).size()) + fence + product_of(tile),
         "%f0 is read and was not written"},
        {begin + fence + "setp.lt.s32 %p4, %r0, 32; " + product_of(tile),
         "warps of a group ask for other products"},
        {begin + fence + "setp.lt.s32 %p4, %r0, 7; " + product_of(tile),
         "lanes have other descriptors, or other predicates"},
        {with(14), "bits that are to be 0 are not"},
        {with(46), "bits that are to be 0 are not"},
        {with(63), "not the swizzle of 128 bytes"},
        {with(49), "not the swizzle of 128 bytes from a multiple of 1024 on"},
        {with(13), "are not in shared memory"},
        {begin + fence + product_of(tile, ", %p4, 2, 1, 1; ") + DONE,
         "a factor is taken times 2, not 1 or -1"},
    };
}

} // namespace

void test_async_instructions()
{
    for (const result_row &it : results)
        test_result(it, GROUP_THREADS);
    for (const fault_row &it : faults)
        test_fault(it, GROUP_THREADS);
    test_swizzle();
    test_both_in_shared_memory(64, 1);
    test_both_in_shared_memory(128, 1);
    test_both_in_shared_memory(128, -1);
    test_both_transposed();
    test_a_in_registers(64);
    test_a_in_registers(128);
    for (const fault_row &it : wrong_rows())
        test_fault(it, GROUP_THREADS, map_of_tensor());
    test_fault({registers_of_product() + fence + product_of(descriptor(0, 0)),
                "a product by less than four warps"},
               96);
}

} // namespace ptx
