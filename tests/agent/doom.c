#include "tests/agent/doom.h"

#include "base/mem.h"

#include <stdlib.h>

struct doomed {
    struct comm_functions fn; /* what the communicator has instead of its own */
    const struct comm_functions *really;
    struct comm *comm;
    struct doomed *world; /* itself, or that of which this one was split */
    struct activity *activity;
    struct doom doom;
    int seen; /* the world's: collectives in that phase */
};

static struct doomed *put(struct comm *comm, struct doomed *world);

static const struct comm_functions *meet_doom(struct comm *c)
{
    struct doomed *d = (struct doomed *)c->fn, *world = d->world;
    struct rank_report report;
    activity_read(world->activity, &report);
    if (report.phase == world->doom.phase && ++world->seen == world->doom.nth) {
        d->really->abort(c, "this rank is killed");
        if (d != world)
            world->really->abort(world->comm, "this rank is killed");
    }
    return d->really;
}

static void all_gather(struct comm *c, struct stream *s, enum dtype t, void *recv, const void *send,
                       int64_t count)
{
    meet_doom(c)->all_gather(c, s, t, recv, send, count);
}

static void reduce_scatter(struct comm *c, struct stream *s, enum dtype t, void *recv, void *send,
                           int64_t count, enum comm_reduce how)
{
    meet_doom(c)->reduce_scatter(c, s, t, recv, send, count, how);
}

static void all_reduce(struct comm *c, struct stream *s, enum dtype t, void *data, int64_t count,
                       enum comm_reduce how)
{
    meet_doom(c)->all_reduce(c, s, t, data, count, how);
}

static void all_reduce_f64(struct comm *c, struct stream *s, double *data, int64_t count)
{
    meet_doom(c)->all_reduce_f64(c, s, data, count);
}

static void broadcast(struct comm *c, struct stream *s, void *data, int64_t bytes, int root)
{
    meet_doom(c)->broadcast(c, s, data, bytes, root);
}

static void all_to_all(struct comm *c, struct stream *s, enum dtype t, void *recv, const void *send,
                       int64_t count, int64_t stride, const int *places)
{
    meet_doom(c)->all_to_all(c, s, t, recv, send, count, stride, places);
}

static void barrier(struct comm *c, struct stream *s)
{
    meet_doom(c)->barrier(c, s);
}

static int split(struct comm *c, int color, struct comm **ret_comm, struct error *err)
{
    struct doomed *d = (struct doomed *)c->fn;
    int result = d->really->split(c, color, ret_comm, err);
    if (result == 0)
        put(*ret_comm, d->world);
    return result;
}

static void lift(struct doomed *d)
{
    d->comm->fn = d->really;
    free(d);
}

static void close_split(struct comm *c)
{
    lift((struct doomed *)c->fn);
    c->fn->close(c);
}

static struct doomed *put(struct comm *comm, struct doomed *world)
{
    struct doomed *d = xcalloc(1, sizeof *d);
    *d = (struct doomed){.fn = *comm->fn, .really = comm->fn, .comm = comm};
    d->world = world ? world : d;
    d->fn.all_gather = all_gather;
    d->fn.reduce_scatter = reduce_scatter;
    d->fn.all_reduce = all_reduce;
    d->fn.all_reduce_f64 = all_reduce_f64;
    d->fn.broadcast = broadcast;
    d->fn.all_to_all = all_to_all;
    d->fn.barrier = barrier;
    d->fn.split = split;
    if (world)
        d->fn.close = close_split;
    comm->fn = &d->fn;
    return d;
}

struct doomed *doom_put(struct comm *world, struct activity *activity, const struct doom *doom)
{
    struct doomed *d = put(world, NULL);
    d->activity = activity;
    d->doom = *doom;
    return d;
}

bool doom_lift(struct doomed *d)
{
    bool has_died = d->seen >= d->doom.nth;
    lift(d);
    return has_died;
}
