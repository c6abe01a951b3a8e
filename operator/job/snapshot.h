/* The input of one reconcile pass over one job: its spec, its status, its observed children, the
 * time. */
#ifndef SHOAL_OPERATOR_JOB_SNAPSHOT_H
#define SHOAL_OPERATOR_JOB_SNAPSHOT_H

#include "operator/job/types.h"
#include "operator/job/workload.h"

/* Options of the operator. All zero for `shoal run`. */
struct reconcile_options {
    struct gang gang;
    bool autoscaling; /* HorizontalPodAutoscalers are watched and may be created */
    enum kueue kueue; /* Workloads are watched and may be created */
    /* How long a pod's node may be lost before the pod is deleted by force and created again; 0:
     * for ever. Must be long enough that a node that was only cut off has evicted the pod. */
    int64_t node_lost_ms;
    /* How long a pod may exceed its deletion grace period. Then it is deleted by force if its node
     * is lost or all its containers have terminated; otherwise condition Waiting shows it. 0: for
     * ever. */
    int64_t overdue_ms;
    /* How long a job avoids a node whose hardware is bad; 0: it does not leave such a node. */
    int64_t avoid_node_ms;
};

/* A node with pods of the job that bears a sign of bad hardware (node.h). */
struct bad_node {
    const char *name;
    const char *sign; /* for people */
    /* Nodes of its kind that take pods, are not avoided by the job and have no pod of it. Whether
     * they have room is the scheduler's to know. */
    size_t spares;
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
    struct queue_view queue;
    /* The API server's message for the last refused create of this job, or another action without
     * permission; NULL: none. Its cause may be invisible: a quota, an object without our labels. */
    const char *refused;
    /* The history of the status that waits to be written over this one, if it completes replicas:
     * their pods may be gone. NULL: none waits. */
    const struct history *unwritten;
    /* Why pods or services cannot be listed; NULL: they can. */
    const char *list_forbidden;
    /* What the job's training told last, by its pod or by what that left behind; NULL: nothing
     * since the status. */
    const struct training *training;
    /* Where rank 0 runs, nobody answers who tells how the training goes (asker.h). */
    bool quiet;
    /* The API server drops what is written of the training, so that no time is accounted for. */
    bool unaccounted;
    /* Without those that the job avoids already; none where nodes are not watched. */
    const struct bad_node *bad_nodes;
    size_t bad_node_count;
    /* No status write of ours has shown yet that the API server has no newer job than this: the
     * list that we began with may be of the past. */
    bool unproven;
    struct reconcile_options options;
    int64_t now_ms; /* wall clock */
};
#endif
