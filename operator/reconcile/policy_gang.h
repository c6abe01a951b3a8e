/* Gang scheduling: all pods of a job get nodes together, or none does. The job's PodGroup gives the
 * scheduler how many pods must fit (minMember) and what they request. It is created before the
 * pods, follows changes of the job, and is deleted when the job is suspended or finished. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_GANG_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_GANG_H

#include "operator/job/snapshot.h"
#include "operator/reconcile/plan.h"
#include "operator/reconcile/policy_waiting.h"

/* The PodGroup's spec. minMember: minAvailable, else all replicas; of an elastic job the master and
 * minReplicas. minResources: as in the job, else what the first minMember pods request, master
 * first. A queue that the PodGroup has is kept, as Volcano has queued its pods there. */
struct pod_group_spec policy_gang_spec(const struct snapshot *snapshot, struct arena *arena);

/* Why no pod may be created yet, or no blocker. With Volcano pods wait until the PodGroup has left
 * phase Pending. The scheduler of scheduler-plugins holds pods back itself. */
struct blocker policy_gang_blocker(const struct snapshot *snapshot, struct arena *arena);

/* Plans the creation or update of the PodGroup of an unfinished job. */
void policy_gang_sync(const struct snapshot *snapshot, struct plan *plan);

/* Plans the deletion of the PodGroup of a suspended or finished job. */
void policy_gang_delete(const struct snapshot *snapshot, struct plan *plan);
#endif
