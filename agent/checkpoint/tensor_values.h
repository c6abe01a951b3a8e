/* The dtypes of weights in files: their elements as floats, whichever of them it is, and the one
 * that our own numbers are stored in. */
#ifndef SHOAL_AGENT_CHECKPOINT_TENSOR_VALUES_H
#define SHOAL_AGENT_CHECKPOINT_TENSOR_VALUES_H

#include "agent/checkpoint/safetensors.h"
#include "kernels/dtype.h"

#include <stdbool.h>

/* What numbers of this dtype are stored as, bit by bit. */
enum safetensors_dtype tensor_dtype_of(enum dtype dtype);

/* Whether tensor_read_values reads it: F32, F16 and BF16. */
bool tensor_has_values(enum safetensors_dtype dtype);

/* Elements first .. first + count - 1, which are there, of a tensor that has values. raw: room for
 * `count` floats, which need not be kept. Errors: ERR_IO. */
int tensor_read_values(const struct safetensors *file, const struct safetensors_tensor *tensor,
                       int64_t first, int64_t count, void *raw, float *ret_values,
                       struct error *err);
#endif
