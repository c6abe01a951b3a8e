#include "operator/reconcile/restart.h"

/* 128 + N is how a shell and the container runtime report the end by signal N: 137 is SIGKILL (out
 * of memory), 143 SIGTERM. Kubeflow takes these for trouble of the machine, and lower codes for the
 * program's own fault. */
#define EXIT_FIRST_RETRYABLE 128

enum restart_verdict restart_judge(enum restart_policy policy, const struct pod *pod)
{
    if (pod->phase != POD_FAILED || pod->deleted_ms)
        return RESTART_NOTHING;
    switch (policy) {
    case RESTART_NEVER:
        return pod->disrupted ? RESTART_REPLACE : RESTART_FAILS_JOB;
    case RESTART_EXIT_CODE:
        if (pod->exited && !pod->disrupted && pod->exit_code < EXIT_FIRST_RETRYABLE)
            return RESTART_FAILS_JOB;
        return RESTART_REPLACE;
    /* Whatever the exit code says. The kubelet restarts containers in place, so a failed pod was
     * evicted or lost. With SCOPE_JOB it does not, and each failed pod is made anew. */
    case RESTART_UNSET:
    case RESTART_ALWAYS:
    case RESTART_ON_FAILURE:
        break;
    }
    return RESTART_REPLACE;
}

bool restart_has_run(const struct pod *pod)
{
    /* the kubelet calls a container ended, too, that it never began: at no time, for which
     * exited_ms has that of a deletion */
    return pod->phase == POD_RUNNING || pod->phase == POD_SUCCEEDED ||
           (pod->exited && pod->exited_ms && pod->exited_ms != pod->deleted_ms);
}

/* A container that ended in the very millisecond of the deletion counts as ended by it. */
static bool ended_by_deletion(const struct pod *pod)
{
    return pod->deleted_ms && !(pod->exited && pod->exited_ms < pod->deleted_ms);
}

bool restart_failed(const struct pod *pod)
{
    return pod->phase == POD_FAILED && !pod->disrupted && !ended_by_deletion(pod);
}

int32_t restart_failures(const struct pod *pod)
{
    return pod->restart_count + (restart_failed(pod) ? 1 : 0);
}

bool restart_succeeded(const struct pod *pod)
{
    return pod->phase == POD_SUCCEEDED && !ended_by_deletion(pod);
}

bool restart_in_place(const struct job *job, enum replica_type type)
{
    enum restart_policy policy = job->replicas[type].restart_policy;
    return job->run_policy.restart_scope != SCOPE_JOB &&
           (policy == RESTART_ALWAYS || policy == RESTART_ON_FAILURE);
}
