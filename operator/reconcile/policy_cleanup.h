/* Which children of a finished job are deleted. cleanPodPolicy None: none of those that have
 * started. When the job has succeeded, pods that have not started are deleted even then: a worker
 * that still waits for the master would take devices for nothing. Running: pods that run or are
 * pending. All: everything. A service is deleted behind its pod.
 * What was not All is deleted only as it was seen: a pod may have ended meanwhile. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_CLEANUP_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_CLEANUP_H

#include "operator/reconcile/plan.h"
#include "operator/reconcile/view.h"

/* Plans the deletes. What history calls complete may be a pod before the one that is there: an
 * operator with an old status makes it again. So pods go by what they show; history tells which
 * replicas keep their services without a pod. */
void policy_cleanup(enum clean_pod_policy policy, bool succeeded, const struct history *history,
                    const struct view *view, struct plan *plan);
#endif
