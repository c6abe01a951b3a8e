/* How long a place stays empty whose pod the system ended soon after it was made: a node whose
 * kubelet refuses each pod (OutOfcpu, UnexpectedAdmissionError) would else see an endless run of
 * them, as fast as the API server makes them. Such an end is no failure, so no limit stops it. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_RECREATE_BACKOFF_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_RECREATE_BACKOFF_H

#include "operator/job/types.h"

/* Until when a pod that failed by the system's doing is to stay, on the wall clock: 10 s from its
 * creation, and more the longer ago the job began (`status` as last written), up to a minute. 0: it
 * may go at once, as may any other pod, and one that was made in the future: the clocks differ too
 * much to tell. */
int64_t policy_recreate_at_ms(const struct pod *pod, const struct job_status *status,
                              int64_t now_ms);
#endif
