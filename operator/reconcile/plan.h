/* A plan: what one pass wants done, in order. It is carried out from the front, kind by kind,
 * and ends with the first action that fails; the next pass starts from what is then true. The
 * status comes first, so that what a pass learned (a failure counted, an attempt begun) is stored
 * before the pods it learned it from are deleted: a crash between any two actions loses nothing and
 * counts nothing twice.
 *
 * Events about the outcome of an action (SuccessfulCreatePod, FailedCreatePod, SuccessfulDeletePod,
 * ...) are added by steps: only it knows the outcome. What a created pod looks like is pod_build's
 * matter. */
#ifndef SHOAL_OPERATOR_RECONCILE_PLAN_H
#define SHOAL_OPERATOR_RECONCILE_PLAN_H

#include "operator/job/types.h"

struct arena;
struct str;

/* In the order in which a plan holds them. */
enum action_kind {
    ACTION_SET_STATUS, /* write `status`; at most one, and first. On failure stop: nothing else may
                          be done */
    ACTION_EVENT,      /* tell people; losing one is no failure */
    ACTION_DELETE_POD, /* the pod with this name and UID; gone or another UID: success */
    ACTION_FORCE_DELETE_POD, /* the same at once, gracePeriodSeconds 0: nobody is left to end it;
                                only if it is as it was seen, as its node may have come back */
    ACTION_DELETE_SERVICE,
    ACTION_DELETE_POD_GROUP,  /* the one with this name and UID */
    ACTION_DELETE_AUTOSCALER, /* the one with this name and UID */
    ACTION_CREATE_POD_GROUP, /* `pod_group`, named as the job, with the job's annotations; no pod is
                                made without it: a failure stops */
    ACTION_UPDATE_POD_GROUP, /* the one with this name and UID becomes `pod_group` */
    ACTION_CREATE_SERVICE,   /* for (type, index); exists already: success, the next
                                view shows whose */
    ACTION_CREATE_POD, /* for (type, index, attempt); exists already: success, the next view shows
                          whose */
    ACTION_CREATE_AUTOSCALER, /* `autoscaler`, named as the job; after the pods, as the job can live
                                 without it */
    ACTION_UPDATE_AUTOSCALER, /* the one with this name and UID becomes `autoscaler` */
    ACTION_DELETE_JOB,        /* its time to live is over; with all its children */
    ACTION_REQUEUE, /* run another pass at `at_ms` even if nothing happens; at most one, and last */
};

enum event_type { EVENT_NORMAL, EVENT_WARNING };

/* The reason of an event that may come with each next pod in a place. */
#define REASON_POD_DISRUPTED "PodDisrupted"

struct action {
    enum action_kind kind;
    const char *name;       /* of the object, whatever its kind */
    const char *uid;        /* deletes, updates: which object is meant */
    const char *version;    /* deletes by force: in which version it was seen; NULL: in any */
    enum replica_type type; /* creates */
    int32_t index;
    int32_t attempt;
    enum event_type event_type; /* events */
    const char *reason;
    const char *message;
    const struct job_status *status; /* ACTION_SET_STATUS */
    const struct pod_group_spec *pod_group;
    const struct autoscaler_spec *autoscaler;
    int64_t at_ms; /* ACTION_REQUEUE: wall clock */
};

/* Lives in the arena it was opened with. */
struct plan {
    struct arena *arena;
    struct action *actions;
    size_t count;
    size_t size; /* actions there is room for */
};

struct plan *plan_open(struct arena *arena);

/* Adds an action behind those of its kind and before those of later kinds; what it points to must
 * live as long as the plan. */
void plan_add(struct plan *plan, struct action action);

/* One line an action, in order; equal plans print equally, byte for byte. Times are in
 * milliseconds. */
void plan_print(const struct plan *plan, struct str *out);
#endif
