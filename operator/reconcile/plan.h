/* A plan: the actions that one reconcile pass asks for, in order. Actions of one kind follow each
 * other. The first action that fails ends the plan, and the next pass starts from the state then.
 * The status is written first, so that what the pass recorded (a failure, a new attempt) is stored
 * before the pods behind it are deleted: a crash between any two actions loses nothing and counts
 * nothing twice.
 *
 * steps.h adds the events about outcomes (SuccessfulCreatePod, FailedCreatePod, ...), which it
 * alone knows. pod.h builds the pods. */
#ifndef SHOAL_OPERATOR_RECONCILE_PLAN_H
#define SHOAL_OPERATOR_RECONCILE_PLAN_H

#include "operator/job/types.h"
#include "operator/job/workload.h"

struct arena;
struct str;

/* In the order of a plan. */
enum action_kind {
    ACTION_SET_STATUS, /* write `status`; one at most, and first. If it fails, no other action may
                          start */
    ACTION_EVENT,      /* record an event; losing one is no failure */
    ACTION_DELETE_POD, /* the pod with this name and UID; gone or another UID: success */
    ACTION_FORCE_DELETE_POD, /* the same with gracePeriodSeconds 0, as no kubelet will end it; only
                                in `version`, as its node may have come back */
    ACTION_DELETE_SERVICE,
    ACTION_DELETE_POD_GROUP,  /* the one with this name and UID */
    ACTION_DELETE_AUTOSCALER, /* the one with this name and UID */
    ACTION_DELETE_WORKLOAD,   /* the one with this name and UID */
    ACTION_CREATE_WORKLOAD,   /* `workload`, with this name */
    ACTION_UPDATE_WORKLOAD,  /* queue and priority of the one in this version become `workload`'s */
    ACTION_CREATE_POD_GROUP, /* `pod_group`, with the job's name and annotations; if it fails no pod
                                is created */
    ACTION_UPDATE_POD_GROUP, /* the one with this name and UID becomes `pod_group` */
    ACTION_CREATE_SERVICE,   /* for (type, index); exists already: success, and told if it is not
                                the job's */
    ACTION_CREATE_POD, /* for (type, index, attempt); exists already: likewise; from attempt 1 on a
                          failure unless it is of this attempt: it may be of the one before */
    ACTION_CREATE_AUTOSCALER, /* `autoscaler`, with the job's name; after the pods, as the job runs
                                 without it */
    ACTION_UPDATE_AUTOSCALER, /* the one with this name and UID becomes `autoscaler` */
    ACTION_SET_WORKLOAD_STATUS, /* `workload_status`, of the one in this version */
    ACTION_DELETE_JOB,          /* ttlSecondsAfterFinished is over; its children follow */
    ACTION_REQUEUE, /* reconcile again at `at_ms` at the latest; one at most, and last */
};

enum event_type { EVENT_NORMAL, EVENT_WARNING };

/* The reason of an event that each new pod of a replica may cause again. */
#define REASON_POD_DISRUPTED "PodDisrupted"
/* That of a container that ended (exits.h). */
#define REASON_EXITED_WITH_CODE "ExitedWithCode"
/* Those of how the training goes. */
#define REASON_TRAINING_STARTED   "TrainingStarted"
#define REASON_CHECKPOINT_SAVED   "CheckpointSaved"
#define REASON_TRAINING_RECOVERED "TrainingRecovered"
#define REASON_RANK_HUNG          "RankHung"

struct action {
    enum action_kind kind;
    const char *name;       /* of the object */
    const char *uid;        /* deletes, updates: UID precondition */
    const char *version;    /* resourceVersion precondition; NULL: none */
    enum replica_type type; /* creates */
    int32_t index;
    int32_t attempt;
    enum event_type event_type; /* events */
    const char *reason;
    const char *message;
    const struct job_status *status; /* ACTION_SET_STATUS */
    bool as_stored; /* ACTION_SET_STATUS: nothing differs. It is written as it is, byte for byte,
                       only to learn whether the job is of the past (struct snapshot) */
    const struct pod_group_spec *pod_group;
    const struct autoscaler_spec *autoscaler;
    const struct workload_spec *workload;
    const struct workload_status *workload_status;
    const struct placement *placement; /* ACTION_CREATE_POD: as Kueue admitted it; NULL: freely */
    int64_t at_ms;                     /* ACTION_REQUEUE: wall clock */
};

/* Lives in the arena it was opened with. */
struct plan {
    struct arena *arena;
    struct action *actions;
    size_t count;
    size_t size; /* allocated actions */
};

struct plan *plan_open(struct arena *arena);

/* Adds an action behind those of its kind. What it points to must live as long as the plan. */
void plan_add(struct plan *plan, struct action action);

/* Whether it does anything but write the status, record events and ask for another pass. */
bool plan_acts(const struct plan *plan);

/* Prints one line per action, in order; equal plans print equal bytes. Times are milliseconds. */
void plan_print(const struct plan *plan, struct str *out);
#endif
