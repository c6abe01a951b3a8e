/* The HorizontalPodAutoscaler of an elastic job with metrics. It changes Worker.replicas between
 * minReplicas and maxReplicas through the scale subresource, and exists only while the job is
 * unfinished. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_AUTOSCALER_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_AUTOSCALER_H

#include "operator/job/snapshot.h"
#include "operator/reconcile/plan.h"
#include "operator/reconcile/policy_waiting.h"

/* Plans its creation or update for an unfinished job. A foreign object of its name is a blocker. */
void policy_autoscaler_sync(const struct snapshot *snapshot, struct plan *plan,
                            struct blocker *blocker);

/* Plans its deletion: the job is suspended or finished, or has no metrics any more. */
void policy_autoscaler_delete(const struct snapshot *snapshot, struct plan *plan);
#endif
