/* Kernels whose rows may start anywhere: they are templates on the element T (float or bf16) and on
 * N, the neighbours that a thread takes at a time: 16 bytes' worth where all rows start on 16
 * bytes, else 1. */
#ifndef SHOAL_KERNELS_CUDA_WIDE_H
#define SHOAL_KERNELS_CUDA_WIDE_H

#include "kernels/cuda/numbers.h"

#ifdef __cplusplus

/* x = the N numbers from p on: 1, or 16 bytes or a multiple of them at a place of as many. */
template <int N, class T> static __device__ inline void load(float (&x)[N], const T *p)
{
    if constexpr (N == 1) {
        x[0] = number_load(p);
    } else {
        constexpr int M = NUMBERS<T>;
#pragma unroll
        for (int i = 0; i < N; i += M) {
            float part[M];
            numbers_load(part, p + i);
#pragma unroll
            for (int j = 0; j < M; j++)
                x[i + j] = part[j];
        }
    }
}

template <int N, class T> static __device__ inline void store(T *p, const float (&x)[N])
{
    if constexpr (N == 1) {
        number_store(p, x[0]);
    } else {
        constexpr int M = NUMBERS<T>;
#pragma unroll
        for (int i = 0; i < N; i += M) {
            float part[M];
#pragma unroll
            for (int j = 0; j < M; j++)
                part[j] = x[i + j];
            numbers_store(p + i, part);
        }
    }
}

/* p[0 .. N) += x. */
template <int N> static __device__ inline void add_to(float *p, const float (&x)[N])
{
    float sum[N];
    load(sum, p);
#pragma unroll
    for (int i = 0; i < N; i++)
        sum[i] += x[i];
    store(p, sum);
}

/* On the host: calls f(T(), count_of<N>()) for the dtype t. f is a generic lambda that launches a
 * template. */
template <int COUNT> struct count_of {
    static constexpr int value = COUNT;
};

template <class F> static inline void for_dtype(enum dtype t, bool wide, F f)
{
    if (t == DTYPE_F32 && wide)
        f(float(), count_of<NUMBERS<float>>());
    else if (t == DTYPE_F32)
        f(float(), count_of<1>());
    else if (wide)
        f(bf16(), count_of<NUMBERS<bf16>>());
    else
        f(bf16(), count_of<1>());
}

/* Whether memory starts on 16 bytes, or rows of `bytes` do. */
static inline bool is_aligned(const void *memory)
{
    return (uintptr_t)memory % 16 == 0;
}

static inline bool is_aligned(int64_t bytes)
{
    return bytes % 16 == 0;
}

/* A grid of columns by rows for blocks of `threads`: an item of a row for each thread. A grid can
 * have no more rows, so kernels stride by gridDim.y. */
static inline dim3 cuda_rows_grid(int64_t rows, int64_t items, int threads)
{
    const int64_t most_rows = 65535;
    return dim3(cuda_blocks(items, threads, INT32_MAX), cuda_blocks(rows, 1, most_rows));
}

#endif
#endif
