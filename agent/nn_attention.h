/* Causal self-attention over a packed tensor: each token's row holds all query heads, then the key
 * heads, then the value heads. */
#ifndef SHOAL_AGENT_NN_ATTENTION_H
#define SHOAL_AGENT_NN_ATTENTION_H

#include "agent/module.h"
#include "agent/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Heads of a packed tensor [B, T, (heads + 2 kv_heads) * hd]. */
struct nn_heads {
    int64_t heads, kv_heads, hd; /* kv_heads divides heads */
};

/* Turns queries and keys by their positions, in place. cos, sin: device [T, hd / 2], fp32, alive
 * until backward has run. Returns qkv, which no other op may read in backward before. */
struct tensor *nn_rope(struct tape *tape, struct tensor *qkv, const struct nn_heads *heads,
                       const float *cos, const float *sin);
/* softmax(q k^T / sqrt(hd)) v, each token seeing itself and those before it: -> [B, T, heads * hd].
 * dropout: of the probabilities, in training; layer: names its random numbers within the model. */
struct tensor *nn_attention(struct tape *tape, struct tensor *qkv, const struct nn_heads *heads,
                            float dropout, uint64_t layer);

#ifdef __cplusplus
}
#endif
#endif
