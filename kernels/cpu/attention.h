/* What attention's forward and backward share: blocks of queries and keys as dense fp32 matrices,
 * and their scores. */
#ifndef SHOAL_KERNELS_CPU_ATTENTION_H
#define SHOAL_KERNELS_CPU_ATTENTION_H

#include "kernels/cpu/cpu.h"

/* Queries and keys of a block: its scores and the rows they come from stay in the L2 cache. */
enum { ATTENTION_BLOCK = 64 };

struct attention_args {
    struct stream *s;
    enum dtype t;
    struct attention_shape shape;
    const void *q, *k, *v;
    void *y;    /* forward's output */
    float *lse; /* its other one */
    const void *dy, *kept_y;
    const float *kept_lse;
    void *dq, *dk, *dv;
    float *dbias;
};

static inline int64_t attention_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* rows: [count, hd] = `count` rows of x, `stride` apart from element `first` on, times `scale`. */
void attention_load(float *rows, enum dtype t, const void *x, int64_t first, int64_t stride,
                    int64_t count, int64_t hd, float scale);
/* The other way. */
void attention_store(enum dtype t, void *x, int64_t first, int64_t stride, const float *rows,
                     int64_t count, int64_t hd, float scale);

/* Which block of scores: head h of sequence b, queries q .. q + q_count, keys k .. k + k_count. */
struct attention_block {
    int64_t b, h, q, q_count, k, k_count;
    int64_t keys; /* of the sequence: the others are padding */
};

static inline int64_t attention_keys(const struct attention_shape *shape, int64_t b)
{
    return shape->key_counts ? shape->key_counts[b] : shape->T_k;
}

/* Keys that query `row` of the block sees: the first so many. */
static inline int64_t attention_visible(const struct attention_shape *shape,
                                        const struct attention_block *block, int64_t row)
{
    if (!shape->causal)
        return block->k_count;
    int64_t visible = block->q + row + 1 - block->k;
    return visible < 0 ? 0 : attention_min(visible, block->k_count);
}

/* Distances of queries and keys. */
static inline int64_t attention_distances(const struct attention_shape *shape)
{
    return shape->T_q + shape->T_k - 1;
}

/* Which of them that of query `row` and the block's first key is; the next key's is the next. */
static inline int64_t attention_distance(const struct attention_shape *shape,
                                         const struct attention_block *block, int64_t row)
{
    return block->k - (block->q + row) + shape->T_q - 1;
}

/* bias: [q_count + k_count - 1], added to the block's scores by distance. Element 0 is for the last
 * query and the first key; query `row` begins at element q_count - 1 - row. For shapes that have a
 * bias. */
void attention_load_bias(float *bias, enum dtype t, const struct attention_shape *shape,
                         const struct attention_block *block);

/* dbias = the sums over sequences, in order, of sums: [B, heads, distances]. */
void attention_store_dbias(float *dbias, const float *sums, const struct attention_shape *shape);

/* mask: [count] for keys from block->k on of query `row`: 0 or 1 / (1 - dropout). */
void attention_mask(float *mask, const struct attention_shape *shape,
                    const struct attention_block *block, int64_t row, int64_t count);

/* Where the first element of query (key) t of head h lies. */
static inline int64_t attention_offset(int64_t b, int64_t T, int64_t t, int64_t stride, int64_t h,
                                       int64_t hd)
{
    return (b * T + t) * stride + h * hd;
}

/* Of a struct attention_args. */
void attention_backward_run(void *args);

#endif
