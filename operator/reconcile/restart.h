/* When a pod has failed, and what its restart policy then asks for. Decides about one pod;
 * history.h counts over time, and reconcile.c decides about the job. */
#ifndef SHOAL_OPERATOR_RECONCILE_RESTART_H
#define SHOAL_OPERATOR_RECONCILE_RESTART_H

#include "operator/job/types.h"

enum restart_verdict {
    RESTART_NOTHING,   /* the pod runs, waits, has succeeded or is being deleted */
    RESTART_REPLACE,   /* failed: create another pod in its place */
    RESTART_FAILS_JOB, /* failed permanently, and the job with it */
};

enum restart_verdict restart_judge(enum restart_policy policy, const struct pod *pod);

/* Whether its container `pytorch` has begun, as far as the pod shows it: phase Running is the
 * pod's, whichever of its containers runs, and one that the system ended may have lost what it knew
 * of them. */
bool restart_has_run(const struct pod *pod);

/* Whether the pod failed by itself: it is in phase Failed, and the system did not terminate it
 * (eviction, lost node), nor did somebody delete it first. */
bool restart_failed(const struct pod *pod);

/* How often the pod failed by itself: each exit that a restart in place follows, plus
 * restart_failed. */
int32_t restart_failures(const struct pod *pod);

/* Whether the pod has completed its work. A pod that ended because it was deleted has not, whatever
 * its exit code: a process that handles SIGTERM may exit with 0. */
bool restart_succeeded(const struct pod *pod);

/* Whether the backend restarts failed containers of such a pod in place. Not with SCOPE_JOB: the
 * operator must see the failure and restart all replicas. */
bool restart_in_place(const struct job *job, enum replica_type type);
#endif
