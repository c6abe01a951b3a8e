/* A tensor's elements as floats, whichever of the types of weights it is stored in. */
#ifndef SHOAL_AGENT_PRETRAINED_VALUES_H
#define SHOAL_AGENT_PRETRAINED_VALUES_H

#include "agent/checkpoint/safetensors.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether pretrained_read_values reads it: F32, F16 and BF16. */
bool pretrained_has_values(enum safetensors_dtype dtype);

/* Elements first .. first + count - 1, which are there, of a tensor that has values. raw: room for
 * `count` floats, which need not be kept. Errors: ERR_IO. */
int pretrained_read_values(const struct safetensors *file, const struct safetensors_tensor *tensor,
                           int64_t first, int64_t count, void *raw, float *ret_values,
                           struct error *err);

#ifdef __cplusplus
}
#endif
#endif
