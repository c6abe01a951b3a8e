/* One replica on this machine: its log, the pod it has now, if any, and that pod's processes. What
 * must outlive a pod (starts, back-off, what people are shown) is kept here. Used by local only;
 * knows nothing of other replicas or of the job. */
#ifndef SHOAL_OPERATOR_LOCAL_LOCAL_RUNNER_H
#define SHOAL_OPERATOR_LOCAL_LOCAL_RUNNER_H

#include "operator/local/local.h"
#include "operator/local/local_log.h"

/* A container of the present pod as a process. */
struct local_launch {
    const char *container; /* its name; in the pod's arena */
    struct local_process process;
    char restart_count[48]; /* "SHOAL_RESTART_COUNT=N", the last of process.env */
    pid_t guard;            /* its supervisor process (local_process.h); 0: not running */
};

struct local_runner {
    struct local_replica shown; /* name and log_path are owned */
    enum replica_type type;
    int32_t index;
    bool is_leader; /* its output goes to options->output as well */
    const struct local_options *options;
    struct local_log log;
    bool log_is_open, log_failure_reported;
    struct local_backoff backoff;
    int64_t not_before_ms;  /* no container starts earlier: failures of former pods count, too */
    int32_t *starts;        /* [pod.count]: of each container, in all pods */
    enum local_state ended; /* what it was after its last end: Failed, Succeeded or Stopped */

    struct arena *arena; /* of the present pod and all below; NULL: there is none */
    const char *uid;
    const char *owner_uid;
    int32_t attempt;
    struct local_pod pod;
    struct local_launch *launches; /* [pod.count] */
    size_t main;                   /* index of container `pytorch` */
    int64_t grace_ms;
    int64_t deleted_ms; /* 0: its deletion was not asked for */
    bool killed;        /* SIGKILL is sent: nothing is left but to wait */
};

void local_runner_open(struct local_runner *runner, const struct pod_spec *spec, bool is_leader,
                       const struct local_options *options);
void local_runner_close(struct local_runner *runner); /* its processes have ended */

/* Gives the replica a pod. Nothing is started yet, but everything is looked up, so that what cannot
 * run here is an error now. */
int local_runner_admit(struct local_runner *runner, const struct pod_spec *spec,
                       const struct local_site *site, const char *uid, struct error *err);

/* Starts the containers that are due; returns how many, or -1. log_path: for the first start. */
int local_runner_start(struct local_runner *runner, const char *log_path, int64_t now_ms,
                       struct error *err);

/* Takes notice of an ended process. False: it is not one of this replica's. */
bool local_runner_reap(struct local_runner *runner, pid_t guard, int wait_status, int64_t now_ms);

/* SIGTERM; the pod goes once its processes have. */
void local_runner_delete(struct local_runner *runner, int64_t now_ms);
void local_runner_kill(struct local_runner *runner);

/* Kills what has outstayed its grace period; lets a deleted pod go whose processes are gone. */
void local_runner_clean_up(struct local_runner *runner, int64_t now_ms);

bool local_runner_has_pod(const struct local_runner *runner);
bool local_runner_has_guard(const struct local_runner *runner, pid_t guard);
bool local_runner_is_idle(const struct local_runner *runner); /* no process runs */
int64_t local_runner_due(const struct local_runner *runner);
void local_runner_get_pod(const struct local_runner *runner, struct pod *ret_pod); /* has a pod */

/* Moves what the pipe holds to the log; the chunks of a leader go out as well. */
void local_runner_read_output(struct local_runner *runner);
#endif
