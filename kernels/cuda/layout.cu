/* Images between channels-last and channels-first: a transpose of [H * W, C] for each image, in
 * tiles, so that both sides are read and written in whole lines. */
#include "kernels/cuda/divider.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/ops.h"

enum { TILE = 32, DEPTH = 8 };

/* x: [B, rows, cols] to y: [B, cols, rows]. A block a tile; a thread every DEPTH-th row of it. */
template <typename T>
static __global__ void transpose_kernel(T *y, const T *x, int rows, int cols,
                                        struct divider row_tiles, struct divider col_tiles)
{
    CUDA_BLOCK(T, tile, [TILE][TILE + 1]);
    uint32_t row_tile, col_tile;
    const uint64_t image = divide(divide(blockIdx.x, col_tiles, &col_tile), row_tiles, &row_tile);
    const uint64_t start = image * rows * cols;
    const int row = (int)row_tile * TILE, col = (int)col_tile * TILE;
    const int tx = threadIdx.x, ty = threadIdx.y;
    for (int i = ty; i < TILE; i += DEPTH)
        if (row + i < rows && col + tx < cols)
            tile[i][tx] = x[start + (uint64_t)(row + i) * cols + col + tx];
    __syncthreads();
    for (int i = ty; i < TILE; i += DEPTH)
        if (row + tx < rows && col + i < cols)
            y[start + (uint64_t)(col + i) * rows + row + tx] = tile[tx][i];
}

static void transpose(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                      int64_t rows, int64_t cols)
{
    assert(rows <= INT32_MAX && cols <= INT32_MAX);
    if (B * rows * cols == 0)
        return;
    const struct divider row_tiles = divider_of((rows + TILE - 1) / TILE);
    const struct divider col_tiles = divider_of((cols + TILE - 1) / TILE);
    const int64_t blocks = B * row_tiles.divisor * col_tiles.divisor;
    assert(blocks <= INT32_MAX);
    CUDA_FOR_DTYPE(t, T,
                   CUDA_LAUNCH(s, transpose_kernel<T>, (unsigned)blocks, dim3(TILE, DEPTH), 0,
                               (T *)y, (const T *)x, (int)rows, (int)cols, row_tiles, col_tiles));
}

void cuda_channels_first(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                         int64_t H, int64_t W, int64_t C)
{
    transpose(s, t, y, x, B, H * W, C);
}

void cuda_channels_last(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                        int64_t H, int64_t W, int64_t C)
{
    transpose(s, t, y, x, B, C, H * W);
}
