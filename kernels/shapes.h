/* The shapes of convolutions, linear layers and attention. Part of kernels/ops.h: the letters are
 * explained there. */
#ifndef SHOAL_KERNELS_SHAPES_H
#define SHOAL_KERNELS_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Geometry of a convolution without padding, stride 1 (the MNIST network's), images channels-last.
 * Output is [B, H - KH + 1, W - KW + 1, C_out]. */
struct conv2d_shape {
    int64_t B, H, W, C_in, C_out, KH, KW;
};

/* y = x w^T (+ bias). Rows of y and dy are y_stride elements apart, so several products can fill
 * the columns of one tensor. */
struct linear_shape {
    int64_t rows, in, out;
    int64_t y_stride; /* >= out */
    bool in_out;      /* w is [in, out], GPT-2's Conv1D; else [out, in], torch.nn.Linear */
    /* A bias's gradient may be added up in any order, and a GELU made of what is not rounded yet:
     * results may differ in their last bits from those of other ways to the same numbers. */
    bool nondeterministic;
};

/* torch.nn.Linear with a y of its own. */
static inline struct linear_shape linear_dense(int64_t rows, int64_t in, int64_t out)
{
    struct linear_shape shape = {rows, in, out, out, false, false};
    return shape;
}

/* Scaled dot-product attention over heads of width hd. Query head h reads key and value head h /
 * (heads / kv_heads). Element (b, t, h, i) of q lies at (b * T_q + t) * q_stride + h * hd + i; k
 * and v likewise with T_k and kv_heads. So q, k and v may be columns of one tensor. */
struct attention_shape {
    int64_t B, T_q, T_k, heads, kv_heads, hd;
    int64_t q_stride, k_stride, v_stride; /* elements between tokens */
    bool causal;                          /* query t sees keys 0 .. t; needs T_q = T_k */
    float scale;                          /* of the scores, before softmax and the bias; > 0 */
    /* dropout of the probabilities: element (b, h, q, k) is dropped if random_uniform(key, ((g *
     * heads + h) * T_q + q) * T_k + k) < dropout. There g is first_row + b * row_stride; what is
     * left is divided by 1 - dropout. 0: none. */
    float dropout;
    /* Backward may add up in any order, which lets it be faster: its runs may then differ in their
     * last bits. False: equal inputs give equal bits. */
    bool nondeterministic;
    uint64_t key, first_row, row_stride;
    /* [T_q + T_k - 1, heads], of the op's dtype, or NULL. Row k - q + T_q - 1 is added to the score
     * of query q and key k: a bias by relative position, as T5's (Raffel et al. 2020). */
    const void *bias;
    /* [B], or NULL: queries of sequence b see its first key_counts[b] keys (1 .. T_k); the others
     * are padding, and their gradients are 0. */
    const int32_t *key_counts;
};

#ifdef __cplusplus
}
#endif
#endif
