/* Everything that one reconcile pass over one job may know: what is wanted, seen and remembered,
 * and the time. */
#ifndef SHOAL_OPERATOR_JOB_SNAPSHOT_H
#define SHOAL_OPERATOR_JOB_SNAPSHOT_H

#include "operator/job/types.h"

/* What the operator as a whole was told. All zero, it does none of this: shoal run. */
struct reconcile_options {
    struct gang gang;
    bool autoscaling; /* autoscalers are watched and may be made */
    /* How long a pod's node may be lost before the pod is deleted by force and made again; 0: for
     * ever. Long enough that a node that was only cut off has evicted it. */
    int64_t node_lost_ms;
    /* How long past its grace period a pod may take to end: on a lost node, and if all in it has
     * ended, it is then deleted by force, else people are told. 0: for ever. */
    int64_t overdue_ms;
};

struct snapshot {
    const struct job *job;           /* after validate_job and defaults_apply */
    const struct job_status *status; /* as last written; all zero for a new job */
    const struct pod *pods;          /* in any order; also those that only look like ours */
    size_t pod_count;
    const struct service *services;
    size_t service_count;
    size_t job_bytes; /* of its object as JSON text; 0: not known */
    /* Those of the job's name, whoever owns them; NULL: there is none, or the option is off. */
    const struct pod_group *pod_group;
    const struct autoscaler *autoscaler;
    /* How the API server refused the last create for this job, or for want of a right something
     * else, in its words; NULL: it did not. What stands in the way need not be in sight: a quota, a
     * name without our labels. */
    const char *refused;
    /* Why pods and services cannot be seen; NULL: they can. */
    const char *list_forbidden;
    struct reconcile_options options;
    int64_t now_ms; /* wall clock */
};
#endif
