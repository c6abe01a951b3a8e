/* The part of decode that reads back what manifest_status wrote. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_STATUS_H
#define SHOAL_OPERATOR_DECODE_DECODE_STATUS_H

#include "operator/job/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct arena;
struct json_t;

/* The value of `.status` (NULL: there is none). Whatever is not understood is left out: a status
 * that someone spoilt must not stop the job. */
struct job_status decode_status(const struct json_t *value, struct arena *arena);

#ifdef __cplusplus
}
#endif
#endif
