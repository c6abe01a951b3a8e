/* Numbers of both dtypes in kernels: read as float, computed as float, rounded when stored; 16
 * bytes at a time where the place allows it; and sums over a warp and a block. T is
 * float or bf16. */
#ifndef SHOAL_KERNELS_CUDA_NUMBERS_H
#define SHOAL_KERNELS_CUDA_NUMBERS_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
#ifdef __CUDACC__
#include <cuda_bf16.h>
#endif

/* CUDA_FOR_DTYPE(t, T, statement): the statement with T = float or bf16 for the dtype t. */
#define CUDA_FOR_DTYPE(t, T, ...)                                                                  \
    do {                                                                                           \
        if ((t) == DTYPE_F32) {                                                                    \
            using T = float;                                                                       \
            __VA_ARGS__;                                                                           \
        } else {                                                                                   \
            using T = bf16;                                                                        \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

/* ---- one number ---- */

/* bf16_from_float() by an instruction; of NaNs it makes one. */
__device__ static inline bf16 bf16_nearest(float x)
{
#ifdef __CUDA_ARCH__
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
#else
    return bf16_from_float(x);
#endif
}

__device__ static inline float number_load(const float *p)
{
    return *p;
}
__device__ static inline float number_load(const bf16 *p)
{
    return bf16_to_float(*p);
}
__device__ static inline void number_store(float *p, float x)
{
    *p = x;
}
__device__ static inline void number_store(bf16 *p, float x)
{
    *p = bf16_nearest(x);
}
/* x as it is after a store. */
template <typename T> __device__ static inline float number_round(float x)
{
    T stored;
    number_store(&stored, x);
    return number_load(&stored);
}

/* ---- 16 bytes of numbers ---- */

template <typename T> constexpr int NUMBERS = 16 / (int)sizeof(T); /* 4 or 8 */

/* Two bf16 in a word, the first in the lower half. */
__device__ static inline uint32_t bf16_pair(float first, float second)
{
#ifdef __CUDA_ARCH__
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    uint32_t word;
    memcpy(&word, &pair, sizeof word);
    return word;
#else
    return bf16_nearest(first) | (uint32_t)bf16_nearest(second) << 16;
#endif
}

/* p: 16-byte aligned. */
__device__ static inline void numbers_load(float (&x)[4], const float *p)
{
    float4 all = *(const float4 *)p;
    x[0] = all.x, x[1] = all.y, x[2] = all.z, x[3] = all.w;
}
__device__ static inline void numbers_load(float (&x)[8], const bf16 *p)
{
    uint4 all = *(const uint4 *)p;
    const uint32_t words[4] = {all.x, all.y, all.z, all.w};
    for (int i = 0; i < 4; i++) {
        x[2 * i] = bf16_to_float((bf16)words[i]);
        x[2 * i + 1] = bf16_to_float((bf16)(words[i] >> 16));
    }
}
__device__ static inline void numbers_store(float *p, const float (&x)[4])
{
    *(float4 *)p = make_float4(x[0], x[1], x[2], x[3]);
}
__device__ static inline void numbers_store(bf16 *p, const float (&x)[8])
{
    *(uint4 *)p = make_uint4(bf16_pair(x[0], x[1]), bf16_pair(x[2], x[3]), bf16_pair(x[4], x[5]),
                             bf16_pair(x[6], x[7]));
}

/* p: 8-byte aligned. */
__device__ static inline void numbers_store(bf16 *p, const float (&x)[4])
{
    *(uint2 *)p = make_uint2(bf16_pair(x[0], x[1]), bf16_pair(x[2], x[3]));
}

/* The same as 16 bytes at an array's end: of `left` numbers (> 0) those that fit; others are 0, and
 * not stored. */
template <typename T, int N>
__device__ static inline void numbers_load(float (&x)[N], const T *p, int64_t left)
{
    static_assert(N == NUMBERS<T>, "16 bytes of T");
    if (left >= N) {
        numbers_load(x, p);
        return;
    }
    for (int i = 0; i < N; i++)
        x[i] = i < left ? number_load(p + i) : 0;
}
template <typename T, int N>
__device__ static inline void numbers_store(T *p, const float (&x)[N], int64_t left)
{
    static_assert(N == NUMBERS<T>, "16 bytes of T");
    if (left >= N) {
        numbers_store(p, x);
        return;
    }
    for (int i = 0; i < left; i++)
        number_store(p + i, x[i]);
}

/* ---- which numbers are a thread's ---- */

/* This thread's number in the grid, and the grid's threads (one-dimensional both). */
__device__ static inline int64_t grid_thread(void)
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ static inline int64_t grid_threads(void)
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* ---- sums and largest, in a fixed order ---- */

/* All lanes get the sum over the warp's 32. T: float, double, int. */
template <typename T> __device__ static inline T warp_sum(T x)
{
    for (int bits = 16; bits; bits /= 2)
        x += __shfl_xor_sync(CUDA_WARP, x, bits);
    return x;
}
template <typename T> __device__ static inline T warp_max(T x)
{
    for (int bits = 16; bits; bits /= 2) {
        T other = __shfl_xor_sync(CUDA_WARP, x, bits);
        x = other > x ? other : x;
    }
    return x;
}

/* All threads get the sum over the block (a multiple of 32 threads, one-dimensional). Begins and
 * ends with barriers where more than one warp takes part. */
template <typename T> __device__ static inline T block_sum(T x)
{
    CUDA_BLOCK(T, sums, [32]);
    int warps = (int)blockDim.x / 32, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    x = warp_sum(x);
    if (warps == 1)
        return x;
    __syncthreads(); /* who reads the sums of the call before is done */
    if (lane == 0)
        sums[warp] = x;
    __syncthreads();
    return warp_sum(lane < warps ? sums[lane] : (T)0);
}

#endif
#endif
