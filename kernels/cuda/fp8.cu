/* Products in fp8: scales, casts, and the product by cuBLASLt. On compute capability 8.9, 9.0 and
 * 12.x the latter takes one form alone, sums along the rows of both operands, so a cast can
 * transpose. A block casts a tile, reads it once, and writes whole lines of both results. */
#include "kernels/cuda/blas.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/ops.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#include <cuda_fp8.h>
#endif

#include <stdio.h>

enum { THREADS = 256, MOST_BLOCKS = 1024, VECTOR = 8 /* bf16 of 16 bytes */ };
enum { ROW_BLOCKS = 4096 };

/* ---- the scale ---- */

/* All threads get the largest over the block. */
static __device__ inline uint32_t block_max(uint32_t x)
{
    CUDA_BLOCK(uint32_t, largest, [THREADS / 32]);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    x = warp_max(x);
    if (lane == 0)
        largest[warp] = x;
    __syncthreads();
    return warp_max(lane < THREADS / 32 ? largest[lane] : 0u);
}

/* Largest magnitude of two bf16, without their signs. */
static __device__ inline uint32_t larger_half(uint32_t word)
{
    const uint32_t low = word & 0x7fff, high = word >> 16 & 0x7fff;
    return low > high ? low : high;
}

/* A row's vectors go over gridDim.x, rows over gridDim.y. */
static __global__ void largest_kernel(uint32_t *partials, const bf16 *x, int64_t rows,
                                      int64_t vectors, int64_t stride)
{
    uint32_t largest = 0;
    for (int64_t r = blockIdx.y; r < rows; r += gridDim.y)
        for (int64_t v = grid_thread(); v < vectors; v += grid_threads()) {
            const uint4 all = *(const uint4 *)(x + r * stride + v * VECTOR);
            const uint32_t words[4] = {all.x, all.y, all.z, all.w};
            for (int i = 0; i < 4; i++) {
                const uint32_t larger = larger_half(words[i]);
                largest = larger > largest ? larger : largest;
            }
        }
    largest = block_max(largest);
    if (threadIdx.x == 0)
        partials[blockIdx.y * gridDim.x + blockIdx.x] = largest;
}

/* All threads of the block get it. */
static __device__ inline uint32_t largest_partial(const uint32_t *partials, int count)
{
    uint32_t largest = 0;
    for (int i = (int)threadIdx.x; i < count; i += THREADS)
        largest = partials[i] > largest ? partials[i] : largest;
    return block_max(largest);
}

static __global__ void scale_kernel(struct fp8_scale *scale, enum fp8 f, const uint32_t *partials,
                                    int count)
{
    const uint32_t largest = largest_partial(partials, count);
    if (threadIdx.x == 0)
        *scale = fp8_scale_of(f, largest << 16);
}

static __global__ void largest_of_kernel(bf16 *largest, const uint32_t *partials, int count)
{
    const uint32_t of_all = largest_partial(partials, count);
    if (threadIdx.x == 0)
        *largest = (bf16)of_all;
}

/* The blocks' largest, of *ret_count blocks; NULL: the stream has failed. */
static const uint32_t *find_partials(struct stream *s, const bf16 *x, int64_t rows, int64_t cols,
                                     int64_t stride, int *ret_count)
{
    assert(cols % VECTOR == 0 && stride % VECTOR == 0 && stride >= cols && is_aligned(x));
    if (stride == cols) { /* one long row */
        cols *= rows;
        rows = 1;
    }
    const int64_t vectors = cols / VECTOR;
    const unsigned columns = cuda_blocks(vectors, THREADS, MOST_BLOCKS);
    const dim3 grid(columns, cuda_blocks(rows, 1, MOST_BLOCKS / columns));
    *ret_count = (int)(grid.x * grid.y);
    uint32_t *partials = (uint32_t *)cuda_scratch(s, (size_t)*ret_count * sizeof *partials);
    if (partials)
        CUDA_LAUNCH(s, largest_kernel, grid, THREADS, 0, partials, x, rows, vectors, stride);
    return partials;
}

void cuda_fp8_scale(struct stream *s, enum fp8 f, struct fp8_scale *scale, const bf16 *x,
                    int64_t rows, int64_t cols, int64_t stride)
{
    int blocks;
    const uint32_t *partials = find_partials(s, x, rows, cols, stride, &blocks);
    if (partials)
        CUDA_LAUNCH(s, scale_kernel, 1, THREADS, 0, scale, f, partials, blocks);
}

void cuda_fp8_largest(struct stream *s, bf16 *largest, const bf16 *x, int64_t count)
{
    int blocks;
    const uint32_t *partials = find_partials(s, x, 1, count, count, &blocks);
    if (partials)
        CUDA_LAUNCH(s, largest_of_kernel, 1, THREADS, 0, largest, partials, blocks);
}

/* ---- the cast ---- */

/* The codes of two numbers, the first in the lower byte. */
template <enum fp8 F> static __device__ inline uint32_t fp8_pair(float first, float second)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    return __nv_cvt_float2_to_fp8x2(make_float2(first, second), __NV_SATFINITE,
                                    F == FP8_E4M3 ? __NV_E4M3 : __NV_E5M2);
#else
    return fp8_from_float(F, first) | (uint32_t)fp8_from_float(F, second) << 8;
#endif
}

enum { TILE = 64, TILE_WORDS = TILE / 4, LANES = TILE / VECTOR, PASS_ROWS = THREADS / LANES };

struct cast_args {
    uint8_t *y, *y_transposed;
    const struct fp8_scale *scale;
    const bf16 *x;
    int64_t rows, cols, stride;
    int64_t width, height; /* of a row of y and of y_transposed */
};

/* The eight codes from (row, col) on; 0 where x has none. */
template <enum fp8 F>
static __device__ inline uint2 eight_codes(const struct cast_args &a, int64_t row, int64_t col,
                                           float scale)
{
    if (row >= a.rows || col >= a.cols)
        return make_uint2(0, 0);
    float x[VECTOR];
    numbers_load(x, a.x + row * a.stride + col);
    for (int i = 0; i < VECTOR; i++)
        x[i] *= scale;
    return make_uint2(fp8_pair<F>(x[0], x[1]) | fp8_pair<F>(x[2], x[3]) << 16,
                      fp8_pair<F>(x[4], x[5]) | fp8_pair<F>(x[6], x[7]) << 16);
}

/* y alone, of one row. */
template <enum fp8 F> static __global__ void cast_row_kernel(struct cast_args a)
{
    const float scale = a.scale->scale;
    for (int64_t v = grid_thread(); v < a.cols / VECTOR; v += grid_threads())
        *(uint2 *)(a.y + v * VECTOR) = eight_codes<F>(a, 0, v * VECTOR, scale);
}

/* Rows of tiles go with blockIdx.x, of which there may be more. */
template <enum fp8 F> static __global__ void cast_kernel(struct cast_args a)
{
    /* tile[column] holds the column's rows, a byte each; a word more than needed, so that threads
     * that write a row meet different banks */
    CUDA_BLOCK(uint32_t, tile, [TILE][TILE_WORDS + 1]);
    const int64_t first_row = (int64_t)blockIdx.x * TILE, first_col = (int64_t)blockIdx.y * TILE;
    const int lane = (int)threadIdx.x % LANES;
    const int64_t col = first_col + lane * VECTOR;
    const float scale = a.scale->scale;
    for (int r = (int)threadIdx.x / LANES; r < TILE; r += PASS_ROWS) {
        const int64_t row = first_row + r;
        const uint2 codes = eight_codes<F>(a, row, col, scale);
        if (a.y && row < a.rows && col < a.width)
            *(uint2 *)(a.y + row * a.width + col) = codes;
        for (int i = 0; a.y_transposed && i < VECTOR; i++)
            ((uint8_t *)tile[lane * VECTOR + i])[r] =
                (uint8_t)((i < 4 ? codes.x : codes.y) >> (8 * (i % 4)));
    }
    if (!a.y_transposed)
        return;
    __syncthreads();
    const int c = (int)threadIdx.x / 4, word = (int)threadIdx.x % 4 * 4;
    const int64_t row = first_row + word * 4;
    if (first_col + c < a.cols && row < a.height)
        *(uint4 *)(a.y_transposed + (first_col + c) * a.height + row) =
            make_uint4(tile[c][word], tile[c][word + 1], tile[c][word + 2], tile[c][word + 3]);
}

/* y alone, whose rows lie behind each other as x's do: they are one. */
static void cast_row(struct stream *s, enum fp8 f, struct cast_args a)
{
    a.cols *= a.rows;
    a.rows = 1;
    const unsigned blocks = cuda_blocks(a.cols / VECTOR, THREADS, ROW_BLOCKS);
    if (f == FP8_E4M3)
        CUDA_LAUNCH(s, cast_row_kernel<FP8_E4M3>, blocks, THREADS, 0, a);
    else
        CUDA_LAUNCH(s, cast_row_kernel<FP8_E5M2>, blocks, THREADS, 0, a);
}

void cuda_fp8_cast(struct stream *s, enum fp8 f, uint8_t *y, uint8_t *y_transposed,
                   const struct fp8_scale *scale, const bf16 *x, int64_t rows, int64_t cols,
                   int64_t stride)
{
    assert(cols % VECTOR == 0 && stride % VECTOR == 0 && stride >= cols && is_aligned(x));
    const struct cast_args a = {y,      y_transposed,     scale,           x, rows, cols,
                                stride, fp8_padded(cols), fp8_padded(rows)};
    if (rows == 0)
        return;
    if (!y_transposed && stride == cols && a.width == cols) {
        cast_row(s, f, a);
        return;
    }
    const dim3 grid((unsigned)((rows + TILE - 1) / TILE), (unsigned)((cols + TILE - 1) / TILE));
    if (f == FP8_E4M3)
        CUDA_LAUNCH(s, cast_kernel<FP8_E4M3>, grid, THREADS, 0, a);
    else
        CUDA_LAUNCH(s, cast_kernel<FP8_E5M2>, grid, THREADS, 0, a);
}

/* ---- codes, transposed ---- */

/* A tile; a thread reads four rows' word of four columns. Rows of tiles go with blockIdx.x. */
static __global__ void transpose_kernel(uint8_t *y, const uint8_t *x, int64_t rows, int64_t cols)
{
    /* tile[column] holds the column's rows, as above */
    CUDA_BLOCK(uint32_t, tile, [TILE][TILE_WORDS + 1]);
    const int64_t first_row = (int64_t)blockIdx.x * TILE, first_col = (int64_t)blockIdx.y * TILE;
    const int four_rows = (int)threadIdx.x / TILE_WORDS, four_cols = (int)threadIdx.x % TILE_WORDS;
    const int64_t row = first_row + four_rows * 4, col = first_col + four_cols * 4;
    uint32_t words[4] = {0, 0, 0, 0};
    for (int r = 0; r < 4 && row < rows && col < cols; r++)
        words[r] = *(const uint32_t *)(x + (row + r) * cols + col);
    for (int c = 0; c < 4; c++) {
        uint32_t column = 0;
        for (int r = 0; r < 4; r++)
            column |= (words[r] >> (8 * c) & 0xff) << (8 * r);
        tile[four_cols * 4 + c][four_rows] = column;
    }
    __syncthreads();
    const int c = (int)threadIdx.x / 4, word = (int)threadIdx.x % 4 * 4;
    if (first_col + c < cols && first_row + word * 4 < rows)
        *(uint4 *)(y + (first_col + c) * rows + first_row + word * 4) =
            make_uint4(tile[c][word], tile[c][word + 1], tile[c][word + 2], tile[c][word + 3]);
}

void cuda_fp8_transpose(struct stream *s, uint8_t *y, const uint8_t *x, int64_t rows, int64_t cols)
{
    assert(rows % FP8_ALIGN == 0 && cols % FP8_ALIGN == 0 && is_aligned(x) && is_aligned(y));
    const dim3 grid((unsigned)((rows + TILE - 1) / TILE), (unsigned)((cols + TILE - 1) / TILE));
    if (rows > 0 && cols > 0)
        CUDA_LAUNCH(s, transpose_kernel, grid, THREADS, 0, y, x, rows, cols);
}

/* ---- the product ---- */

struct relu_of {
    __device__ float at(float x) const
    {
        return x < 0 ? 0 : x;
    }
};

/* A sum of no terms. */
static void clear(struct stream *s, const struct fp8_matmul *p, void *c)
{
    assert(p->c_stride == p->n);
    cuda_check(s,
               cudaMemsetAsync(c, 0, (size_t)(p->m * p->n) * dtype_bytes(p->t_c), cuda_captured(s)),
               "fp8: no rows");
}

void cuda_fp8_matmul(struct stream *s, const struct fp8_matmul *p, void *c, const uint8_t *a,
                     const struct fp8_scale *a_scale, const uint8_t *b,
                     const struct fp8_scale *b_scale, const bf16 *bias)
{
    assert(p->k % FP8_ALIGN == 0 && p->n % FP8_ALIGN == 0 && p->c_stride >= p->n);
    assert(!(bias && (p->accumulate || p->t_c == DTYPE_F32)) && !(p->relu && p->accumulate));
    if (p->m == 0 || (p->k == 0 && p->accumulate))
        return;
    if (p->k == 0) {
        clear(s, p, c);
        return;
    }
    const struct blas_fp8 operands = {a, b, &a_scale->inverse, &b_scale->inverse, bias, c};
    if (!blas_matmul_fp8(s, p, &operands)) {
        char text[128];
        const int capability = s->device->compute_capability;
        snprintf(text, sizeof text,
                 "an fp8 product (m %lld, n %lld, k %lld), for which cuBLASLt has no algorithm on "
                 "compute capability %d.%d",
                 (long long)p->m, (long long)p->n, (long long)p->k, capability / 10,
                 capability % 10);
        cuda_check(s, cudaErrorNotSupported, text);
        return;
    }
    assert(!p->relu || p->c_stride == p->n);
    if (p->relu)
        map(s, p->t_c, c, c, p->m * p->n, relu_of{});
}
