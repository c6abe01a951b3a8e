/* What a replica's pod and service are: names, labels, owner, environment, ports. Pure; both
 * backends build from it. Does not know when a pod is made (reconcile) nor how (the backends). */
#ifndef SHOAL_OPERATOR_MANIFEST_POD_H
#define SHOAL_OPERATOR_MANIFEST_POD_H

#include "operator/job/types.h"

struct arena;

enum pod_restart { POD_RESTART_ALWAYS, POD_RESTART_ON_FAILURE, POD_RESTART_NEVER };

/* What a backend wants beyond the job itself. */
struct pod_options {
    struct gang gang; /* who schedules the job's pods together, as in reconcile_options */
};

/* A pod to be made. Containers are copies of the template's with environment and default port
 * added. */
struct pod_spec {
    const char *name;       /* JOB-TYPE-INDEX; also the name of its service */
    const char *namespace_; /* the job's */
    const char *owner_uid;  /* the job's UID: the controlling owner */
    enum replica_type type;
    int32_t index;
    int32_t attempt;
    int32_t restart_count; /* failures of this replica before this pod: the value of
                              ENV_RESTART_COUNT */
    struct pairs labels;   /* the template's with ours laid over them */
    struct pairs annotations;
    struct strings avoided;     /* nodes that it must not come to */
    const char *scheduler_name; /* written over the template's; NULL: the template's own stays */
    enum pod_restart restart; /* who restarts an ended container: the backend in place, or nobody */
    struct container *containers;
    size_t container_count;
    struct container *init_containers; /* the user's */
    size_t init_container_count;
    const char *placed;   /* JSON: struct placement's fields, added to the pod; NULL: none */
    const char *wait_for; /* the name that must resolve before its containers start (in a cluster:
                             by an init container of ours behind the user's), or NULL: the master's,
                             as a worker that starts earlier would only fail to connect */
    int64_t grace_period_s;
    const struct json *raw; /* the template; borrowed */
};

/* A headless service: one for each pod. */
struct service_spec {
    const char *name;
    const char *namespace_;
    const char *owner_uid;
    enum replica_type type;
    int32_t index;
    struct pairs labels; /* also its selector */
    struct port *ports;  /* those of container `pytorch` */
    size_t port_count;
};

/* The pod of replica (type, index) of a valid, defaulted job. `history` has the attempt and the
 * restart count. Everything lives in the arena or is borrowed from the job. */
struct pod_spec *pod_build(const struct job *job, const struct history *history,
                           enum replica_type type, int32_t index, const struct pod_options *options,
                           struct arena *arena);

struct service_spec *pod_build_service(const struct job *job, enum replica_type type, int32_t index,
                                       struct arena *arena);
#endif
