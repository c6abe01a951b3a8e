/* The ring algorithm of Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters
 * of workstations" (2009): an all_reduce of N bytes moves 2 (S - 1) / S N bytes per rank, whatever
 * S is.
 *
 * Theirs sends a chunk once it is whole. Here bytes are cut through: what has arrived (and been
 * added) may be sent at once, so a pass takes the time of one trip around the ring plus its bytes,
 * and small messages do not pay for S chunk latencies. How far sending may run ahead is one number:
 * bytes received plus `ready`, the bytes of the chunk that was there at the start.
 *
 * One thread sends and receives on non-blocking sockets and polls both. If it blocked in send(),
 * all ranks could block in send() at once, each with a full socket buffer that nobody reads. */
#include "agent/comm/ring.h"
#include "agent/comm/ring_add.h"
#include "agent/comm/ring_bootstrap.h"
#include "agent/comm/ring_wire.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Most bytes per system call. Small enough that a segment is still in the L2 cache when it is
 * added, and that sending and receiving alternate. */
#define SEGMENT_BYTES (128 * 1024)
/* When a neighbour's connection ends, the neighbour may only have left because another rank was
 * lost. The store's report of that rank may still be on its way: wait so long for it before naming
 * the neighbour. */
#define VERDICT_MS 2000
/* After a deadline every waiting rank writes to the store that it waits. Give the others so long to
 * do so: ranks without such a key are the missing ones. */
#define MISSING_MS 2000

struct ring {
    struct ring_options options; /* id and world_ranks are copies */
    int out, in;                 /* sockets to the next and from the previous rank; non-blocking */
    uint32_t sequence;           /* passes done */
    struct store_watcher watcher;
    pthread_mutex_t mutex; /* guards `failure` */
    pthread_cond_t failed_cond;
    struct error failure; /* the first; code ERR_NONE: none */
    atomic_bool failed;
    _Alignas(max_align_t) char segment[SEGMENT_BYTES]; /* received, not yet added */
};

/* One direction of a pass. */
struct cursor {
    size_t header; /* bytes of the header done */
    int step;
    size_t offset; /* bytes of the step's chunk done */
    size_t done;   /* bytes of all chunks done */
};

struct run {
    struct ring *ring;
    const struct ring_pass *pass;
    struct ring_header mine, theirs;
    struct cursor out, in;
    size_t ready; /* bytes that may be sent before anything has arrived: this rank's first chunk */
    size_t partial; /* bytes in ring->segment of an element whose rest has not arrived */
};

static int next_rank(const struct ring *r)
{
    return r->options.world_ranks[(r->options.rank + 1) % r->options.size];
}

static int previous_rank(const struct ring *r)
{
    return r->options.world_ranks[(r->options.rank + r->options.size - 1) % r->options.size];
}

/* ---- failing ---- */

static void ring_fail(struct ring *r, const struct error *failure)
{
    pthread_mutex_lock(&r->mutex);
    if (r->failure.code == ERR_NONE)
        r->failure = *failure;
    atomic_store(&r->failed, true);
    pthread_cond_broadcast(&r->failed_cond);
    pthread_mutex_unlock(&r->mutex);
}

void ring_abort(struct ring *r, const char *reason)
{
    struct error failure;
    error_set(&failure, ERR_PEER, "%s", reason);
    ring_fail(r, &failure);
    shutdown(r->out, SHUT_RDWR); /* wakes the thread in poll(); close() would not */
    shutdown(r->in, SHUT_RDWR);
}

static void on_peer_lost(void *ctx, const char *reason)
{
    ring_abort(ctx, reason);
}

/* -1 and the ring's failure, if there is one within wait_ms. */
static int ring_failure(struct ring *r, int wait_ms, struct error *err)
{
    int64_t deadline_ms = clock_monotonic_ms() + wait_ms;
    pthread_mutex_lock(&r->mutex);
    while (r->failure.code == ERR_NONE && wait_ms > 0 &&
           cond_wait_until(&r->failed_cond, &r->mutex, deadline_ms))
        ;
    int result = r->failure.code == ERR_NONE ? 0 : -1;
    if (result < 0)
        *err = r->failure;
    pthread_mutex_unlock(&r->mutex);
    return result;
}

static int neighbour_gone(struct ring *r, int world_rank, int errno_value, struct error *err)
{
    if (ring_failure(r, VERDICT_MS, err) < 0)
        return -1;
    return error_set(err, ERR_PEER, "rank %d is lost (%s)", world_rank,
                     errno_value ? strerror(errno_value) : "connection closed");
}

/* Names the ranks that did not start the pass. A rank that waits in it has the same deadline and
 * writes its key; a rank that is elsewhere does not. */
static int deadline_passed(struct ring *r, struct error *err)
{
    const struct ring_options *o = &r->options;
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
    auto_str struct str missing;
    str_init(&missing, 200);
    snprintf(key, sizeof key, "%s/late/%d", o->id, o->rank);
    if (o->store->fn->set(o->store, key, "", err) < 0)
        return -1;
    int64_t until_ms = clock_monotonic_ms() + MISSING_MS;
    for (int i = 0; i < o->size; i++) {
        int64_t left_ms = until_ms - clock_monotonic_ms();
        snprintf(key, sizeof key, "%s/late/%d", o->id, i);
        if (o->store->fn->get(o->store, key, left_ms > 0 ? (int)left_ms : 0, value, err) == 0)
            continue;
        if (err->code != ERR_TIMEOUT)
            return -1;
        str_printf(&missing, "%s%d", missing.length ? ", " : "", o->world_ranks[i]);
    }
    if (missing.length)
        return error_set(err, ERR_TIMEOUT, "did not come within %d ms: rank %s", o->timeout_ms,
                         str_text(&missing));
    return error_set(err, ERR_TIMEOUT,
                     "all ranks are here, but nothing came from rank %d for %d ms",
                     previous_rank(r), o->timeout_ms);
}

/* ---- moving bytes ---- */

/* The bytes of the step's chunk that are left, and where. `first`: the chunk of step 0. Chunk
 * bounds are total * i / chunks, so chunks differ by at most one element and none needs padding. */
static size_t chunk_left(const struct ring_pass *p, int first, const struct cursor *c,
                         char **ret_at)
{
    int64_t chunk = (first - c->step) % p->chunks;
    if (chunk < 0)
        chunk += p->chunks;
    size_t begin = (size_t)(p->total * chunk / p->chunks * p->element_bytes);
    size_t end = (size_t)(p->total * (chunk + 1) / p->chunks * p->element_bytes);
    *ret_at = (char *)p->data + (p->send ? 0 : begin) + c->offset;
    return end - begin - c->offset;
}

static size_t out_left(const struct run *run, char **ret_at)
{
    size_t left = chunk_left(run->pass, run->pass->start, &run->out, ret_at);
    if (run->pass->send)
        *ret_at = (char *)(uintptr_t)run->pass->send + run->out.offset; /* only read */
    return left;
}

static size_t in_left(const struct run *run, char **ret_at)
{
    return chunk_left(run->pass, run->pass->start - 1, &run->in, ret_at);
}

/* Moves both cursors past finished chunks. A chunk may be empty (fewer elements than ranks), so
 * this loops. */
static void settle(struct run *run)
{
    char *at;
    while (run->out.step < run->pass->out_steps && out_left(run, &at) == 0)
        run->out.step++, run->out.offset = 0;
    while (run->in.step < run->pass->in_steps && in_left(run, &at) == 0)
        run->in.step++, run->in.offset = 0;
}

static void advance(struct cursor *c, size_t bytes)
{
    c->offset += bytes;
    c->done += bytes;
}

static bool out_is_done(const struct run *run)
{
    return run->out.header == sizeof run->mine && run->out.step == run->pass->out_steps;
}

static bool in_is_done(const struct run *run)
{
    return run->in.header == sizeof run->theirs && run->in.step == run->pass->in_steps;
}

/* How many bytes may be sent now. Sending may not pass what has been received and added: allowed is
 * ready + received - sent. A rank that receives nothing (a broadcast's root) has no such limit. */
static size_t sendable(const struct run *run, char **ret_at)
{
    if (run->out.step == run->pass->out_steps)
        return 0;
    size_t bytes = out_left(run, ret_at);
    if (run->pass->in_steps > 0) {
        size_t allowed = run->ready + run->in.done - run->out.done;
        bytes = bytes < allowed ? bytes : allowed;
    }
    return bytes < SEGMENT_BYTES ? bytes : SEGMENT_BYTES;
}

/* Sends what the socket accepts. Returns the bytes, 0 if it accepts none now, or -1. MSG_MORE lets
 * the header share a TCP segment with the first data. */
static ssize_t send_some(struct run *run, struct error *err)
{
    struct ring *r = run->ring;
    char *at = NULL;
    size_t bytes = sendable(run, &at);
    bool header = run->out.header < sizeof run->mine;
    ssize_t sent;
    if (header)
        sent = send(r->out, (char *)&run->mine + run->out.header,
                    sizeof run->mine - run->out.header, MSG_NOSIGNAL | (bytes ? MSG_MORE : 0));
    else if (bytes)
        sent = send(r->out, at, bytes, MSG_NOSIGNAL);
    else
        return 0;
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (sent < 0)
        return neighbour_gone(r, next_rank(r), errno, err);
    if (header)
        run->out.header += (size_t)sent;
    else
        advance(&run->out, (size_t)sent);
    return sent;
}

/* Adds the whole elements of the segment to the chunk. TCP cuts elements anywhere: the bytes of an
 * unfinished one move to the segment's beginning. The division for a mean is part of the last
 * addition: the fp32 result is rounded to bf16 once. */
static void add_segment(struct run *run, char *at, size_t got)
{
    char *segment = run->ring->segment;
    const struct ring_pass *pass = run->pass;
    size_t element = dtype_bytes(pass->dtype), count = (run->partial + got) / element;
    bool divide = pass->mean && run->in.step == pass->reduce_steps - 1;
    ring_add(pass->dtype, at, segment, count, divide ? run->ring->options.size : 1);
    run->partial = run->partial + got - count * element;
    memmove(segment, segment + count * element, run->partial);
    advance(&run->in, count * element);
}

/* Receives what is there. Returns the bytes, 0 if there are none now, or -1. Only data that is to
 * be added goes through the segment; other data is received in place. */
static ssize_t receive_some(struct run *run, struct error *err)
{
    struct ring *r = run->ring;
    bool header = run->in.header < sizeof run->theirs;
    bool reduce = run->in.step < run->pass->reduce_steps;
    char *at = NULL;
    ssize_t got;
    if (header) {
        got = recv(r->in, (char *)&run->theirs + run->in.header,
                   sizeof run->theirs - run->in.header, 0);
    } else {
        size_t bytes = in_left(run, &at) - run->partial;
        if (bytes > SEGMENT_BYTES - run->partial)
            bytes = SEGMENT_BYTES - run->partial;
        got = recv(r->in, reduce ? r->segment + run->partial : at, bytes, 0);
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return neighbour_gone(r, previous_rank(r), got < 0 ? errno : 0, err);
    if (header) {
        run->in.header += (size_t)got;
        if (run->in.header == sizeof run->theirs &&
            ring_header_check(&run->theirs, &run->mine, previous_rank(r), err) < 0)
            return -1;
    } else if (reduce) {
        add_segment(run, at, (size_t)got);
    } else {
        advance(&run->in, (size_t)got);
    }
    return got;
}

static int wait_for_sockets(struct run *run, struct error *err)
{
    struct ring *r = run->ring;
    char *at;
    bool want_out = run->out.header < sizeof run->mine || sendable(run, &at) > 0;
    struct pollfd fds[2] = {{.fd = want_out ? r->out : -1, .events = POLLOUT},
                            {.fd = in_is_done(run) ? -1 : r->in, .events = POLLIN}};
    int n = poll(fds, 2, r->options.timeout_ms);
    if (n < 0 && errno != EINTR)
        return error_errno(err, errno, "poll");
    return n == 0 ? deadline_passed(r, err) : 0;
}

static int run_pass(struct run *run, struct error *err)
{
    if (ring_failure(run->ring, 0, err) < 0)
        return -1;
    settle(run);
    while (!out_is_done(run) || !in_is_done(run)) {
        ssize_t sent = out_is_done(run) ? 0 : send_some(run, err);
        if (sent < 0)
            return -1;
        ssize_t got = in_is_done(run) ? 0 : receive_some(run, err);
        if (got < 0)
            return -1;
        settle(run);
        if (sent == 0 && got == 0 && wait_for_sockets(run, err) < 0)
            return -1;
        if (atomic_load(&run->ring->failed))
            return ring_failure(run->ring, 0, err);
    }
    return 0;
}

int ring_run(struct ring *r, const struct ring_pass *pass, struct error *err)
{
    assert(pass->chunks > 0 &&
           (pass->reduce_steps == 0 || pass->element_bytes == (int)dtype_bytes(pass->dtype)));
    struct run run = {
        .ring = r,
        .pass = pass,
        .mine = ring_header_of(r->sequence, pass->name, pass->total * pass->element_bytes)};
    char *at;
    if (pass->chunks > 1)
        run.ready = out_left(&run, &at);
    if (run_pass(&run, err) < 0) {
        ring_fail(r, err);
        return error_wrap(err, "%s %u", pass->name, r->sequence);
    }
    r->sequence++;
    return 0;
}

/* ---- opening and closing ---- */

int ring_open(const struct ring_options *options, struct ring **ret_ring, struct error *err)
{
    assert(options->size >= 2 && options->rank >= 0 && options->rank < options->size);
    int out, in;
    if (ring_bootstrap(options, &out, &in, err) < 0)
        return -1;
    struct ring *r = xcalloc(1, sizeof *r);
    r->options = *options;
    r->options.id = xstrdup(options->id);
    int *world_ranks = xcalloc((size_t)options->size, sizeof *world_ranks);
    memcpy(world_ranks, options->world_ranks, (size_t)options->size * sizeof *world_ranks);
    r->options.world_ranks = world_ranks;
    r->out = out;
    r->in = in;
    pthread_mutex_init(&r->mutex, NULL);
    cond_init(&r->failed_cond);
    r->watcher = (struct store_watcher){.on_peer_lost = on_peer_lost, .ctx = r};
    store_watch(options->store, &r->watcher);
    *ret_ring = r;
    return 0;
}

void ring_close(struct ring *r)
{
    if (!r)
        return;
    store_unwatch(r->options.store, &r->watcher);
    close(r->out);
    close(r->in);
    pthread_cond_destroy(&r->failed_cond);
    pthread_mutex_destroy(&r->mutex);
    free((char *)r->options.id);
    free((int *)r->options.world_ranks);
    free(r);
}
