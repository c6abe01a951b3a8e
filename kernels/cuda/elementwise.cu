/* Ops in which each element is on its own. A thread takes 16 bytes at a time. */
#include "kernels/cuda/ops.h"
#include "kernels/cuda/wide.h"

enum { THREADS = 256, BLOCKS_PER_MULTIPROCESSOR = 8 };

/* The grid for `count` elements, `each` at a time. */
static unsigned blocks_for(const struct stream *s, int64_t count, int each)
{
    return cuda_blocks((count + each - 1) / each, THREADS,
                       (int64_t)BLOCKS_PER_MULTIPROCESSOR * cuda_multiprocessors(s));
}

static __global__ void fill_kernel(float *y, float value, int64_t count)
{
    const float all[4] = {value, value, value, value};
    for (int64_t i = 4 * grid_thread(); i < count; i += 4 * grid_threads())
        numbers_store(y + i, all, count - i);
}

void cuda_fill(struct stream *s, float *y, float value, int64_t count)
{
    if (count)
        CUDA_LAUNCH(s, fill_kernel, blocks_for(s, count, 4), THREADS, 0, y, value, count);
}

static __global__ void scale_kernel(float *y, float a, int64_t count)
{
    for (int64_t i = 4 * grid_thread(); i < count; i += 4 * grid_threads()) {
        float x[4];
        numbers_load(x, y + i, count - i);
        for (int j = 0; j < 4; j++)
            x[j] *= a;
        numbers_store(y + i, x, count - i);
    }
}

void cuda_scale(struct stream *s, float *y, float a, int64_t count)
{
    if (count)
        CUDA_LAUNCH(s, scale_kernel, blocks_for(s, count, 4), THREADS, 0, y, a, count);
}

template <class T, int N> static __global__ void add_kernel(T *y, const T *x, int64_t count)
{
    for (int64_t i = N * grid_thread(); i < count; i += N * grid_threads()) {
        if constexpr (N == 1) {
            number_store(y + i, number_load(y + i) + number_load(x + i));
        } else {
            float sum[N], other[N];
            numbers_load(sum, y + i, count - i);
            numbers_load(other, x + i, count - i);
            for (int j = 0; j < N; j++)
                sum[j] += other[j];
            numbers_store(y + i, sum, count - i);
        }
    }
}

void cuda_add(struct stream *s, enum dtype t, void *y, const void *x, int64_t count)
{
    if (count == 0)
        return;
    for_dtype(t, is_aligned(y) && is_aligned(x), [&](auto element, auto width) {
        using T = decltype(element);
        constexpr int N = decltype(width)::value;
        CUDA_LAUNCH(s, (add_kernel<T, N>), blocks_for(s, count, N), THREADS, 0, (T *)y,
                    (const T *)x, count);
    });
}

/* Eight numbers at a time, whatever the dtypes. */
__device__ static inline void eight_load(float (&x)[8], const bf16 *p, int64_t left)
{
    numbers_load(x, p, left);
}
__device__ static inline void eight_load(float (&x)[8], const float *p, int64_t left)
{
    float first[4], second[4] = {0, 0, 0, 0};
    numbers_load(first, p, left);
    if (left > 4)
        numbers_load(second, p + 4, left - 4);
    for (int i = 0; i < 4; i++)
        x[i] = first[i], x[4 + i] = second[i];
}
__device__ static inline void eight_store(bf16 *p, const float (&x)[8], int64_t left)
{
    numbers_store(p, x, left);
}
__device__ static inline void eight_store(float *p, const float (&x)[8], int64_t left)
{
    const float first[4] = {x[0], x[1], x[2], x[3]}, second[4] = {x[4], x[5], x[6], x[7]};
    numbers_store(p, first, left);
    if (left > 4)
        numbers_store(p + 4, second, left - 4);
}

template <typename Y, typename X> __global__ void cast_kernel(Y *y, const X *x, int64_t count)
{
    for (int64_t i = 8 * grid_thread(); i < count; i += 8 * grid_threads()) {
        float eight[8];
        eight_load(eight, x + i, count - i);
        eight_store(y + i, eight, count - i);
    }
}

void cuda_cast(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
               int64_t count)
{
    assert(y != x || t_y == t_x);
    if (count)
        CUDA_FOR_DTYPE(t_y, Y,
                       CUDA_FOR_DTYPE(t_x, X,
                                      CUDA_LAUNCH(s, (cast_kernel<Y, X>), blocks_for(s, count, 8),
                                                  THREADS, 0, (Y *)y, (const X *)x, count)));
}
