/* Unshards and reshards units, in hooks that the tape calls before and after each module. With
 * FULL_SHARD, forward_prefetch, BACKWARD_PRE and two units a, b below the root, the streams are
 * given in this order:
 *
 *   hook                compute                      transfer (and reduces)
 *   before_forward a    wait for a                   gather a, then prefetch b
 *   after_forward a     free a
 *   before_forward b    wait for b
 *   after_forward b     free b
 *   before_backward b   wait for b                   gather b, then prefetch a
 *   after_backward b    free b                       reduce b: behind the gather of a
 *   before_backward a   wait for a
 *   after_backward a    free a                       reduce a
 *
 * With update_beside a gather also waits for its unit's update, which is on a stream of its own.
 * Compute then waits for the update, and after that for the gather: so it is known which it was.
 *
 * A gather waits for all that compute was given before it: its memory may be in use until then. So
 * only a prefetch, which is queued before the unit's computation, runs beside it. Forward has none
 * without forward_prefetch, nor in the first pass, whose order is not known before. A prefetch in
 * backward comes before the reduction of this unit: compute needs it sooner. */
#include "agent/shard/shard_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static int fail_with(void *args, struct error *err)
{
    *err = **(struct error **)args;
    return -1;
}

/* Streams of different backends have no common events, so the host waits for the earlier stream.
 * This happens with CPU offload to a GPU's host: after the optimizer's step, and before it for the
 * reduced gradients. A failure of the earlier stream is queued on the later one, whose user must
 * see it. */
static void order_by_waiting(struct shard *shard, struct stream *later, struct stream *earlier)
{
    struct error err, *failure = &shard->failure;
    if (stream_sync(earlier, &err) == 0)
        return;
    if (!failure->code)
        *failure = err;
    stream_call(later, fail_with, &failure, sizeof failure);
}

void shard_order(struct shard *shard, struct stream *later, struct stream *earlier)
{
    if (later == earlier)
        return;
    if (device_is_host(stream_device(later)) != device_is_host(stream_device(earlier))) {
        order_by_waiting(shard, later, earlier);
        return;
    }
    event_record(shard->reached, earlier);
    stream_wait(later, shard->reached);
}

void shard_wait(struct shard *shard, enum shard_wait what, struct event *event)
{
    const struct shard_config *c = &shard->config;
    if (c->waits)
        c->waits(c->waits_ctx, what);
    stream_wait(shard->compute, event);
    if (c->waits)
        c->waits(c->waits_ctx, SHARD_WAIT_NOTHING);
}

static void bind_values(const struct shard *shard, struct unit *u)
{
    if (u->payload.is_fp8 && u->unsharded) {
        shard_bind_fp8(u);
        return;
    }
    size_t element = dtype_bytes(shard->config.param_dtype);
    for (int i = 0; i < u->layout->param_count; i++) {
        const struct layout_param *p = &u->layout->params[i];
        p->param->value = u->unsharded ? (char *)u->unsharded + (size_t)p->offset * element : NULL;
        p->param->scale = NULL;
    }
}

void shard_name_unit(struct comm *comm, const struct unit *u)
{
    if (comm)
        comm->unit = u ? module_label(u->view.module) : NULL;
}

void shard_gather_slices(struct shard *shard, enum dtype t, void *all, const void *slice,
                         int64_t count)
{
    size_t bytes = (size_t)count * dtype_bytes(t);
    char *own = (char *)all + (size_t)shard->group_rank * bytes;
    if (shard->offload)
        stream_copy(shard->transfer, own, slice, bytes);
    if (shard->group)
        shard->group->fn->all_gather(shard->group, shard->transfer, t, all,
                                     shard->offload ? own : slice, count);
}

/* Lets the first stream that reads the unit's slice or its copy after an update wait for that. */
static void await_update(struct shard *shard, struct unit *u)
{
    if (!u->updating)
        return;
    u->updating = false;
    u->gathers_update = !shard->in_place;
    if (shard->in_place)
        shard_wait(shard, SHARD_WAIT_UPDATE, u->updated);
    else
        stream_wait(shard->transfer, u->updated);
}

int shard_gather(struct shard *shard, struct unit *u, struct error *err)
{
    if (shard->in_place) /* it is never resharded */
        await_update(shard, u);
    if (u->unsharded || u->layout->flat_count == 0)
        return 0;
    if (shard->in_place) {
        u->unsharded = u->compute_shard;
        u->awaited = true;
        bind_values(shard, u);
        return 0;
    }
    char what[128];
    snprintf(what, sizeof what, "parameters of unit \"%s\"", u->view.module->path);
    const enum dtype t = u->payload.is_fp8 ? DTYPE_E4M3 : shard->config.param_dtype;
    void *memory = shard_window_take(&shard->gathers, u->layout);
    if (!memory &&
        device_alloc(stream_device(shard->compute), MEMORY_UNIT,
                     (size_t)u->layout->flat_count * dtype_bytes(t), what, &memory, err) < 0)
        return -1;
    u->unsharded = memory;
    u->awaited = false;
    /* The memory may be that of a tensor which compute still reads: transfer waits for what is
     * queued there. */
    shard_order(shard, shard->transfer, shard->compute);
    await_update(shard, u);
    stream_range_begin(shard->transfer, &(struct stream_range){.what = "all_gather",
                                                               .of = module_label(u->view.module)});
    shard_name_unit(shard->group, u);
    if (u->payload.is_fp8)
        shard_gather_fp8(shard, u);
    else
        shard_gather_slices(shard, t, u->unsharded, u->compute_shard, u->layout->shard_count);
    shard_name_unit(shard->group, NULL);
    stream_range_end(shard->transfer);
    event_record(u->gathered, shard->transfer);
    bind_values(shard, u);
    return 0;
}

void shard_await(struct shard *shard, struct unit *u)
{
    if (!u->unsharded || u->awaited)
        return;
    if (u->gathers_update) /* of no use but to measure it: the gather has waited */
        shard_wait(shard, SHARD_WAIT_UPDATE, u->updated);
    u->gathers_update = false;
    shard_wait(shard, SHARD_WAIT_COLLECTIVE, u->gathered);
    u->awaited = true;
}

void shard_reshard(struct shard *shard, struct unit *u)
{
    if (!u->unsharded || shard->in_place)
        return;
    shard_await(shard, u);
    if (!shard_window_give_back(&shard->gathers, u->unsharded))
        device_free(stream_device(shard->compute), u->unsharded);
    u->unsharded = NULL;
    bind_values(shard, u);
}

void shard_reshard_all(struct shard *shard)
{
    for (int i = 0; i < shard->unit_count; i++)
        shard_reshard(shard, &shard->units[i]);
}

/* ---- prefetch ---- */

static int order_find(const struct unit_order *order, int unit)
{
    for (int i = 0; i < order->count; i++)
        if (order->units[i] == unit)
            return i;
    return -1;
}

static void order_add(struct unit_order *order, const struct unit *u)
{
    int unit = u->view.module->unit;
    assert(order_find(order, unit) < 0); /* a unit is used once in a pass */
    order->units[order->count++] = unit;
}

/* Starts to gather the unit after `u` in `order` (step 1) or before it (step -1); all of them
 * without limit_all_gathers. A unit that contains other units left forward after them but ends
 * backward after them, too: units whose backward has begun are skipped. */
static int prefetch(struct shard *shard, const struct unit_order *order, const struct unit *u,
                    int step, struct error *err)
{
    int i = order_find(order, u->view.module->unit);
    if (i < 0 || shard->in_place) /* there is nothing to gather, only its update to wait for */
        return 0;
    for (i += step; i >= 0 && i < order->count; i += step) {
        struct unit *next = &shard->units[order->units[i]];
        if (next->in_backward)
            continue;
        if (shard_gather(shard, next, err) < 0)
            return -1;
        if (shard->config.limit_all_gathers && next->unsharded)
            break;
    }
    return 0;
}

/* ---- hooks ---- */

/* The unit of which `m` is the module, or NULL. */
static struct unit *unit_of(struct shard *shard, const struct module *m)
{
    return m->unit >= 0 ? &shard->units[m->unit] : NULL;
}

static bool is_root(const struct unit *u)
{
    return u->view.module->unit == 0;
}

static void begin_pass(struct shard *shard)
{
    struct unit_order oldest = shard->entered_before;
    shard->entered_before = shard->entered;
    shard->entered = oldest;
    shard->entered.count = shard->left.count = 0;
    for (int i = 0; i < shard->unit_count; i++)
        shard->units[i].in_backward = false;
}

static int before_forward(void *ctx, struct module *m, struct error *err)
{
    struct shard *shard = ctx;
    struct unit *u = unit_of(shard, m);
    if (!u)
        return 0;
    if (is_root(u))
        begin_pass(shard);
    order_add(&shard->entered, u);
    if (shard_gather(shard, u, err) < 0)
        return -1;
    shard_await(shard, u);
    return shard->config.forward_prefetch ? prefetch(shard, &shard->entered_before, u, 1, err) : 0;
}

static int after_forward(void *ctx, struct module *m, struct error *err)
{
    (void)err;
    struct shard *shard = ctx;
    struct unit *u = unit_of(shard, m);
    if (!u)
        return 0;
    order_add(&shard->left, u);
    if (shard->reshard_after_forward && !is_root(u))
        shard_reshard(shard, u);
    return 0;
}

static int before_backward(void *ctx, struct module *m, struct error *err)
{
    struct shard *shard = ctx;
    struct unit *u = unit_of(shard, m);
    if (!u)
        return 0;
    u->in_backward = true;
    if (shard_gather(shard, u, err) < 0)
        return -1;
    shard_await(shard, u);
    if (shard->config.backward_prefetch == BACKWARD_PRE &&
        prefetch(shard, &shard->left, u, -1, err) < 0)
        return -1;
    return shard_bind_gradients(shard, u, err);
}

/* Without a reduction (a micro-batch before the last) the unit stays unsharded for the next
 * micro-batch, if the strategy keeps it unsharded after forward. */
static int after_backward(void *ctx, struct module *m, struct error *err)
{
    struct shard *shard = ctx;
    struct unit *u = unit_of(shard, m);
    if (!u)
        return 0;
    shard_complete_gradients(shard, u);
    bool reduces = shard_reduces_now(shard);
    if (reduces || shard->reshard_after_forward)
        shard_reshard(shard, u);
    if (shard->config.backward_prefetch == BACKWARD_POST &&
        prefetch(shard, &shard->left, u, -1, err) < 0)
        return -1;
    if (reduces)
        shard_reduce(shard, u);
    return 0;
}

struct tape_hooks shard_hooks(struct shard *shard)
{
    return (struct tape_hooks){shard, before_forward, after_forward, before_backward,
                               after_backward};
}
