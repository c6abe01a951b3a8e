/* What stands in the way of a job that should run, so that people need not look for it in logs: the
 * first blocker found is told, in the condition Waiting and by an event when it changes. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_WAITING_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_WAITING_H

#include "operator/reconcile/view.h"

struct arena;

struct blocker {
    const char *reason;  /* NULL: nothing stands in the way */
    const char *message; /* names the object */
    bool expected;       /* it is on its way of itself: no cause for a warning yet */
};

/* Sets *blocker unless there is one already: the first one told counts. */
void blocker_set(struct blocker *blocker, const char *reason, const char *message);

/* The first pod that should be gone and is not; else the first one that says why it does not begin
 * or go on: no node takes it, its image cannot be pulled, it crashes again and again. Pods that are
 * ended or being deleted say nothing. */
void policy_waiting(const struct job *job, const struct view *view, struct blocker *blocker,
                    struct arena *arena);
#endif
