/* Private to the executor: executor.c runs plans, executor_inflight.c sends their requests. */
#ifndef SHOAL_OPERATOR_APPLY_EXECUTOR_INTERNAL_H
#define SHOAL_OPERATOR_APPLY_EXECUTOR_INTERNAL_H

#include "base/table.h"
#include "operator/apply/executor.h"
#include "operator/apply/job_record.h"
#include "operator/apply/steps.h"

/* A plan in progress. */
struct run {
    struct table_entry entry;
    char *key;
    struct executor *executor;
    struct job_record *record;
    const struct job *job;
    const struct json *object;
    const struct job_status *status; /* before the plan */
    struct steps *steps;
    struct inflight *inflights;
    const struct job_status *written;
    struct job_status written_without; /* what `written` is if its training was pruned */
    bool job_deleted;
    bool taken;     /* a create found its name taken */
    bool went_well; /* an action succeeded */
    bool refused;   /* an action was refused: the record has the message */
    bool invalid;   /* the API server found the status invalid */
};

/* A request in flight. */
struct inflight {
    struct executor *executor;
    struct run *run;             /* NULL, as is the next: an event, which may outlive its plan */
    const struct action *action; /* of the run's steps */
    struct kube_request *request;
    int adoptions;                 /* requests sent to find whether what exists is the job's */
    struct error exists;           /* then: why it was not created */
    struct inflight *next, **link; /* in the list of its run, or of the executor's events */
};

struct executor {
    struct kube *kube;
    struct executor_options options;
    const char *autoscaling_version; /* NULL: not known yet */
    const char *kueue_version;       /* likewise */
    struct table runs, records;
    struct inflight *events;
    size_t event_count;
    uint64_t event_number;
    int64_t begun_ms;                   /* wall clock */
    bool history_pruned;                /* the API server pruned the history of the last status */
    char training_lost[32];             /* what it pruned of a status.training; "": nothing */
    int64_t training_again_ms;          /* then: from when on jobs tell of it again */
    int64_t events_forbidden_logged_ms; /* when the missing permission to create events was logged
                                           last; 0: never */
};

/* Sends the request of an action. It is in flight until `done` is called with the inflight as its
 * context; `done` frees it. */
void inflight_send(struct run *run, const struct action *action,
                   void (*done)(void *context, const struct json *answer, const struct error *err));
/* Sends, for an answered request to create what exists already, the next one of those that find out
 * whether it is the job's: of a PodGroup or autoscaler they put our labels on it. Returns false if
 * there is none. */
bool inflight_adopt(struct inflight *inflight, const struct error *err,
                    void (*done)(void *context, const struct json *answer,
                                 const struct error *err));
/* Of the answer to such a request, which went well, the object that is the job's; NULL: it is
 * another's. */
const struct json *inflight_adopted(const struct inflight *inflight, const struct json *answer);
void inflight_free(struct inflight *inflight); /* of an answered request */
/* Cancels all requests of a list; their `done` is not called. */
void inflight_cancel_all(struct executor *executor, struct inflight **list);

/* A status was written: remembers whether its training came back whole. */
void executor_check_training_kept(struct run *run, const struct job_status *written,
                                  const struct json *answer);

/* Logs an event and creates it on the API server, within the job's budget. Nothing waits for it. */
void inflight_record_event(struct run *run, const struct action *event);
#endif
