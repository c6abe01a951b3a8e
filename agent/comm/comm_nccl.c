#include "agent/comm/comm_nccl.h"

#include "agent/comm/comm_split.h"
#include "agent/comm/nccl_buffers.h"
#include "agent/comm/nccl_meet.h"
#include "agent/comm/stream_marks.h"
#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    EAGER_LOOKS = 100,     /* for the end of a call, before who looks sleeps */
    ABORT_WAITS_MS = 1000, /* for a call that is on its way into NCCL */
};

/* What a communicator shares with those that it was split into. */
struct shared {
    struct nccl_api api;
    struct comm_nccl_options options;
    struct device *device;
    struct watch *watch;
    struct nccl_buffers *buffers; /* NULL: they are not registered */
    int references;               /* of communicators: opened and closed by one thread */
    /* Held while NCCL is called with a communicator that is watched, until the call is settled: one
     * takes no two calls at a time, not even a question for its state, and is not aborted under
     * one. */
    pthread_mutex_t calls;
    /* The first call that NCCL refused: it left its result unwritten, so nothing is well any more,
     * whether or not collectives are aborted. Written under `calls`, once, before the flag. */
    struct error refused;
    atomic_bool has_refused;
};

struct comm_nccl {
    struct comm head;
    struct shared *shared;
    struct comm_group group;
    int splits; /* done */
    nccl_comm nccl;
    void *token; /* a float on the device, for barriers */
    struct stream_marks *marks;
    struct watched watched;
};

static struct comm_nccl *nccl_of(struct comm *c)
{
    return (struct comm_nccl *)c;
}

/* ---- collectives ---- */

/* A non-blocking communicator goes on with the call beside us: it takes no other one before. Mostly
 * that is over in less than the shortest sleep, so the first looks only let others run. Returns
 * NCCL_IN_PROGRESS if the watch has found a failure meanwhile, and will abort. */
static int settle(struct comm_nccl *c, int result)
{
    for (int looks = 0; result == NCCL_IN_PROGRESS; looks++) {
        if (watch_has_failed(c->shared->watch))
            return NCCL_IN_PROGRESS;
        if (looks < EAGER_LOOKS)
            sched_yield();
        else
            usleep(NCCL_POLL_US);
        int asked = c->shared->api.comm_error(c->nccl, &result);
        if (asked != NCCL_SUCCESS)
            return asked;
    }
    return result;
}

/* Before NCCL is called. bytes: this rank's part of whole_bytes. False: there is nothing to call
 * any more. */
static bool begin(struct comm_nccl *c, struct stream *s, const char *op, int64_t bytes,
                  int64_t whole_bytes)
{
    comm_range_begin(&c->head, s, op, whole_bytes);
    watch_begin(c->shared->watch, &c->watched, op, bytes);
    pthread_mutex_lock(&c->shared->calls);
    return !watch_has_failed(c->shared->watch);
}

/* result: of the call, or NCCL_SUCCESS. */
static void end(struct comm_nccl *c, struct stream *s, const char *op, int result)
{
    struct error err;
    result = settle(c, result);
    if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS) {
        nccl_api_fail(&c->shared->api, c->nccl, result, op, &err);
        watch_fail(c->shared->watch, &err);
        if (!atomic_load(&c->shared->has_refused)) {
            c->shared->refused = err;
            atomic_store(&c->shared->has_refused, true);
        }
    }
    pthread_mutex_unlock(&c->shared->calls);
    stream_range_end(s);
    if (stream_marks_add(c->marks, s, &err))
        watch_fail(c->shared->watch, &err);
}

static int type_of(enum dtype t)
{
    return t == DTYPE_BF16 ? NCCL_BFLOAT16 : NCCL_FLOAT32;
}

static int op_of(enum comm_reduce how)
{
    return how == COMM_MEAN ? NCCL_AVG : NCCL_SUM;
}

/* Bytes this rank sends, as a ring would, in `steps` parts of `total`. */
static void count_sent(struct comm_nccl *c, int64_t total, int steps)
{
    c->head.stats.bytes_sent += total / c->head.size * steps;
}

static int use_memory(struct comm_nccl *c, const void *memory, size_t bytes)
{
    if (c->shared->buffers)
        device_memory_widen(c->shared->device, &memory, &bytes);
    return settle(c, nccl_buffers_use(c->shared->buffers, c->nccl, memory, bytes));
}

/* Whether NCCL may be called: begin(), and the memory is registered if it is to be. all: what all
 * ranks have of a collective, part: this rank's, [bytes]. */
static bool begin_with(struct comm_nccl *c, struct stream *s, const char *op, const void *all,
                       const void *part, int64_t bytes, int *ret_result)
{
    int64_t whole = bytes * c->head.size;
    if (!begin(c, s, op, bytes, whole))
        return false;
    *ret_result = use_memory(c, all, (size_t)whole);
    if (*ret_result == NCCL_SUCCESS)
        *ret_result = use_memory(c, part, (size_t)bytes);
    return *ret_result == NCCL_SUCCESS;
}

static void all_gather(struct comm *head, struct stream *s, enum dtype t, void *recv,
                       const void *send, int64_t count)
{
    struct comm_nccl *c = nccl_of(head);
    int64_t bytes = count * (int64_t)dtype_bytes(t);
    int result = NCCL_SUCCESS;
    head->stats.all_gathers++;
    count_sent(c, bytes * head->size, head->size - 1);
    if (begin_with(c, s, "all_gather", recv, send, bytes, &result))
        result = c->shared->api.all_gather(send, recv, (size_t)count, type_of(t), c->nccl,
                                           stream_native(s));
    end(c, s, "all_gather", result);
}

static void reduce_scatter(struct comm *head, struct stream *s, enum dtype t, void *recv,
                           void *send, int64_t count, enum comm_reduce how)
{
    struct comm_nccl *c = nccl_of(head);
    int64_t bytes = count * (int64_t)dtype_bytes(t);
    int result = NCCL_SUCCESS;
    head->stats.reduce_scatters++;
    count_sent(c, bytes * head->size, head->size - 1);
    if (begin_with(c, s, "reduce_scatter", send, recv, bytes, &result))
        result = c->shared->api.reduce_scatter(send, recv, (size_t)count, type_of(t), op_of(how),
                                               c->nccl, stream_native(s));
    end(c, s, "reduce_scatter", result);
}

static void reduce(struct comm_nccl *c, struct stream *s, const char *name, int type,
                   int64_t element_bytes, void *data, int64_t count, enum comm_reduce how)
{
    int result = NCCL_SUCCESS;
    if (begin(c, s, name, count * element_bytes, count * element_bytes))
        result = c->shared->api.all_reduce(data, data, (size_t)count, type, op_of(how), c->nccl,
                                           stream_native(s));
    end(c, s, name, result);
}

static void all_reduce(struct comm *head, struct stream *s, enum dtype t, void *data, int64_t count,
                       enum comm_reduce how)
{
    int64_t element_bytes = (int64_t)dtype_bytes(t);
    head->stats.all_reduces++;
    count_sent(nccl_of(head), count * element_bytes, 2 * (head->size - 1));
    reduce(nccl_of(head), s, "all_reduce", type_of(t), element_bytes, data, count, how);
}

static void all_reduce_f64(struct comm *head, struct stream *s, double *data, int64_t count)
{
    head->stats.all_reduces++;
    count_sent(nccl_of(head), count * head->size * (int64_t)sizeof *data, head->size - 1);
    reduce(nccl_of(head), s, "all_reduce_f64", NCCL_FLOAT64, sizeof *data, data, count, COMM_SUM);
}

static void broadcast(struct comm *head, struct stream *s, void *data, int64_t bytes, int root)
{
    assert(root >= 0 && root < head->size);
    struct comm_nccl *c = nccl_of(head);
    int result = NCCL_SUCCESS;
    head->stats.broadcasts++;
    if ((head->rank + 1) % head->size != root)
        head->stats.bytes_sent += bytes;
    if (begin(c, s, "broadcast", bytes, bytes))
        result = c->shared->api.broadcast(data, data, (size_t)bytes, NCCL_UINT8, root, c->nccl,
                                          stream_native(s));
    end(c, s, "broadcast", result);
}

static void barrier(struct comm *head, struct stream *s)
{
    struct comm_nccl *c = nccl_of(head);
    reduce(c, s, "barrier", NCCL_FLOAT32, sizeof(float), c->token, 1, COMM_SUM);
}

/* ---- for the watch ---- */

/* While a call is on its way, who made it looks for errors. */
static int check(void *ctx, struct error *err)
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

static uint64_t count_ended(void *ctx)
{
    return stream_marks_count(((struct comm_nccl *)ctx)->marks);
}

/* A call on its way into NCCL ends soon, or is stuck there: then it is what has to be aborted. */
static void abort_all(const struct watched *first)
{
    struct timespec until;
    if (!first)
        return;
    struct shared *shared = ((struct comm_nccl *)first->ctx)->shared;
    bool together = shared->api.version >= NCCL_ABORTS_TOGETHER;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_WAITS_MS / 1000;
    bool is_mine = pthread_mutex_timedlock(&shared->calls, &until) == 0;
    if (together)
        shared->api.group_start();
    for (const struct watched *one = first; one; one = one->next)
        shared->api.comm_abort(((struct comm_nccl *)one->ctx)->nccl);
    if (together)
        shared->api.group_end();
    if (is_mine)
        pthread_mutex_unlock(&shared->calls);
}

static void comm_nccl_abort(struct comm *head, const char *reason)
{
    struct error err;
    error_set(&err, ERR_PEER, "%s", reason);
    watch_fail(nccl_of(head)->shared->watch, &err);
}

/* ---- opening, splitting, closing ---- */

static int connect_ranks(struct comm_nccl *c, struct error *err)
{
    const struct nccl_meeting meeting = {
        .api = &c->shared->api,
        .store = c->shared->options.store,
        .group = c->group.id,
        .rank = c->group.rank,
        .size = c->group.size,
        .timeout_ms = c->shared->options.join_timeout_ms,
    };
    return device_alloc(c->shared->device, MEMORY_INPUT, sizeof(float), "barrier", &c->token, err)
               ? -1
               : nccl_meet(&meeting, &c->nccl, err);
}

static void release(struct comm_nccl *c)
{
    stream_marks_close(c->marks);
    device_free(c->shared->device, c->token);
    if (--c->shared->references == 0) {
        if (c->shared->buffers)
            device_memory_on_release(c->shared->device, NULL, NULL);
        device_guard(c->shared->device, NULL, NULL);
        nccl_buffers_close(c->shared->buffers);
        watch_close(c->shared->watch);
        pthread_mutex_destroy(&c->shared->calls);
        free(c->shared);
    }
    comm_group_free(&c->group);
    free(c);
}

static void comm_nccl_close(struct comm *head)
{
    struct comm_nccl *c = nccl_of(head);
    bool was_aborted = watch_remove(c->shared->watch, &c->watched);
    nccl_buffers_leave(c->shared->buffers, c->nccl, !was_aborted);
    if (!was_aborted)
        nccl_part(&c->shared->api, c->shared->options.store, c->nccl);
    release(c);
}

static int open_group(struct shared *shared, const struct comm_group *group, struct comm **ret_comm,
                      struct error *err);

static int split(struct comm *head, int color, struct comm **ret_comm, struct error *err)
{
    struct comm_nccl *c = nccl_of(head);
    const struct comm_nccl_options *o = &c->shared->options;
    struct comm_group part;
    if (comm_group_split(&c->group, o->store, c->splits++, color, o->join_timeout_ms, &part, err))
        return -1;
    int result = part.size == 1 ? comm_self_open(ret_comm, err)
                                : open_group(c->shared, &part, ret_comm, err);
    comm_group_free(&part);
    return result;
}

static int open_group(struct shared *shared, const struct comm_group *group, struct comm **ret_comm,
                      struct error *err)
{
    static const struct comm_functions functions = {
        .all_gather = all_gather,
        .reduce_scatter = reduce_scatter,
        .all_reduce = all_reduce,
        .all_reduce_f64 = all_reduce_f64,
        .broadcast = broadcast,
        .barrier = barrier,
        .split = split,
        .abort = comm_nccl_abort,
        .close = comm_nccl_close,
    };
    struct comm_nccl *c = xcalloc(1, sizeof *c);
    c->head = (struct comm){.fn = &functions,
                            .rank = group->rank,
                            .size = group->size,
                            .is_concurrent = shared->options.is_concurrent};
    c->shared = shared;
    shared->references++;
    comm_group_copy(group, &c->group);
    c->marks = stream_marks_open(shared->device);
    if (connect_ranks(c, err)) {
        release(c);
        return -1;
    }
    c->watched = (struct watched){.id = c->group.id,
                                  .rank = c->group.rank,
                                  .size = c->group.size,
                                  .world_ranks = c->group.world_ranks,
                                  .check = check,
                                  .count_ended = count_ended,
                                  .ctx = c};
    if (watch_add(shared->watch, &c->watched, err)) {
        shared->api.comm_abort(c->nccl);
        release(c);
        return -1;
    }
    *ret_comm = &c->head;
    return 0;
}

static void forget_memory(void *ctx, void *block, size_t bytes)
{
    struct shared *shared = ctx;
    pthread_mutex_lock(&shared->calls);
    nccl_buffers_forget(shared->buffers, block, bytes, !watch_has_failed(shared->watch));
    pthread_mutex_unlock(&shared->calls);
}

/* What ended after a failure may have been aborted: no stream of the device is to be trusted. */
static int is_well(void *ctx, struct error *err)
{
    const struct shared *shared = ctx;
    if (watch_check(shared->watch, err))
        return -1;
    if (!atomic_load(&shared->has_refused))
        return 0;
    *err = shared->refused;
    return -1;
}

int comm_nccl_open(const struct nccl_api *api, const struct comm_nccl_options *options,
                   struct device *device, int rank, int size, struct comm **ret_comm,
                   struct error *err)
{
    assert(rank >= 0 && rank < size);
    struct shared *shared = xcalloc(1, sizeof *shared);
    struct comm_group world;
    shared->api = *api;
    shared->options = *options;
    shared->device = device;
    shared->options.watch.rank = rank;
    shared->options.watch.store = options->store;
    shared->options.watch.abort = abort_all;
    pthread_mutex_init(&shared->calls, NULL);
    if (watch_open(&shared->options.watch, &shared->watch, err)) {
        pthread_mutex_destroy(&shared->calls);
        free(shared);
        return -1;
    }
    device_guard(device, is_well, shared);
    if (options->registers) {
        shared->buffers = nccl_buffers_open(&shared->api);
        device_memory_on_release(device, forget_memory, shared);
    }
    comm_group_world("nccl", rank, size, &world);
    int result = open_group(shared, &world, ret_comm, err);
    comm_group_free(&world);
    return result;
}
