/* Gang scheduling: all pods of a job get their nodes together or none does. The job has a PodGroup
 * of its name that tells the scheduler how many pods must fit (minMember) and what they ask for. It
 * is made before the pods, follows the job's changes, and goes when the job is suspended or
 * finished. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_GANG_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_GANG_H

#include "operator/job/snapshot.h"
#include "operator/reconcile/plan.h"
#include "operator/reconcile/policy_waiting.h"

/* What the PodGroup shall say. minMember: minAvailable, else all replicas, of an elastic job the
 * master and minReplicas. minResources: as given, else what the first minMember pods ask for,
 * master first. A queue that the PodGroup has already stays (Volcano's pods are in it). */
struct pod_group_spec policy_gang_spec(const struct snapshot *snapshot, struct arena *arena);

/* Why no pod may be made yet; no reason if it may, and always without a gang scheduler. Volcano's
 * pods wait until the group has left phase Pending; the pods of scheduler-plugins do not, their
 * scheduler holds them back. */
struct blocker policy_gang_blocker(const struct snapshot *snapshot, struct arena *arena);

/* Adds what makes the PodGroup of a job that is under way as it shall be. */
void policy_gang_sync(const struct snapshot *snapshot, struct plan *plan);

/* Adds the deletion of the PodGroup of a job that is suspended or finished. */
void policy_gang_delete(const struct snapshot *snapshot, struct plan *plan);
#endif
