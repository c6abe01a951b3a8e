/* The job's own pods and services, by replica: those whose controller is this very job, by UID.
 * Other objects of the snapshot only take names. */
#ifndef SHOAL_OPERATOR_RECONCILE_VIEW_H
#define SHOAL_OPERATOR_RECONCILE_VIEW_H

#include "operator/job/snapshot.h"

struct arena;

/* A pod or service of this job. */
struct child {
    enum replica_type type;
    int32_t index;
    const char *name;
    const char *uid;
    bool deleting;
    bool surplus;     /* a duplicate: another child of this type and index has the right name */
    bool lost;        /* a pod to be deleted by force: policy_node_lost.h */
    bool overdue;     /* a pod past its deletion grace period */
    bool backing_off; /* a failed pod that is not replaced yet: policy_recreate_backoff.h */
    bool preempted;   /* makes room for worker 0, once policy_preempt() has looked */
    const struct pod *pod; /* NULL: it is a service */
};

/* Ordered by type and index. */
struct children {
    struct child *items;
    size_t count;
};

struct view {
    struct children pods;
    struct children services;
    /* when `lost`, `overdue` or `backing_off` of a pod changes by time; POLICY_NEVER: not */
    int64_t recheck_ms;
    bool foreign_pods, foreign_services; /* the snapshot has any that are not the job's */
    /* No worker is made, as worker 0 needs the room more; from policy_preempt() on. */
    bool keeps_room;
};

struct view view_open(const struct snapshot *snapshot, struct arena *arena);

/* The child of a replica, or NULL. */
const struct child *view_find(const struct children *children, enum replica_type type,
                              int32_t index);
/* The same for a walk over replicas, in the order of the children. *at: 0 at first, then what the
 * last call left. */
const struct child *view_next(const struct children *children, enum replica_type type,
                              int32_t index, size_t *at);

/* The foreign object of this name, which would make a create fail; NULL: none. */
const struct pod *view_foreign_pod(const struct view *view, const struct snapshot *snapshot,
                                   const char *name);
const struct service *view_foreign_service(const struct view *view, const struct snapshot *snapshot,
                                           const char *name);
#endif
