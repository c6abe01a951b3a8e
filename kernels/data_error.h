/* What a device says of a number in a batch that no op can use: an id or a label without a row in
 * its table. Whoever reads data checks it before, so it was damaged since, or its reader has a bug.
 * A restart meets it again: it is ERR_INPUT on every device, never a fault of the device. Pure. */
#ifndef SHOAL_KERNELS_DATA_ERROR_H
#define SHOAL_KERNELS_DATA_ERROR_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum data_number { DATA_ID = 1, DATA_LABEL }; /* of an embedding; of a loss */

/* Sets *err and returns -1. at: which of those that the op was given, counted from 0. It had to be
 * in [0, limit). */
int data_error(struct error *err, enum data_number what, int64_t at, int64_t value, int64_t limit);

#ifdef __cplusplus
}
#endif
#endif
