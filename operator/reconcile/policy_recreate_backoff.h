/* The backoff before a pod is created again that the system terminated soon after its creation. A
 * kubelet that refuses each pod (OutOfcpu, UnexpectedAdmissionError) would otherwise cause an
 * endless sequence of pods. Such terminations are no failures, so backoffLimit does not stop it. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_RECREATE_BACKOFF_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_RECREATE_BACKOFF_H

#include "operator/job/types.h"

/* Until when a pod that the system terminated is kept, on the wall clock: 10 s after its creation,
 * more the older the job was then (`status` as last written), a minute at most. 0: it may be
 * replaced now, as any other pod, and one whose creation lies in the future, as the clocks then
 * differ too much. */
int64_t policy_recreate_at_ms(const struct pod *pod, const struct job_status *status,
                              int64_t now_ms);
#endif
