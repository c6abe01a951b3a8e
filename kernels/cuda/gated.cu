/* Gated activations of MLPs (Shazeer 2020): Llama's with SiLU, T5 v1.1's with GELU. x is [rows, 2
 * I], gate before up; blocks are columns of a row by rows. */
#include "kernels/cuda/activation.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/wide.h"

enum { THREADS = 256 };

template <class T, int N, class F>
static __global__ void gated_forward(T *__restrict__ y, const T *__restrict__ x, int64_t rows,
                                     int64_t I)
{
    int64_t column = grid_thread() * N;
    if (column >= I)
        return;
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        const T *from = x + row * 2 * I + column;
        float gate[N], up[N];
        load(gate, from);
        load(up, from + I);
#pragma unroll
        for (int j = 0; j < N; j++)
            up[j] *= F::value(gate[j]);
        store(y + row * I + column, up);
    }
}

/* dx may be x. */
template <class T, int N, class F>
static __global__ void gated_backward(T *dx, const T *__restrict__ dy, const T *x, int64_t rows,
                                      int64_t I)
{
    int64_t column = grid_thread() * N;
    if (column >= I)
        return;
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        int64_t at = row * 2 * I + column;
        float gate[N], up[N], d[N];
        load(gate, x + at);
        load(up, x + at + I);
        load(d, dy + row * I + column);
#pragma unroll
        for (int j = 0; j < N; j++) {
            /* dgate = dy up f'(gate), dup = dy f(gate). */
            up[j] *= d[j] * F::slope(gate[j]);
            d[j] *= F::value(gate[j]);
        }
        store(dx + at, up);
        store(dx + at + I, d);
    }
}

template <class F>
static void forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows, int64_t I)
{
    assert(I >= 1);
    bool wide = is_aligned(x) && is_aligned(y) && is_aligned(I * (int64_t)dtype_bytes(t));
    for_dtype(t, wide, [&](auto element, auto count) {
        using T = decltype(element);
        constexpr int N = decltype(count)::value;
        const struct rows_grid grid = rows_grid_of(rows, I / N, THREADS);
        CUDA_LAUNCH(s, (gated_forward<T, N, F>), grid.blocks, grid.threads, 0, (T *)y, (const T *)x,
                    rows, I);
    });
}

template <class F>
static void backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                     int64_t rows, int64_t I)
{
    assert(I >= 1);
    bool wide = is_aligned(x) && is_aligned(dx) && is_aligned(dy) &&
                is_aligned(I * (int64_t)dtype_bytes(t));
    for_dtype(t, wide, [&](auto element, auto count) {
        using T = decltype(element);
        constexpr int N = decltype(count)::value;
        const struct rows_grid grid = rows_grid_of(rows, I / N, THREADS);
        CUDA_LAUNCH(s, (gated_backward<T, N, F>), grid.blocks, grid.threads, 0, (T *)dx,
                    (const T *)dy, (const T *)x, rows, I);
    });
}

void cuda_swiglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                         int64_t I)
{
    forward<silu>(s, t, y, x, rows, I);
}

void cuda_swiglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                          int64_t rows, int64_t I)
{
    backward<silu>(s, t, dx, dy, x, rows, I);
}

void cuda_geglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                        int64_t I)
{
    forward<gelu_tanh>(s, t, y, x, rows, I);
}

void cuda_geglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                         int64_t rows, int64_t I)
{
    backward<gelu_tanh>(s, t, dx, dy, x, rows, I);
}
