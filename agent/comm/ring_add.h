/* The sum of a reduction's step. Pure. */
#ifndef SHOAL_AGENT_COMM_RING_ADD_H
#define SHOAL_AGENT_COMM_RING_ADD_H

#include "kernels/dtype.h"

#include <stddef.h>

/* sum[i] = (sum[i] + x[i]) / ranks, computed in fp32 and, for bf16, rounded to nearest even. ranks
 * 1: no division. Both are aligned to their elements. */
void ring_add(enum dtype t, void *sum, const void *x, size_t count, int ranks);
#endif
