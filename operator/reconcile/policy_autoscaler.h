/* The HorizontalPodAutoscaler of an elastic job whose policy has metrics: it moves Worker.replicas
 * between minReplicas and maxReplicas through the scale subresource. It is there while the job is
 * under way, and only then. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_AUTOSCALER_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_AUTOSCALER_H

#include "operator/job/snapshot.h"
#include "operator/reconcile/plan.h"
#include "operator/reconcile/policy_waiting.h"

/* Adds what makes it as it shall be for a job that is under way. A foreign one of its name is an
 * blocker. */
void policy_autoscaler_sync(const struct snapshot *snapshot, struct plan *plan,
                            struct blocker *blocker);

/* Adds its deletion: the job is suspended or finished, or has no metrics any more. */
void policy_autoscaler_delete(const struct snapshot *snapshot, struct plan *plan);
#endif
