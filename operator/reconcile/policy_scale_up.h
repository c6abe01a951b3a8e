/* When replicas are made no more although the job goes on. Once a worker of an elastic job has
 * succeeded, the rendezvous is closed: a worker that began now would wait for peers that never
 * come. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_SCALE_UP_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_SCALE_UP_H

#include "operator/job/types.h"

/* Whether a missing pod of this type may be made. */
bool policy_may_scale_up(const struct job *job, const struct history *history,
                         enum replica_type type);
#endif
