/* Inside the executor: for executor.c, which carries plans out, and executor_inflight.c, which
 * sends what they ask for. */
#ifndef SHOAL_OPERATOR_APPLY_EXECUTOR_PARTS_H
#define SHOAL_OPERATOR_APPLY_EXECUTOR_PARTS_H

#include "base/table.h"
#include "operator/apply/executor.h"
#include "operator/apply/job_memory.h"
#include "operator/apply/steps.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A plan under way. */
struct run {
    struct table_entry entry;
    char *key;
    struct executor *executor;
    struct job_memory *memory;
    const struct job *job;
    const struct json_t *object;
    const struct job_status *status; /* before the plan */
    struct steps *steps;
    struct inflight *inflights;
    const struct job_status *written;
    bool job_deleted;
    bool taken;          /* a name that was to be created was */
    bool went_well;      /* something was done */
    bool refused;        /* something was not: memory has the text */
    struct error exists; /* why the autoscaler could not be made; it may be the job's */
    bool invalid;        /* the status was found to be */
};

/* A request in flight. */
struct inflight {
    struct executor *executor;
    struct run *run;             /* NULL, and so the next: an event, which outlives its plan */
    const struct action *action; /* of the run's steps */
    struct kube_request *request;
    struct inflight *next, **link; /* in the list of its run, or of the executor's events */
};

struct executor {
    struct kube *kube;
    struct executor_options options;
    const char *autoscaling_version; /* NULL: none is known yet */
    struct table runs, memories;
    struct inflight *events;
    size_t event_count;
    uint64_t event_number;
    bool history_pruned; /* the API server did not keep all history of the last status */
    int64_t events_forbidden_logged_ms; /* when it was last told that events may not be created; 0:
                                           never */
};

/* Sends an action of the run: in flight until `done`, whose context is the flight, ends it. */
void inflight_send(struct run *run, const struct action *action,
                   void (*done)(void *context, const struct json_t *answer,
                                const struct error *err));
/* The same for the request that makes ours what was there before us. */
void inflight_send_adoption(struct run *run, const struct action *action,
                            void (*done)(void *context, const struct json_t *answer,
                                         const struct error *err));
void inflight_free(struct inflight *inflight); /* frees it: it was answered */
/* Ends all of a list, unanswered. */
void inflight_cancel_all(struct executor *executor, struct inflight **list);

/* Tells people, within the job's budget: in the log and by an event, which nobody waits for. */
void inflight_record_event(struct run *run, const struct action *event);

#ifdef __cplusplus
}
#endif
#endif
