/* Copies and compares a job's status. */
#ifndef SHOAL_OPERATOR_JOB_JOB_STATUS_H
#define SHOAL_OPERATOR_JOB_JOB_STATUS_H

#include "operator/job/types.h"

struct arena;

/* A deep copy in the arena, to keep a status from one pass to the next. */
struct job_status job_status_copy(const struct job_status *status, struct arena *arena);

/* Whether both are written as the same object. */
bool job_status_equal(const struct job_status *a, const struct job_status *b);
#endif
