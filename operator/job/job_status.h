/* Copies and compares a job's status. */
#ifndef SHOAL_OPERATOR_JOB_JOB_STATUS_H
#define SHOAL_OPERATOR_JOB_JOB_STATUS_H

#include "operator/job/types.h"

struct arena;

/* A deep copy in the arena, to keep a status from one pass to the next. */
struct job_status job_status_copy(const struct job_status *status, struct arena *arena);

/* Whether both are written as the same object. */
bool job_status_equal(const struct job_status *a, const struct job_status *b);

/* Whether the write of what a pass found may wait for more of the kind, so that a job whose pods
 * start or succeed one after the other is written once and not once a pod. Only what the next pass
 * sees again may: how many pods are active, that the job runs, how its training goes; and which
 * replicas have succeeded, which the caller must remember (executor_unwritten), as their pods may
 * be gone by then. A counted failure may not, nor what ends, suspends or hinders the job. */
bool job_status_may_wait(const struct job_status *before, const struct job_status *after);

/* Whether all replicas begin anew with `after`, or end until they do: what has succeeded before is
 * not complete then. */
bool job_status_starts_over(const struct job_status *before, const struct job_status *after);
#endif
