/* Opens and closes the engine; its accessors. */
#include "agent/shard/shard.h"

#include "agent/shard/shard_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- opening ---- */

static int split(struct shard *shard, struct comm *whole, int color, struct comm **ret_comm,
                 struct error *err)
{
    if (whole->fn->split(whole, color, ret_comm, err) < 0)
        return -1;
    shard->opened[shard->opened_count++] = *ret_comm;
    return 0;
}

/* Opens the communicator of the `size` ranks that pass `color`: NULL for one rank, the world for
 * all. */
static int open_group(struct shard *shard, struct comm *world, int size, int color,
                      struct comm **ret_comm, struct error *err)
{
    if (size == 1 || size == world->size) {
        *ret_comm = size == 1 ? NULL : world;
        return 0;
    }
    return split(shard, world, color, ret_comm, err);
}

/* Reductions that may run beside gathers need a communicator of their own: NCCL runs the
 * collectives of one communicator one after the other. With slots all ranks exchange gradients. */
static int open_reducer(struct shard *shard, struct comm *world, struct error *err)
{
    struct comm *of = shard->config.slots > 0 ? world : shard->group;
    shard->reducer = of;
    return of && of->is_concurrent ? split(shard, of, 0, &shard->reducer, err) : 0;
}

static int open_comms(struct shard *shard, struct comm *world, struct error *err)
{
    const struct shard_config *c = &shard->config;
    /* Neighbouring ranks form a shard group, as torchrun numbers the ranks of a node in a row:
     * gathers stay within the node. Ranks of the same number in their groups are replicas. */
    bool hybrid = c->strategy == HYBRID_SHARD || c->strategy == HYBRID_SHARD_ZERO2;
    int size = hybrid ? c->shard_group_size : c->strategy == NO_SHARD ? 1 : world->size;
    if (size < 1 || world->size % size != 0)
        return error_set(err, ERR_CONFIG,
                         "a shard group of %d ranks does not divide the %d ranks of the job", size,
                         world->size);
    shard->group_size = size;
    shard->group_rank = world->rank % size;
    shard->is_first_replica = world->rank < size;
    if (open_group(shard, world, size, world->rank / size, &shard->group, err) < 0 ||
        open_group(shard, world, world->size / size, world->rank % size, &shard->replicas, err) <
            0 ||
        open_reducer(shard, world, err) < 0)
        return error_wrap(err, "shard groups of %d ranks", size);
    return 0;
}

static int open_streams(struct shard *shard, struct device *shard_device, struct error *err)
{
    struct device *device = stream_device(shard->compute);
    shard->update = shard->compute;
    shard->in_place = shard->group_size == 1 && !shard->offload;
    const struct shard_config *c = &shard->config;
    bool each = shard_reduces_each(c->accumulate_sharded, c->strategy);
    shard->gradient_in_place =
        shard->in_place && (c->slots == 0 || slots_sum_in_place(shard->slots, each));
    shard->update_beside = shard->config.update_beside && !shard->offload;
    if ((shard->offload || shard->update_beside) &&
        stream_open(shard_device, shard->offload ? "home" : "update", &shard->update, err) < 0) {
        shard->update = NULL;
        return -1;
    }
    /* High priority: a collective waits for other ranks' collectives, so a delay behind our own
     * kernels would delay all of them. */
    if (stream_open_high_priority(device, "transfer", &shard->transfer, err) < 0)
        return -1;
    shard->reduces = shard->transfer;
    if (shard->reducer && shard->reducer->is_concurrent &&
        stream_open_high_priority(device, "reduces", &shard->reduces, err) < 0)
        return -1;
    return event_open(device, &shard->reached, err);
}

/* In the window, where the unit has a slice there. */
static int alloc_slice(struct device *shard_device, enum memory_kind kind, enum dtype t,
                       const char *of, const struct layout_unit *unit,
                       const struct shard_window *window, void **ret_slice, struct error *err)
{
    char what[128];
    *ret_slice = window ? shard_window_slice(window, unit) : NULL;
    if (*ret_slice)
        return 0;
    snprintf(what, sizeof what, "%s of unit \"%s\"", of, unit->module->path);
    return device_alloc(shard_device, kind, (size_t)unit->shard_count * dtype_bytes(t), what,
                        ret_slice, err);
}

static int open_unit(struct shard *shard, struct device *shard_device,
                     const struct layout_unit *layout, struct unit *u, struct error *err)
{
    struct device *device = stream_device(shard->compute);
    u->layout = layout;
    u->view = (struct shard_unit){.module = layout->module,
                                  .count = layout->count,
                                  .flat_count = layout->flat_count,
                                  .shard_count = layout->shard_count};
    if (event_open(device, &u->gathered, err) < 0 || event_open(device, &u->reduced, err) < 0 ||
        event_open(device, &u->updated, err) < 0)
        return -1;
    if (layout->shard_count == 0)
        return 0;
    const struct shard_config *c = &shard->config;
    const struct shard_window *gathers = &shard->gathers;
    bool has_copy = c->param_dtype != c->slice_dtype;
    void *gradient;
    if (alloc_slice(shard_device, MEMORY_SHARD, c->slice_dtype, "slice", layout,
                    has_copy ? NULL : gathers, &u->view.value, err) < 0 ||
        alloc_slice(shard_device, MEMORY_GRADIENT, DTYPE_F32, "gradient", layout,
                    &shard->reductions, &gradient, err) < 0)
        return -1;
    u->view.gradient = gradient;
    u->compute_shard = u->view.value;
    if (has_copy) {
        if (alloc_slice(shard_device, MEMORY_SHARD, c->param_dtype, "copy", layout, gathers,
                        &u->view.copy, err) < 0)
            return -1;
        u->compute_shard = u->view.copy;
    }
    return shard_open_fp8(shard, u, err);
}

/* For gradients between ranks in another dtype: of units that have no place in the window. */
static int open_packed(struct shard *shard, struct error *err)
{
    const struct shard_window *window = &shard->reductions;
    int64_t largest = 0;
    for (int i = 0; i < shard->layout.unit_count; i++) {
        const struct layout_unit *unit = &shard->layout.units[i];
        if (!shard_window_has(window, unit) && unit->flat_count > largest)
            largest = unit->flat_count;
    }
    if (largest == 0 && window->memory) {
        shard->packed = window->memory + window->plan.shared;
        return 0;
    }
    return device_alloc(stream_device(shard->compute), MEMORY_GRADIENT,
                        (size_t)largest * dtype_bytes(shard->config.reduce_dtype),
                        "gradients between ranks", &shard->packed, err);
}

static int open_received(struct shard *shard, const struct layout_unit *largest, struct error *err)
{
    int64_t count = shard_slots_piece(shard, largest) * shard->slots.ranks;
    return device_alloc(stream_device(shard->compute), MEMORY_GRADIENT,
                        (size_t)count * dtype_bytes(shard->config.reduce_dtype),
                        "gradients of slots", &shard->received, err);
}

/* Allocates buffers for gradients between ranks and on their way to the shard device. */
static int open_scratch(struct shard *shard, struct device *shard_device,
                        const struct layout_unit *largest, struct error *err)
{
    struct device *device = stream_device(shard->compute);
    const struct shard_config *c = &shard->config;
    void *unpacked, *sum, *arrival;
    bool has_slots = shard->slots.count > 0;
    if (has_slots && shard->slots.ranks > 1 && open_received(shard, largest, err) < 0)
        return -1;
    if (c->reduce_dtype != DTYPE_F32 && (shard->group || shard->replicas || has_slots) &&
        open_packed(shard, err) < 0)
        return -1;
    if (!shard->offload)
        return 0;
    if (shard->packed && alloc_slice(device, MEMORY_GRADIENT, DTYPE_F32, "reduced gradient",
                                     largest, NULL, &unpacked, err) < 0)
        return -1;
    shard->unpacked = shard->packed ? unpacked : NULL;
    if (device_alloc(device, MEMORY_INPUT, SHARD_MAX_SUMS * sizeof(double), "sums", &sum, err) < 0)
        return -1;
    shard->sum = sum;
    if (!c->accumulate_sharded)
        return 0;
    if (alloc_slice(shard_device, MEMORY_GRADIENT, DTYPE_F32, "arriving gradient", largest, NULL,
                    &arrival, err) < 0)
        return -1;
    shard->arrival = arrival;
    return 0;
}

static int open_units(struct shard *shard, struct device *shard_device, struct error *err)
{
    const struct layout_unit *largest = &shard->layout.units[0];
    for (; shard->unit_count < shard->layout.unit_count; shard->unit_count++) {
        const struct layout_unit *layout = &shard->layout.units[shard->unit_count];
        if (open_unit(shard, shard_device, layout, &shard->units[shard->unit_count], err) < 0) {
            shard->unit_count++;
            return -1;
        }
        /* All units share one scratch buffer, of the size of the largest. */
        if (layout->shard_count > largest->shard_count)
            largest = layout;
    }
    return shard_open_messages(shard, err) < 0 ? -1
                                               : open_scratch(shard, shard_device, largest, err);
}

static void lay_out(struct shard *shard, struct module *root)
{
    int parts = shard->slots.count > 0 ? shard->slots.ranks : shard->group_size;
    shard_layout_make(shard->arena, root, shard->group_size, parts, &shard->layout);
    shard->ranges =
        shard_layout_ranges(shard->arena, &shard->layout, shard->group_rank, &shard->range_count);
    int units = shard->layout.unit_count;
    shard->units = arena_array(shard->arena, struct unit, units);
    shard->entered.units = arena_array(shard->arena, int, units);
    shard->entered_before.units = arena_array(shard->arena, int, units);
    shard->left.units = arena_array(shard->arena, int, units);
}

int shard_open(const struct shard_config *config, struct stream *compute,
               struct device *shard_device, struct comm *world, struct module *root,
               struct shard **ret_shard, struct error *err)
{
    assert(config->slice_dtype == DTYPE_F32 || config->slice_dtype == config->param_dtype);
    struct arena *arena = arena_open();
    struct shard *shard = arena_new(arena, struct shard);
    shard->arena = arena;
    shard->config = *config;
    shard->compute = compute;
    shard->reshard_after_forward =
        config->strategy == FULL_SHARD || config->strategy == HYBRID_SHARD;
    shard->offload = shard_device != stream_device(compute);
    if (open_comms(shard, world, err) < 0)
        goto fail;
    shard_open_slots(shard, world);
    lay_out(shard, root);
    if (open_streams(shard, shard_device, err) < 0 || shard_open_windows(shard, err) < 0 ||
        open_units(shard, shard_device, err) < 0)
        goto fail;
    *ret_shard = shard;
    return 0;
fail:
    shard_close(shard);
    return -1;
}

/* What lies in a window is its communicator's. */
static void free_outside(struct shard *shard, struct device *device, void *memory)
{
    if (!shard_window_holds(&shard->gathers, memory) &&
        !shard_window_holds(&shard->reductions, memory))
        device_free(device, memory);
}

static void close_unit(struct shard *shard, struct unit *u)
{
    struct device *shard_device = stream_device(shard->update);
    free_outside(shard, shard_device, u->view.copy);
    free_outside(shard, shard_device, u->view.value);
    free_outside(shard, shard_device, u->view.gradient);
    shard_close_fp8(shard, u);
    event_close(u->gathered);
    event_close(u->reduced);
    event_close(u->updated);
}

void shard_close(struct shard *shard)
{
    if (!shard)
        return;
    if (shard->transfer) {
        struct error ignored; /* whoever cares has called shard_sync() */
        shard_sync(shard, &ignored);
        shard_reshard_all(shard);
        shard_free_gradients(shard);
    }
    for (int i = 0; i < shard->unit_count; i++)
        close_unit(shard, &shard->units[i]);
    if (shard->arrival)
        device_free(stream_device(shard->update), shard->arrival);
    device_free(stream_device(shard->compute), shard->messages);
    device_free(stream_device(shard->compute), shard->staged);
    device_free(stream_device(shard->compute), shard->sum);
    free_outside(shard, stream_device(shard->compute), shard->packed);
    device_free(stream_device(shard->compute), shard->received);
    device_free(stream_device(shard->compute), shard->unpacked);
    event_close(shard->reached);
    if (shard->reduces != shard->transfer)
        stream_close(shard->reduces);
    stream_close(shard->transfer);
    if (shard->update != shard->compute)
        stream_close(shard->update);
    while (shard->opened_count > 0)
        comm_close(shard->opened[--shard->opened_count]);
    arena_close(shard->arena);
}

static int sync_all(struct stream *const *streams, size_t count, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < count; i++) {
        struct error later;
        /* All are waited for, also after a failure: memory that a stream may still use is freed
         * next. The first error is the cause. */
        if (stream_sync(streams[i], result < 0 ? &later : err) < 0)
            result = -1;
    }
    return result;
}

int shard_sync(struct shard *shard, struct error *err)
{
    struct stream *streams[] = {shard->transfer, shard->reduces, shard->compute, shard->update};
    return sync_all(streams, array_length(streams), err);
}

int shard_sync_pass(struct shard *shard, struct error *err)
{
    struct stream *streams[] = {shard->transfer, shard->reduces, shard->compute};
    return shard->update_beside ? sync_all(streams, array_length(streams), err)
                                : shard_sync(shard, err);
}

/* ---- what others see ---- */

enum dtype shard_dtype(const struct shard *shard)
{
    return shard->config.slice_dtype;
}

struct stream *shard_update_stream(const struct shard *shard)
{
    return shard->update;
}

int shard_unit_count(const struct shard *shard)
{
    return shard->unit_count;
}

const struct shard_unit *shard_get_unit(const struct shard *shard, int unit)
{
    assert(unit >= 0 && unit < shard->unit_count);
    return &shard->units[unit].view;
}

int shard_group_size(const struct shard *shard)
{
    return shard->group_size;
}

bool shard_has_slots(const struct shard *shard)
{
    return shard->slots.count > 0;
}

bool shard_is_first_replica(const struct shard *shard)
{
    return shard->is_first_replica;
}

const struct param_range *shard_ranges(const struct shard *shard, int *ret_count)
{
    *ret_count = shard->range_count;
    return shard->ranges;
}

void shard_add_traffic(const struct shard *shard, struct comm_stats *stats)
{
    for (int i = 0; i < shard->opened_count; i++)
        comm_stats_add(stats, &shard->opened[i]->stats);
}

const char *shard_strategy_name(enum shard_strategy strategy)
{
    static const char *const names[] = {
        [FULL_SHARD] = "FULL_SHARD",
        [SHARD_GRAD_OP] = "SHARD_GRAD_OP",
        [NO_SHARD] = "NO_SHARD",
        [HYBRID_SHARD] = "HYBRID_SHARD",
        [HYBRID_SHARD_ZERO2] = "HYBRID_SHARD_ZERO2",
    };
    return names[strategy];
}
