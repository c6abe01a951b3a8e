/* The data goes through two page-locked buffers in steps. For step k, buffer k % 2 is filled from
 * the device, moved by the host communicator, and emptied to the device:
 *
 *   copies:  fill 0 | fill 1 | empty 0 | fill 2 | empty 1 | fill 3 | ...
 *   caller:         | move 0           | move 1           | move 2 | ...
 *
 * Fills and empties run on a stream of the communicator's own, so fill k + 1 overlaps move k. The
 * events `filled` and `moved` order the two streams. Nothing else is needed: fill k + 2 comes after
 * empty k in the copy stream, so a buffer is never overwritten while it is in use. Every rank cuts
 * the data into the same steps, as these depend on sizes only. */
#include "agent/comm/comm_stage.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

enum { BUFFERS = 2, ALIGN = 16 /* elements, so that parts of a buffer are aligned */ };

struct comm_stage {
    struct comm head;
    struct comm *host;
    bool owns_host;
    struct device *device;
    size_t buffer_bytes;
    struct stream *copies;
    struct event *order_event; /* of order(): recorded and waited for at once */
    struct event *filled[BUFFERS], *moved[BUFFERS];
    void *buffers[BUFFERS]; /* page-locked */
};

/* A collective. Each rank's part of the data is a row of `length` elements. A step handles the
 * elements [from, from + count) of every row, which lie side by side in the buffer. */
struct job {
    struct comm_stage *c;
    struct stream *s;
    enum dtype dtype;
    size_t element;
    int rows; /* in a buffer */
    int64_t length;
    char *send, *recv; /* on the device */
    int64_t total;     /* of all_reduce: elements of all rows, the last of which are shorter */
    int root;
    int64_t stride; /* of all_to_all, as: */
    const int *places;
    enum comm_reduce how;
    void (*fill)(const struct job *j, char *buffer, int64_t from, int64_t count);
    void (*move)(const struct job *j, void *buffer, int64_t count);
    void (*empty)(const struct job *j, const char *buffer, int64_t from, int64_t count);
};

static struct comm_stage *stage_of(struct comm *c)
{
    return (struct comm_stage *)c;
}

static void copy(const struct job *j, void *dst, const void *src, int64_t count)
{
    if (count > 0)
        stream_copy(j->c->copies, dst, src, (size_t)count * j->element);
}

static void order(struct comm_stage *c, struct stream *later, struct stream *earlier)
{
    event_record(c->order_event, earlier);
    stream_wait(later, c->order_event);
}

static void fill(const struct job *j, int64_t step, int64_t most)
{
    int64_t from = step * most, left = j->length - from;
    int b = (int)(step % BUFFERS);
    j->fill(j, j->c->buffers[b], from, left < most ? left : most);
    event_record(j->c->filled[b], j->c->copies);
}

static void run(const struct job *j)
{
    struct comm_stage *c = j->c;
    int64_t sent = c->host->stats.bytes_sent;
    c->host->unit = c->head.unit;
    int64_t most = (int64_t)(c->buffer_bytes / j->element) / j->rows / ALIGN * ALIGN;
    int64_t steps = (j->length + most - 1) / most;
    order(c, c->copies, j->s);
    if (steps > 0)
        fill(j, 0, most);
    for (int64_t i = 0; i < steps; i++) {
        int64_t from = i * most, count = j->length - from < most ? j->length - from : most;
        int b = (int)(i % BUFFERS);
        if (i + 1 < steps)
            fill(j, i + 1, most);
        stream_wait(j->s, c->filled[b]);
        j->move(j, c->buffers[b], count);
        event_record(c->moved[b], j->s);
        stream_wait(c->copies, c->moved[b]);
        j->empty(j, c->buffers[b], from, count);
    }
    order(c, j->s, c->copies);
    c->head.stats.bytes_sent += c->host->stats.bytes_sent - sent;
}

static struct job job_of(struct comm *head, struct stream *s, enum dtype t)
{
    return (struct job){
        .c = stage_of(head), .s = s, .dtype = t, .element = dtype_bytes(t), .rows = head->size};
}

/* ---- all_gather ---- */

static void gather_fill(const struct job *j, char *buffer, int64_t from, int64_t count)
{
    copy(j, buffer + (size_t)(j->c->head.rank * count) * j->element,
         j->send + (size_t)from * j->element, count);
}

static void gather_move(const struct job *j, void *buffer, int64_t count)
{
    char *mine = (char *)buffer + (size_t)(j->c->head.rank * count) * j->element;
    j->c->host->fn->all_gather(j->c->host, j->s, j->dtype, buffer, mine, count);
}

static void gather_empty(const struct job *j, const char *buffer, int64_t from, int64_t count)
{
    for (int r = 0; r < j->rows; r++) {
        char *to = j->recv + (size_t)(r * j->length + from) * j->element;
        if (to != j->send + (size_t)from * j->element)
            copy(j, to, buffer + (size_t)(r * count) * j->element, count);
    }
}

static void all_gather(struct comm *head, struct stream *s, enum dtype t, void *recv,
                       const void *send, int64_t count)
{
    struct job j = job_of(head, s, t);
    j.length = count;
    j.recv = recv;
    j.send = (char *)(uintptr_t)send; /* only read */
    j.fill = gather_fill, j.move = gather_move, j.empty = gather_empty;
    head->stats.calls[COMM_ALL_GATHER]++;
    run(&j);
}

/* ---- reduce_scatter ---- */

static void scatter_fill(const struct job *j, char *buffer, int64_t from, int64_t count)
{
    for (int r = 0; r < j->rows; r++)
        copy(j, buffer + (size_t)(r * count) * j->element,
             j->send + (size_t)(r * j->length + from) * j->element, count);
}

static void scatter_move(const struct job *j, void *buffer, int64_t count)
{
    char *mine = (char *)buffer + (size_t)(j->c->head.rank * count) * j->element;
    j->c->host->fn->reduce_scatter(j->c->host, j->s, j->dtype, mine, buffer, count, j->how);
}

static void scatter_empty(const struct job *j, const char *buffer, int64_t from, int64_t count)
{
    copy(j, j->recv + (size_t)from * j->element,
         buffer + (size_t)(j->c->head.rank * count) * j->element, count);
}

static void reduce_scatter(struct comm *head, struct stream *s, enum dtype t, void *recv,
                           void *send, int64_t count, enum comm_reduce how)
{
    struct job j = job_of(head, s, t);
    j.length = count;
    j.recv = recv;
    j.send = send;
    j.how = how;
    j.fill = scatter_fill, j.move = scatter_move, j.empty = scatter_empty;
    head->stats.calls[COMM_REDUCE_SCATTER]++;
    run(&j);
}

/* ---- all_to_all: the buffer's first half is sent, what comes goes to the second ---- */

static void exchange_fill(const struct job *j, char *buffer, int64_t from, int64_t count)
{
    for (int r = 0; r < j->rows / 2; r++) {
        int place = j->places ? j->places[r] : r;
        copy(j, buffer + (size_t)(r * count) * j->element,
             j->send + (size_t)(place * j->stride + from) * j->element, count);
    }
}

static char *second_half(const struct job *j, const void *buffer, int64_t count)
{
    return (char *)(uintptr_t)buffer + (size_t)(j->rows / 2 * count) * j->element;
}

static void exchange_move(const struct job *j, void *buffer, int64_t count)
{
    j->c->host->fn->all_to_all(j->c->host, j->s, j->dtype, second_half(j, buffer, count), buffer,
                               count, count, NULL);
}

static void exchange_empty(const struct job *j, const char *buffer, int64_t from, int64_t count)
{
    const char *rows = second_half(j, buffer, count);
    for (int r = 0; r < j->rows / 2; r++)
        copy(j, j->recv + (size_t)(r * j->length + from) * j->element,
             rows + (size_t)(r * count) * j->element, count);
}

static void all_to_all(struct comm *head, struct stream *s, enum dtype t, void *recv,
                       const void *send, int64_t count, int64_t stride, const int *places)
{
    struct job j = job_of(head, s, t);
    j.rows = 2 * head->size;
    j.length = count;
    j.recv = recv;
    j.send = (char *)(uintptr_t)send; /* only read */
    j.stride = stride;
    j.places = places;
    j.fill = exchange_fill, j.move = exchange_move, j.empty = exchange_empty;
    head->stats.calls[COMM_ALL_TO_ALL]++;
    run(&j);
}

/* ---- all_reduce ---- */

/* Row r is chunk r of the host communicator's all_reduce: [total r / rows, total (r + 1) / rows). A
 * step takes as many elements of each row, so within the step they are chunk r again. Each element
 * is therefore summed in the same order, with the same bits, as in one all_reduce of everything. */

static int64_t row_begin(const struct job *j, int row)
{
    return j->total * row / j->rows;
}

/* The step's elements of this row: some rows are one element shorter than others. What the buffer
 * holds behind a shorter row is reduced, too, and not copied back. */
static int64_t row_count(const struct job *j, int row, int64_t from, int64_t count)
{
    int64_t left = row_begin(j, row + 1) - row_begin(j, row) - from;
    return left < count ? left : count;
}

static void reduce_fill(const struct job *j, char *buffer, int64_t from, int64_t count)
{
    for (int r = 0; r < j->rows; r++)
        copy(j, buffer + (size_t)(r * count) * j->element,
             j->recv + (size_t)(row_begin(j, r) + from) * j->element, row_count(j, r, from, count));
}

static void reduce_move(const struct job *j, void *buffer, int64_t count)
{
    j->c->host->fn->all_reduce(j->c->host, j->s, j->dtype, buffer, j->rows * count, j->how);
}

static void reduce_empty(const struct job *j, const char *buffer, int64_t from, int64_t count)
{
    for (int r = 0; r < j->rows; r++)
        copy(j, j->recv + (size_t)(row_begin(j, r) + from) * j->element,
             buffer + (size_t)(r * count) * j->element, row_count(j, r, from, count));
}

static void all_reduce(struct comm *head, struct stream *s, enum dtype t, void *data, int64_t count,
                       enum comm_reduce how)
{
    struct job j = job_of(head, s, t);
    j.length = (count + j.rows - 1) / j.rows;
    j.total = count;
    j.recv = data;
    j.how = how;
    j.fill = reduce_fill, j.move = reduce_move, j.empty = reduce_empty;
    head->stats.calls[COMM_ALL_REDUCE]++;
    run(&j);
}

/* ---- one row of bytes: doubles and broadcasts ---- */

static void whole_fill(const struct job *j, char *buffer, int64_t from, int64_t count)
{
    if (j->c->head.rank == j->root || j->root < 0)
        copy(j, buffer, j->recv + (size_t)from * j->element, count);
}

static void whole_empty(const struct job *j, const char *buffer, int64_t from, int64_t count)
{
    if (j->c->head.rank != j->root)
        copy(j, j->recv + (size_t)from * j->element, buffer, count);
}

static void doubles_move(const struct job *j, void *buffer, int64_t count)
{
    j->c->host->fn->all_reduce_f64(j->c->host, j->s, buffer, count);
}

static void all_reduce_f64(struct comm *head, struct stream *s, double *data, int64_t count)
{
    struct job j = {.c = stage_of(head),
                    .s = s,
                    .element = sizeof *data,
                    .rows = 1,
                    .length = count,
                    .recv = (char *)data,
                    .root = -1,
                    .fill = whole_fill,
                    .move = doubles_move,
                    .empty = whole_empty};
    head->stats.calls[COMM_ALL_REDUCE]++;
    run(&j);
}

static void broadcast_move(const struct job *j, void *buffer, int64_t count)
{
    j->c->host->fn->broadcast(j->c->host, j->s, buffer, count, j->root);
}

static void broadcast(struct comm *head, struct stream *s, void *data, int64_t bytes, int root)
{
    struct job j = {.c = stage_of(head),
                    .s = s,
                    .element = 1,
                    .rows = 1,
                    .length = bytes,
                    .recv = data,
                    .root = root,
                    .fill = whole_fill,
                    .move = broadcast_move,
                    .empty = whole_empty};
    head->stats.calls[COMM_BROADCAST]++;
    run(&j);
}

static void barrier(struct comm *head, struct stream *s)
{
    struct comm *host = stage_of(head)->host;
    host->fn->barrier(host, s);
}

/* ---- opening, splitting, closing ---- */

static int split(struct comm *head, int color, struct comm **ret_comm, struct error *err)
{
    struct comm_stage *c = stage_of(head);
    struct comm *subgroup;
    if (c->host->fn->split(c->host, color, &subgroup, err))
        return -1;
    if (subgroup->size == 1) { /* its collectives are copies */
        *ret_comm = subgroup;
        return 0;
    }
    if (comm_stage_open(subgroup, true, c->device, c->buffer_bytes, ret_comm, err) == 0)
        return 0;
    comm_close(subgroup);
    return -1;
}

static void stage_abort(struct comm *head, const char *reason)
{
    struct comm *host = stage_of(head)->host;
    host->fn->abort(host, reason);
}

static void stage_close(struct comm *head)
{
    struct comm_stage *c = stage_of(head);
    stream_close(c->copies);
    event_close(c->order_event);
    for (int b = 0; b < BUFFERS; b++) {
        event_close(c->filled[b]);
        event_close(c->moved[b]);
        device_host_free(c->device, c->buffers[b]);
    }
    if (c->owns_host)
        comm_close(c->host);
    free(c);
}

static int open_buffers(struct comm_stage *c, struct error *err)
{
    for (int b = 0; b < BUFFERS; b++)
        if (device_host_alloc(c->device, c->buffer_bytes, "buffer of collectives", &c->buffers[b],
                              err) ||
            event_open(c->device, &c->filled[b], err) || event_open(c->device, &c->moved[b], err))
            return -1;
    return event_open(c->device, &c->order_event, err) ||
                   stream_open(c->device, "staging", &c->copies, err)
               ? -1
               : 0;
}

int comm_stage_open(struct comm *host, bool owned, struct device *device, size_t buffer_bytes,
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
        .abort = stage_abort,
        .close = stage_close,
    };
    assert(host->size > 1 && buffer_bytes >= (size_t)host->size * ALIGN * sizeof(double));
    struct comm_stage *c = xcalloc(1, sizeof *c);
    c->head = (struct comm){.fn = &functions, .rank = host->rank, .size = host->size};
    c->host = host;
    c->device = device;
    c->buffer_bytes = buffer_bytes;
    if (open_buffers(c, err)) {
        stage_close(&c->head);
        return -1;
    }
    c->owns_host = owned;
    *ret_comm = &c->head;
    return 0;
}
