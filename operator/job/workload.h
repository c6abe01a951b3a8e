/* The Workload that stands for a job in Kueue's queues (kueue.x-k8s.io v1beta1, v1beta2): what we
 * write of it, what we read of it, and what its admission means for the pods. Kueue's API reference
 * is the source of all names. A pod set is a replica type: `master`, `worker`. */
#ifndef SHOAL_OPERATOR_JOB_WORKLOAD_H
#define SHOAL_OPERATOR_JOB_WORKLOAD_H

#include "operator/job/types.h"

struct arena;

/* Whether the operator speaks to Kueue, and Kueue is there. */
enum kueue {
    KUEUE_OFF,
    KUEUE_UNSEEN, /* the API server serves no Workloads, or we may not list them */
    KUEUE_SEEN,
};

enum priority_source {
    PRIORITY_NONE,           /* no class: the cluster's default, or 0 */
    PRIORITY_WORKLOAD_CLASS, /* WorkloadPriorityClass of Kueue */
    PRIORITY_POD_CLASS,      /* PriorityClass of scheduling.k8s.io */
};

struct workload_priority {
    enum priority_source source;
    const char *class_name; /* "" with PRIORITY_NONE */
    int32_t value;
};

/* The spec of a Workload, but for the templates, which are the job's. */
struct workload_spec {
    const char *queue;             /* the LocalQueue */
    const char *pods_hash;         /* an annotation: of what Kueue lets nobody change in place */
    int32_t counts[REPLICA_TYPES]; /* pods; 0: the job has no such replicas */
    int32_t min_workers;           /* partial admission may go down to so many; 0: to none */
    struct workload_priority priority;
    int32_t max_execution_s; /* 0: no limit */
};

/* Condition PodsReady and its reason. */
enum pods_ready {
    READY_ABSENT,
    READY_WAIT_FOR_START,    /* False */
    READY_WAIT_FOR_RECOVERY, /* False: they were ready once */
    READY_STARTED,           /* True */
    READY_RECOVERED,         /* True, again */
};

/* What an admission gives to one pod set. Texts are "" if there is nothing. */
struct pod_set_assignment {
    struct optional count; /* pods; unset: as many as asked for */
    const char *flavors;   /* names of ResourceFlavors with commas between, each once */
    const char *updates;   /* JSON: the podSetUpdates of all admission checks, in order */
    bool topology;         /* Kueue places the pods one by one: they are made gated */
    bool topology_implied; /* ... without a topology request in the spec */
};

/* A Workload as it was seen. */
struct workload {
    const char *name;
    const char *uid;
    const char *version;   /* resourceVersion */
    const char *owner_uid; /* "": none */
    bool deleting;
    struct workload_spec spec; /* pods_hash: "" if we did not make it */
    bool active;               /* spec.active: false: Kueue never admits it */
    const char *cluster_queue; /* of the admission; "": none */
    bool quota_reserved, admitted, evicted, finished; /* conditions that are True */
    const char *eviction_reason;                      /* "": none */
    /* Why it is evicted, as long as it has quota; then why it waits. In Kueue's words; "": not
     * said. */
    const char *message;
    enum pods_ready pods_ready;
    int32_t past_execution_s; /* of admissions that are over */
    int32_t reclaimable[REPLICA_TYPES];
    struct pod_set_assignment assigned[REPLICA_TYPES];
    const char *conditions; /* JSON: status.conditions, only carried; "": none */
};

/* What we write of a Workload's status. Each part may be left as it is. */
struct workload_status {
    const char *conditions; /* of struct workload: those that stay */
    /* The quota goes back after an eviction: conditions QuotaReserved and Admitted become False,
     * and the admission goes. Condition Requeued gets this reason and message. To the execution
     * time of before comes that of this admission; none is left if its limit was the reason. */
    bool releases;
    int32_t past_execution_s;
    bool requeues; /* True: Kueue is to try again at once */
    const char *eviction_reason, *message;
    const char *finished_reason; /* condition Finished becomes True; NULL: not written */
    const char *finished_message;
    enum pods_ready pods_ready; /* READY_ABSENT: not written */
    bool reclaims;              /* the next is written */
    int32_t reclaimable[REPLICA_TYPES];
};

/* What an admission says of the pods of one replica type, for who makes them. */
struct placement {
    int32_t replicas[REPLICA_TYPES]; /* as admitted: partial admission may give fewer */
    /* JSON: an object of nodeSelector, tolerations, labels, annotations and schedulingGates, each
     * to be added to the template's. Only carried. */
    const char *fields;
};

/* What is seen of Kueue for one job. All zero: nothing. */
struct queue_view {
    const struct workload *workload;   /* made by us for this job; NULL: none */
    const char *other;                 /* a Workload of the job that is not ours; NULL: none */
    const char *fields[REPLICA_TYPES]; /* of struct placement; NULL: no admission */
    const char *obstacle;              /* why the admission cannot be followed yet; NULL: it can */
    struct workload_priority priority; /* of the class that the job names */
    bool priority_unknown;             /* there is no such class */
};

/* Which class the job names: Kueue's label, schedulingPolicy.priorityClass, or a template's
 * priorityClassName, the master's before the worker's. The value is left 0. */
struct workload_priority workload_priority_class(const struct job *job);
#endif
