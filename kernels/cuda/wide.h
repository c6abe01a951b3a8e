/* Kernels whose rows may start anywhere are templates on T and N. T is the element, float or bf16.
 * N is how many neighbours a thread takes at a time. N is 16 bytes' worth if all rows start on 16
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
            float vector[M];
            numbers_load(vector, p + i);
#pragma unroll
            for (int j = 0; j < M; j++)
                x[i + j] = vector[j];
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
            float vector[M];
#pragma unroll
            for (int j = 0; j < M; j++)
                vector[j] = x[i + j];
            numbers_store(p + i, vector);
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

/* A grid of columns by rows: an item of a row for each thread, grid_thread(), and some rows, from
 * blockIdx.y in steps of gridDim.y. */
struct rows_grid {
    dim3 blocks;
    int threads; /* of a block */
};

static inline struct rows_grid rows_grid_of(int64_t rows, int64_t items, int most_threads)
{
    enum { MOST_ROWS = 4096 };
    int threads = (int)cuda_blocks(items, 32, most_threads / 32) * 32;
    struct rows_grid grid = {
        dim3(cuda_blocks(items, threads, INT32_MAX), cuda_blocks(rows, 1, MOST_ROWS)), threads};
    return grid;
}

#endif
#endif
