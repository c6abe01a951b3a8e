/* NCCL's rules for calls, and how they are kept:
 *
 *  - All ranks must issue the collectives of a communicator in one order (NCCL user guide, "Using
 *    multiple NCCL communicators concurrently"). The shard engine queues in a fixed order.
 *  - Collectives of two communicators that may run at once need one order on every GPU, too:
 * otherwise each occupies the GPU's multiprocessors on one rank while it waits for the other rank.
 * Since NCCL 2.26, NCCL_LAUNCH_ORDER_IMPLICIT=1 takes the order of the host's calls. Before, the
 * engine runs both on one stream (comm.h, is_concurrent).
 *  - A communicator with blocking = 0 accepts one call at a time. While a call returns
 * ncclInProgress only ncclCommGetAsyncError() may be used (user guide, "Asynchronous errors and
 * error handling"). The mutex `calls` keeps other threads out until comm_nccl_settle() returns.
 *  - ncclCommAbort() may be called from another thread, but not during a call of the same
 * communicator that is about to return: the abort waits ABORT_WAITS_MS for the mutex. A call that
 * still holds it then is stuck in NCCL and is what the abort must end. */
#include "agent/comm/comm_nccl_internal.h"

#include "agent/comm/nccl_bootstrap.h"
#include "base/clock.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

enum {
    EAGER_US = 2000,       /* in which a call's polls only yield: NCCL starts a thread for it */
    ABORT_WAITS_MS = 1000, /* how long an abort waits for a call that NCCL has not taken yet */
};

/* ---- one call ---- */

/* Also a call that answers success is asked about: of a window's, NCCL 2.28 and newer do so while a
 * thread of theirs still registers. Mostly all of it takes less than the shortest sleep. */
int comm_nccl_settle(struct comm_nccl *c, int result)
{
    int64_t begin_us = clock_monotonic_us();
    bool is_asked = false;
    while (result == NCCL_IN_PROGRESS || (result == NCCL_SUCCESS && !is_asked)) {
        if (watchdog_has_failed(c->shared->watchdog))
            return NCCL_IN_PROGRESS;
        if (is_asked && clock_monotonic_us() - begin_us < EAGER_US)
            sched_yield();
        else if (is_asked)
            usleep(NCCL_POLL_US);
        int asked = c->shared->api.comm_error(c->nccl, &result);
        if (asked != NCCL_SUCCESS)
            return asked;
        is_asked = true;
    }
    return result;
}

bool comm_nccl_begin(struct comm_nccl *c, struct stream *s, const char *op, int64_t bytes,
                     int64_t whole_bytes)
{
    comm_range_begin(&c->head, s, op, whole_bytes);
    watchdog_begin(c->shared->watchdog, &c->watched, op, bytes);
    collective_progress_enter(c->shared->options.watchdog.progress, op, c->head.unit);
    pthread_mutex_lock(&c->shared->calls);
    return !watchdog_has_failed(c->shared->watchdog);
}

static void note_refused(struct comm_nccl_shared *shared, const struct error *err)
{
    pthread_mutex_lock(&shared->refusal);
    if (shared->refused.code == ERR_NONE)
        shared->refused = *err;
    pthread_mutex_unlock(&shared->refusal);
}

void comm_nccl_end(struct comm_nccl *c, struct stream *s, const char *op, int result)
{
    struct error err;
    result = comm_nccl_settle(c, result);
    if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS) {
        nccl_api_fail(&c->shared->api, c->nccl, result, op, &err);
        watchdog_fail(c->shared->watchdog, &err);
        note_refused(c->shared, &err);
    }
    pthread_mutex_unlock(&c->shared->calls);
    stream_range_end(s);
    if (stream_marks_add(c->marks, s, &err))
        watchdog_fail(c->shared->watchdog, &err);
}

static int use_memory(struct comm_nccl *c, const void *memory, size_t bytes)
{
    if (comm_nccl_in_window(c, memory, (int64_t)bytes)) /* NCCL registers that with the window */
        return NCCL_SUCCESS;
    if (c->shared->buffers)
        device_memory_whole_block(c->shared->device, &memory, &bytes);
    return comm_nccl_settle(c, nccl_buffers_register(c->shared->buffers, c->nccl, memory, bytes));
}

bool comm_nccl_begin_registered(struct comm_nccl *c, struct stream *s, const char *op,
                                const void *all, int64_t whole_bytes, const void *other,
                                int64_t other_bytes, int *ret_result)
{
    if (!comm_nccl_begin(c, s, op, whole_bytes / c->head.size, whole_bytes))
        return false;
    *ret_result = use_memory(c, all, (size_t)whole_bytes);
    if (*ret_result == NCCL_SUCCESS)
        *ret_result = use_memory(c, other, (size_t)other_bytes);
    return *ret_result == NCCL_SUCCESS;
}

/* ---- called by the watchdog and the device ---- */

/* If another thread is in a call, that thread's comm_nccl_settle() sees the error. */
int comm_nccl_check(void *ctx, struct error *err)
{
    struct comm_nccl *c = ctx;
    int error = NCCL_SUCCESS;
    if (pthread_mutex_trylock(&c->shared->calls))
        return 0;
    int result = c->shared->api.comm_error(c->nccl, &error);
    pthread_mutex_unlock(&c->shared->calls);
    if (result == NCCL_SUCCESS)
        result = error;
    if (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS)
        return 0;
    return nccl_api_fail(&c->shared->api, c->nccl, result, "between ranks", err);
}

uint64_t comm_nccl_count_ended(void *ctx)
{
    return stream_marks_count(((struct comm_nccl *)ctx)->marks);
}

/* All communicators in one group where NCCL can: an abort waits for everything that runs on the
 * device, also for collectives of the communicators that are aborted after it. */
void comm_nccl_abort_all(const struct watched_comm *first)
{
    struct timespec until;
    if (!first)
        return;
    struct comm_nccl_shared *shared = ((struct comm_nccl *)first->ctx)->shared;
    bool together = shared->api.version >= NCCL_ABORTS_TOGETHER;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_WAITS_MS / 1000;
    bool is_mine = pthread_mutex_timedlock(&shared->calls, &until) == 0;
    if (together)
        shared->api.group_start();
    for (const struct watched_comm *one = first; one; one = one->next)
        shared->api.comm_abort(((struct comm_nccl *)one->ctx)->nccl);
    if (together)
        shared->api.group_end();
    if (is_mine)
        pthread_mutex_unlock(&shared->calls);
}

void comm_nccl_deregister(void *ctx, void *block, size_t bytes)
{
    struct comm_nccl_shared *shared = ctx;
    pthread_mutex_lock(&shared->calls);
    nccl_buffers_deregister(shared->buffers, block, bytes, !watchdog_has_failed(shared->watchdog));
    pthread_mutex_unlock(&shared->calls);
}

/* A collective that ended after a failure may have been aborted with wrong results,
 * on any stream. */
int comm_nccl_check_health(void *ctx, struct error *err)
{
    struct comm_nccl_shared *shared = ctx;
    if (watchdog_check(shared->watchdog, err))
        return -1;
    pthread_mutex_lock(&shared->refusal);
    bool is_refused = shared->refused.code != ERR_NONE;
    if (is_refused)
        *err = shared->refused;
    pthread_mutex_unlock(&shared->refusal);
    return is_refused ? -1 : 0;
}
