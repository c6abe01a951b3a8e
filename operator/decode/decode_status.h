/* Reads the status that manifest_status.c writes. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_STATUS_H
#define SHOAL_OPERATOR_DECODE_DECODE_STATUS_H

#include "operator/job/types.h"

struct arena;
struct json;

/* Reads the value of `.status`; NULL: there is none. Ignores what is malformed: a status that
 * somebody damaged must not stop the job. */
struct job_status decode_status(const struct json *value, struct arena *arena);
#endif
