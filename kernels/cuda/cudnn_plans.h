/* The plans of a GPU's cuDNN, one a shape and direction, kept while there is room. A plan is for
 * the whole batch, or for as many of its sequences as the workspace is enough for. Knows shapes and
 * graphs, not streams: whoever takes or makes a plan runs it. */
#ifndef SHOAL_KERNELS_CUDA_CUDNN_PLANS_H
#define SHOAL_KERNELS_CUDA_CUDNN_PLANS_H

#include "kernels/cuda/cudnn_attention.h"

/* A model has two or four. */
enum { CUDNN_PLANS = 16 };

/* What a plan is for. */
struct cudnn_plan_key {
    int64_t B, T_q, T_k, heads, kv_heads, hd, q_stride, k_stride, v_stride, causal, backward;
    int64_t nondeterministic; /* of backward */
};

struct cudnn_plan {
    struct cudnn_plan_key key;
    uint64_t used_at;                 /* by the counter of all uses */
    struct cudnn_attention attention; /* without a plan: cuDNN has none for it */
    int64_t sequences;                /* that it does at a time, a divisor of the batch */
    bool is_compared;                 /* with our kernels' result: the caller's, false at first */
};

/* All zero: none is made yet. */
struct cudnn_plans {
    struct cudnn_plan *plans[CUDNN_PLANS]; /* NULL: not made yet */
    uint64_t uses;
};

/* Frees all; what was queued of them is done. */
void cudnn_plans_close(struct cudnn_plans *plans);

/* That of a shape; NULL: it is not made yet, or not kept any more. */
struct cudnn_plan *cudnn_plans_find(const struct cudnn_plans *plans,
                                    const struct attention_shape *shape, bool backward);
/* The same for a use, which keeps it longer. */
struct cudnn_plan *cudnn_plans_take(struct cudnn_plans *plans, const struct attention_shape *shape,
                                    bool backward);

/* Whether the next plan takes the place of the one used longest ago, whose kernels may be queued
 * yet: the caller waits for those. */
bool cudnn_plans_are_full(const struct cudnn_plans *plans);
/* Makes the plan of a shape that has none, which compiles and loads its kernels: not while ops are
 * captured. device: finalized properties of a GPU. It lives until its place is taken. */
struct cudnn_plan *cudnn_plans_make(struct cudnn_plans *plans, const struct cudnn_api *api,
                                    cudnn_descriptor device, const struct attention_shape *shape,
                                    bool backward);
#endif
