/* When a job has succeeded: with its master, whatever the workers do. Without a master all workers
 * must succeed, or one worker of an elastic job. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_SUCCESS_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_SUCCESS_H

#include "operator/job/types.h"

/* Reads the counters of the new status. */
bool policy_success(const struct job *job, const struct job_status *status);
#endif
