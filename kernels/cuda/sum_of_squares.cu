/* The sum of squares in double precision. The blocks are as many on every GPU, so the bits are the
 * same, too. */
#include "kernels/cuda/ops.h"
#include "kernels/cuda/wide.h"

enum { THREADS = 256, MOST_BLOCKS = 1024 };

template <int N>
static __global__ void sum_of_squares(double *partials, const float *__restrict__ x, int64_t count)
{
    int64_t whole = count / N * N;
    double sum = 0;
    float a[N];
#pragma unroll 4
    for (int64_t i = grid_thread() * N; i < whole; i += grid_threads() * N) {
        load(a, x + i);
#pragma unroll
        for (int j = 0; j < N; j++)
            sum += (double)a[j] * (double)a[j];
    }
    if (grid_thread() < count - whole)
        sum += (double)x[whole + grid_thread()] * (double)x[whole + grid_thread()];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

static __global__ void add_partials(double *sum, const double *partials, int count)
{
    double total = 0;
    for (int i = (int)threadIdx.x; i < count; i += THREADS)
        total += partials[i];
    total = block_sum(total);
    if (threadIdx.x == 0)
        *sum += total;
}

void cuda_sum_of_squares(struct stream *s, double *sum, const float *x, int64_t count)
{
    unsigned blocks = cuda_blocks(count, THREADS * 4, MOST_BLOCKS);
    double *partials = (double *)cuda_scratch(s, blocks * sizeof *partials);
    if (!partials)
        return;
    if (is_aligned(x))
        CUDA_LAUNCH(s, sum_of_squares<4>, blocks, THREADS, 0, partials, x, count);
    else
        CUDA_LAUNCH(s, sum_of_squares<1>, blocks, THREADS, 0, partials, x, count);
    CUDA_LAUNCH(s, add_partials, 1, THREADS, 0, sum, partials, (int)blocks);
}
