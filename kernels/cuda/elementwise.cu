/* Ops in which each element is on its own. A thread takes 16 bytes at a time. */
#include "kernels/cuda/map.h"
#include "kernels/cuda/ops.h"

/* 8 x 256 threads fill a multiprocessor of an A100 or H100 (2048); the grid walks over what is left
 * (a grid-stride loop). */
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

struct scale_by {
    float a;
    __device__ float at(float x) const
    {
        return a * x;
    }
};

void cuda_scale(struct stream *s, enum dtype t, void *y, float a, int64_t count)
{
    map(s, t, y, y, count, scale_by{a});
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

/* WIDE: both start on 16 bytes. */
template <typename Y, typename X, bool WIDE>
static __global__ void add_kernel(Y *y, const X *x, int64_t count)
{
    constexpr int N = WIDE ? 8 : 1;
    for (int64_t i = N * grid_thread(); i < count; i += N * grid_threads()) {
        if constexpr (WIDE) {
            float sum[N], other[N];
            eight_load(sum, y + i, count - i);
            eight_load(other, x + i, count - i);
            for (int j = 0; j < N; j++)
                sum[j] += other[j];
            eight_store(y + i, sum, count - i);
        } else {
            number_store(y + i, number_load(y + i) + number_load(x + i));
        }
    }
}

template <typename Y, typename X> static void add(struct stream *s, Y *y, const X *x, int64_t count)
{
    if (is_aligned(y) && is_aligned(x))
        CUDA_LAUNCH(s, (add_kernel<Y, X, true>), blocks_for(s, count, 8), THREADS, 0, y, x, count);
    else
        CUDA_LAUNCH(s, (add_kernel<Y, X, false>), blocks_for(s, count, 1), THREADS, 0, y, x, count);
}

void cuda_add(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
              int64_t count)
{
    if (count)
        CUDA_FOR_DTYPE(t_y, Y, CUDA_FOR_DTYPE(t_x, X, add(s, (Y *)y, (const X *)x, count)));
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
