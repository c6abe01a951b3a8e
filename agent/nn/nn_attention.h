/* Attention over packed tensors: each token's row holds all query heads, then the key heads, then
 * the value heads. In cross-attention, a row of the source holds the key heads and the
 * value heads. */
#ifndef SHOAL_AGENT_NN_NN_ATTENTION_H
#define SHOAL_AGENT_NN_NN_ATTENTION_H

#include "agent/nn/module.h"
#include "agent/nn/tape.h"

/* Heads of a packed tensor [B, T, (heads + 2 kv_heads) * hd]. */
struct nn_heads {
    int64_t heads, kv_heads, hd; /* kv_heads divides heads */
};

/* Rotates queries and keys by their positions, in place. cos, sin: device [T, hd / 2], fp32, alive
 * until backward has run. Returns qkv; no op before this one may read it in backward. */
struct tensor *nn_rope(struct tape *tape, struct tensor *qkv, const struct nn_heads *heads,
                       const float *cos, const float *sin);

struct nn_attention_how {
    float scale;    /* of the scores, before the bias */
    bool causal;    /* each token sees itself and those before it; else all */
    float dropout;  /* of the probabilities, in training */
    uint64_t layer; /* names its random numbers within the model */
    /* NULL, or device [B], alive until backward has run: queries of sequence b see only its first
     * key_counts[b] keys, 1 .. T. */
    const int32_t *key_counts;
};
/* A decoder's self-attention: causal, scores over sqrt(hd), no dropout. */
struct nn_attention_how nn_attention_causal(const struct nn_heads *heads);

/* Self-attention, softmax(scale * q k^T + bias) v: -> [B, T, heads * hd]. bias: NULL, or [.., 2 T -
 * 1, heads]: row k - q + T - 1 is added to the score of query q and key k. */
struct tensor *nn_attention(struct tape *tape, struct tensor *qkv, struct tensor *bias,
                            const struct nn_heads *heads, const struct nn_attention_how *how);
/* Cross-attention. q: [B, T_q, heads * hd]; kv: [B, T_k, 2 * kv_heads * hd]. */
struct tensor *nn_cross_attention(struct tape *tape, struct tensor *q, struct tensor *kv,
                                  const struct nn_heads *heads, const struct nn_attention_how *how);
#endif
