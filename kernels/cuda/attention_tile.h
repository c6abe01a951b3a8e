/* Tiles of attention on matrix units: rows of heads in shared memory, products of them with sums in
 * registers, and the scores between. A warp works on 16 ROWS rows of a tile and all its columns;
 * x[r][n] holds rows 16 r .. and columns 8 n .. as matrix.h says. */
#ifndef SHOAL_KERNELS_CUDA_ATTENTION_TILE_H
#define SHOAL_KERNELS_CUDA_ATTENTION_TILE_H

#include "kernels/cuda/attention.h"

#ifdef __cplusplus

/* Where 16 bytes `chunk` of a row of a tile [rows, HD] lie. The chunk's number is XORed with the
 * row's (a swizzle): ldmatrix reads one chunk of eight rows at once, and rows are a multiple of 128
 * bytes. Without the swizzle all eight would be in the same banks. */
template <int HD> __device__ inline bf16 *tile_chunk(bf16 *tile, int row, int chunk)
{
    return tile + row * HD + 8 * (chunk ^ (row & 7));
}

/* Rows of a head in device memory: row r from x + r * stride on; from `count` on they are zeros. */
struct tile_rows {
    bf16 *x;
    int64_t stride, count;
};

/* Head h, HD wide, of sequence b: tokens are `stride` apart, T of them, of which `count` count. */
template <int HD>
__device__ inline struct tile_rows tile_rows_of(const void *x, int64_t stride, int64_t b, int64_t T,
                                                int64_t h, int64_t count)
{
    struct tile_rows rows = {(bf16 *)x + b * T * stride + h * HD, stride, count};
    return rows;
}

/* Brings rows first .. first + ROWS into a tile, when `copies` are waited for. */
template <int HD, int ROWS, int THREADS>
__device__ inline void tile_fetch(struct matrix_copies &copies, bf16 *tile,
                                  const struct tile_rows &from, int64_t first)
{
    constexpr int CHUNKS = HD / 8, STEP = THREADS / CHUNKS;
    static_assert(ROWS % STEP == 0 && STEP % 8 == 0, "a thread keeps to its bank");
    int row = (int)threadIdx.x / CHUNKS, chunk = (int)threadIdx.x % CHUNKS;
    const bf16 *x = from.x + (first + row) * from.stride + 8 * chunk;
    bf16 *to = tile_chunk<HD>(tile, row, chunk);
#pragma unroll
    for (int i = 0; i < ROWS; i += STEP) {
        bool valid = first + row + i < from.count;
        copies.copy<16>(to + i * HD, valid ? x + i * from.stride : from.x, valid);
    }
}

/* x += a b^T, as S = Q K^T: the warp's rows of a, from the tile's place `a` on, with COLS rows of
 * b. mma wants its second factor by columns; those of b^T are the rows of b, so b is loaded as it
 * lies. */
template <int HD, int ROWS, int COLS>
__device__ inline void tile_mma_qk(float (&x)[ROWS][COLS / 8][4], bf16 *a, bf16 *b)
{
    int lane = matrix_lane();
#pragma unroll
    for (int k = 0; k < HD / 8; k += 2) {
        uint32_t left[ROWS][4];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            matrix_load(left[r], tile_chunk<HD>(a, 16 * r + lane % 16, k + lane / 16));
#pragma unroll
        for (int n = 0; n < COLS / 8; n += 2) {
            uint32_t right[4];
            matrix_load(right,
                        tile_chunk<HD>(b, 8 * n + lane / 16 * 8 + lane % 8, k + lane / 8 % 2));
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                matrix_multiply(x[r][n], left[r], right[0], right[1]);
                matrix_multiply(x[r][n + 1], left[r], right[2], right[3]);
            }
        }
    }
}

/* y += x b, as O = P V: x rounded to bf16, b: COLS rows of HD. x comes in the layout of a product's
 * result, which is that of a first factor (matrix.h). The columns of b cross its rows: ldmatrix
 * transposes them on the way. */
template <int HD, int ROWS, int COLS>
__device__ inline void tile_mma_pv(float (&y)[ROWS][HD / 8][4], const float (&x)[ROWS][COLS / 8][4],
                                   bf16 *b)
{
    int lane = matrix_lane();
#pragma unroll
    for (int k = 0; k < COLS / 8; k += 2) {
        uint32_t left[ROWS][4];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                left[r][i] =
                    matrix_pair(x[r][k + i / 2][i % 2 * 2], x[r][k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int n = 0; n < HD / 8; n += 2) {
            uint32_t right[4];
            matrix_load_transposed(right, tile_chunk<HD>(b, 8 * k + lane % 16, n + lane / 16));
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                matrix_multiply(y[r][n], left[r], right[0], right[1]);
                matrix_multiply(y[r][n + 1], left[r], right[2], right[3]);
            }
        }
    }
}

template <int ROWS, int N> __device__ inline void tile_zero(float (&x)[ROWS][N][4])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[r][n][i] = 0;
}

/* Row and column, within the warp's tile, of the lane's x[r][n][i]. */
__device__ inline int tile_row(int r, int i)
{
    return 16 * r + 8 * (i / 2) + (int)threadIdx.x % 32 / 4;
}
__device__ inline int tile_col(int n, int i)
{
    return 8 * n + 2 * ((int)threadIdx.x % 4) + i % 2;
}

/* A tile of scores: queries from q0 on and keys from k0 on; the rows are queries, or keys if
 * KEY_ROWS. */
struct tile_position {
    int64_t b, h, q0, k0, keys;
};

/* Beyond any tile: places within one are int, which takes half of the registers of int64_t. */
constexpr int64_t TILE_FAR = 1 << 20;

/* Scores that do not count become -infinity. */
template <bool KEY_ROWS, int ROWS, int N>
__device__ inline void tile_mask(float (&x)[ROWS][N][4], const struct attention_shape &z,
                                 const struct tile_position &at)
{
    int ahead = z.causal ? (int)min(TILE_FAR, max(-TILE_FAR, at.q0 - at.k0)) : (int)TILE_FAR;
    int last = (int)min(TILE_FAR, at.keys - at.k0) - 1;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int row = tile_row(r, i), col = tile_col(n, i);
                int q = KEY_ROWS ? col : row, k = KEY_ROWS ? row : col;
                if (k > min(last, ahead + q))
                    x[r][n][i] = -INFINITY;
            }
}

/* Whether any score of the tile, `keys` keys, does not count. */
__device__ inline bool tile_is_masked(const struct attention_shape &z,
                                      const struct tile_position &at, int keys)
{
    return at.k0 + keys > at.keys || (z.causal && at.k0 + keys - 1 > at.q0);
}

/* x = factor * x + bias, in units of log2. */
template <bool KEY_ROWS, int ROWS, int N>
__device__ inline void tile_add_bias(float (&x)[ROWS][N][4], const struct attention_args &a,
                                     const struct tile_position &at, float factor)
{
    /* The tile's place in the head's row of biases, and where the row begins and
     * ends from there. */
    int64_t distances = a.shape.T_q + a.shape.T_k - 1;
    int64_t first = at.k0 - at.q0 + a.shape.T_q - 1;
    const float *bias = a.bias ? a.bias + at.h * distances + first : NULL;
    int begin = (int)max(-TILE_FAR, -first), end = (int)min(TILE_FAR, distances - first);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int ahead = tile_col(n, i) - tile_row(r, i);
                ahead = KEY_ROWS ? -ahead : ahead;
                x[r][n][i] *= factor;
                if (bias && ahead >= begin && ahead < end)
                    x[r][n][i] += bias[ahead];
            }
}

/* kept[r]: bit 4 n + i says whether the dropout keeps the lane's x[r][n][i]. */
template <bool KEY_ROWS, int ROWS, int N>
__device__ inline void tile_dropout_bits(uint32_t (&kept)[ROWS], const struct attention_shape &z,
                                         const struct tile_position &at)
{
    /* Numbers come in steps of 8 along the keys (attention_keep): four n, or both r with both
     * halves. */
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        kept[r] = 0;
    if constexpr (KEY_ROWS) {
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                unsigned four =
                    attention_keep(z, attention_element(z, at.b, at.h, at.q0 + tile_col(n, i),
                                                        at.k0 + tile_row(0, 0)));
#pragma unroll
                for (int w = 0; w < 2 * ROWS; w++)
                    kept[w / 2] |= (four >> w & 1) << (4 * n + i + w % 2 * 2);
            }
    } else {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int n = 0; n < N; n += 4) {
                    unsigned four =
                        attention_keep(z, attention_element(z, at.b, at.h, at.q0 + tile_row(r, i),
                                                            at.k0 + tile_col(n, i)));
#pragma unroll
                    for (int w = 0; w < 4; w++)
                        kept[r] |= (four >> w & 1) << (4 * (n + w) + i);
                }
    }
}

/* What a probability is multiplied by, if its bit of `kept` is i's. */
__device__ inline float tile_dropped(uint32_t kept, int n, int i, float scale)
{
    return kept >> (4 * n + i) & 1 ? scale : 0;
}

/* Writes the warp's rows times `factor`, from row `first` of `to` on, by way of `tile`: room for
 * them that no other warp uses; its own lanes may have read there until now. */
template <int HD, int ROWS>
__device__ inline void tile_store(const struct tile_rows &to, int64_t first, bf16 *tile,
                                  const float (&x)[ROWS][HD / 8][4], float factor)
{
    constexpr int CHUNKS = HD / 8;
    int lane = (int)threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < CHUNKS; n++)
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                uint32_t pair = matrix_pair(x[r][n][i] * factor, x[r][n][i + 1] * factor);
                bf16 *target = tile_chunk<HD>(tile, tile_row(r, i), n) + 2 * (lane % 4);
                *(uint32_t *)(void *)target = pair;
            }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16 * ROWS; i += 32 / CHUNKS) {
        int row = i + lane / CHUNKS, chunk = lane % CHUNKS;
        if (first + row < to.count)
            *(uint4 *)(void *)(to.x + (first + row) * to.stride + 8 * chunk) =
                *(const uint4 *)(void *)tile_chunk<HD>(tile, row, chunk);
    }
}

#endif
#endif
