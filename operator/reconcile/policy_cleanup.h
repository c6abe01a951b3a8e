/* Which children of a finished job go: cleanPodPolicy None keeps all, but for what has not begun
 * when the job has succeeded (a worker that still waits for the master would take its devices only
 * to find nobody; of a failed job it may show why), Running deletes what runs or waits to run, All
 * deletes everything. A service goes with its pod; one without a pod has no reader left. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_CLEANUP_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_CLEANUP_H

#include "operator/reconcile/plan.h"
#include "operator/reconcile/view.h"

/* Adds the deletions to the plan. */
void policy_cleanup(enum clean_pod_policy policy, bool succeeded, const struct view *view,
                    struct plan *plan);
#endif
