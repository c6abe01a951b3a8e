/* When a job has succeeded. With a master its success is the job's, whatever the workers do;
 * without one all workers must succeed, of an elastic job any one. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_SUCCESS_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_SUCCESS_H

#include "operator/job/types.h"

/* Reads the counters of `status` as of this pass. */
bool policy_success(const struct job *job, const struct job_status *status);
#endif
