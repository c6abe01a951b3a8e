#include "kernels/cuda/sum_rows.h"

#include "kernels/cuda/wide.h"

enum { SIDE = 32 }; /* a block is SIDE columns by SIDE rows of threads */

/* Each part of the rows gives a row of sums. */
template <class T>
static __global__ void sum(float *sums, const T *x, int64_t rows, int64_t cols, int64_t stride,
                           bool accumulate)
{
    __shared__ float columns[SIDE][SIDE + 1];
    int across = (int)threadIdx.x, down = (int)threadIdx.y;
    int64_t col = (int64_t)blockIdx.x * SIDE + across, parts = gridDim.y, part = blockIdx.y;
    int64_t last = rows * (part + 1) / parts;
    float total = 0;
#pragma unroll 8
    for (int64_t r = rows * part / parts + down; r < last; r += SIDE)
        total += col < cols ? number_load(x + r * stride + col) : 0;
    columns[down][across] = total;
    __syncthreads();
    total = warp_sum(columns[across][down]); /* a warp has a column of the block now */
    col = (int64_t)blockIdx.x * SIDE + down;
    if (across == 0 && col < cols)
        sums[part * cols + col] = total + (accumulate ? sums[part * cols + col] : 0);
}

static void launch(struct stream *s, float *sums, enum dtype t, const void *x, int64_t rows,
                   int64_t cols, int64_t stride, bool accumulate, int64_t parts)
{
    dim3 grid(cuda_blocks(cols, SIDE, INT32_MAX), (unsigned)parts), block(SIDE, SIDE);
    if (t == DTYPE_F32)
        CUDA_LAUNCH(s, sum<float>, grid, block, 0, sums, (const float *)x, rows, cols, stride,
                    accumulate);
    else
        CUDA_LAUNCH(s, sum<bf16>, grid, block, 0, sums, (const bf16 *)x, rows, cols, stride,
                    accumulate);
}

/* Many rows of few columns are cut into parts, so that most of a GPU is at work. */
void cuda_sum_rows(struct stream *s, float *sums, enum dtype t, const void *x, int64_t rows,
                   int64_t cols, int64_t stride, bool accumulate)
{
    enum { BLOCKS = 256 };
    int64_t wanted = BLOCKS / (int64_t)cuda_blocks(cols, SIDE, BLOCKS);
    int64_t parts = cuda_blocks(rows, SUM_ROWS_AT_ONCE, wanted);
    if (parts == 1) {
        launch(s, sums, t, x, rows, cols, stride, accumulate, 1);
        return;
    }
    float *partial = (float *)cuda_scratch(s, (size_t)(parts * cols) * sizeof *partial);
    if (!partial)
        return;
    launch(s, partial, t, x, rows, cols, stride, false, parts);
    launch(s, sums, DTYPE_F32, partial, parts, cols, cols, accumulate, 1);
}
