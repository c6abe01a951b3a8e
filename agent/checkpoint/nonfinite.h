/* NaN and infinity among the elements of tensors in host memory: so that no checkpoint of them is
 * written or read. Knows dtypes and named ranges; not files or ranks. Pure. */
#ifndef SHOAL_AGENT_CHECKPOINT_NONFINITE_H
#define SHOAL_AGENT_CHECKPOINT_NONFINITE_H

#include "agent/checkpoint/safetensors.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct tensor_ranges; /* checkpoint.h */

/* The first one. */
struct nonfinite {
    int64_t element;
    const char *value; /* "NaN", "inf" or "-inf" */
};

/* Whether any of data[count] is one. data: little-endian, of any alignment. Integers never are. */
bool nonfinite_find(enum safetensors_dtype dtype, const void *data, int64_t count,
                    struct nonfinite *ret_found);

/* The error for one of a tensor of this shape: "tensor fc1.weight[3, 5] is NaN ...". Returns -1. */
int nonfinite_error(enum error_code code, const char *name, int dims, const int64_t *shape,
                    const struct nonfinite *found, struct error *err);

/* Looks through all ranges, in their order. Errors: ERR_DIVERGED names the first one's tensor and
 * its place in the whole tensor. */
int nonfinite_check(const struct tensor_ranges *ranges, struct error *err);
#endif
