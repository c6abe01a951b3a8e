/* The operator's types: a job as its user wrote it, the observed pods and services, and the status.
 * Plain structs; strings and arrays live in the arena they were decoded into. Fields are named as
 * in kubeflow.org/v1 PyTorchJob. JSON values are only carried, never read here. */
#ifndef SHOAL_OPERATOR_JOB_TYPES_H
#define SHOAL_OPERATOR_JOB_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "operator/job/goodput.h"
#include "operator/job/queue.h"
#include "operator/job/training.h"

/* ---- the spec of a job ---- */

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
    ENV_FILE,       /* valueFrom.fileKeyRef: `value` is VOLUME/KEY */
};

struct env_var {
    const char *name;
    const char *value; /* never NULL */
    enum env_source source;
    /* ENV_CONFIG_MAP, ENV_SECRET, ENV_FILE: the variable is left out if there is no such key */
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
    struct quantities requests; /* requests; of a resource without a request its limit */
    bool is_sidecar;            /* an init container that runs on: its restartPolicy is Always */
};

/* The parts of a PodTemplateSpec that the operator reads. */
struct pod_template {
    struct pairs labels;
    struct pairs annotations;
    struct container *containers;
    size_t container_count;
    struct container *init_containers;
    size_t init_container_count;
    struct quantities overhead; /* of its RuntimeClass; the API server sets it in pods */
    const char *restart_policy; /* the template's own; NULL: absent. The replica's overrides it */
    const char *scheduler_name; /* NULL: the cluster's default, or the gang scheduler */
    const char *priority_class; /* priorityClassName; NULL: none */
    struct optional grace_period_s; /* terminationGracePeriodSeconds; defaults_apply makes it 30 */
    /* The whole template, for manifest_pod.c, which sends all of it. Borrowed: lives as long as the
     * decoded document. NULL in jobs that come from no document. */
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
    struct optional max_restarts;   /* of torchrun; the operator does not use it */
    /* of the agent's launcher, and of policy_preempt.h; not set: SHRINK_AFTER_S */
    struct optional shrink_after_s;
    /* The autoscaler's metrics, only carried; NULL: no autoscaler. Borrowed like a template's
     * `raw`. */
    const struct json *metrics;
    const char *metrics_hash; /* of their text, to compare them; NULL: no metrics */
};

/* For gang schedulers; ignored without one. */
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
    /* restarts before the job fails; -1: unlimited. Also from spec.backoffLimit */
    struct optional backoff_limit;
    enum restart_scope restart_scope;
    bool suspend;
    const char *managed_by; /* NULL: this operator */
    struct scheduling_policy scheduling;
};

struct job {
    const char *name;
    const char *namespace_; /* "default" unless stated */
    const char *uid;        /* "" before an API server or `shoal run` has assigned it */
    int64_t created_ms;     /* 0: unknown */
    bool deleting;          /* its deletion was requested */
    struct run_policy run_policy;
    struct elastic_policy elastic;
    const char *nproc_per_node; /* a number as text, "auto", "cpu" or "gpu"; NULL if unset */
    struct replica_spec replicas[REPLICA_TYPES];
    struct queue_wish queue;
    const char *invalid; /* why the job is invalid (one line), or NULL */
    /* metadata.annotations, only carried: they are copied to the PodGroup. Borrowed like a
     * template's `raw`; NULL: none. */
    const struct json *annotations;
};

/* ---- PodGroup and HorizontalPodAutoscaler ---- */

enum gang_scheduler {
    GANG_NONE,
    GANG_VOLCANO,
    GANG_PLUGINS, /* scheduler-plugins' coscheduling */
};

/* The gang scheduler that the operator uses. */
struct gang {
    enum gang_scheduler scheduler;
    const char *scheduler_name; /* schedulerName of the pods; NULL with GANG_NONE */
};

/* The spec of a job's PodGroup, for both schedulers; each has some of the fields. */
struct pod_group_spec {
    int32_t min_member;
    struct quantities min_resources;
    const char *queue;                  /* Volcano; "" with scheduler-plugins */
    const char *priority_class;         /* Volcano; "": none */
    struct optional schedule_timeout_s; /* scheduler-plugins */
};

/* The spec of a job's HorizontalPodAutoscaler. */
struct autoscaler_spec {
    int32_t min_replicas;
    int32_t max_replicas;
    const char *metrics_hash; /* an annotation, as the API server changes the metrics themselves */
};

/* ---- observed objects ---- */

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_UNKNOWN };

/* The termination of a container. */
struct pod_end {
    const char *container; /* its name; NULL: no container terminated, or it is not known which */
    int32_t code;
    /* "OOMKilled", "ContainerCannotRun"; NULL: no more than the exit code says */
    const char *reason;
    /* The termination message that begins with HARDWARE_MESSAGE, of an end with EXIT_HARDWARE;
     * NULL: it is no such end. */
    const char *hardware;
};

/* A pod with the job's labels or with a name that the job wants. May be foreign: see owner_uid. */
struct pod {
    const char *name;
    const char *uid;       /* never reused: a pod created again under its name has another */
    const char *version;   /* resourceVersion; NULL: the backend has none */
    const char *owner_uid; /* of its controller; "": none */
    enum replica_type type;
    int32_t index;   /* -1: the index label is malformed */
    int32_t attempt; /* LABEL_ATTEMPT; 0 if absent */
    enum pod_phase phase;
    int64_t created_ms; /* 0: unknown, or the backend never refuses a pod */
    /* When its deletion was requested; 0: it was not. This is the API's deletionTimestamp minus
     * deletionGracePeriodSeconds. */
    int64_t deleted_ms;
    /* deletionGracePeriodSeconds of a pod that is being deleted. 0: it was deleted by force and
     * only a finalizer keeps it, or the backend cannot lose a pod. */
    int64_t grace_ms;
    const char *node;   /* that it is bound to; NULL: none yet, or the backend has none */
    const char *avoids; /* ANNOTATION_AVOIDED_NODES: nodes that it was not to come to; NULL: none */
    /* Since when its node is lost, so that the pod's status is outdated; 0: it is not, or that is
     * unknown. A node is lost if its Node does not exist or its condition Ready is not True.
     * Without permission to read nodes: condition Ready of the pod is False while its containers
     * are ready, or its reason is NodeLost. */
    int64_t node_lost_ms;
    /* Restarts in place of all containers, the user's init containers included, plus the failures
     * that the kubelet will still restart. */
    int32_t restart_count;
    bool exited; /* container `pytorch` has terminated; sets the next two */
    int32_t exit_code;
    int64_t exited_ms;  /* 0: nobody knows, or it never began */
    struct pod_end end; /* the last failure that a restart follows or that failed the pod */
    bool disrupted; /* the system terminated it (evicted, preempted, node lost): no failure of its
                       own */
    /* It failed because our init container did not find the master: disrupted, too, and no
     * container of the user has started. */
    bool master_not_found;
    /* Why the pod is not running: reason and message of its condition PodScheduled if that is False
     * (Unschedulable), else of its first waiting container, init containers first
     * (ImagePullBackOff, CrashLoopBackOff, CreateContainerConfigError); of a disrupted pod that
     * failed, those of its status (Evicted, OutOfcpu). NULL: no problem, as with ContainerCreating
     * and PodInitializing. The message may be NULL. */
    const char *waiting_reason;
    const char *waiting_message;
    /* Of replicas 0 alone, whose agents may tell how the training goes (TRAINING_PATH): where the
     * pod is asked, NULL: nowhere; and the numbers that its container `pytorch` left behind when it
     * ended last, as the last line of its termination message, NULL: none. */
    const char *address;
    const char *last_line;
    int64_t scheduled_ms, started_ms; /* a node took it, its container `pytorch` runs; 0: not yet */
    int32_t training_port;
};

struct service {
    const char *name;
    const char *uid;
    const char *owner_uid;
    enum replica_type type;
    int32_t index; /* -1: the index label is malformed */
    bool deleting;
};

/* The PodGroup with the job's name. */
struct pod_group {
    const char *name;
    const char *uid;
    const char *owner_uid; /* "": none */
    bool deleting;
    struct pod_group_spec spec;
    const char
        *phase; /* "": its scheduler has not processed it; else Pending, Inqueue, Running, ... */
    const char *message; /* the scheduler's reason why it waits; NULL: none */
};

/* The HorizontalPodAutoscaler with the job's name. */
struct autoscaler {
    const char *name;
    const char *uid;
    const char *owner_uid; /* "": none */
    bool deleting;
    struct autoscaler_spec spec; /* metrics_hash: "" if it lacks the annotation */
};

/* ---- status ---- */

enum condition_type {
    CONDITION_CREATED,
    CONDITION_RUNNING,
    CONDITION_RESTARTING,
    CONDITION_SUSPENDED,
    CONDITION_SUCCEEDED,
    CONDITION_FAILED,
    CONDITION_WAITING, /* our own: the message says what keeps the job from running */
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

/* Counts the pods of one replica type; updated in each pass until the job is finished. */
struct replica_status {
    bool present;
    int32_t active;    /* running and not being deleted */
    int32_t succeeded; /* completed replicas without a pod included */
    int32_t failed;    /* failed, or running while being deleted */
};

/* Which failures of one replica are counted. One record per replica, so that its size does not grow
 * with the number of failures. */
struct replica_history {
    enum replica_type type;
    int32_t index;
    const char *uid; /* of the last pod of this replica that failed or left */
    int32_t
        counted; /* failures of that pod that are counted: in-place restarts, and phase Failed */
    int32_t earlier; /* failures of earlier pods of this replica */
    /* The value of history.incidents when this replica last took part in an incident (incident.h);
     * and whether it did so because its pod was deleted, evicted or lost. */
    int32_t incidents;
    bool left;
};

/* A node that the job's pods have left because its hardware is bad (policy_avoid_node.h). */
struct avoided_node {
    const char *name;
    int64_t since_ms;
};

/* What the operator remembers of pods that are gone. A row of history_fields.c for each field. */
struct history {
    /* The history goes back to the job's creation. False: another operator began the job, and what
     * its pods went through before is unknown. */
    bool known;
    int32_t failures; /* counted against backoffLimit, each once */
    int32_t restarts; /* the failures that a restart followed */
    int32_t
        rank_restarts;   /* how often the launcher of rank 0 started its ranks again, of all pods */
    int32_t attempt;     /* how often all replicas were restarted together */
    int32_t incidents;   /* incident.h: causes of leaving replicas, counted as a failure or not */
    int64_t incident_ms; /* when the last of them was seen; 0: none, or it is over */
    /* Of the last incidents, those whose root cause is not known yet: of each only exits
     * that a lost peer explains were seen. */
    int32_t incidents_without_cause;
    struct replica_history *replicas; /* ordered by type and index */
    size_t replica_count;
    bool *completed[REPLICA_TYPES]; /* [completed_count]: this replica has succeeded and is not
                                       created again */
    int32_t completed_count[REPLICA_TYPES];
    /* With SCOPE_JOB: all replicas below this index existed at the same time in this attempt, so a
     * missing one has vanished. */
    int32_t formed[REPLICA_TYPES];
    struct avoided_node *avoided; /* ordered by name */
    size_t avoided_count;
    /* How often pods have left bad hardware since the training last came further than ever, and
     * when that was last counted (policy_avoid_node.h). */
    int32_t hardware_leaves;
    int64_t hardware_ms;
    /* The worker whose room worker 0 is to have, until that has run (policy_preempt.h); 0: none. */
    int32_t preempted;
    /* When the newest pod of worker 0 that has run was made, by the API server's clock; 0: none. */
    int64_t worker_0_ms;
};

struct job_status {
    /* first: Created; last: the state the job is in */
    struct condition conditions[CONDITION_TYPES];
    size_t condition_count;
    struct replica_status replicas[REPLICA_TYPES];
    int64_t start_ms;      /* 0: not started; set again on resume */
    int64_t completion_ms; /* 0: not finished */
    struct history history;
    struct training training;
    struct goodput goodput;
};
#endif
