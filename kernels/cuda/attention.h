/* What the kernels of attention share: their arguments, who works on which head, which scores
 * count, dropout, and the gradient of a bias. Scores are kept times log2 e, so that exp2 makes
 * probabilities of them. */
#ifndef SHOAL_KERNELS_CUDA_ATTENTION_H
#define SHOAL_KERNELS_CUDA_ATTENTION_H

#include "kernels/cuda/divider.h"
#include "kernels/cuda/matrix.h"
#include "kernels/cuda/numbers.h"
#include "kernels/random.h"

/* The shape's dropout, as the kernels on matrix units use it. */
struct attention_dropout {
    struct philox_keys keys; /* here, instead of in registers */
    uint32_t least;          /* of a word of Philox's that is kept */
    float scale;             /* of what is kept */
};

/* How blocks are dealt to heads: by divisors, so that all threads of a block have one result. */
struct attention_heads {
    struct divider of_all, of_sequence; /* heads */
    struct divider of_keys;             /* those that share keys */
};

/* What the backward for compute capability 9.0 knows of queries, in tiles of 64: those of a head
 * are one after the other, up to a multiple of two tiles. The kernel that makes dq leaves them for
 * the one that makes dk and dv. */
enum { ATTENTION_STATS_QUERIES = 64 };
struct attention_stats {
    float lse[ATTENTION_STATS_QUERIES];   /* times log2 e; infinite past the last query */
    float delta[ATTENTION_STATS_QUERIES]; /* as below; 0 there */
};

struct attention_args {
    struct attention_shape shape;
    struct attention_dropout dropout;
    struct attention_heads query_heads, key_heads; /* where a block has a head, or shared keys */
    const void *q, *k, *v;
    void *y;    /* forward's output */
    float *lse; /* its other one */
    const void *dy, *kept_y;
    const float *kept_lse;
    void *dq, *dk, *dv;
    const float *bias; /* [heads, T_q + T_k - 1], times log2 e; NULL: none */
    float
        *delta; /* [B, heads, T_q]: row sums of dy * y, which are those of p * dp (FlashAttention's
                  D); the kernel that makes dq leaves it for the one that makes dk and dv */
    /* Gradients of scores summed along diagonals, struct attention_diagonals; NULL without a bias:
     * [B, heads, diagonal_rows, diagonal_length]. */
    float *diagonals;
    int64_t diagonal_rows, diagonal_length;
    struct attention_stats *stats; /* of the backward for 9.0 */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Any head width, fp32 and bf16. */
void attention_general_forward(struct stream *s, enum dtype t, const struct attention_args *a);
void attention_general_backward(struct stream *s, enum dtype t, const struct attention_args *a);

/* By matrix units: bf16, heads 64 or 128 wide, all rows 16-byte aligned. */
void attention_matrix_forward(struct stream *s, const struct attention_args *a);
void attention_matrix_queries_backward(struct stream *s, const struct attention_args *a);
void attention_matrix_keys_backward(struct stream *s, const struct attention_args *a);

/* For compute capability 9.0 alone: as those by matrix units, without bias, dropout and padding,
 * strides a multiple of the width, at least a query. The build must have them: their code is of
 * sm_90a. Backward has `stats` for `delta`. */
bool attention_hopper_is_built(void);
void attention_hopper_forward(struct stream *s, const struct attention_args *a);
void attention_hopper_queries_backward(struct stream *s, const struct attention_args *a);
void attention_hopper_keys_backward(struct stream *s, const struct attention_args *a);

/* Queries that share one sum of a diagonal, and keys of a step, in the kernel that makes dq. */
enum {
    ATTENTION_GENERAL_QUERIES = 32,
    ATTENTION_GENERAL_KEYS = 32,
};
/* ... of attention_matrix_queries_backward for heads `hd` wide. */
int attention_matrix_queries(int64_t hd);
int attention_matrix_keys(int64_t hd);

#ifdef __cplusplus
}

#define LOG2_E 1.44269504f
#define LN_2   0.693147181f

/* What a block works on: a tile of queries (or keys) of one head. Blocks count through the heads
 * first, so that those that share keys run together, and through the tiles with the longest work
 * first. */
struct attention_work {
    int b, h, kv;
    int tile;
    int keys; /* that sequence b has */
};

__device__ inline struct attention_work attention_work_of(const struct attention_args &a,
                                                          const struct attention_heads &heads,
                                                          uint32_t index)
{
    struct attention_work work;
    uint32_t head, h, rest;
    work.tile = (int)divide(index, heads.of_all, &head);
    work.b = (int)divide(head, heads.of_sequence, &h);
    work.h = (int)h;
    work.kv = (int)divide(h, heads.of_keys, &rest);
    work.keys = (int)(a.shape.key_counts ? a.shape.key_counts[work.b] : a.shape.T_k);
    return work;
}

/* attention_args' stats of a head. */
__host__ __device__ inline int64_t attention_stats_count(int64_t T_q)
{
    const int64_t most = 2 * ATTENTION_STATS_QUERIES;
    return (T_q + most - 1) / most * 2;
}

/* Which of them has query q of a head, counted through all sequences. */
__device__ inline int64_t attention_stats_index(int64_t T_q, int64_t head, int q)
{
    return head * attention_stats_count(T_q) + q / ATTENTION_STATS_QUERIES;
}

/* Keys that the queries before `end` see. */
__device__ inline int64_t attention_seen(const struct attention_shape &z,
                                         const struct attention_work &work, int64_t end)
{
    return z.causal && end < work.keys ? end : work.keys;
}

/* The number of element (h, q, k) of sequence b in dropout's row of numbers. */
__device__ inline uint64_t attention_element(const struct attention_shape &z, int64_t b, int64_t h,
                                             int64_t q, int64_t k)
{
    uint64_t g = z.first_row + (uint64_t)b * z.row_stride;
    uint64_t line = (g * (uint64_t)z.heads + (uint64_t)h) * (uint64_t)z.T_q + (uint64_t)q;
    return line * (uint64_t)z.T_k + (uint64_t)k;
}

/* Which of Philox's blocks has an element's number. */
__device__ inline uint64_t attention_block(uint64_t element)
{
    return element / RANDOM_GROUP * RANDOM_GROUP_BLOCKS + element % RANDOM_GROUP_BLOCKS;
}

/* Bit w of 4: whether the number of element + 8 w is kept. They are words of one of Philox's
 * blocks, or of two. */
__device__ inline unsigned attention_keep(const struct attention_shape &z, uint64_t element)
{
    uint64_t index = attention_block(element);
    int skip = (int)(element % RANDOM_GROUP) / RANDOM_GROUP_BLOCKS;
    unsigned kept = 0;
    for (int i = 0; i < (skip > 0 ? 2 : 1); i++, index += RANDOM_GROUP_BLOCKS) {
        struct philox_block block = {{(uint32_t)index, (uint32_t)(index >> 32), 0, 0}};
        block = philox(block, (uint32_t)z.key, (uint32_t)(z.key >> 32));
#pragma unroll
        for (int w = 0; w < 4; w++)
            kept |= (unsigned)(random_unit(block.words[w]) >= z.dropout) << (4 * i + w);
    }
    return kept >> skip & 15;
}

/* Of a block's head among `heads` a sequence. */
static inline struct attention_heads attention_heads_of(const struct attention_shape *z,
                                                        int64_t heads)
{
    struct attention_heads all = {divider_of(z->B * heads), divider_of(heads),
                                  divider_of(heads / z->kv_heads)};
    return all;
}

static inline struct attention_dropout attention_dropout_of(const struct attention_shape *z)
{
    /* random_unit(word) >= z->dropout: both times 2^24 are exact, and one is a whole number. */
    uint32_t least = (uint32_t)ceil((double)z->dropout * 0x1p24) << 8;
    struct attention_dropout dropout = {philox_keys_of(z->key), least, 1 / (1 - z->dropout)};
    return dropout;
}

/* A tile of scores in shared memory, COLS (a multiple of 32) a row, rows by four: where an element
 * lies. So neither the fragments of matrix.h nor diagonals meet in a bank, and both find their
 * places by adding constants. */
constexpr int ATTENTION_SCORE_PAD = 6; /* more than COLS for a row */
template <int COLS> __device__ inline int attention_score_offset(int row, int col)
{
    return row / 4 * 4 * (COLS + ATTENTION_SCORE_PAD) + row % 4 * (COLS + 8) + col;
}

/* Where args.diagonals has those of a head and of `rows` queries from q0 on. */
__device__ inline float *attention_diagonals_to(const struct attention_args &a,
                                                const struct attention_work &work, int64_t q0,
                                                int rows)
{
    int64_t head = work.b * a.shape.heads + work.h;
    return a.diagonals + (head * a.diagonal_rows + q0 / rows) * a.diagonal_length;
}

/* Sums of the gradients of scores along diagonals, which go to `out`. A warp takes ROWS (<= 32)
 * queries through the keys from the first on, COLS a step. With the first query at q0, sum i is
 * over all (q, k) where k - q is i - q0 - (ROWS - 1). A step's tile reaches COLS + ROWS - 1
 * diagonals, of which the lower COLS are finished by it; a lane has every 32nd. */
template <int ROWS, int COLS> struct attention_diagonals {
    float sums[COLS / 32 + 1] = {};

    /* The tile at key k0. In a row a lane has one column of either the first or the last of its
     * diagonals. */
    __device__ void add(float *out, const float *scores, int64_t k0)
    {
        int lane = (int)(threadIdx.x % 32);
#pragma unroll
        for (int row = 0; row < ROWS; row++) {
            bool is_first = lane + row >= ROWS - 1;
            const float *diagonal = scores + attention_score_offset<COLS>(row, row - (ROWS - 1));
            float either = diagonal[is_first ? lane : lane + COLS];
            if (is_first)
                sums[0] += either;
            else
                sums[COLS / 32] += either;
#pragma unroll
            for (int i = 1; i < COLS / 32; i++)
                sums[i] += diagonal[lane + 32 * i];
        }
#pragma unroll
        for (int i = 0; i < COLS / 32; i++)
            out[k0 + 32 * i + lane] = sums[i];
        sums[0] = sums[COLS / 32];
#pragma unroll
        for (int i = 1; i <= COLS / 32; i++)
            sums[i] = 0;
    }

    /* After the last tile, which ended at key `end`. */
    __device__ void finish(float *out, int64_t end, int64_t length)
    {
        int lane = (int)(threadIdx.x % 32);
        out[end + lane] = sums[0];
        for (int64_t i = end + 32 + lane; i < length; i += 32)
            out[i] = 0;
    }
};

#endif
#endif
