/* Whether an unfinished job still gets new replicas. Once a worker of an elastic job has succeeded,
 * the rendezvous is closed: a new worker would wait for peers that never come. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_SCALE_UP_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_SCALE_UP_H

#include "operator/job/types.h"

/* Whether a missing pod of this type may be created. */
bool policy_may_scale_up(const struct job *job, const struct history *history,
                         enum replica_type type);
#endif
