#include "operator/local/local_pod.h"

#include <assert.h>

static bool succeeded(const struct local_container *container)
{
    return container->state == CONTAINER_ENDED && container->exit_code == 0;
}

/* The containers that may run now: [*ret_first, *ret_end). As in Kubernetes, init containers run
 * one after the other, each to its success, and then all others together. */
static void stage(const struct local_pod *pod, size_t *ret_first, size_t *ret_end)
{
    for (size_t i = 0; i < pod->init_count; i++)
        if (!succeeded(&pod->containers[i])) {
            *ret_first = i;
            *ret_end = i + 1;
            return;
        }
    *ret_first = pod->init_count;
    *ret_end = pod->count;
}

bool local_pod_next(const struct local_pod *pod, int64_t now_ms, size_t *ret_index)
{
    size_t first, end;
    stage(pod, &first, &end);
    for (size_t i = first; i < end; i++)
        if (pod->containers[i].state == CONTAINER_WAITING && pod->containers[i].due_ms <= now_ms) {
            *ret_index = i;
            return true;
        }
    return false;
}

int64_t local_pod_due(const struct local_pod *pod)
{
    size_t first, end;
    stage(pod, &first, &end);
    int64_t due = LOCAL_POD_NEVER;
    for (size_t i = first; i < end; i++)
        if (pod->containers[i].state == CONTAINER_WAITING && pod->containers[i].due_ms < due)
            due = pod->containers[i].due_ms;
    return due;
}

void local_pod_started(struct local_pod *pod, size_t index, int64_t now_ms)
{
    struct local_container *container = &pod->containers[index];
    assert(container->state == CONTAINER_WAITING);
    container->state = CONTAINER_RUNNING;
    container->started_ms = now_ms;
}

static int64_t backoff_next(struct local_backoff *backoff, int64_t ran_ms, int64_t now_ms)
{
    /* As the kubelet's CrashLoopBackOff: at once, then doubled up to a limit. A container that ran
     * twice as long as the limit begins anew. */
    if (ran_ms >= 2 * backoff->max_ms)
        backoff->delay_ms = 0;
    int64_t due = now_ms + backoff->delay_ms;
    backoff->delay_ms = backoff->delay_ms ? 2 * backoff->delay_ms : backoff->first_ms;
    if (backoff->delay_ms > backoff->max_ms)
        backoff->delay_ms = backoff->max_ms;
    return due;
}

int64_t local_pod_ended(struct local_pod *pod, size_t index, int exit_code, int64_t now_ms,
                        struct local_backoff *backoff)
{
    struct local_container *container = &pod->containers[index];
    assert(container->state == CONTAINER_RUNNING);
    container->state = CONTAINER_ENDED;
    container->ended_ms = now_ms;
    container->exit_code = exit_code;
    if (!backoff)
        return now_ms;
    bool is_init = index < pod->init_count;
    bool again = exit_code ? pod->restart != POD_RESTART_NEVER
                           : pod->restart == POD_RESTART_ALWAYS && !is_init;
    if (!again && exit_code == 0)
        return now_ms;
    int64_t due = backoff_next(backoff, now_ms - container->started_ms, now_ms);
    if (again) {
        container->state = CONTAINER_WAITING;
        container->due_ms = due;
        container->restarts++;
    }
    return due;
}

bool local_pod_initialized(const struct local_pod *pod)
{
    size_t first, end;
    stage(pod, &first, &end);
    return first == pod->init_count;
}

enum pod_phase local_pod_phase(const struct local_pod *pod)
{
    if (!local_pod_initialized(pod)) {
        for (size_t i = 0; i < pod->init_count; i++)
            if (pod->containers[i].state == CONTAINER_ENDED && pod->containers[i].exit_code)
                return POD_FAILED;
        return POD_PENDING;
    }
    size_t open = 0, failed = 0;
    for (size_t i = pod->init_count; i < pod->count; i++) {
        const struct local_container *container = &pod->containers[i];
        if (container->state == CONTAINER_WAITING && !container->ended_ms)
            return POD_PENDING; /* not started yet; one that waits for its restart
                                   counts as running */
        open += container->state != CONTAINER_ENDED;
        failed += container->state == CONTAINER_ENDED && container->exit_code != 0;
    }
    if (open > 0)
        return POD_RUNNING;
    return failed > 0 ? POD_FAILED : POD_SUCCEEDED;
}

int local_pod_restarts(const struct local_pod *pod)
{
    int sum = 0;
    for (size_t i = 0; i < pod->count; i++)
        sum += pod->containers[i].restarts;
    return sum;
}
