#include "agent/comm/comm_nccl_internal.h"

#include "agent/comm/nccl_bootstrap.h"
#include "base/mem.h"
#include "kernels/ops.h"

#include <assert.h>
#include <stdlib.h>

static struct comm_nccl *nccl_of(struct comm *c)
{
    return (struct comm_nccl *)c;
}

/* ---- collectives ---- */

static int type_of(enum dtype t)
{
    return t == DTYPE_F32 ? NCCL_FLOAT32 : t == DTYPE_BF16 ? NCCL_BFLOAT16 : NCCL_UINT8;
}

static int op_of(enum comm_reduce how)
{
    return how == COMM_MEAN ? NCCL_AVG : NCCL_SUM;
}

/* Adds what a ring algorithm sends in `steps` parts of `total` bytes. NCCL may choose another one
 * and does not report it. */
static void count_sent(struct comm_nccl *c, int64_t total, int steps)
{
    c->head.stats.bytes_sent += total / c->head.size * steps;
}

static void all_gather(struct comm *head, struct stream *s, enum dtype t, void *recv,
                       const void *send, int64_t count)
{
    struct comm_nccl *c = nccl_of(head);
    int64_t bytes = count * (int64_t)dtype_bytes(t), whole = bytes * head->size;
    int result = NCCL_SUCCESS;
    head->stats.calls[COMM_ALL_GATHER]++;
    count_sent(c, whole, head->size - 1);
    if (comm_nccl_begin_registered(c, s, "all_gather", recv, whole, send, bytes, &result))
        result = c->shared->api.all_gather(send, recv, (size_t)count, type_of(t), c->nccl,
                                           stream_native(s));
    comm_nccl_end(c, s, "all_gather", result);
}

static void reduce_scatter(struct comm *head, struct stream *s, enum dtype t, void *recv,
                           void *send, int64_t count, enum comm_reduce how)
{
    struct comm_nccl *c = nccl_of(head);
    int64_t bytes = count * (int64_t)dtype_bytes(t), whole = bytes * head->size;
    int result = NCCL_SUCCESS;
    assert(t != DTYPE_E4M3);
    /* NCCL's symmetric kernels have sums alone. */
    bool is_divided = how == COMM_MEAN && comm_nccl_in_window(c, send, whole) &&
                      comm_nccl_in_window(c, recv, bytes);
    int op = op_of(is_divided ? COMM_SUM : how);
    head->stats.calls[COMM_REDUCE_SCATTER]++;
    count_sent(c, whole, head->size - 1);
    if (comm_nccl_begin_registered(c, s, "reduce_scatter", send, whole, recv, bytes, &result))
        result = c->shared->api.reduce_scatter(send, recv, (size_t)count, type_of(t), op, c->nccl,
                                               stream_native(s));
    comm_nccl_end(c, s, "reduce_scatter", result);
    if (is_divided)
        device_ops(stream_device(s))->scale(s, t, recv, 1.0F / (float)head->size, count);
}

static void reduce(struct comm_nccl *c, struct stream *s, const char *name, int type,
                   int64_t element_bytes, void *data, int64_t count, enum comm_reduce how)
{
    int result = NCCL_SUCCESS;
    if (comm_nccl_begin(c, s, name, count * element_bytes, count * element_bytes))
        result = c->shared->api.all_reduce(data, data, (size_t)count, type, op_of(how), c->nccl,
                                           stream_native(s));
    comm_nccl_end(c, s, name, result);
}

static void all_reduce(struct comm *head, struct stream *s, enum dtype t, void *data, int64_t count,
                       enum comm_reduce how)
{
    int64_t element_bytes = (int64_t)dtype_bytes(t);
    assert(t != DTYPE_E4M3);
    head->stats.calls[COMM_ALL_REDUCE]++;
    count_sent(nccl_of(head), count * element_bytes, 2 * (head->size - 1));
    reduce(nccl_of(head), s, "all_reduce", type_of(t), element_bytes, data, count, how);
}

static void all_reduce_f64(struct comm *head, struct stream *s, double *data, int64_t count)
{
    head->stats.calls[COMM_ALL_REDUCE]++;
    count_sent(nccl_of(head), count * head->size * (int64_t)sizeof *data, head->size - 1);
    reduce(nccl_of(head), s, "all_reduce_f64", NCCL_FLOAT64, sizeof *data, data, count, COMM_SUM);
}

static void broadcast(struct comm *head, struct stream *s, void *data, int64_t bytes, int root)
{
    assert(root >= 0 && root < head->size);
    struct comm_nccl *c = nccl_of(head);
    int result = NCCL_SUCCESS;
    head->stats.calls[COMM_BROADCAST]++;
    /* In a ring the rank before the root has nobody left to pass the data on to. */
    if ((head->rank + 1) % head->size != root)
        head->stats.bytes_sent += bytes;
    if (comm_nccl_begin(c, s, "broadcast", bytes, bytes))
        result = c->shared->api.broadcast(data, data, (size_t)bytes, NCCL_UINT8, root, c->nccl,
                                          stream_native(s));
    comm_nccl_end(c, s, "broadcast", result);
}

static bool is_taken(int result)
{
    return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS;
}

/* Every rank sends to every one and receives from every one, itself included: NCCL has no call for
 * it, a group of calls is one collective (user guide, "Point-to-point communication"). */
static int exchange(struct comm_nccl *c, struct stream *s, enum dtype t, char *recv,
                    const char *send, int64_t count, int64_t stride, const int *places)
{
    const struct nccl_api *api = &c->shared->api;
    if (count == 0) /* NCCL would send empty messages */
        return NCCL_SUCCESS;
    size_t bytes = (size_t)count * dtype_bytes(t), step = (size_t)stride * dtype_bytes(t);
    int result = api->group_start();
    if (result != NCCL_SUCCESS)
        return result;
    for (int r = 0; r < c->head.size && is_taken(result); r++) {
        size_t place = (size_t)(places ? places[r] : r);
        result =
            api->send(send + place * step, (size_t)count, type_of(t), r, c->nccl, stream_native(s));
        if (is_taken(result))
            result = api->recv(recv + (size_t)r * bytes, (size_t)count, type_of(t), r, c->nccl,
                               stream_native(s));
    }
    int ended = api->group_end(); /* also after a refused call: the group must not stay open */
    return is_taken(result) ? ended : result;
}

static void all_to_all(struct comm *head, struct stream *s, enum dtype t, void *recv,
                       const void *send, int64_t count, int64_t stride, const int *places)
{
    struct comm_nccl *c = nccl_of(head);
    int64_t element = (int64_t)dtype_bytes(t), whole = count * head->size * element;
    int64_t read = ((head->size - 1) * stride + count) * element;
    int result = NCCL_SUCCESS;
    head->stats.calls[COMM_ALL_TO_ALL]++;
    count_sent(c, whole, head->size - 1);
    if (comm_nccl_begin_registered(c, s, "all_to_all", recv, whole, send, read, &result))
        result = exchange(c, s, t, recv, send, count, stride, places);
    comm_nccl_end(c, s, "all_to_all", result);
}

static void barrier(struct comm *head, struct stream *s)
{
    struct comm_nccl *c = nccl_of(head);
    /* NCCL has no barrier: a sum ends when all ranks have come to it. */
    reduce(c, s, "barrier", NCCL_FLOAT32, sizeof(float), c->token, 1, COMM_SUM);
}

static void comm_nccl_abort(struct comm *head, const char *reason)
{
    struct error err;
    error_set(&err, ERR_PEER, "%s", reason);
    watchdog_fail(nccl_of(head)->shared->watchdog, &err);
}

/* ---- opening, splitting, closing ---- */

static int connect_ranks(struct comm_nccl *c, struct error *err)
{
    const struct nccl_bootstrap_options options = {
        .api = &c->shared->api,
        .store = c->shared->options.store,
        .group = c->group.id,
        .rank = c->group.rank,
        .size = c->group.size,
        .timeout_ms = c->shared->options.join_timeout_ms,
    };
    return device_alloc(c->shared->device, MEMORY_INPUT, sizeof(float), "barrier", &c->token, err)
               ? -1
               : nccl_bootstrap(&options, &c->nccl, err);
}

static void free_shared(struct comm_nccl_shared *shared)
{
    pthread_mutex_destroy(&shared->refusal);
    pthread_mutex_destroy(&shared->calls);
    free(shared);
}

static void release(struct comm_nccl *c)
{
    stream_marks_close(c->marks);
    device_free(c->shared->device, c->token);
    if (--c->shared->references == 0) {
        if (c->shared->buffers)
            device_memory_on_release(c->shared->device, NULL, NULL);
        device_set_health_check(c->shared->device, NULL, NULL);
        nccl_buffers_close(c->shared->buffers);
        watchdog_close(c->shared->watchdog);
        free_shared(c->shared);
    }
    comm_group_free(&c->group);
    free(c);
}

static void comm_nccl_close(struct comm *head)
{
    struct comm_nccl *c = nccl_of(head);
    bool was_aborted = watchdog_remove(c->shared->watchdog, &c->watched);
    nccl_buffers_deregister_all(c->shared->buffers, c->nccl, !was_aborted);
    /* ncclCommAbort() has freed it: it must not be destroyed again. */
    if (!was_aborted) {
        comm_nccl_deregister_windows(c);
        nccl_destroy(&c->shared->api, c->shared->options.store, c->nccl);
    }
    comm_nccl_free_windows(c);
    release(c);
}

static int open_group(struct comm_nccl_shared *shared, const struct comm_group *group,
                      struct comm **ret_comm, struct error *err);

static int split(struct comm *head, int color, struct comm **ret_comm, struct error *err)
{
    struct comm_nccl *c = nccl_of(head);
    const struct comm_nccl_options *o = &c->shared->options;
    struct comm_group subgroup;
    if (comm_group_split(&c->group, o->store, c->splits++, color, o->join_timeout_ms, &subgroup,
                         err))
        return -1;
    int result = subgroup.size == 1 ? comm_self_open(ret_comm, err)
                                    : open_group(c->shared, &subgroup, ret_comm, err);
    comm_group_free(&subgroup);
    return result;
}

static int open_group(struct comm_nccl_shared *shared, const struct comm_group *group,
                      struct comm **ret_comm, struct error *err)
{
    static const struct comm_functions functions = {
        .all_gather = all_gather,
        .reduce_scatter = reduce_scatter,
        .all_reduce = all_reduce,
        .all_reduce_f64 = all_reduce_f64,
        .broadcast = broadcast,
        .all_to_all = all_to_all,
        .barrier = barrier,
        .split = split,
        .open_window = comm_nccl_open_window,
        .abort = comm_nccl_abort,
        .close = comm_nccl_close,
    };
    struct comm_nccl *c = xcalloc(1, sizeof *c);
    c->head = (struct comm){.fn = &functions,
                            .rank = group->rank,
                            .size = group->size,
                            .is_concurrent = shared->options.is_concurrent,
                            .has_windows = shared->options.has_windows};
    c->shared = shared;
    shared->references++;
    comm_group_copy(group, &c->group);
    c->marks = stream_marks_open(shared->device);
    if (connect_ranks(c, err)) {
        release(c);
        return -1;
    }
    c->watched = (struct watched_comm){.id = c->group.id,
                                       .rank = c->group.rank,
                                       .size = c->group.size,
                                       .world_ranks = c->group.world_ranks,
                                       .check = comm_nccl_check,
                                       .count_ended = comm_nccl_count_ended,
                                       .ctx = c};
    if (watchdog_add(shared->watchdog, &c->watched, err)) {
        shared->api.comm_abort(c->nccl);
        release(c);
        return -1;
    }
    *ret_comm = &c->head;
    return 0;
}

int comm_nccl_open(const struct nccl_api *api, const struct comm_nccl_options *options,
                   struct device *device, int rank, int size, struct comm **ret_comm,
                   struct error *err)
{
    assert(rank >= 0 && rank < size);
    struct comm_nccl_shared *shared = xcalloc(1, sizeof *shared);
    struct comm_group world;
    shared->api = *api;
    shared->options = *options;
    shared->device = device;
    shared->options.watchdog.rank = rank;
    shared->options.watchdog.store = options->store;
    shared->options.watchdog.abort = comm_nccl_abort_all;
    pthread_mutex_init(&shared->calls, NULL);
    pthread_mutex_init(&shared->refusal, NULL);
    if (watchdog_open(&shared->options.watchdog, &shared->watchdog, err)) {
        free_shared(shared);
        return -1;
    }
    /* NCCL reports failures on the side (ncclCommGetAsyncError): whoever syncs a stream must hear
     * of them. */
    device_set_health_check(device, comm_nccl_check_health, shared);
    if (options->registers) {
        shared->buffers = nccl_buffers_open(&shared->api);
        device_memory_on_release(device, comm_nccl_deregister, shared);
        if (api->mem_alloc)
            device_reserve_from(device, &(struct memory_lender){api->mem_alloc, api->mem_free});
    }
    comm_group_world("nccl", rank, size, &world);
    int result = open_group(shared, &world, ret_comm, err);
    comm_group_free(&world);
    return result;
}
