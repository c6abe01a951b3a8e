/* What happens to gradients: bound before a unit's backward, reduced after it. The full gradient of
 * a unit stays in memory while its reduction runs beside the backward of the next unit: at most two
 * of them are alive, unless micro-batches accumulate in them. */
#include "agent/shard/shard_engine.h"

#include "kernels/ops.h"

#include <stdio.h>

static const struct ops *compute_ops(const struct shard *shard)
{
    return device_ops(stream_device(shard->compute));
}

bool shard_reduces_now(const struct shard *shard)
{
    return shard->last_micro_batch || (shard->config.accumulate_sharded && shard->group_size > 1);
}

static void free_full_gradient(struct shard *shard, struct unit *u)
{
    if (!shard->in_place)
        device_free(stream_device(shard->compute), u->full_gradient);
    u->full_gradient = NULL;
}

void shard_free_gradients(struct shard *shard)
{
    for (int i = 0; i < shard->unit_count; i++)
        free_full_gradient(shard, &shard->units[i]);
    shard->reducing = NULL;
}

/* Lets compute wait for the reduction that runs, and frees its full gradient. */
static void retire(struct shard *shard)
{
    struct unit *u = shard->reducing;
    if (!u)
        return;
    shard->reducing = NULL;
    shard_wait(shard, u->reduced);
    free_full_gradient(shard, u);
}

/* Zeroes what lies between parameters, so that it reduces to 0. The first and last elements may be
 * a parameter's (ops want aligned memory): its gradient is written later. */
static void clear_padding(struct shard *shard, struct unit *u)
{
    const struct layout_unit *l = u->layout;
    for (int i = 0; i < l->param_count; i++) {
        int64_t end = l->params[i].offset + l->params[i].param->count;
        int64_t next = i + 1 < l->param_count ? l->params[i + 1].offset : l->flat_count;
        int64_t begin = end / LAYOUT_ALIGN * LAYOUT_ALIGN;
        if (end < next)
            compute_ops(shard)->fill(shard->compute, u->full_gradient + begin, 0, next - begin);
    }
}

int shard_bind_gradients(struct shard *shard, struct unit *u, struct error *err)
{
    const struct layout_unit *l = u->layout;
    if (l->flat_count == 0)
        return 0;
    if (shard->reducing == u) /* the last unit of one micro-batch, the first of the next */
        retire(shard);
    if (!u->pending && shard->in_place) {
        u->full_gradient = u->view.gradient;
    } else if (!u->pending) {
        char what[128];
        snprintf(what, sizeof what, "gradients of unit \"%s\"", u->view.module->path);
        void *memory;
        if (device_alloc(stream_device(shard->compute), MEMORY_GRADIENT,
                         (size_t)l->flat_count * sizeof(float), what, &memory, err) < 0)
            return -1;
        u->full_gradient = memory;
    }
    if (!u->pending)
        clear_padding(shard, u);
    for (int i = 0; i < l->param_count; i++) {
        l->params[i].param->gradient = u->full_gradient + l->params[i].offset;
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

/* Adds the slice `part` (on compute's device) to the slice's gradient at home, by way of `arrival`:
 * the copy may not overwrite what home still adds, nor home add what is not copied yet. */
static void add_at_home(struct shard *shard, struct unit *u, const float *part)
{
    int64_t count = u->layout->shard_count;
    shard_order(shard, shard->reduces, shard->home);
    stream_copy(shard->reduces, shard->arrival, part, (size_t)count * sizeof(float));
    shard_order(shard, shard->home, shard->reduces);
    device_ops(stream_device(shard->home))
        ->add(shard->home, DTYPE_F32, u->view.gradient, DTYPE_F32, shard->arrival, count);
}

/* Brings the reduced slice, of dtype t, to view.gradient: written by the step's first reduction,
 * added to by later ones. What goes home is fp32. */
static void deliver(struct shard *shard, struct unit *u, enum dtype t, const void *part)
{
    int64_t count = u->layout->shard_count;
    float *gradient = u->view.gradient;
    if (part == gradient)
        return;
    if (!shard->offload && u->accumulated)
        compute_ops(shard)->add(shard->reduces, DTYPE_F32, gradient, t, part, count);
    else if (!shard->offload)
        compute_ops(shard)->cast(shard->reduces, DTYPE_F32, gradient, t, part, count);
    else if (u->accumulated)
        add_at_home(shard, u, part);
    else
        stream_copy(shard->reduces, gradient, part, (size_t)count * sizeof(float));
}

static void reduce_between_ranks(struct shard *shard, enum dtype t, void *part, void *full,
                                 int64_t count)
{
    if (shard->reducer)
        shard->reducer->fn->reduce_scatter(shard->reducer, shard->reduces, t, part, full, count,
                                           COMM_MEAN);
    if (shard->replicas)
        shard->replicas->fn->all_reduce(shard->replicas, shard->reduces, t, part, count, COMM_MEAN);
}

/* In reduce_dtype; all of it on the stream of reduces, so that all units can share the memory. */
static void reduce_packed(struct shard *shard, struct unit *u)
{
    enum dtype t = shard->config.reduce_dtype;
    int64_t count = u->layout->shard_count;
    void *part = (char *)shard->packed + (size_t)(shard->group_rank * count) * dtype_bytes(t);
    compute_ops(shard)->cast(shard->reduces, t, shard->packed, DTYPE_F32, u->full_gradient,
                             u->layout->flat_count);
    reduce_between_ranks(shard, t, part, shard->packed, count);
    if (!shard->offload) {
        deliver(shard, u, t, part);
        return;
    }
    compute_ops(shard)->cast(shard->reduces, DTYPE_F32, shard->unpacked, t, part, count);
    deliver(shard, u, DTYPE_F32, shard->unpacked);
}

static void reduce_whole(struct shard *shard, struct unit *u)
{
    int64_t count = u->layout->shard_count;
    float *part = u->full_gradient + shard->group_rank * count;
    if (shard->group && !shard->offload && !u->accumulated)
        part = u->view.gradient;
    reduce_between_ranks(shard, DTYPE_F32, part, u->full_gradient, count);
    deliver(shard, u, DTYPE_F32, part);
}

static void begin_range(const struct shard *shard, const struct unit *u)
{
    const char *what = shard->group      ? "reduce_scatter"
                       : shard->replicas ? "all_reduce"
                                         : "deliver"; /* there is nobody else */
    stream_range_begin(shard->reduces,
                       &(struct stream_range){.what = what, .of = module_label(u->view.module)});
}

void shard_reduce(struct shard *shard, struct unit *u)
{
    if (!u->pending)
        return;
    u->pending = false;
    shard_order(shard, shard->reduces, shard->compute);
    begin_range(shard, u);
    if (shard->packed)
        reduce_packed(shard, u);
    else
        reduce_whole(shard, u);
    stream_range_end(shard->reduces);
    u->accumulated = true;
    event_record(u->reduced, shard->reduces);
    retire(shard);
    shard->reducing = u;
}

void shard_sum(struct shard *shard, double *sum)
{
    if (!shard->group)
        return;
    double *there = shard->offload ? shard->sum : sum;
    shard_order(shard, shard->transfer, shard->home);
    if (shard->offload)
        stream_copy(shard->transfer, there, sum, sizeof *sum);
    shard->group->fn->all_reduce_f64(shard->group, shard->transfer, there, 1);
    if (shard->offload)
        stream_copy(shard->transfer, sum, there, sizeof *sum);
    shard_order(shard, shard->home, shard->transfer);
    if (shard->offload) /* others' collectives, which they put on compute, come after it */
        shard_order(shard, shard->compute, shard->transfer);
}

void shard_begin(struct shard *shard, bool last_micro_batch)
{
    shard->last_micro_batch = last_micro_batch;
}

/* A unit is still pending if the last micro-batch did not use it. */
void shard_finish(struct shard *shard)
{
    for (int i = shard->unit_count - 1; i >= 0; i--)
        shard_reduce(shard, &shard->units[i]);
    retire(shard);
    shard_order(shard, shard->home, shard->reduces);
    shard_order(shard, shard->home, shard->transfer); /* a gather may still read the slices */
    for (int i = 0; i < shard->unit_count; i++) {
        struct unit *u = &shard->units[i];
        if (!u->accumulated && u->layout->shard_count)
            device_ops(stream_device(shard->home))
                ->fill(shard->home, u->view.gradient, 0, u->layout->shard_count);
        u->accumulated = false;
    }
}
