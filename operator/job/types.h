/* The operator's nouns: a job as its user wrote it, what is seen of its pods and services, and its
 * status. Plain structs; strings and arrays belong to the arena they were decoded into. Nothing
 * here knows JSON, Kubernetes' API or processes: the edges translate. Field names follow
 * kubeflow.org/v1 PyTorchJob. */
#ifndef SHOAL_OPERATOR_JOB_TYPES_H
#define SHOAL_OPERATOR_JOB_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the job: what is wanted ---- */

enum replica_type { REPLICA_MASTER, REPLICA_WORKER };
#define REPLICA_TYPES 2

enum restart_policy {
    RESTART_UNSET, /* defaults_apply makes it OnFailure */
    RESTART_ALWAYS,
    RESTART_ON_FAILURE,
    RESTART_NEVER,
    RESTART_EXIT_CODE, /* 1..127 is permanent, 128 and above is retried by a new pod */
};

enum clean_pod_policy { CLEAN_UNSET, CLEAN_NONE, CLEAN_RUNNING, CLEAN_ALL };

enum restart_scope {
    SCOPE_UNSET,   /* defaults_apply makes it Replica */
    SCOPE_REPLICA, /* a failed replica is restarted alone */
    SCOPE_JOB,     /* one failed replica restarts all replicas, as one attempt */
};

/* A number that may be absent. */
struct optional {
    bool set;
    int64_t value;
};

struct pair {
    const char *key;
    const char *value;
};

struct pairs {
    struct pair *items;
    size_t count;
};

struct strings {
    const char **items;
    size_t count;
};

/* An amount of a resource, in thousandths of its unit: cpu 500m is 500, memory 1Ki is 1024000. */
struct quantity {
    const char *resource; /* "cpu", "memory", "nvidia.com/gpu", ... */
    int64_t milli;        /* not negative; INT64_MAX: that or more */
};

/* Ordered by resource, each at most once. */
struct quantities {
    struct quantity *items;
    size_t count;
};

enum env_source {
    ENV_LITERAL,    /* `value` is the value; $(NAME) is still to be expanded */
    ENV_FIELD,      /* valueFrom.fieldRef: `value` is the field path, e.g. metadata.name */
    ENV_RESOURCE,   /* valueFrom.resourceFieldRef: `value` is the resource */
    ENV_CONFIG_MAP, /* valueFrom.configMapKeyRef: `value` is NAME/KEY */
    ENV_SECRET,     /* valueFrom.secretKeyRef: `value` is NAME/KEY */
};

struct env_var {
    const char *name;
    const char *value; /* never NULL */
    enum env_source source;
    /* ENV_CONFIG_MAP, ENV_SECRET: the variable is left out if there is no such key */
    bool optional;
};

struct port {
    const char *name;     /* "" if it has none */
    int32_t number;       /* 1..65535 */
    const char *protocol; /* "TCP" unless stated */
};

struct container {
    const char *name;
    const char *image;       /* NULL if none is given */
    const char *working_dir; /* NULL: the image's, or where the job was started */
    struct strings command;  /* empty: the image's entry point */
    struct strings args;
    struct env_var *env; /* in order; a later entry of the same name wins */
    size_t env_count;
    struct port *ports;
    size_t port_count;
    struct quantities requests; /* what a scheduler reserves: requests, and limits without one */
};

/* The parts of a PodTemplateSpec that both backends read. */
struct pod_template {
    struct pairs labels;
    struct pairs annotations;
    struct container *containers;
    size_t container_count;
    struct container *init_containers;
    size_t init_container_count;
    const char *restart_policy; /* the template's own, NULL if absent; the replica's overrides it */
    const char *scheduler_name; /* NULL: the cluster's, or the gang scheduler */
    struct optional grace_period_s; /* terminationGracePeriodSeconds; defaults_apply makes it 30 */
    /* The whole template as it was written, only carried (for the edge that must send all of it).
     * Borrowed: lives as long as the document it was decoded from. NULL in jobs that come from no
     * document. */
    const struct json *raw;
};

struct replica_spec {
    bool present; /* the job has this replica type */
    struct optional replicas;
    enum restart_policy restart_policy;
    struct pod_template template_;
};

struct elastic_policy {
    bool present;
    struct optional min_replicas;
    struct optional max_replicas;
    const char *rdzv_backend; /* NULL: c10d */
    struct optional rdzv_port;
    const char *rdzv_host; /* NULL: worker 0 */
    const char *rdzv_id;   /* NULL: none */
    struct pairs rdzv_conf;
    bool standalone;
    struct optional nproc_per_node; /* deprecated in favour of job.nproc_per_node */
    struct optional max_restarts;   /* torchrun's own; the operator does not use it */
    /* What the autoscaler shall look at, only carried; NULL: no autoscaler is wanted. Borrowed like
     * a template's `raw`. */
    const struct json *metrics;
    const char *metrics_hash; /* of their text, to tell one list from another; NULL without them */
};

/* What a gang scheduler is told; without one it means nothing. */
struct scheduling_policy {
    struct optional min_available; /* unset: policy_gang's rule */
    const char *queue;             /* NULL: the scheduler's default */
    const char *priority_class;    /* NULL: none */
    bool has_min_resources;        /* unset: what min_available pods ask for */
    struct quantities min_resources;
    struct optional schedule_timeout_s;
};

struct run_policy {
    enum clean_pod_policy clean_pod_policy;
    struct optional ttl_seconds_after_finished;
    struct optional active_deadline_seconds;
    /* restarts granted; -1: unlimited. spec.backoffLimit lands here too */
    struct optional backoff_limit;
    enum restart_scope restart_scope;
    bool suspend;
    const char *managed_by; /* NULL: this operator */
    struct scheduling_policy scheduling;
};

struct job {
    const char *name;
    const char *namespace_; /* "default" unless stated */
    const char *uid;        /* "" until an API server or `shoal run` gave it one */
    int64_t created_ms;     /* 0: unknown */
    bool deleting;          /* its deletion was asked for */
    struct run_policy run_policy;
    struct elastic_policy elastic;
    const char *nproc_per_node; /* a number as text, "auto", "cpu" or "gpu"; NULL if unset */
    struct replica_spec replicas[REPLICA_TYPES];
    const char *invalid; /* why this job must not run (one line), or NULL */
    /* metadata.annotations, only carried: a PodGroup gets a copy. Borrowed like a template's `raw`;
     * NULL: none. */
    const struct json *annotations;
};

/* ---- what stands beside the pods ---- */

enum gang_scheduler {
    GANG_NONE,
    GANG_VOLCANO,
    GANG_PLUGINS, /* scheduler-plugins' coscheduling */
};

/* The operator's choice of a gang scheduler. */
struct gang {
    enum gang_scheduler scheduler;
    const char *scheduler_name; /* schedulerName of the pods; NULL with GANG_NONE */
};

/* What a job's PodGroup says. One form for both schedulers; each knows only some of it. */
struct pod_group_spec {
    int32_t min_member;
    struct quantities min_resources;
    const char *queue;                  /* Volcano; "" with scheduler-plugins */
    const char *priority_class;         /* Volcano; "": none */
    struct optional schedule_timeout_s; /* scheduler-plugins */
};

/* What a job's HorizontalPodAutoscaler says beyond the job it scales. */
struct autoscaler_spec {
    int32_t min_replicas;
    int32_t max_replicas;
    const char *metrics_hash; /* written as an annotation: the API server rewrites the metrics */
};

/* ---- what is seen ---- */

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_UNKNOWN };

/* How a container ended. */
struct pod_end {
    const char *container; /* its name; NULL: none has ended so, or nobody knows which */
    int32_t code;
    /* "OOMKilled", "ContainerCannotRun"; NULL: nothing that its code does not say */
    const char *reason;
};

/* A pod that carries the job's labels or bears a name that the job wants; maybe not ours
 * (owner_uid). */
struct pod {
    const char *name;
    const char *uid;       /* unique for ever: a re-created pod of the same name has another */
    const char *version;   /* of what is seen of it (resourceVersion); NULL: its backend has none */
    const char *owner_uid; /* of its controller; "" if it has none */
    enum replica_type type;
    int32_t index;   /* -1: its index label is not a number */
    int32_t attempt; /* LABEL_ATTEMPT; 0 if absent */
    enum pod_phase phase;
    int64_t created_ms; /* 0: unknown, or the backend never refuses a pod */
    /* When its deletion was asked for; 0: it was not. The API's deletionTimestamp is when it must
     * be gone; the request was deletionGracePeriodSeconds before that. */
    int64_t deleted_ms;
    /* deletionGracePeriodSeconds of a pod being deleted: how long it may take to end. 0: it has
     * been deleted by force already (only a finalizer holds it), or the backend
     * cannot lose a pod. */
    int64_t grace_ms;
    /* Since when its node is known to be gone or not ready, so that what is said of the pod is old
     * news (a Node that is absent or whose condition Ready is not True; without sight of nodes:
     * condition Ready of the pod False while its containers are ready, or reason NodeLost). 0: its
     * node is well, it has none, or nobody knows. */
    int64_t node_lost_ms;
    /* In-place restarts of all its containers, the user's init containers included, and the
     * failures that one is to follow. */
    int32_t restart_count;
    bool exited; /* container `pytorch` is terminated: the next two hold */
    int32_t exit_code;
    int64_t exited_ms;
    struct pod_end end; /* the last that a restart follows or that made it fail */
    bool disrupted; /* the system ended it (evicted, preempted, node lost): not its own failure */
    /* It failed because our own init container found no master: disrupted, too, and nothing of the
     * user's has begun in it. */
    bool master_not_found;
    /* Why it does not begin or go on, in the words of who knows: reason and message of its
     * condition PodScheduled if that is False (Unschedulable), else of its first waiting container,
     * init containers first (ImagePullBackOff, CrashLoopBackOff, CreateContainerConfigError); of a
     * disrupted pod that failed, the reason and message of its status (Evicted, OutOfcpu). NULL:
     * nothing to tell, as with ContainerCreating and PodInitializing. The message may be NULL. */
    const char *waiting_reason;
    const char *waiting_message;
};

struct service {
    const char *name;
    const char *uid;
    const char *owner_uid;
    enum replica_type type;
    int32_t index; /* -1: its index label is not a number */
    bool deleting;
};

/* The PodGroup of a job's name. */
struct pod_group {
    const char *name;
    const char *uid;
    const char *owner_uid; /* "" if it has none */
    bool deleting;
    struct pod_group_spec spec;
    const char *phase; /* "" until its scheduler has seen it; else Pending, Inqueue, Running, ... */
    const char *message; /* why it waits, in its scheduler's words; NULL: it says nothing */
};

/* The HorizontalPodAutoscaler of a job's name. */
struct autoscaler {
    const char *name;
    const char *uid;
    const char *owner_uid; /* "" if it has none */
    bool deleting;
    struct autoscaler_spec spec; /* metrics_hash: "" if it bears none */
};

/* ---- status: what is remembered ---- */

enum condition_type {
    CONDITION_CREATED,
    CONDITION_RUNNING,
    CONDITION_RESTARTING,
    CONDITION_SUSPENDED,
    CONDITION_SUCCEEDED,
    CONDITION_FAILED,
    CONDITION_WAITING, /* ours: something stands in the way; its message says what */
};
#define CONDITION_TYPES 7

struct condition {
    enum condition_type type;
    bool status; /* "True" or "False" */
    const char *reason;
    const char *message;
    int64_t update_ms;     /* lastUpdateTime */
    int64_t transition_ms; /* lastTransitionTime */
};

/* Pods of one replica type, recounted in each pass until the job is finished. */
struct replica_status {
    bool present;
    int32_t active;    /* running and not being deleted */
    int32_t succeeded; /* remembered completions included */
    int32_t failed;    /* failed, or running while being deleted */
};

/* Which failures of one replica are counted already. There is at most one record a replica, so what
 * is remembered stays small however often it fails. */
struct replica_history {
    enum replica_type type;
    int32_t index;
    const char *uid; /* of the last pod of this replica that failed or left */
    int32_t counted; /* failures of that pod that are counted: in-place restarts, plus one for phase
                        Failed */
    int32_t earlier; /* failures of earlier pods of this replica */
    /* Incidents (incident.h): history->incidents when this replica last had a part in one; whether
     * that was by the deletion, eviction or loss of the pod. */
    int32_t incidents;
    bool left;
};

/* The field of status.history that CustomResourceDefinitions know since this version; always
 * written, so that it tells whether the API server keeps them all. */
#define HISTORY_NEWEST_FIELD "incidents"

/* What pods can no longer tell once they are gone. */
struct history {
    /* It was kept from the job's first pass on. False: of a job that another operator began nothing
     * is known of what its pods went through before. */
    bool known;
    int32_t failures;    /* counted against backoffLimit, each once */
    int32_t restarts;    /* those of them that a restart answered */
    int32_t attempt;     /* how often all replicas were restarted together */
    int32_t incidents;   /* incident.h: what made replicas leave, counted as a failure or not */
    int64_t incident_ms; /* when the last of them was seen; 0: none that is of concern still */
    int32_t unexplained; /* the last so many: failures of which only EXIT_RETRYABLE was seen */
    struct replica_history *replicas; /* ordered by type and index */
    size_t replica_count;
    bool *completed[REPLICA_TYPES]; /* [completed_count]: this index has succeeded; it is not run
                                       again */
    int32_t completed_count[REPLICA_TYPES];
    /* With SCOPE_JOB: replicas below this index were all seen at once in this attempt, so that one
     * that is missing now has vanished. */
    int32_t formed[REPLICA_TYPES];
};

struct job_status {
    /* first: Created; last: the state the job is in */
    struct condition conditions[CONDITION_TYPES];
    size_t condition_count;
    struct replica_status replicas[REPLICA_TYPES];
    int64_t start_ms;      /* 0: not started; set again on resume */
    int64_t completion_ms; /* 0: not finished */
    struct history history;
};
#endif
