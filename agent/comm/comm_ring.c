#include "agent/comm/comm_ring.h"

#include "agent/comm/comm_split.h"
#include "agent/comm/ring.h"
#include "agent/comm/ring_pairs.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOUBLES_MAX 64 /* of all_reduce_f64 */

struct comm_ring {
    struct comm head;
    struct ring *ring;
    struct ring_pairs *pairs; /* for all_to_all */
    struct store *store;
    struct comm_ring_options options;
    struct comm_group group;
    int splits;      /* so far */
    double *doubles; /* [size * DOUBLES_MAX]: every rank's numbers side by side */
};

/* The arguments of a collective, queued on a stream. */
struct call {
    struct comm_ring *c;
    const char *op, *unit; /* unit NULL: none */
    int (*run)(const struct call *call, struct error *err);
    void *recv;
    const void *send; /* or NULL */
    int64_t count;
    int64_t stride; /* of all_to_all, as: */
    const int *places;
    enum dtype dtype;
    int root;
    bool mean;
};

static int run_call(void *args, struct error *err)
{
    const struct call *call = args;
    struct collective_progress *progress = call->c->options.progress;
    collective_progress_enter(progress, call->op, call->unit);
    int result = call->run(call, err);
    collective_progress_end(progress, 1);
    return result;
}

/* bytes: of the whole tensor. */
static void queue(struct stream *s, const char *op, int64_t bytes, const struct call *call)
{
    struct call named = *call;
    named.op = op;
    named.unit = call->c->head.unit;
    comm_range_begin(&call->c->head, s, op, bytes);
    stream_call(s, run_call, &named, sizeof named);
    stream_range_end(s);
}

static struct comm_ring *ring_of(struct comm *c)
{
    return (struct comm_ring *)c;
}

/* Adds what this rank sends in a pass of `steps` chunks of a buffer of `total` bytes. */
static void count_sent(struct comm_ring *c, int64_t total, int steps)
{
    c->head.stats.bytes_sent += total / c->head.size * steps;
}

/* ---- all_gather: rank r's chunk r travels around the ring ---- */

static int gather(const struct comm_ring *c, const char *name, void *data, int64_t total,
                  int element_bytes, struct error *err)
{
    int size = c->head.size;
    struct ring_pass pass = {.name = name,
                             .data = data,
                             .total = total,
                             .element_bytes = element_bytes,
                             .chunks = size,
                             .start = c->head.rank,
                             .out_steps = size - 1,
                             .in_steps = size - 1};
    return ring_run(c->ring, &pass, err);
}

static int run_all_gather(const struct call *call, struct error *err)
{
    const struct comm_ring *c = call->c;
    size_t bytes = (size_t)call->count * dtype_bytes(call->dtype);
    char *mine = (char *)call->recv + (size_t)c->head.rank * bytes;
    if (mine != call->send)
        memcpy(mine, call->send, bytes);
    return gather(c, "all_gather", call->recv, call->count * c->head.size,
                  (int)dtype_bytes(call->dtype), err);
}

static void all_gather(struct comm *head, struct stream *s, enum dtype t, void *recv,
                       const void *send, int64_t count)
{
    struct comm_ring *c = ring_of(head);
    int64_t bytes = count * head->size * (int64_t)dtype_bytes(t);
    head->stats.calls[COMM_ALL_GATHER]++;
    count_sent(c, bytes, head->size - 1);
    queue(
        s, "all_gather", bytes,
        &(struct call){
            .c = c, .run = run_all_gather, .recv = recv, .send = send, .count = count, .dtype = t});
}

/* ---- reduce_scatter: partial sums travel; rank r is the last to add to chunk r ---- */

/* A reduce_scatter, then gather_steps of an all_gather in the same pass. Rank r begins with chunk r
 * - 1 and adds to chunk r last, so chunk r is summed in the order r + 1, r + 2, ..., r: the same in
 * every run. */
static int reduce(const struct call *call, const char *name, void *data, int64_t total,
                  int gather_steps, struct error *err)
{
    int size = call->c->head.size;
    struct ring_pass pass = {.name = name,
                             .data = data,
                             .total = total,
                             .element_bytes = (int)dtype_bytes(call->dtype),
                             .dtype = call->dtype,
                             .chunks = size,
                             .start = call->c->head.rank - 1,
                             .out_steps = size - 1 + gather_steps,
                             .in_steps = size - 1 + gather_steps,
                             .reduce_steps = size - 1,
                             .mean = call->mean};
    return ring_run(call->c->ring, &pass, err);
}

static int run_reduce_scatter(const struct call *call, struct error *err)
{
    const struct comm_ring *c = call->c;
    size_t bytes = (size_t)call->count * dtype_bytes(call->dtype);
    char *data = (char *)call->send, *mine = data + (size_t)c->head.rank * bytes;
    if (reduce(call, "reduce_scatter", data, call->count * c->head.size, 0, err) < 0)
        return -1;
    if (call->recv != mine)
        memcpy(call->recv, mine, bytes);
    return 0;
}

static void reduce_scatter(struct comm *head, struct stream *s, enum dtype t, void *recv,
                           void *send, int64_t count, enum comm_reduce how)
{
    struct comm_ring *c = ring_of(head);
    int64_t bytes = count * head->size * (int64_t)dtype_bytes(t);
    head->stats.calls[COMM_REDUCE_SCATTER]++;
    count_sent(c, bytes, head->size - 1);
    queue(s, "reduce_scatter", bytes,
          &(struct call){.c = c,
                         .run = run_reduce_scatter,
                         .recv = recv,
                         .send = send,
                         .count = count,
                         .dtype = t,
                         .mean = how == COMM_MEAN});
}

static int run_all_reduce(const struct call *call, struct error *err)
{
    return reduce(call, "all_reduce", call->recv, call->count, call->c->head.size - 1, err);
}

static void all_reduce(struct comm *head, struct stream *s, enum dtype t, void *data, int64_t count,
                       enum comm_reduce how)
{
    struct comm_ring *c = ring_of(head);
    int64_t bytes = count * (int64_t)dtype_bytes(t);
    head->stats.calls[COMM_ALL_REDUCE]++;
    count_sent(c, bytes, 2 * (head->size - 1));
    queue(s, "all_reduce", bytes,
          &(struct call){.c = c,
                         .run = run_all_reduce,
                         .recv = data,
                         .count = count,
                         .dtype = t,
                         .mean = how == COMM_MEAN});
}

/* ---- a few doubles: an all_gather, then each rank adds in rank order, so all have the same bits
 * ---- */

static int run_all_reduce_f64(const struct call *call, struct error *err)
{
    const struct comm_ring *c = call->c;
    size_t bytes = (size_t)call->count * sizeof(double);
    double *data = call->recv, *all = c->doubles;
    memcpy(all + c->head.rank * call->count, data, bytes);
    if (gather(c, "all_reduce_f64", all, call->count * c->head.size, sizeof(double), err) < 0)
        return -1;
    memset(data, 0, bytes);
    for (int r = 0; r < c->head.size; r++)
        for (int64_t i = 0; i < call->count; i++)
            data[i] += all[r * call->count + i];
    return 0;
}

static void all_reduce_f64(struct comm *head, struct stream *s, double *data, int64_t count)
{
    assert(count <= DOUBLES_MAX);
    struct comm_ring *c = ring_of(head);
    head->stats.calls[COMM_ALL_REDUCE]++;
    count_sent(c, count * head->size * (int64_t)sizeof(double), head->size - 1);
    queue(s, "all_reduce_f64", count * (int64_t)sizeof(double),
          &(struct call){.c = c, .run = run_all_reduce_f64, .recv = data, .count = count});
}

/* ---- all_to_all: each pair of ranks has a connection of its own ---- */

static int run_all_to_all(const struct call *call, struct error *err)
{
    int64_t element = (int64_t)dtype_bytes(call->dtype);
    return ring_pairs_exchange(call->c->pairs, call->recv, call->send, call->count * element,
                               call->stride * element, call->places, err);
}

static void all_to_all(struct comm *head, struct stream *s, enum dtype t, void *recv,
                       const void *send, int64_t count, int64_t stride, const int *places)
{
    struct comm_ring *c = ring_of(head);
    int64_t bytes = count * head->size * (int64_t)dtype_bytes(t);
    head->stats.calls[COMM_ALL_TO_ALL]++;
    count_sent(c, bytes, head->size - 1);
    queue(s, "all_to_all", bytes,
          &(struct call){.c = c,
                         .run = run_all_to_all,
                         .recv = recv,
                         .send = send,
                         .count = count,
                         .stride = stride,
                         .places = places,
                         .dtype = t});
}

/* ---- broadcast and barrier ---- */

static int run_broadcast(const struct call *call, struct error *err)
{
    int size = call->c->head.size, rank = call->c->head.rank;
    struct ring_pass pass = {.name = "broadcast",
                             .data = call->recv,
                             .total = call->count,
                             .element_bytes = 1,
                             .chunks = 1,
                             .out_steps = (rank + 1) % size != call->root,
                             .in_steps = rank != call->root};
    return ring_run(call->c->ring, &pass, err);
}

static void broadcast(struct comm *head, struct stream *s, void *data, int64_t bytes, int root)
{
    assert(root >= 0 && root < head->size);
    struct comm_ring *c = ring_of(head);
    head->stats.calls[COMM_BROADCAST]++;
    if ((head->rank + 1) % head->size != root)
        head->stats.bytes_sent += bytes;
    queue(s, "broadcast", bytes,
          &(struct call){.c = c, .run = run_broadcast, .recv = data, .count = bytes, .root = root});
}

/* An all_gather of one byte: a rank that has received all of them knows that all
 * ranks have come. */
static int run_barrier(const struct call *call, struct error *err)
{
    return gather(call->c, "barrier", call->c->doubles, call->c->head.size, 1, err);
}

static void barrier(struct comm *head, struct stream *s)
{
    queue(s, "barrier", head->size, &(struct call){.c = ring_of(head), .run = run_barrier});
}

/* ---- opening, splitting, closing ---- */

static int open_group(struct store *store, const struct comm_group *group,
                      const struct comm_ring_options *options, struct comm **ret_comm,
                      struct error *err);

static int split(struct comm *head, int color, struct comm **ret_comm, struct error *err)
{
    struct comm_ring *c = ring_of(head);
    struct comm_group subgroup;
    if (comm_group_split(&c->group, c->store, c->splits++, color, c->options.join_timeout_ms,
                         &subgroup, err))
        return -1;
    int result = open_group(c->store, &subgroup, &c->options, ret_comm, err);
    comm_group_free(&subgroup);
    return result;
}

static void comm_ring_abort(struct comm *c, const char *reason)
{
    ring_abort(ring_of(c)->ring, reason);
    ring_pairs_abort(ring_of(c)->pairs, reason);
}

static void comm_ring_close(struct comm *head)
{
    struct comm_ring *c = ring_of(head);
    ring_pairs_close(c->pairs);
    ring_close(c->ring);
    comm_group_free(&c->group);
    free(c->doubles);
    free(c);
}

static const struct comm_functions functions = {
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .all_reduce = all_reduce,
    .all_reduce_f64 = all_reduce_f64,
    .broadcast = broadcast,
    .all_to_all = all_to_all,
    .barrier = barrier,
    .split = split,
    .abort = comm_ring_abort,
    .close = comm_ring_close,
};

static int open_group(struct store *store, const struct comm_group *group,
                      const struct comm_ring_options *options, struct comm **ret_comm,
                      struct error *err)
{
    size_t size = (size_t)group->size;
    if (size == 1)
        return comm_self_open(ret_comm, err);
    struct ring_options ring_options = {.store = store,
                                        .id = group->id,
                                        .rank = group->rank,
                                        .size = group->size,
                                        .world_ranks = group->world_ranks,
                                        .join_timeout_ms = options->join_timeout_ms,
                                        .timeout_ms = options->timeout_ms};
    memcpy(ring_options.interface, options->interface, sizeof ring_options.interface);
    struct ring *ring;
    if (ring_open(&ring_options, &ring, err) < 0)
        return error_wrap(err, "connect the ranks");
    struct comm_ring *c = xcalloc(1, sizeof *c);
    c->head = (struct comm){.fn = &functions, .rank = group->rank, .size = group->size};
    c->ring = ring;
    c->store = store;
    c->options = *options;
    comm_group_copy(group, &c->group);
    ring_options.id = c->group.id;
    ring_options.world_ranks = c->group.world_ranks;
    c->pairs = ring_pairs_open(&ring_options);
    c->doubles = xcalloc(size * DOUBLES_MAX, sizeof *c->doubles);
    *ret_comm = &c->head;
    return 0;
}

int comm_ring_open(struct store *store, int rank, int size, const struct comm_ring_options *options,
                   struct comm **ret_comm, struct error *err)
{
    assert(rank >= 0 && rank < size && size <= COMM_RING_SIZE_MAX);
    struct comm_group world;
    comm_group_world("world", rank, size, &world);
    int result = open_group(store, &world, options, ret_comm, err);
    comm_group_free(&world);
    return result;
}
