/* Tensor core instructions that CUDA C++ has no words for, each with a plain twin for the
 * emulation. They need compute capability 8.0 (NVIDIA, "Parallel Thread Execution ISA",
 * chapter 9.7: mma.sync.aligned.m16n8k16, ldmatrix, cp.async, ex2, cvt). Whole warps call them.
 * Nothing here knows what is multiplied. Code for older GPUs, which have no bf16 in their matrix
 * units, stops where one of them would be: cuda_has_matrix_units() tells who may start a kernel
 * with them.
 *
 * Fragment layout ("Matrix Fragments for mma.m16n8k16 with floating point type" there): a matrix of
 * 8 x 8 bf16 is one register per lane, two elements, the lower half first. Lane l holds row l / 4,
 * columns 2 (l % 4) and 2 (l % 4) + 1. Of a product D += A B, [16, 16] by [16, 8], a lane has
 * these; g is l / 4 and t is l % 4.
 *  - a[0]: row g, columns 2t and 2t + 1; a[1]: row g + 8, the same columns;
 *  - a[2]: row g, columns 2t + 8 and 2t + 9; a[3]: row g + 8, the same columns;
 *  - b0: rows 2t and 2t + 1 of column g; b1: rows 2t + 8 and 2t + 9 of it;
 *  - d[0], d[1]: row g, columns 2t and 2t + 1; d[2], d[3]: row g + 8, the same columns:
 *    two D side by side, rounded, are an A. So attention's probabilities go from one product into
 * the next in registers, without shared memory.
 * tests/emulation/test_matrix.cu compares that with CuTe's layouts of the same instructions. */
#ifndef SHOAL_KERNELS_CUDA_MATRIX_H
#define SHOAL_KERNELS_CUDA_MATRIX_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus

/* The statement, which needs 8.0. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define MATRIX_UNITS(...) __trap()
#else
#define MATRIX_UNITS(...) __VA_ARGS__
#endif

/* Copies from device to shared memory that run beside the thread; what they bring may be read after
 * its wait(), by other threads after a __syncthreads() too. */
struct matrix_copies {
#ifndef SHOAL_EMULATION
    /* BYTES (4 or 16, and aligned so) from `from` to `to`; zeros if not valid: `from` is then not
     * read. */
    template <int BYTES> __device__ void copy(void *to, const void *from, bool valid)
    {
        unsigned shared = (unsigned)__cvta_generic_to_shared(to);
        if constexpr (BYTES == 16)
            MATRIX_UNITS(asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared),
                                      "l"(from), "r"(valid ? 16 : 0)
                                      : "memory"));
        else
            MATRIX_UNITS(asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared),
                                      "l"(from), "r"(valid ? 4 : 0)
                                      : "memory"));
    }
    __device__ void wait()
    {
        MATRIX_UNITS(asm volatile("cp.async.wait_all;" ::: "memory"));
    }
#else
    /* As late as allowed, so that a missing wait() shows. */
    enum { MOST = 96 };
    struct {
        void *to;
        const void *from;
        void (*bring)(void *, const void *);
    } queue[MOST];
    int count = 0;

    template <int BYTES> void copy(void *to, const void *from, bool valid)
    {
        assert(count < MOST && (uintptr_t)to % BYTES == 0 && (uintptr_t)from % BYTES == 0);
        static const unsigned char zeros[BYTES] = {};
        auto bring = [](void *there, const void *here) { memcpy(there, here, BYTES); };
        queue[count++] = {to, valid ? from : zeros, bring};
    }
    void wait()
    {
        for (int i = 0; i < count; i++)
            queue[i].bring(queue[i].to, queue[i].from);
        count = 0;
    }
#endif
};

/* threadIdx.x % 32 of a block of whole warps, found anew at each call: what is computed from it is
 * not kept in registers from one iteration of a loop to the next. */
__device__ inline int matrix_lane()
{
#ifndef SHOAL_EMULATION
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    __builtin_assume(lane >= 0 && lane < 32);
    return lane;
#else
    return emulation::lane();
#endif
}

/* threadIdx.x, found anew likewise. */
__device__ inline int matrix_thread()
{
#ifndef SHOAL_EMULATION
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    __builtin_assume(thread >= 0 && thread < 1024);
    return thread;
#else
    return (int)threadIdx.x;
#endif
}

/* 2^x to about 2 units in the last place; 0 for what is denormal. */
__device__ inline float matrix_exp2(float x)
{
#ifndef SHOAL_EMULATION
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

/* Two elements of a matrix of bf16. */
__device__ inline uint32_t matrix_pair(float low, float high)
{
#ifndef SHOAL_EMULATION
    uint32_t pair = 0;
    MATRIX_UNITS(asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low)));
    return pair;
#else
    return bf16_from_float(low) | (uint32_t)bf16_from_float(high) << 16;
#endif
}

/* Loads four 8 x 8 matrices from shared memory, m[0] .. m[3]: lane l gives where row l % 8 of
 * matrix l / 8 lies, 16 bytes, aligned. */
__device__ inline void matrix_load(uint32_t (&m)[4], const bf16 *row)
{
#ifndef SHOAL_EMULATION
    unsigned shared = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared)
                 : "memory");
#else
    emulation::warp_values<const bf16 *> rows = emulation::warp_gather(row);
    int lane = emulation::lane();
    for (int i = 0; i < 4; i++)
        memcpy(&m[i], rows[8 * i + lane / 4] + 2 * (lane % 4), sizeof m[i]);
#endif
}

/* The same, each matrix transposed. */
__device__ inline void matrix_load_transposed(uint32_t (&m)[4], const bf16 *row)
{
#ifndef SHOAL_EMULATION
    unsigned shared = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared)
                 : "memory");
#else
    emulation::warp_values<const bf16 *> rows = emulation::warp_gather(row);
    int lane = emulation::lane();
    for (int i = 0; i < 4; i++) {
        const bf16 *low = rows[8 * i + 2 * (lane % 4)], *high = rows[8 * i + 2 * (lane % 4) + 1];
        m[i] = low[lane / 4] | (uint32_t)high[lane / 4] << 16;
    }
#endif
}

/* D += A B, [16, 16] by [16, 8], bf16 with fp32 sums. */
__device__ inline void matrix_multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                       uint32_t b1)
{
#ifndef SHOAL_EMULATION
    MATRIX_UNITS(asm(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)));
#else
    struct operands {
        uint32_t a[4], b[2];
    };
    operands mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
    emulation::warp_values<operands> all = emulation::warp_gather(mine);
    int g = emulation::lane() / 4, t = emulation::lane() % 4;
    for (int k = 0; k < 16; k += 2) {
        int half = k / 8, lane = k % 8 / 2;
        operands rows = all[4 * g + lane];
        for (int column = 0; column < 2; column++) {
            uint32_t b = all[4 * (2 * t + column) + lane].b[half];
            for (int shift = 0; shift < 32; shift += 16) {
                float right = bf16_to_float((bf16)(b >> shift));
                d[column] += bf16_to_float((bf16)(rows.a[2 * half] >> shift)) * right;
                d[2 + column] += bf16_to_float((bf16)(rows.a[2 * half + 1] >> shift)) * right;
            }
        }
    }
#endif
}

#endif
#endif
