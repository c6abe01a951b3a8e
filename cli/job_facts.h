/* A PyTorchJob, its pods and its events as commands show them. Texts of the cluster come without
 * control characters: they can go to a terminal as they are. */
#ifndef SHOAL_CLI_JOB_FACTS_H
#define SHOAL_CLI_JOB_FACTS_H

#include "operator/job/types.h"

struct arena;
struct json;

struct job_facts {
    const char *name, *namespace_, *uid;
    const char *state; /* its last condition, "New" before there is one; "Deleting" */
    int64_t created_ms, start_ms, completion_ms; /* 0: not known, or not yet */
    const struct condition *conditions;
    size_t condition_count;
    int64_t replicas[REPLICA_TYPES]; /* that the job shall have */
    int64_t active;                  /* that run */
    bool has_fixed_nodes; /* node rank 0 is the master's, and the workers follow in their order */
    int64_t gpus;         /* that all replicas ask for */
    int64_t failures, limit; /* counted against backoffLimit; -1: there is no limit */
    int64_t restarts;        /* of replicas and ranks, as in kubectl's column */
    int64_t rank_restarts;   /* of these, of ranks in their containers */
    const char *avoided;     /* nodes that it avoids, with commas; "": none */
    struct training training;
    struct goodput goodput;
};

struct pod_facts {
    const char *name, *node; /* node "": none yet */
    const char *state;       /* its phase; "Terminating" */
    enum replica_type type;
    int32_t index;
    const char *reason, *message; /* why it does not run, or how it failed; "": nothing to say */
    int64_t restarts, created_ms;
    bool is_stuck;   /* there is a reason why it does not go on */
    bool has_failed; /* a container of it ended with a failure last */
    bool has_run;    /* there are logs */
    const char *log; /* of a process of this machine: its file; NULL: kubectl has it, or none */
};

struct event_facts {
    int64_t time_ms, count; /* when it was seen last; how often */
    size_t order;           /* among those of a list, which is the API server's */
    const char *type, *reason, *message;
};

/* Its goodput is that of now_ms: what goes on counts. */
struct job_facts job_facts_read(const struct json *object, int64_t now_ms, struct arena *arena);

/* False: it is no pod of a job. */
bool job_facts_read_pod(const struct json *object, struct arena *arena, struct pod_facts *ret_pod);

/* The same of a pod that is known. */
struct pod_facts job_facts_of_pod(const struct pod *pod, struct arena *arena);

/* Of two struct pod_facts, for qsort: by type and index. */
int job_facts_compare_pods(const void *a, const void *b);

struct event_facts job_facts_read_event(const struct json *object, struct arena *arena);

/* The last condition; NULL: there is none. */
const struct condition *job_facts_condition(const struct job_facts *job);
bool job_facts_finished(const struct job_facts *job);
#endif
