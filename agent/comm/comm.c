#include "agent/comm/comm.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The communicator of one rank: what other communicators send, this one copies on the stream, so it
 * serves any device. */
struct comm_self {
    struct comm head;
    pthread_mutex_t mutex; /* guards reason */
    char reason[256];      /* why it was aborted; empty: it was not */
};

const char *comm_collective_name(enum comm_collective collective)
{
    static const char *const names[COMM_COLLECTIVE_KINDS] = {
#define COLLECTIVE_NAME(kind, name) [COMM_##kind] = #name,
        COMM_COLLECTIVES(COLLECTIVE_NAME)
#undef COLLECTIVE_NAME
    };
    return names[collective];
}

void comm_stats_add(struct comm_stats *stats, const struct comm_stats *more)
{
    for (int i = 0; i < COMM_COLLECTIVE_KINDS; i++)
        stats->calls[i] += more->calls[i];
    stats->bytes_sent += more->bytes_sent;
}

void comm_close(struct comm *c)
{
    if (c)
        c->fn->close(c);
}

int comm_open_window(struct comm *c, struct stream *s, size_t bytes, struct comm_window *ret_window,
                     struct error *err)
{
    *ret_window = (struct comm_window){0};
    return c->has_windows ? c->fn->open_window(c, s, bytes, ret_window, err) : 0;
}

void comm_range_begin(struct comm *c, struct stream *s, const char *op, int64_t bytes)
{
    stream_range_begin(s, &(struct stream_range){
                              .what = op, .number = ++c->ranges, .bytes = bytes, .ranks = c->size});
}

static int fail_if_aborted(void *args, struct error *err)
{
    struct comm_self *c = *(struct comm_self **)args;
    pthread_mutex_lock(&c->mutex);
    int result = c->reason[0] ? error_set(err, ERR_PEER, "%s", c->reason) : 0;
    pthread_mutex_unlock(&c->mutex);
    return result;
}

static void copy(struct comm *c, struct stream *s, void *dst, const void *src, size_t bytes)
{
    /* Asked when the stream comes there, not now: an abort must stop what is queued already. */
    stream_call(s, fail_if_aborted, &c, sizeof c);
    if (dst != src && bytes > 0)
        stream_copy(s, dst, src, bytes);
}

static void self_all_gather(struct comm *c, struct stream *s, enum dtype t, void *recv,
                            const void *send, int64_t count)
{
    c->stats.calls[COMM_ALL_GATHER]++;
    copy(c, s, recv, send, (size_t)count * dtype_bytes(t));
}

static void self_reduce_scatter(struct comm *c, struct stream *s, enum dtype t, void *recv,
                                void *send, int64_t count, enum comm_reduce how)
{
    (void)how;
    c->stats.calls[COMM_REDUCE_SCATTER]++;
    copy(c, s, recv, send, (size_t)count * dtype_bytes(t));
}

static void self_all_reduce(struct comm *c, struct stream *s, enum dtype t, void *data,
                            int64_t count, enum comm_reduce how)
{
    (void)how;
    c->stats.calls[COMM_ALL_REDUCE]++;
    copy(c, s, data, data, (size_t)count * dtype_bytes(t));
}

static void self_all_reduce_f64(struct comm *c, struct stream *s, double *data, int64_t count)
{
    c->stats.calls[COMM_ALL_REDUCE]++;
    copy(c, s, data, data, (size_t)count * sizeof(double));
}

static void self_broadcast(struct comm *c, struct stream *s, void *data, int64_t bytes, int root)
{
    (void)root;
    assert(root == 0);
    c->stats.calls[COMM_BROADCAST]++;
    copy(c, s, data, data, (size_t)bytes);
}

static void self_all_to_all(struct comm *c, struct stream *s, enum dtype t, void *recv,
                            const void *send, int64_t count, int64_t stride, const int *places)
{
    (void)stride, (void)places;
    c->stats.calls[COMM_ALL_TO_ALL]++;
    copy(c, s, recv, send, (size_t)count * dtype_bytes(t));
}

static void self_barrier(struct comm *c, struct stream *s)
{
    copy(c, s, NULL, NULL, 0);
}

static int self_split(struct comm *c, int color, struct comm **ret_comm, struct error *err)
{
    (void)c, (void)color;
    return comm_self_open(ret_comm, err);
}

static void self_abort(struct comm *head, const char *reason)
{
    struct comm_self *c = (struct comm_self *)head;
    pthread_mutex_lock(&c->mutex);
    snprintf(c->reason, sizeof c->reason, "%s", reason);
    pthread_mutex_unlock(&c->mutex);
}

static void self_close(struct comm *head)
{
    struct comm_self *c = (struct comm_self *)head;
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

static const struct comm_functions self_functions = {
    .all_gather = self_all_gather,
    .reduce_scatter = self_reduce_scatter,
    .all_reduce = self_all_reduce,
    .all_reduce_f64 = self_all_reduce_f64,
    .broadcast = self_broadcast,
    .all_to_all = self_all_to_all,
    .barrier = self_barrier,
    .split = self_split,
    .abort = self_abort,
    .close = self_close,
};

int comm_self_open(struct comm **ret_comm, struct error *err)
{
    (void)err;
    struct comm_self *c = xcalloc(1, sizeof *c);
    c->head = (struct comm){.fn = &self_functions, .rank = 0, .size = 1};
    pthread_mutex_init(&c->mutex, NULL);
    *ret_comm = &c->head;
    return 0;
}
