/* From types to JSON: the other direction of decode, for what the operator writes. */
#ifndef SHOAL_OPERATOR_MANIFEST_H
#define SHOAL_OPERATOR_MANIFEST_H

#include "operator/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct json_t;

/* The value of `.status`, which decode_status reads back; the caller owns it (json_decref).
 * Counters that are 0 are left out, as tools know it. Times are written in whole seconds, so who
 * stores a status this way passes whole seconds to reconcile, or each pass would find its status
 * changed. */
struct json_t *manifest_status(const struct job *job, const struct job_status *status);

#ifdef __cplusplus
}
#endif
#endif
