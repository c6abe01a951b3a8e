/* Log-softmax and the negative log-likelihood over its rows. */
#include "kernels/cuda/data_fault.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/ops.h"

#include <math.h>

enum { THREADS = 256, WARPS = THREADS / 32 };

/* A warp a row. */
template <typename T>
static __global__ void softmax_kernel(float *y, const T *x, int64_t rows, int64_t cols)
{
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows)
        return; /* with its whole warp */
    x += row * cols;
    y += row * cols;
    float largest = -INFINITY;
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32)
        largest = fmaxf(largest, number_load(x + c));
    largest = warp_max(largest);
    double sum = 0;
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32)
        sum += expf(number_load(x + c) - largest);
    const float log_sum = (float)log(warp_sum(sum));
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32)
        y[c] =
            number_load(x + c) - largest - log_sum; /* in this order: largest may swallow log_sum */
}

void cuda_log_softmax(struct stream *s, enum dtype t, float *y, const void *x, int64_t rows,
                      int64_t cols)
{
    assert(cols >= 1 && (y != x || t == DTYPE_F32));
    if (rows > 0)
        CUDA_FOR_DTYPE(t, T,
                       CUDA_LAUNCH(s, softmax_kernel<T>, (unsigned)((rows + WARPS - 1) / WARPS),
                                   THREADS, 0, y, (const T *)x, rows, cols));
}

/* One block; a thread every THREADS-th row. */
static __global__ void nll_kernel(double *sums, const float *y, const int32_t *target, int64_t rows,
                                  int64_t cols, struct data_fault *fault)
{
    double loss = 0;
    int hits = 0;
    for (int64_t r = threadIdx.x; r < rows; r += THREADS) {
        const float *row = y + r * cols;
        int64_t best = 0;
        for (int64_t c = 1; c < cols; c++)
            best = row[c] > row[best] ? c : best;
        if (target[r] < 0 || target[r] >= cols)
            data_fault_stop(fault, DATA_LABEL, r, target[r], cols);
        loss -= row[target[r]];
        hits += best == target[r];
    }
    loss = block_sum(loss);
    hits = block_sum(hits);
    if (threadIdx.x == 0) {
        sums[0] += loss;
        sums[1] += hits;
        sums[2] += (double)rows;
    }
}

void cuda_nll_loss(struct stream *s, double *sums, const float *y, const int32_t *target,
                   int64_t rows, int64_t cols)
{
    CUDA_LAUNCH(s, nll_kernel, 1, THREADS, 0, sums, y, target, rows, cols, cuda_data_fault(s));
}

template <typename T>
static __global__ void backward_kernel(T *dx, const float *y, const int32_t *target, float scale,
                                       int64_t count, int64_t cols)
{
    for (int64_t i = grid_thread(); i < count; i += grid_threads())
        number_store(dx + i, scale * (expf(y[i]) - (i % cols == target[i / cols] ? 1.0f : 0.0f)));
}

void cuda_nll_log_softmax_backward(struct stream *s, enum dtype t, void *dx, const float *y,
                                   const int32_t *target, float scale, int64_t rows, int64_t cols)
{
    assert(dx != y || t == DTYPE_F32);
    const int64_t count = rows * cols;
    if (count > 0)
        CUDA_FOR_DTYPE(t, T,
                       CUDA_LAUNCH(s, backward_kernel<T>,
                                   cuda_blocks(count, THREADS, 16 * cuda_multiprocessors(s)),
                                   THREADS, 0, (T *)dx, y, target, scale, count, cols));
}
