/* The job's own pods and services, found by replica. Of what the caches hold, only objects whose
 * owner is this very job (by UID) take part; the rest can only be in the way of a name. */
#ifndef SHOAL_OPERATOR_RECONCILE_VIEW_H
#define SHOAL_OPERATOR_RECONCILE_VIEW_H

#include "operator/job/snapshot.h"

struct arena;

/* A pod or a service of ours. */
struct child {
    enum replica_type type;
    int32_t index;
    const char *name;
    const char *uid;
    bool deleting;
    bool surplus;     /* another child holds this place by right of its name */
    bool lost;        /* a pod that is to be deleted by force: policy_node_lost */
    bool overdue;     /* a pod that should be gone by now */
    bool backing_off; /* a pod that keeps its place empty for a while: policy_recreate_backoff */
    const struct pod *pod; /* NULL in a service */
};

/* Ordered by type and index. */
struct children {
    struct child *items;
    size_t count;
};

struct view {
    struct children pods;
    struct children services;
    /* when the next pod may be lost or overdue, or a pause ends; POLICY_NEVER */
    int64_t recheck_ms;
};

struct view view_open(const struct snapshot *snapshot, struct arena *arena);

/* The child in the place of a replica, or NULL. */
const struct child *view_find(const struct children *children, enum replica_type type,
                              int32_t index);

/* The object that is not ours and bears this name, so that creating ours would fail; NULL: none. */
const struct pod *view_foreign_pod(const struct snapshot *snapshot, const char *name);
const struct service *view_foreign_service(const struct snapshot *snapshot, const char *name);
#endif
