/* A job's status as one value: copying it out of a pass, and telling whether a pass changed it. */
#ifndef SHOAL_OPERATOR_JOB_JOB_STATUS_H
#define SHOAL_OPERATOR_JOB_JOB_STATUS_H

#include "operator/job/types.h"

struct arena;

/* A copy that shares nothing with the original: everything is in the arena. For those who keep a
 * status from one pass to the next. */
struct job_status job_status_copy(const struct job_status *status, struct arena *arena);

/* Whether nothing would be different if b were written in place of a. */
bool job_status_equal(const struct job_status *a, const struct job_status *b);
#endif
