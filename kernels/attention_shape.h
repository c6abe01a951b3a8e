/* What every backend asserts of attention's shape. */
#ifndef SHOAL_KERNELS_ATTENTION_SHAPE_H
#define SHOAL_KERNELS_ATTENTION_SHAPE_H

#include "kernels/ops.h"

#include <assert.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline void attention_shape_check(const struct attention_shape *z)
{
    assert(z->B >= 0 && z->T_q >= 0 && z->T_k >= 1 && z->hd >= 1);
    assert(z->kv_heads >= 1 && z->heads >= 1 && z->heads % z->kv_heads == 0);
    assert(z->q_stride >= z->heads * z->hd && z->k_stride >= z->kv_heads * z->hd &&
           z->v_stride >= z->kv_heads * z->hd);
    assert(!z->causal || z->T_q == z->T_k);
    assert(z->dropout >= 0 && z->dropout < 1);
}

#ifdef __cplusplus
}
#endif
#endif
