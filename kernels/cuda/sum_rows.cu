#include "kernels/cuda/sum_rows.h"

#include "kernels/cuda/numbers.h"

enum { WIDTH = 32, MOST_DEPTH = 32 }; /* a block is WIDTH columns by threads that share the rows */

/* Each chunk of the rows gives a row of sums. */
template <class T>
static __global__ void sum_rows(float *sums, const T *__restrict__ x, int64_t rows, int64_t cols,
                                int64_t stride, bool accumulate)
{
    CUDA_BLOCK(float, columns, [MOST_DEPTH][WIDTH]);
    int64_t col = (int64_t)blockIdx.x * WIDTH + threadIdx.x, chunks = gridDim.y, chunk = blockIdx.y;
    int64_t last = rows * (chunk + 1) / chunks;
    float sum = 0;
#pragma unroll 8
    for (int64_t r = rows * chunk / chunks + threadIdx.y; r < last; r += blockDim.y)
        sum += col < cols ? number_load(x + r * stride + col) : 0;
    columns[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || col >= cols)
        return;
    for (int i = 1; i < (int)blockDim.y; i++)
        sum += columns[i][threadIdx.x];
    sums[chunk * cols + col] = sum + (accumulate ? sums[chunk * cols + col] : 0);
}

static void launch(struct stream *s, float *sums, enum dtype t, const void *x, int64_t rows,
                   int64_t cols, int64_t stride, bool accumulate, int64_t chunks)
{
    const dim3 grid(cuda_blocks(cols, WIDTH, INT32_MAX), (unsigned)chunks);
    const dim3 block(WIDTH, cuda_blocks(rows / chunks, 4, MOST_DEPTH));
    CUDA_FOR_DTYPE(t, T,
                   CUDA_LAUNCH(s, sum_rows<T>, grid, block, 0, sums, (const T *)x, rows, cols,
                               stride, accumulate));
}

/* Many rows of few columns are cut into chunks, so that most of a GPU is at work. */
void cuda_sum_rows(struct stream *s, float *sums, enum dtype t, const void *x, int64_t rows,
                   int64_t cols, int64_t stride, bool accumulate)
{
    enum { BLOCKS = 256 };
    int64_t wanted = BLOCKS / (int64_t)cuda_blocks(cols, WIDTH, BLOCKS);
    int64_t chunks = cuda_blocks(rows, SUM_ROWS_AT_ONCE, wanted);
    if (chunks == 1) {
        launch(s, sums, t, x, rows, cols, stride, accumulate, 1);
        return;
    }
    float *partial = (float *)cuda_scratch(s, (size_t)(chunks * cols) * sizeof *partial);
    if (!partial)
        return;
    launch(s, partial, t, x, rows, cols, stride, false, chunks);
    launch(s, sums, DTYPE_F32, partial, chunks, cols, cols, accumulate, 1);
}
