/* What keeps an unfinished job from running. The condition Waiting shows the first blocker, and an
 * event records each change, so that people need not search logs. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_WAITING_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_WAITING_H

#include "operator/reconcile/view.h"

struct arena;

struct blocker {
    const char *reason;  /* NULL: no blocker */
    const char *message; /* names the object */
    bool expected;       /* it will end by itself: no reason for a warning */
};

/* Sets *blocker unless it is set: the first one counts. */
void blocker_set(struct blocker *blocker, const char *reason, const char *message);

/* Sets the blocker likewise: an object of this kind has the name that one of the job's should have.
 * owner_uid: of its controller; "": it has none, as after `kubectl delete --cascade=orphan`, and
 * then nobody but a person will ever take it away. */
void blocker_name_taken(struct blocker *blocker, const char *reason, const char *kind,
                        const char *name, const char *owner_uid, struct arena *arena);

/* Sets the blocker by the pods: the first that is past its deletion grace period, else the first
 * that reports why it is waiting (unschedulable, image cannot be pulled, CrashLoopBackOff). Pods
 * that have ended or are being deleted do not count. */
void policy_waiting(const struct job *job, const struct view *view, struct blocker *blocker,
                    struct arena *arena);
#endif
