/* Gradients: a unit's parameters are bound to its unsharded gradient before backward, and that is
 * reduced after it. The reduction runs beside the next unit's backward and needs the buffer until
 * it ends. So at most two unsharded gradients are alive, unless micro-batches add to them. */
#include "agent/shard/shard_internal.h"

#include <assert.h>
#include <stdio.h>

bool shard_reduces_now(const struct shard *shard)
{
    if (shard->slots.count > 0)
        return shard->turn_reduces;
    return shard->last_micro_batch || (shard->config.accumulate_sharded && shard->group_size > 1);
}

static void free_unsharded_gradient(struct shard *shard, struct unit *u)
{
    if (!shard->gradient_in_place &&
        !shard_window_give_back(&shard->reductions, u->unsharded_gradient))
        device_free(stream_device(shard->compute), u->unsharded_gradient);
    u->unsharded_gradient = NULL;
}

void shard_free_gradients(struct shard *shard)
{
    for (int i = 0; i < shard->unit_count; i++)
        free_unsharded_gradient(shard, &shard->units[i]);
    shard->reducing = NULL;
}

/* Lets compute wait for the running reduction, and frees its unsharded gradient: the allocator
 * hands out freed memory in compute's order. */
static void finish_reduce(struct shard *shard)
{
    struct unit *u = shard->reducing;
    if (!u)
        return;
    shard->reducing = NULL;
    shard_wait(shard, SHARD_WAIT_COLLECTIVE, u->reduced);
    free_unsharded_gradient(shard, u);
}

/* Zeroes the padding, so that its reduced gradient is 0. Ops want aligned memory, so this begins at
 * the aligned element before: that may be a parameter's last ones, whose gradient comes later. */
static void clear_padding(struct shard *shard, struct unit *u)
{
    const struct layout_unit *l = u->layout;
    for (int i = 0; i < l->param_count; i++) {
        int64_t end = l->params[i].offset + l->params[i].param->count;
        int64_t next = i + 1 < l->param_count ? l->params[i + 1].offset : l->flat_count;
        int64_t begin = end / LAYOUT_ALIGN * LAYOUT_ALIGN;
        if (end < next)
            compute_ops(shard)->fill(shard->compute, u->unsharded_gradient + begin, 0,
                                     next - begin);
    }
}

int shard_bind_gradients(struct shard *shard, struct unit *u, struct error *err)
{
    const struct layout_unit *l = u->layout;
    if (l->flat_count == 0)
        return 0;
    if (shard->reducing == u) /* the last unit of one micro-batch, the first of the next */
        finish_reduce(shard);
    if (!u->pending && shard->gradient_in_place) {
        u->unsharded_gradient = u->view.gradient;
    } else if (!u->pending) {
        char what[128];
        snprintf(what, sizeof what, "gradients of unit \"%s\"", u->view.module->path);
        void *memory = shard_window_take(&shard->reductions, l);
        if (!memory && device_alloc(stream_device(shard->compute), MEMORY_GRADIENT,
                                    (size_t)l->flat_count * sizeof(float), what, &memory, err) < 0)
            return -1;
        u->unsharded_gradient = memory;
    }
    if (!u->pending)
        clear_padding(shard, u);
    for (int i = 0; i < l->param_count; i++) {
        l->params[i].param->gradient = u->unsharded_gradient + l->params[i].offset;
        l->params[i].param->gradient_written = u->pending;
    }
    return 0;
}

void shard_complete_gradients(struct shard *shard, struct unit *u)
{
    for (int i = 0; i < u->layout->param_count; i++) {
        struct param *p = u->layout->params[i].param;
        if (!p->gradient_written)
            compute_ops(shard)->fill(shard->compute, p->gradient, 0, p->count);
        p->gradient = NULL;
    }
    u->pending = u->layout->flat_count > 0;
}

/* Adds the reduced `slice` (on compute's device) to the slice's gradient on the shard device, by
 * way of `arrival`: the copy may not overwrite what the shard device still adds, nor the shard
 * device add what is not copied yet. */
static void add_on_shard_device(struct shard *shard, struct unit *u, const float *slice)
{
    int64_t count = u->layout->shard_count;
    shard_order(shard, shard->reduces, shard->update);
    stream_copy(shard->reduces, shard->arrival, slice, (size_t)count * sizeof(float));
    shard_order(shard, shard->update, shard->reduces);
    device_ops(stream_device(shard->update))
        ->add(shard->update, DTYPE_F32, u->view.gradient, DTYPE_F32, shard->arrival, count);
}

/* Brings the reduced slice, of dtype t, to view.gradient: written by the step's first reduction,
 * added to by later ones. What goes to the shard device is fp32. */
static void store_gradient(struct shard *shard, struct unit *u, enum dtype t, const void *slice)
{
    int64_t count = u->layout->shard_count;
    float *gradient = u->view.gradient;
    if (slice == gradient)
        return;
    if (!shard->offload && u->accumulated)
        compute_ops(shard)->add(shard->reduces, DTYPE_F32, gradient, t, slice, count);
    else if (!shard->offload)
        compute_ops(shard)->cast(shard->reduces, DTYPE_F32, gradient, t, slice, count);
    else if (u->accumulated)
        add_on_shard_device(shard, u, slice);
    else
        stream_copy(shard->reduces, gradient, slice, (size_t)count * sizeof(float));
}

static void reduce_between_ranks(struct shard *shard, enum dtype t, void *slice, void *unsharded,
                                 int64_t count)
{
    if (shard->reducer)
        shard->reducer->fn->reduce_scatter(shard->reducer, shard->reduces, t, slice, unsharded,
                                           count, COMM_MEAN);
    if (shard->replicas)
        shard->replicas->fn->all_reduce(shard->replicas, shard->reduces, t, slice, count,
                                        COMM_MEAN);
}

static void *pack(struct shard *shard, struct unit *u)
{
    const struct shard_window *window = &shard->reductions;
    void *packed =
        shard_window_has(window, u->layout) ? window->memory + window->plan.shared : shard->packed;
    compute_ops(shard)->cast(shard->reduces, shard->config.reduce_dtype, packed, DTYPE_F32,
                             u->unsharded_gradient, u->layout->flat_count);
    return packed;
}

/* Where the rank's part of unsharded[flat_count] is reduced to: in place, but not in a window,
 * where that would be another offset on each rank. */
static void *own_part(const struct shard *shard, enum dtype t, void *unsharded, int64_t count)
{
    const struct shard_window *window = &shard->reductions;
    return shard_window_holds(window, unsharded)
               ? window->memory + window->plan.scratch
               : (char *)unsharded + (size_t)(shard->group_rank * count) * dtype_bytes(t);
}

/* In reduce_dtype; all of it on the stream of reduces, so that all units can share the memory. */
static void reduce_packed(struct shard *shard, struct unit *u)
{
    enum dtype t = shard->config.reduce_dtype;
    int64_t count = u->layout->shard_count;
    void *packed = pack(shard, u), *slice = own_part(shard, t, packed, count);
    reduce_between_ranks(shard, t, slice, packed, count);
    if (!shard->offload) {
        store_gradient(shard, u, t, slice);
        return;
    }
    compute_ops(shard)->cast(shard->reduces, DTYPE_F32, shard->unpacked, t, slice, count);
    store_gradient(shard, u, DTYPE_F32, shard->unpacked);
}

static void reduce_whole(struct shard *shard, struct unit *u)
{
    int64_t count = u->layout->shard_count;
    float *slice = own_part(shard, DTYPE_F32, u->unsharded_gradient, count);
    /* The first reduction writes straight into the slice's gradient. Later ones must add, so they
     * reduce into their own part of the unsharded buffer first. */
    if (shard->group && !shard->offload && !u->accumulated)
        slice = u->view.gradient;
    reduce_between_ranks(shard, DTYPE_F32, slice, u->unsharded_gradient, count);
    store_gradient(shard, u, DTYPE_F32, slice);
}

static void begin_range(const struct shard *shard, const struct unit *u)
{
    const char *what = shard->received   ? "all_to_all"
                       : shard->group    ? "reduce_scatter"
                       : shard->replicas ? "all_reduce"
                                         : "store_gradient"; /* there is nobody else */
    stream_range_begin(shard->reduces,
                       &(struct stream_range){.what = what, .of = module_label(u->view.module)});
}

void shard_reduce(struct shard *shard, struct unit *u)
{
    if (!u->pending)
        return;
    u->pending = false;
    if (shard->gradient_in_place && !shard->replicas) {
        /* Backward has written it where it belongs, and there is nobody to reduce it with. An event
         * would only part a CUDA graph of the whole backward. */
        free_unsharded_gradient(shard, u);
        u->accumulated = true;
        return;
    }
    shard_order(shard, shard->reduces, shard->compute);
    begin_range(shard, u);
    shard_name_unit(shard->reducer, u);
    shard_name_unit(shard->replicas, u);
    if (shard->slots.count > 0)
        shard_add_slots(shard, u, shard->packed ? pack(shard, u) : u->unsharded_gradient);
    else if (shard->packed)
        reduce_packed(shard, u);
    else
        reduce_whole(shard, u);
    shard_name_unit(shard->reducer, NULL);
    shard_name_unit(shard->replicas, NULL);
    stream_range_end(shard->reduces);
    u->accumulated = true;
    event_record(u->reduced, shard->reduces);
    finish_reduce(shard);
    shard->reducing = u;
}

void shard_sum(struct shard *shard, double *sums, int count)
{
    assert(count <= SHARD_MAX_SUMS);
    if (!shard->group)
        return;
    size_t bytes = (size_t)count * sizeof *sums;
    double *there = shard->offload ? shard->sum : sums;
    shard_order(shard, shard->transfer, shard->update);
    if (shard->offload)
        stream_copy(shard->transfer, there, sums, bytes);
    shard->group->fn->all_reduce_f64(shard->group, shard->transfer, there, count);
    if (shard->offload)
        stream_copy(shard->transfer, sums, there, bytes);
    shard_order(shard, shard->update, shard->transfer);
    if (shard->offload) /* others' collectives, which they put on compute, come after it */
        shard_order(shard, shard->compute, shard->transfer);
}

void shard_begin(struct shard *shard, bool last_micro_batch)
{
    shard->last_micro_batch = last_micro_batch;
}

void shard_reduce_pending(struct shard *shard)
{
    for (int i = shard->unit_count - 1; i >= 0; i--)
        shard_reduce(shard, &shard->units[i]);
}

void shard_finish(struct shard *shard)
{
    shard_reduce_pending(shard);
    for (int i = shard->unit_count - 1; i >= 0 && shard->slots.count > 0; i--)
        shard_end_slots(shard, &shard->units[i]);
    finish_reduce(shard);
    shard_order(shard, shard->update, shard->reduces);
    shard_order(shard, shard->update, shard->transfer); /* a gather may still read the slices */
    if (shard->update_beside) /* where backward has read the slices, and written the gradients */
        shard_order(shard, shard->update, shard->compute);
    for (int i = 0; i < shard->unit_count; i++) {
        struct unit *u = &shard->units[i];
        if (!u->accumulated && u->layout->shard_count)
            device_ops(stream_device(shard->update))
                ->fill(shard->update, u->view.gradient, 0, u->layout->shard_count);
        u->accumulated = u->is_mean = false;
    }
}
