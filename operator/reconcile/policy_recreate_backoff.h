/* The backoff before a pod is created again that the system terminated before it ran. A kubelet
 * that refuses each pod (OutOfcpu, UnexpectedAdmissionError) would otherwise cause an endless
 * sequence of pods. Such terminations are no failures, so backoffLimit does not stop it. A pod that
 * ran was welcome on its node: it is evicted no faster than kubelets look, and its peers wait for
 * it. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_RECREATE_BACKOFF_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_RECREATE_BACKOFF_H

#include "operator/job/types.h"

/* Until when a pod that the system terminated before it ran is kept, on the wall clock: 10 s after
 * its creation, more the older the job was then (`status` as last written), a minute at most. 0: it
 * may be replaced now, as any other pod, and one whose creation lies in the future, as the clocks
 * then differ too much. */
int64_t policy_recreate_at_ms(const struct pod *pod, const struct job_status *status,
                              int64_t now_ms);
#endif
