/* Dropout: each element's number is named by its place in the whole tensor. */
#include "kernels/cuda/ops.h"
#include "kernels/cuda/random_run.h"
#include "kernels/cuda/wide.h"

enum { THREADS = 256 };

struct dropout_args {
    int64_t rows, cols;
    float p, scale; /* 1 / (1 - p) */
    uint64_t key, first_row, row_stride;
};

template <int N, class T>
static __device__ inline void drop(T *y, const T *x, const float *numbers, float p, float scale)
{
    float a[N];
    load(a, x);
#pragma unroll
    for (int i = 0; i < N; i++)
        a[i] = numbers[i] < p ? 0 : a[i] * scale;
    store(y, a);
}

/* A thread has RUN elements of a row with neighbouring numbers; a row's first ones begin at its
 * first element or before it. */
template <class T, bool WIDE>
static __global__ void dropout(T *y, const T *x, struct dropout_args a)
{
    int64_t run = grid_thread();
    for (int64_t row = blockIdx.y; row < a.rows; row += gridDim.y) {
        uint64_t index = (a.first_row + (uint64_t)row * a.row_stride) * (uint64_t)a.cols;
        int64_t col = run * RUN - (int64_t)(index % RANDOM_GROUP), at = row * a.cols + col;
        float numbers[RUN];
        random_run(numbers, a.key, index / RANDOM_GROUP + (uint64_t)run / RUN_THREADS);
        if (WIDE && col >= 0 && col + RUN <= a.cols) {
            drop<RUN>(y + at, x + at, numbers, a.p, a.scale);
            continue;
        }
#pragma unroll
        for (int i = 0; i < RUN; i++)
            if (col + i >= 0 && col + i < a.cols)
                drop<1>(y + at + i, x + at + i, numbers + i, a.p, a.scale);
    }
}

template <class T>
static void launch(struct stream *s, T *y, const T *x, const struct dropout_args *a)
{
    int64_t most_skipped = a->cols % RANDOM_GROUP == 0 ? 0 : RANDOM_GROUP - 1;
    int64_t runs = (most_skipped + a->cols + RUN - 1) / RUN;
    const struct rows_grid grid = rows_grid_of(a->rows, runs, THREADS);
    if (is_aligned(x) && is_aligned(y) && a->cols % RUN == 0)
        CUDA_LAUNCH(s, (dropout<T, true>), grid.blocks, grid.threads, 0, y, x, *a);
    else
        CUDA_LAUNCH(s, (dropout<T, false>), grid.blocks, grid.threads, 0, y, x, *a);
}

void cuda_dropout(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                  int64_t cols, float p, uint64_t key, uint64_t first_row, uint64_t row_stride)
{
    assert(p >= 0 && p < 1 && cols >= 1);
    const struct dropout_args args = {rows, cols, p, 1 / (1 - p), key, first_row, row_stride};
    if (t == DTYPE_F32)
        launch(s, (float *)y, (const float *)x, &args);
    else
        launch(s, (bf16 *)y, (const bf16 *)x, &args);
}
