/* The two clocks of a job: how long it may be active, and how long it is kept once it is finished.
 * Both are moments on the wall clock, so that a pass can say when the next one is due. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_DEADLINE_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_DEADLINE_H

#include "operator/job/types.h"

#define POLICY_NEVER INT64_MAX

/* When activeDeadlineSeconds is over, counted from the (last) start; POLICY_NEVER without a limit
 * or a start. */
int64_t policy_deadline_ms(const struct job *job, const struct job_status *status);

/* When ttlSecondsAfterFinished of a finished job is over; POLICY_NEVER without one, and while the
 * job is suspended. */
int64_t policy_expiry_ms(const struct job *job, const struct job_status *status);
#endif
