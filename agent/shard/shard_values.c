/* The values of slices: initialized, copied to and from the host, gathered for exports. */
#include "agent/shard/shard_internal.h"

#include "kernels/random.h"

#include <assert.h>
#include <string.h>

/* Zeroes the elements of the range that start as 0 (the parameter's zero_first, zero_count). */
static void clear_zeros(struct shard *shard, const struct param_range *p, float *values)
{
    int64_t first = p->param->zero_first - p->param_offset, end = first + p->param->zero_count;
    first = first < 0 ? 0 : first;
    end = end > p->count ? p->count : end;
    if (first < end)
        device_ops(stream_device(shard->update))
            ->fill(shard->update, values + first, 0, end - first);
}

static void draw(struct shard *shard, int unit, uint64_t seed, float *values)
{
    const struct ops *ops = device_ops(stream_device(shard->update));
    for (int i = 0; i < shard->range_count; i++) {
        const struct param_range *p = &shard->ranges[i];
        const struct param_init *init = &p->param->init;
        if (p->unit != unit)
            continue;
        (init->kind == INIT_NORMAL ? ops->normal : ops->uniform)(
            shard->update, values + p->shard_offset, p->count,
            random_key(seed, p->param->index, 0, 0), (uint64_t)p->param_offset, init->a, init->b);
        clear_zeros(shard, p, values + p->shard_offset);
    }
}

/* Values are drawn in fp32. If the slice has another dtype, its gradient is the scratch memory: it
 * is not used before the first backward. seed: NULL draws nothing. */
static void init_unit(struct shard *shard, int unit, const uint64_t *seed)
{
    const struct ops *ops = device_ops(stream_device(shard->update));
    struct shard_unit *view = &shard->units[unit].view;
    enum dtype t = shard->config.slice_dtype;
    float *values = t == DTYPE_F32 ? view->value : view->gradient;
    if (!view->shard_count)
        return;
    ops->fill(shard->update, values, 0, view->shard_count);
    if (seed)
        draw(shard, unit, *seed, values);
    if (t != DTYPE_F32)
        ops->cast(shard->update, t, view->value, DTYPE_F32, values, view->shard_count);
}

void shard_init_values(struct shard *shard, uint64_t seed)
{
    for (int i = 0; i < shard->unit_count; i++)
        init_unit(shard, i, &seed);
    shard_values_changed(shard);
}

void shard_clear_values(struct shard *shard)
{
    for (int i = 0; i < shard->unit_count; i++)
        init_unit(shard, i, NULL);
    shard_values_changed(shard);
}

void shard_unit_updated(struct shard *shard, int unit)
{
    struct unit *u = &shard->units[unit];
    if (!shard->update_beside)
        return;
    event_record(u->updated, shard->update);
    u->updating = true;
}

void shard_join_update(struct shard *shard)
{
    if (shard->update_beside)
        shard_order(shard, shard->compute, shard->update);
}

void shard_values_updated(struct shard *shard)
{
    shard_reshard_all(shard);
    for (int i = 0; i < shard->unit_count; i++) {
        shard->units[i].has_rest = false;
        if (shard->update_beside && !shard->units[i].updating)
            shard_unit_updated(shard, i);
    }
    if (shard->update_beside) /* a reduction comes behind a pass, which has waited by then */
        return;
    shard_order(shard, shard->transfer, shard->update);
    shard_order(shard, shard->reduces, shard->update); /* it may still read the gradients */
}

void shard_values_changed(struct shard *shard)
{
    const struct shard_config *c = &shard->config;
    if (c->param_dtype != c->slice_dtype)
        shard_order(shard, shard->update, shard->transfer); /* a gather may still read the copies */
    for (int i = 0; i < shard->unit_count; i++) {
        struct unit *u = &shard->units[i];
        u->updating = false; /* what is recorded lies before these values */
        if (u->view.copy)
            device_ops(stream_device(shard->update))
                ->cast(shard->update, c->param_dtype, u->view.copy, c->slice_dtype, u->view.value,
                       u->view.shard_count);
    }
    shard_values_updated(shard);
}

/* ---- to and from the host ---- */

/* bf16 numbers in host memory that become fp32 in place. */
struct numbers {
    float *values;
    int64_t count;
};

/* The bf16 numbers lie in the upper half, so none is overwritten before it is read. */
static int widen(void *args, struct error *err)
{
    (void)err;
    const struct numbers *n = args;
    const char *narrow = (const char *)n->values + n->count * (int64_t)sizeof(bf16);
    for (int64_t i = 0; i < n->count; i++) {
        bf16 x;
        memcpy(&x, narrow + i * (int64_t)sizeof x, sizeof x);
        n->values[i] = bf16_to_float(x);
    }
    return 0;
}

/* Queues the copy on stream s, of the device that holds `from`. */
static void read_values(enum dtype t, struct stream *s, float *ret_values, const void *from,
                        int64_t count)
{
    struct numbers n = {ret_values, count};
    size_t bytes = (size_t)count * dtype_bytes(t);
    if (t == DTYPE_F32) {
        stream_copy(s, ret_values, from, bytes);
        return;
    }
    stream_copy(s, (char *)ret_values + bytes, from, bytes);
    stream_call(s, widen, &n, sizeof n);
}

void shard_read(struct shard *shard, void *ret_values, const void *slice, int64_t count)
{
    stream_copy(shard->update, ret_values, slice,
                (size_t)count * dtype_bytes(shard->config.slice_dtype));
}

void shard_write(struct shard *shard, void *slice, const void *values, int64_t count)
{
    stream_copy(shard->update, slice, values,
                (size_t)count * dtype_bytes(shard->config.slice_dtype));
}

/* ---- whole parameters ---- */

static const struct layout_param *find_param(const struct shard *shard, const struct param *p,
                                             struct unit **ret_unit)
{
    for (int i = 0; i < shard->unit_count; i++) {
        *ret_unit = &shard->units[i];
        for (int k = 0; k < (*ret_unit)->layout->param_count; k++)
            if ((*ret_unit)->layout->params[k].param == p)
                return &(*ret_unit)->layout->params[k];
    }
    assert(!"a parameter of this model");
    return NULL;
}

/* Gathers the slices and not the compute shards, which may be rounded to bf16. */
int shard_gather_param(struct shard *shard, const struct param *p, float *ret_values,
                       struct error *err)
{
    struct unit *u;
    const struct layout_param *layout = find_param(shard, p, &u);
    enum dtype t = shard->config.slice_dtype;
    size_t element = dtype_bytes(t), offset = (size_t)layout->offset * element;
    if (!shard->group) {
        read_values(t, shard->update, ret_values, (char *)u->view.value + offset, p->count);
        return stream_sync(shard->update, err);
    }
    struct device *device = stream_device(shard->compute);
    void *all;
    if (device_alloc(device, MEMORY_UNIT, (size_t)u->layout->flat_count * element, p->name, &all,
                     err) < 0)
        return -1;
    shard_order(shard, shard->transfer, shard->compute);
    if (shard->update_beside)
        shard_order(shard, shard->transfer, shard->update);
    shard_gather_slices(shard, t, all, u->view.value, u->layout->shard_count);
    shard_order(shard, shard->compute, shard->transfer);
    read_values(t, shard->compute, ret_values, (char *)all + offset, p->count);
    device_free(device, all);
    return stream_sync(shard->compute, err);
}
