/* Which pods and services an unfinished job should have, and the creations and deletions that lead
 * there: scaling, replacing, one attempt after the other. */
#ifndef SHOAL_OPERATOR_RECONCILE_CHILDREN_H
#define SHOAL_OPERATOR_RECONCILE_CHILDREN_H

#include "operator/reconcile/plan.h"
#include "operator/reconcile/policy_waiting.h"
#include "operator/reconcile/view.h"

/* Whether the child has a place in the job as it is now wanted. */
bool children_wanted(const struct job *job, const struct child *child);

/* Whether a pod belongs to an attempt that is over. Only with SCOPE_JOB are there any. */
bool children_is_old_attempt(const struct job *job, const struct history *history,
                             const struct pod *pod);

/* Adds the deletion of a child unless it is being deleted already; that of a lost pod in any case,
 * by force. `kind` is ACTION_DELETE_POD or _SERVICE. */
void children_delete(struct plan *plan, enum action_kind kind, const struct child *child);
void children_delete_all(struct plan *plan, const struct view *view);

/* Deletes what has no place any more, has failed, is lost or belongs to an old attempt, one that
 * the system ended soon after it was made only after a pause; creates what is missing, unless there
 * is a blocker. A replica that is complete is not made again; a name that is taken, by a pod on
 * its way out or by someone else, is waited for, and someone else's is a blocker; a new attempt
 * waits until the last pod of the old one is gone. */
void children_sync(struct plan *plan, const struct snapshot *snapshot, const struct view *view,
                   const struct history *history, struct blocker *blocker);
#endif
