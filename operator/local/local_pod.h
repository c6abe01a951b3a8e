/* What a kubelet decides about the containers of one pod: which starts when, whether one that ended
 * is restarted in place, and the pod's phase. Pure: the caller starts and stops the processes and
 * passes the time. Rules: kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle, and getPhase in
 * kubernetes/pkg/kubelet/kubelet_pods.go. */
#ifndef SHOAL_OPERATOR_LOCAL_LOCAL_POD_H
#define SHOAL_OPERATOR_LOCAL_LOCAL_POD_H

#include "operator/manifest/pod.h"

#define LOCAL_POD_NEVER INT64_MAX

/* CrashLoopBackOff: the first restart is at once, the next after `first_ms`, then twice as long
 * each time. One that ran for twice `max_ms` starts over. */
struct local_backoff {
    int64_t first_ms, max_ms; /* settings */
    int64_t delay_ms;         /* of the next restart */
};

enum local_container_state { CONTAINER_WAITING, CONTAINER_RUNNING, CONTAINER_ENDED };

struct local_container {
    enum local_container_state state;
    int64_t due_ms;     /* WAITING: not started before */
    int64_t started_ms; /* last start; 0: none yet */
    int64_t ended_ms;   /* last end; 0: none yet */
    int exit_code;      /* of the last end */
    int restarts;       /* ends that a restart follows, counted when it is decided */
};

struct local_pod {
    enum pod_restart restart;
    struct local_container *containers; /* [count]; the init containers first */
    size_t init_count, count;
};

/* The container to start now, into *ret_index; false: none. Init containers run one after the
 * other, the rest together. */
bool local_pod_next(const struct local_pod *pod, int64_t now_ms, size_t *ret_index);

/* When local_pod_next will have something that it does not have now; LOCAL_POD_NEVER. */
int64_t local_pod_due(const struct local_pod *pod);

void local_pod_started(struct local_pod *pod, size_t index, int64_t now_ms);

/* A failure moves *backoff on, whether this pod is restarted in place or someone makes another.
 * Returns the time before which this replica shall not start again. backoff NULL: the pod is being
 * deleted, so nothing is restarted. */
int64_t local_pod_ended(struct local_pod *pod, size_t index, int exit_code, int64_t now_ms,
                        struct local_backoff *backoff);

enum pod_phase local_pod_phase(const struct local_pod *pod);

bool local_pod_initialized(const struct local_pod *pod); /* all init containers have succeeded */
int local_pod_restarts(const struct local_pod *pod);     /* of all containers */
#endif
