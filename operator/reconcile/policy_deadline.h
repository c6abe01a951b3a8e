/* The two time limits of a job: activeDeadlineSeconds and ttlSecondsAfterFinished. Both are times
 * on the wall clock, so that a pass can request a requeue. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_DEADLINE_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_DEADLINE_H

#include "operator/job/types.h"

#define POLICY_NEVER INT64_MAX

/* When activeDeadlineSeconds is over, counted from the last start; POLICY_NEVER: no limit, or not
 * started. */
int64_t policy_deadline_ms(const struct job *job, const struct job_status *status);

/* When ttlSecondsAfterFinished is over; POLICY_NEVER: no limit, not finished, or suspended. */
int64_t policy_expiry_ms(const struct job *job, const struct job_status *status);
#endif
