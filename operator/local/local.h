/* The backend of `shoal run`: the pods of one job as processes of this machine. It is the API
 * server, the scheduler and the kubelet of that job in one: it keeps pods and services, starts and
 * restarts containers, and shows the same snapshot to reconcile that a cluster would. It decides
 * nothing about the job. Never waits and never reads a clock: its owner polls and
 * passes the time. */
#ifndef SHOAL_OPERATOR_LOCAL_LOCAL_H
#define SHOAL_OPERATOR_LOCAL_LOCAL_H

#include <poll.h>

#include "operator/apply/apply.h"
#include "operator/job/snapshot.h"
#include "operator/local/local_container.h"
#include "operator/local/local_events.h"
#include "operator/local/local_pod.h"

enum { LOCAL_REPLICAS_MAX = 512 };

struct local_options {
    struct local_site site; /* addresses are filled in here */
    const char *log_dir;    /* logs are LOG_DIR/JOB/POD.log; made when the first process starts */
    bool keep_ports;        /* services keep their port numbers instead of getting free ones */
    int64_t restart_first_ms, restart_max_ms; /* see struct local_backoff */
    /* What the leader's processes wrote: master 0, or worker 0 if there is no master. */
    void (*output)(void *context, const char *bytes, size_t count);
    /* Whether there is room for more of it. While there is none they are not read and so block once
     * their pipe is full; what they leave behind when they end comes all the same. */
    bool (*has_room)(void *context);
    /* One line about trouble that stops nothing, such as a log file on a full disk. */
    void (*warn)(void *context, const char *line);
    void *context;
};

enum local_state {
    LOCAL_PENDING,
    LOCAL_INIT, /* an init container runs */
    LOCAL_RUNNING,
    LOCAL_RESTARTING, /* ended, will be started again */
    LOCAL_STOPPING,   /* asked to end */
    LOCAL_STOPPED,    /* ended because it was asked to */
    LOCAL_SUCCEEDED,
    LOCAL_FAILED,
};
const char *local_state_name(enum local_state state); /* "Pending", ... */

/* What people are shown of a replica; it outlives the replica's pods. */
struct local_replica {
    const char *name; /* the pod's */
    enum local_state state;
    int32_t restarts;     /* of one of its containers, or of its pod as a whole */
    int32_t failures;     /* containers that ended with a code other than 0, unasked */
    int32_t repeats;      /* containers that ended with 0 and are to start again all the same */
    bool runs_on;         /* the last container that failed stays down, the others of its pod run */
    int32_t exit_code;    /* of the last end of container `pytorch`, or of an init container that
                             failed; -1: there was none yet */
    int32_t failure_code; /* exit code of the last container that failed */
    int64_t failed_ms;    /* when that was */
    int64_t created_ms;   /* when it got the pod that it has, or had last */
    const char *log_path; /* NULL until it was started */
};

struct local;

/* Takes the ports of all the job's services: they stay the same through all attempts. The job and
 * what options point to must outlive it. Makes nothing on disk yet. */
int local_open(struct local **ret_local, const struct job *job, const struct local_options *options,
               struct error *err);

/* Kills what still runs, waits for its end, frees everything. NULL-safe. */
void local_close(struct local *local);

/* The functions through which a plan reaches it. create_pod fails if a container cannot be run here
 * (the error names pod, container and reason), so before anything is started. */
struct backend local_backend(struct local *local);

/* What reconcile is to see. Valid until anything else is called here. */
void local_snapshot(struct local *local, int64_t now_ms, struct snapshot *ret_snapshot);

/* What the job's training tells of itself; reconcile sees it from now on. */
void local_tell(struct local *local, const struct training *told);

/* Takes notice of ended processes; kills what has outstayed its grace period. Restarts nothing: the
 * job may be over, which is for reconcile to decide first. */
void local_reap(struct local *local, int64_t now_ms);

/* Starts the containers that are due. Returns how many, or -1 with an error if the run cannot go on
 * (a program vanished, a log cannot be made). */
int local_start(struct local *local, int64_t now_ms, struct error *err);

/* When local_reap or local_start has something to do without any process ending;
 * LOCAL_POD_NEVER. */
int64_t local_due(const struct local *local);

/* The pipes to be polled for output, at most `max`; returns how many. */
size_t local_poll_fds(const struct local *local, struct pollfd *fds, size_t max);

/* Moves what the processes wrote to the logs, without waiting. */
void local_read_output(struct local *local);

/* SIGTERM to everything, SIGKILL after the grace period; nothing is started any more. */
void local_stop(struct local *local, int64_t now_ms);
void local_kill(struct local *local);          /* SIGKILL to everything, now */
bool local_is_idle(const struct local *local); /* no process is left */

/* All replicas that ever had a pod, in order of creation. Valid until anything else is
 * called here. */
const struct local_replica *local_replicas(struct local *local, size_t *ret_count);

/* What happened to the job, by reconcile's word. Valid until anything else is called here. */
const struct local_events *local_events(const struct local *local);
#endif
