/* Attention for any head width and dtype, without tensor cores: the same algorithm as
 * attention_forward.cu and its backward. A block has a tile of TILE queries (or keys) and walks
 * over tiles of TILE keys (or queries). It takes the heads' columns CHUNK at a time. A warp has
 * ROWS rows of the tile, a lane one column of the scores. Outputs of wide heads are split into
 * slices of SLICE columns, for the registers' sake; each slice has a block, which recomputes the
 * scores. */
#ifndef SHOAL_KERNELS_CUDA_ATTENTION_GENERAL_H
#define SHOAL_KERNELS_CUDA_ATTENTION_GENERAL_H

#include "kernels/cuda/attention.h"

#ifdef __cplusplus

enum { WARPS = 4, THREADS = 32 * WARPS, TILE = 32, ROWS = TILE / WARPS, CHUNK = 32, SLICE = 128 };

struct general_shared {
    float a[TILE][CHUNK + 4], b[TILE][CHUNK + 4]; /* rows 16-byte aligned, in different banks */
    float x[TILE * (TILE + ATTENTION_SCORE_PAD)]; /* see attention_score_offset */
};

/* Rows of a head: row r from x + r * stride on, hd wide; from `count` on they are zeros. */
template <typename T> struct general_rows {
    T *x;
    int64_t stride, count, hd;
};

template <typename T>
__device__ inline struct general_rows<T> general_rows_of(const void *x, int64_t stride, int64_t b,
                                                         int64_t tokens, int64_t h, int64_t hd,
                                                         int64_t count) {
    struct general_rows<T> rows = {
        (T *)x + b *tokens *stride + h *hd, stride, count, hd
    };
    return rows;
}

/* Rows from `first` on, columns from `column` on. */
template <typename T>
__device__ inline void general_fetch(float (&tile)[TILE][CHUNK + 4],
                                     const struct general_rows<T> &from, int64_t first,
                                     int64_t column)
{
    int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int row = (int)threadIdx.x / 32; row < TILE; row += WARPS) {
        bool inside = first + row < from.count && column + lane < from.hd;
        tile[row][lane] =
            inside ? number_load(from.x + (first + row) * from.stride + column + lane) : 0;
    }
}

/* x[r] = the warp's row r of a's rows from first_a on, times b's row first_b + lane. */
template <typename T>
__device__ inline void general_qk(float (&x)[ROWS], struct general_shared *shared,
                                  const struct general_rows<T> &a, int64_t first_a,
                                  const struct general_rows<T> &b, int64_t first_b)
{
    int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * ROWS;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        x[r] = 0;
    for (int64_t column = 0; column < a.hd; column += CHUNK) {
        __syncthreads(); /* nobody reads the tiles before */
        general_fetch(shared->a, a, first_a, column);
        general_fetch(shared->b, b, first_b, column);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < CHUNK; i += 4) {
            float4 right = *(const float4 *)(const void *)&shared->b[lane][i];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float4 left = *(const float4 *)(const void *)&shared->a[row + r][i];
                x[r] += left.x * right.x + left.y * right.y + left.z * right.z + left.w * right.w;
            }
        }
    }
}

/* y[r][c] += sum over i of x[r] of lane i times b's row first + i, column slice + 32 c + lane.
 * Leaves the warps' x in shared->x. */
template <typename T>
__device__ inline void general_pv(float (&y)[ROWS][SLICE / 32], const float (&x)[ROWS],
                                  struct general_shared *shared, const struct general_rows<T> &b,
                                  int64_t first, int64_t slice)
{
    int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * ROWS;
    __syncwarp(); /* what the warp left there before is read */
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        shared->x[attention_score_offset<TILE>(row + r, lane)] = x[r];
#pragma unroll
    for (int c = 0; c < SLICE / 32; c++) {
        if (slice + 32 * c >= b.hd)
            break;
        __syncthreads(); /* nobody reads the tile before */
        general_fetch(shared->b, b, first, slice + 32 * c);
        __syncthreads();
#pragma unroll 4
        for (int i = 0; i < TILE; i++) {
            float right = shared->b[i][lane];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                y[r][c] += shared->x[attention_score_offset<TILE>(row + r, i)] * right;
        }
    }
}

/* The warp's rows from `first` on, columns from `slice` on. */
template <typename T>
__device__ inline void general_store(const struct general_rows<T> &to, int64_t first, int64_t slice,
                                     const float (&y)[ROWS][SLICE / 32], float factor)
{
    int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * ROWS;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < SLICE / 32; c++) {
            int64_t column = slice + 32 * c + lane;
            if (first + row + r < to.count && column < to.hd)
                number_store(to.x + (first + row + r) * to.stride + column, y[r][c] * factor);
        }
}

/* The score of query q and key k, x without scale and bias, in units of log2. */
__device__ inline float general_score(const struct attention_args &a,
                                      const struct attention_work &work, int64_t h, int64_t q,
                                      int64_t k, float x)
{
    const struct attention_shape &z = a.shape;
    if (k >= work.keys || (z.causal && k > q))
        return -INFINITY;
    x *= z.scale * LOG2_E;
    if (a.bias && q < z.T_q)
        x += a.bias[h * (z.T_q + z.T_k - 1) + k - q + z.T_q - 1];
    return x;
}

/* What dropout multiplies the probability by. */
__device__ inline float general_dropped(const struct attention_shape &z, int64_t b, int64_t h,
                                        int64_t q, int64_t k)
{
    if (z.dropout <= 0)
        return 1;
    return attention_keep(z, attention_element(z, b, h, q, k)) & 1 ? 1 / (1 - z.dropout) : 0;
}

static inline int64_t general_slices(const struct attention_shape *z)
{
    return (z->hd + SLICE - 1) / SLICE;
}

static inline int64_t general_tiles(int64_t tokens)
{
    return (tokens + TILE - 1) / TILE;
}

#endif
#endif
