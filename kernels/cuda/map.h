/* Ops in which each element is on its own: y[i] = f(a[i]) or f(a[i], b[i]), f being a struct with
 * a device function at(). y may be a or b. */
#ifndef SHOAL_KERNELS_CUDA_MAP_H
#define SHOAL_KERNELS_CUDA_MAP_H

#include "kernels/cuda/wide.h"

#ifdef __cplusplus

enum { MAP_THREADS = 256, MAP_BLOCKS = 8 /* of each multiprocessor: all that it can hold */ };

template <int N, class T, class F>
static __device__ inline void map_at(int64_t i, T *y, const T *a, F f)
{
    float x[N];
    load(x, a + i);
#pragma unroll
    for (int j = 0; j < N; j++)
        x[j] = f.at(x[j]);
    store(y + i, x);
}

template <int N, class T, class F>
static __device__ inline void map_at(int64_t i, T *y, const T *a, const T *b, F f)
{
    float x[N], z[N];
    load(x, a + i);
    load(z, b + i);
#pragma unroll
    for (int j = 0; j < N; j++)
        x[j] = f.at(x[j], z[j]);
    store(y + i, x);
}

/* args: y, a, perhaps b, and f. */
template <int N, class... Args> static __global__ void map_kernel(int64_t count, Args... args)
{
    int64_t whole = count / N * N;
    for (int64_t i = grid_thread() * N; i < whole; i += grid_threads() * N)
        map_at<N>(i, args...);
    if (grid_thread() < count - whole)
        map_at<1>(whole + grid_thread(), args...);
}

/* The grid for `count` elements, N at a time. */
static inline unsigned map_blocks(const struct stream *s, int64_t count, int N)
{
    return cuda_blocks(count, MAP_THREADS * N, (int64_t)MAP_BLOCKS * cuda_multiprocessors(s));
}

template <class F>
static inline void map(struct stream *s, enum dtype t, void *y, const void *a, int64_t count, F f)
{
    for_dtype(t, is_aligned(y) && is_aligned(a), [&](auto element, auto neighbours) {
        using T = decltype(element);
        constexpr int N = decltype(neighbours)::value;
        CUDA_LAUNCH(s, (map_kernel<N, T *, const T *, F>), map_blocks(s, count, N), MAP_THREADS, 0,
                    count, (T *)y, (const T *)a, f);
    });
}

template <class F>
static inline void map(struct stream *s, enum dtype t, void *y, const void *a, const void *b,
                       int64_t count, F f)
{
    for_dtype(t, is_aligned(y) && is_aligned(a) && is_aligned(b), [&](auto element, auto number) {
        using T = decltype(element);
        constexpr int N = decltype(number)::value;
        CUDA_LAUNCH(s, (map_kernel<N, T *, const T *, const T *, F>), map_blocks(s, count, N),
                    MAP_THREADS, 0, count, (T *)y, (const T *)a, (const T *)b, f);
    });
}

#endif
#endif
