/* The arithmetic of a reduction's step. Pure. */
#ifndef SHOAL_AGENT_RING_ADD_H
#define SHOAL_AGENT_RING_ADD_H

#include "kernels/dtype.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* sum[i] = (sum[i] + x[i]) / ranks, in fp32; of bf16 the result is rounded to nearest even. ranks
 * 1: not divided. Both are aligned to their elements. */
void ring_add(enum dtype t, void *sum, const void *x, size_t count, int ranks);

#ifdef __cplusplus
}
#endif
#endif
