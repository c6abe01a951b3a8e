/* Room for worker 0 of an elastic job without a Master. There the launchers meet, so that all
 * others wait while it has no node (docs/decisions/elastic-node-0.md). All workers have one
 * template: the room of any of them fits worker 0, but for a volume or a node that only some may
 * use, or one that takes no more pods.
 *
 * If worker 0's pod is Unschedulable and `shrinkAfterSeconds` old, and enough others run, the last
 * of them is preempted: its pod is deleted with its grace period. Enough is minReplicas, and what
 * a gang scheduler asks for.
 *
 * One goes for each absence of worker 0, which ends when worker 0 has run. Until then the status
 * remembers the number of the one that goes, whoever scales the job and whenever the operator dies.
 * A node is no end: its kubelet may refuse the pod (OutOfcpu, UnexpectedAdmissionError), again and
 * again, and the room is then for the next pod of worker 0. So until then the one that went is not
 * made again. Nor is any other that is missing, and those that wait for a node are deleted, too:
 * they would take the room. They are not held back while so few have nodes that the job cannot run.
 *
 * If the operator dies before the delete, the chosen worker goes only if worker 0 is still, or
 * again, Unschedulable for long enough. An operator that begins may know older pods than its status
 * does. So the status also remembers when the newest pod of worker 0 that has run was made: no
 * worker goes for that one or an earlier one, and none of these ends an absence again. The API
 * server counts in seconds: one that was made in the same second is taken for that one.
 *
 * If worker 0 fits nowhere even then, the one that went does not come back. All wait for worker 0,
 * so that it would do nothing but hold the room that the next try needs. What is resumed, or meets
 * elsewhere by an edit, begins anew.
 *
 * The last one is the buddy that has worker 0's slices (checkpoint.memory_buddies) only if it is
 * the only other one, or if pods share nodes: buddies are pairs in the order of their pods.
 *
 * With restartScope Job all pods go with one, so that nobody waits for worker 0. Where people name
 * the place to meet (rdzvHost) or another backend than c10d, it is not worker 0's. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_PREEMPT_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_PREEMPT_H

#include "operator/reconcile/context.h"

#define REASON_UNSCHEDULABLE "Unschedulable" /* of condition PodScheduled, core/v1 */

/* Chooses a worker if one is to be preempted, with an event that names it, and forgets it when
 * worker 0 has run. Marks all pods that make room, in the view. Requests a pass for the end of the
 * patience. may_choose: pods can be made now, so that the room is of use. */
void policy_preempt(struct reconcile_context *ctx, bool may_choose);

/* Whether a missing pod is not made, as its place is worker 0's. */
bool policy_is_kept_out(const struct view *view, const struct history *history,
                        enum replica_type type, int32_t index);
#endif
