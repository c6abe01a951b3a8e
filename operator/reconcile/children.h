/* The pods and services that an unfinished job should have, and the creates and deletes that lead
 * there: scaling, replacing, one attempt after the other. */
#ifndef SHOAL_OPERATOR_RECONCILE_CHILDREN_H
#define SHOAL_OPERATOR_RECONCILE_CHILDREN_H

#include "operator/reconcile/plan.h"
#include "operator/reconcile/policy_waiting.h"
#include "operator/reconcile/view.h"

/* Whether the job, as its spec is now, wants a replica of this type and index. */
bool children_desired(const struct job *job, const struct child *child);

/* Whether a pod belongs to an earlier attempt. Only with SCOPE_JOB are there attempts. */
bool children_is_old_attempt(const struct job *job, const struct history *history,
                             const struct pod *pod);

/* Plans the deletion of a child, unless it is being deleted; a lost pod is always deleted by force.
 * `kind` is ACTION_DELETE_POD or ACTION_DELETE_SERVICE. */
void children_delete(struct plan *plan, enum action_kind kind, const struct child *child);
/* The same of a pod, as it was seen: one that has changed meanwhile stays until the next pass. */
void children_delete_as_seen(struct plan *plan, const struct child *pod);
void children_delete_all(struct plan *plan, const struct view *view);

/* Plans the deletes and creates. It deletes children that the job does not want, pods that have
 * failed or are lost, pods of an earlier attempt, and those that make room for worker 0. A pod that
 * the system terminated before it ran is replaced after a backoff. It creates what is missing,
 * unless there is a blocker, or worker 0 needs the room.
 * It does not create completed replicas, nor a child whose name is taken: by a pod that is being
 * deleted, or by a foreign object, which is a blocker. A new attempt begins when the last pod of
 * the old one is gone. */
void children_sync(struct plan *plan, const struct snapshot *snapshot, const struct view *view,
                   const struct history *history, struct blocker *blocker);
#endif
