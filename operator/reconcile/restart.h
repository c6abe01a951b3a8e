/* When a pod has failed and what follows from it: the restart policies. Decides about one pod at a
 * time; counting over time is history's, deciding about the job is reconcile's. */
#ifndef SHOAL_OPERATOR_RECONCILE_RESTART_H
#define SHOAL_OPERATOR_RECONCILE_RESTART_H

#include "operator/job/types.h"

enum restart_verdict {
    RESTART_NOTHING,   /* the pod runs, waits, has succeeded or is being deleted */
    RESTART_REPLACE,   /* failed: another pod must take its place */
    RESTART_FAILS_JOB, /* failed for good, and the job with it */
};

enum restart_verdict restart_judge(enum restart_policy policy, const struct pod *pod);

/* Whether the pod's end was a failure of its own: in phase Failed, unless the system ended it
 * (eviction, a lost node) or someone deleted it first. */
bool restart_failed(const struct pod *pod);

/* How often this pod failed by its own doing: each end that a restart in place follows, and
 * restart_failed. */
int32_t restart_failures(const struct pod *pod);

/* Whether the pod has done its work. One that ended because it was being deleted has not, whatever
 * its exit code says: a process that answers SIGTERM politely leaves with 0. */
bool restart_succeeded(const struct pod *pod);

/* Whether the backend restarts ended containers of such a pod in place. With SCOPE_JOB it must not:
 * the failure has to reach the operator, which restarts all replicas. */
bool restart_in_place(const struct job *job, enum replica_type type);
#endif
