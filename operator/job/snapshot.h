/* The input of one reconcile pass over one job: its spec, its status, its observed children, the
 * time. */
#ifndef SHOAL_OPERATOR_JOB_SNAPSHOT_H
#define SHOAL_OPERATOR_JOB_SNAPSHOT_H

#include "operator/job/types.h"

/* Options of the operator. All zero for `shoal run`. */
struct reconcile_options {
    struct gang gang;
    bool autoscaling; /* HorizontalPodAutoscalers are watched and may be created */
    /* How long a pod's node may be lost before the pod is deleted by force and created again; 0:
     * for ever. Must be long enough that a node that was only cut off has evicted the pod. */
    int64_t node_lost_ms;
    /* How long a pod may exceed its deletion grace period. Then it is deleted by force if its node
     * is lost or all its containers have terminated; otherwise condition Waiting shows it. 0: for
     * ever. */
    int64_t overdue_ms;
};

struct snapshot {
    const struct job *job;           /* after validate_job and defaults_apply */
    const struct job_status *status; /* as last written; all zero for a new job */
    const struct pod *pods;          /* in any order; may include foreign pods */
    size_t pod_count;
    const struct service *services;
    size_t service_count;
    size_t job_bytes; /* of the job as JSON text; 0: unknown */
    /* The objects of the job's name, whoever owns them; NULL: none, or the option is off. */
    const struct pod_group *pod_group;
    const struct autoscaler *autoscaler;
    /* The API server's message for the last refused create of this job, or another action without
     * permission; NULL: none. Its cause may be invisible: a quota, an object without our labels. */
    const char *refused;
    /* Why pods or services cannot be listed; NULL: they can. */
    const char *list_forbidden;
    struct reconcile_options options;
    int64_t now_ms; /* wall clock */
};
#endif
