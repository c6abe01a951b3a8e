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
template <int HD> __device__ inline int tile_offset(int row, int chunk)
{
    return row * HD + 8 * (chunk ^ (row & 7));
}
template <int HD> __device__ inline bf16 *tile_chunk(bf16 *tile, int row, int chunk)
{
    return tile + tile_offset<HD>(row, chunk);
}

/* Rows of a head in device memory: row r from x + (token + r) * stride on; from `count` on they are
 * zeros. */
struct tile_rows {
    bf16 *x;
    uint32_t token, stride;
    int count;
};

/* Head h, HD wide, of sequence b: tokens are `stride` apart, T of them, of which `count` count. */
template <int HD>
__device__ inline struct tile_rows tile_rows_of(const void *x, int64_t stride, int b, int64_t T,
                                                int h, int64_t count)
{
    struct tile_rows rows = {(bf16 *)x + h * HD, (uint32_t)b * (uint32_t)T, (uint32_t)stride,
                             (int)count};
    return rows;
}

/* Where row r begins. */
__device__ inline bf16 *tile_rows_at(const struct tile_rows &rows, int r)
{
    return rows.x + (uint64_t)(rows.token + (uint32_t)r) * rows.stride;
}

/* Brings rows first .. first + ROWS into a tile, when `copies` are waited for. */
template <int HD, int ROWS, int THREADS>
__device__ inline void tile_fetch(struct matrix_copies &copies, bf16 *tile,
                                  const struct tile_rows &from, int first)
{
    constexpr int CHUNKS = HD / 8, STEP = THREADS / CHUNKS;
    static_assert(ROWS % STEP == 0 && STEP % 8 == 0, "a thread keeps to its bank");
    int thread = matrix_thread(), row = thread / CHUNKS, chunk = thread % CHUNKS;
    int left = from.count - first - row;
    const bf16 *x = tile_rows_at(from, first + row) + 8 * chunk;
    bf16 *to = tile_chunk<HD>(tile, row, chunk);
#pragma unroll
    for (int i = 0; i < ROWS; i += STEP) {
        copies.copy<16>(to + i * HD, x, i < left);
        x += (uint64_t)STEP * from.stride;
    }
}

/* x += a b^T, as S = Q K^T: the warp's rows of a, the block's tile, with COLS rows of b. mma wants
 * its second factor by columns; those of b^T are the rows of b, so b is loaded as it lies. Chunk k
 * + c of a row is where chunk c is, XOR 8 k elements: k is even and c is 0 or 1. */
template <int HD, int ROWS, int COLS, int UNROLL = HD / 16>
__device__ inline void tile_mma_qk(float (&x)[ROWS][COLS / 8][4], const bf16 *a, const bf16 *b)
{
    int thread = matrix_thread(), lane = thread % 32;
    int left_at = tile_offset<HD>(thread / 32 * 16 * ROWS + lane % 16, lane / 16);
    int right_at = tile_offset<HD>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
#pragma unroll UNROLL
    for (int k = 0; k < HD / 8; k += 2) {
        uint32_t left[ROWS][4];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            matrix_load(left[r], a + (left_at ^ 8 * k) + 16 * r * HD);
#pragma unroll
        for (int n = 0; n < COLS / 8; n += 2) {
            uint32_t right[4];
            matrix_load(right, b + (right_at ^ 8 * k) + 8 * n * HD);
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
                                   const bf16 *b)
{
    int lane = matrix_lane(), right_at = tile_offset<HD>(lane % 16, lane / 16);
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
            matrix_load_transposed(right, b + (right_at ^ 8 * n) + 8 * k * HD);
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

/* The first of the warp's rows of its block's tile. */
template <int ROWS> __device__ inline int tile_warp_row()
{
    return matrix_thread() / 32 * 16 * ROWS;
}

/* Row and column, within the warp's tile, of a lane's x[r][n][i]. */
__device__ inline int tile_row(int lane, int r, int i)
{
    return 16 * r + 8 * (i / 2) + lane / 4;
}
__device__ inline int tile_col(int lane, int n, int i)
{
    return 8 * n + 2 * (lane % 4) + i % 2;
}

/* A tile of scores: queries from q0 on and keys from k0 on; the rows are queries, or keys if
 * KEY_ROWS. */
struct tile_position {
    int b, h, q0, k0, keys;
};

/* Places are int, which takes half of the registers of int64_t. No GPU has room for more tokens. */
enum { TILE_MOST = 1 << 29 };
static inline bool tile_places_suffice(const struct attention_shape *z)
{
    int64_t longest = z->T_q > z->T_k ? z->T_q : z->T_k;
    return longest <= TILE_MOST && z->B * longest <= UINT32_MAX && z->q_stride <= UINT32_MAX &&
           z->k_stride <= UINT32_MAX && z->v_stride <= UINT32_MAX;
}

/* Scores that do not count become -infinity. */
template <bool KEY_ROWS, int ROWS, int N>
__device__ inline void tile_mask(float (&x)[ROWS][N][4], const struct attention_shape &z,
                                 const struct tile_position &at)
{
    int ahead = z.causal ? at.q0 - at.k0 : TILE_MOST, last = at.keys - at.k0 - 1;
    int lane = matrix_lane();
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int row = tile_row(lane, r, i), col = tile_col(lane, n, i);
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

/* x += bias, in units of log2. A bias is of a diagonal: blocks of 8 x 8 scores at the same distance
 * from the tile's diagonal have the same ones. */
template <bool KEY_ROWS, int ROWS, int N>
__device__ inline void tile_add_bias(float (&x)[ROWS][N][4], const struct attention_args &a,
                                     const struct tile_position &at)
{
    /* The lane's place in the head's row of biases. */
    int distances = (int)(a.shape.T_q + a.shape.T_k) - 1;
    int lane = matrix_lane(), off = tile_col(lane, 0, 0) - tile_row(lane, 0, 0);
    int first = at.k0 - at.q0 + (int)a.shape.T_q - 1 + (KEY_ROWS ? -off : off);
    const float *bias = a.bias + (at.h * (int64_t)distances + first);
#pragma unroll
    for (int block = 1 - 2 * ROWS; block < N; block++)
#pragma unroll
        for (int odd = 0; odd < 2; odd++) {
            int ahead = KEY_ROWS ? -8 * block - odd : 8 * block + odd;
            float more = (unsigned)(first + ahead) < (unsigned)distances ? bias[ahead] : 0;
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int i = odd; i < 4; i += 2) {
                    int n = block + 2 * r + i / 2;
                    if (n >= 0 && n < N)
                        x[r][n][i] = __fadd_rn(x[r][n][i], more);
                }
        }
}

/* Products become scores in units of log2. */
template <bool KEY_ROWS, int ROWS, int N>
__device__ inline void tile_scale(float (&x)[ROWS][N][4], const struct attention_args &a,
                                  const struct tile_position &at, float factor)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) /* not one operation with the bias */
                x[r][n][i] = __fmul_rn(x[r][n][i], factor);
    if (a.bias)
        tile_add_bias<KEY_ROWS>(x, a, at);
}

/* Which of the lane's scores the dropout keeps. They are RUNS runs of WORDS that are 8 apart along
 * the keys (attention_keep): four of a run have their numbers from one of Philox's blocks, if the
 * run begins with that block's first. */
template <bool KEY_ROWS, int ROWS, int N> struct tile_dropout {
    enum { RUNS = KEY_ROWS ? 2 * N : 4 * ROWS, WORDS = KEY_ROWS ? 2 * ROWS : N };
    static constexpr unsigned ALL = (1u << WORDS) - 1; /* of a run */
    uint32_t kept[(RUNS * WORDS + 31) / 32] = {};      /* a bit each, run by run */

    __device__ void draw(const struct attention_args &a, const struct tile_position &at)
    {
        if (a.shape.T_k % RANDOM_GROUP == 0)
            draw_blocks(a, at);
        else
            draw_runs(a, at);
    }

    __device__ void keep_all()
    {
        for (uint32_t &bits : kept)
            bits = ~0u;
    }

    /* What x[r][n][i] is multiplied by. */
    __device__ float factor(const struct attention_args &a, int r, int n, int i) const
    {
        int bit = KEY_ROWS ? (2 * n + i % 2) * WORDS + 2 * r + i / 2 : (4 * r + i) * WORDS + n;
        return kept[bit / 32] >> bit % 32 & 1 ? a.dropout.scale : 0;
    }

  private:
    /* Of the first score of a run. */
    __device__ static uint64_t element(const struct attention_args &a,
                                       const struct tile_position &at, int lane, int run)
    {
        int row = tile_row(lane, 0, 0), col = tile_col(lane, 0, run), far = 8 * (run / 2);
        int q = KEY_ROWS ? far + col : far + row, k = KEY_ROWS ? row : col;
        return attention_element(a.shape, at.b, at.h, at.q0 + q, at.k0 + k);
    }

    /* Bit w: whether word w of one of Philox's blocks is kept. */
    __device__ static unsigned kept_words(const struct attention_args &a, uint64_t index)
    {
        struct philox_block block = {{(uint32_t)index, (uint32_t)(index >> 32), 0, 0}};
        unsigned bits = 0;
        block = philox_of_keys(block, &a.dropout.keys);
#pragma unroll
        for (int w = 0; w < 4; w++)
            bits |= block.words[w] >= a.dropout.least ? 1u << w : 0;
        return bits;
    }

    /* Where all queries begin with a block's first number: so do runs, or with its third, since a
     * tile of 16 keys is half of a group. */
    __device__ void draw_blocks(const struct attention_args &a, const struct tile_position &at)
    {
        static_assert(WORDS % 4 == 0 || WORDS == 2, "whole blocks, or half of one");
        int skip = WORDS == 2 ? at.k0 % RANDOM_GROUP / RANDOM_GROUP_BLOCKS : 0;
        uint64_t line = (uint64_t)a.shape.T_k / RANDOM_GROUP * RANDOM_GROUP_BLOCKS; /* a query's */
        uint64_t index = attention_block(element(a, at, matrix_lane(), 0));
#pragma unroll
        for (int run = 0; run < RUNS; run++) {
#pragma unroll
            for (int word = 0; word < WORDS; word += 4) {
                int bit = run * WORDS + word;
                kept[bit / 32] |= (kept_words(a, index + 2 * word) >> skip & ALL) << bit % 32;
            }
            uint64_t odd = KEY_ROWS ? line : 1;
            index += run % 2 ? 8 * line - odd : odd;
        }
    }

    /* Where they begin anywhere: one block more for each run, and loops, to be short. */
    __device__ void draw_runs(const struct attention_args &a, const struct tile_position &at)
    {
        uint64_t all = 0;
        int lane = matrix_lane();
#pragma unroll 1
        for (int run = RUNS - 1; run >= 0; run--) {
            uint64_t number = element(a, at, lane, run), index = attention_block(number);
            unsigned bits = 0;
#pragma unroll 1
            for (int word = 0; word < WORDS + 4; word += 4)
                bits |= kept_words(a, index + 2 * word) << word;
            all = all << WORDS | (bits >> number % RANDOM_GROUP / RANDOM_GROUP_BLOCKS & ALL);
        }
        kept[0] = (uint32_t)all;
        if constexpr (RUNS * WORDS > 32)
            kept[1] = (uint32_t)(all >> 32);
    }
};

/* Writes the warp's rows times `factor`, from row `first` of `to` on, by way of `tile`: room for
 * them that no other warp uses; its own lanes may have read there until now. */
template <int HD, int ROWS>
__device__ inline void tile_store(const struct tile_rows &to, int first, bf16 *tile,
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
                bf16 *target = tile_chunk<HD>(tile, tile_row(lane, r, i), n) + 2 * (lane % 4);
                *(uint32_t *)(void *)target = pair;
            }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16 * ROWS; i += 32 / CHUNKS) {
        int row = i + lane / CHUNKS, chunk = lane % CHUNKS;
        if (first + row < to.count)
            *(uint4 *)(void *)(tile_rows_at(to, first + row) + 8 * chunk) =
                *(const uint4 *)(void *)tile_chunk<HD>(tile, row, chunk);
    }
}

/* The sum of x * y, eight elements each. */
__device__ inline float tile_dot8(const bf16 *x, const bf16 *y)
{
    float left[8], right[8], sum = 0;
    numbers_load(left, x);
    numbers_load(right, y);
#pragma unroll
    for (int i = 0; i < 8; i++)
        sum += left[i] * right[i];
    return sum;
}

/* ---- the four lanes of a quad, over which a row's columns are spread ---- */

__device__ inline float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(CUDA_WARP, x, 1));
    return fmaxf(x, __shfl_xor_sync(CUDA_WARP, x, 2));
}

__device__ inline float quad_sum(float x)
{
    x += __shfl_xor_sync(CUDA_WARP, x, 1);
    return x + __shfl_xor_sync(CUDA_WARP, x, 2);
}

#endif
#endif
