/* This rank's slices and optimizer state as named ranges in host memory. */
#include "agent/trainer/trainer_parts.h"

#include <string.h>

static void *device_tensor(const struct trainer *t, int unit, int tensor)
{
    return tensor == 0 ? shard_get_unit(t->shard, unit)->value
                       : optim_state(t->optim, unit, tensor - 1);
}

static struct tensor_range tensor_range_of(const struct trainer *t, const struct host_state *host,
                                           const struct param_range *range, int tensor)
{
    const struct param *param = range->param;
    enum dtype dtype = shard_dtype(t->shard);
    struct tensor_range out = {
        .name = param->name,
        .dims = param->dims,
        .first = range->param_offset,
        .count = range->count,
        .dtype = dtype,
        .data = host->units[range->unit].tensor[tensor] +
                (size_t)range->shard_offset * dtype_bytes(dtype),
    };
    memcpy(out.shape, param->shape, (size_t)param->dims * sizeof param->shape[0]);
    if (tensor > 0)
        out.name =
            arena_printf(host->arena, "%s.%s", param->name, optim_state_name(t->optim, tensor - 1));
    return out;
}

void host_state_open(const struct trainer *t, struct host_state *host)
{
    host->arena = arena_open();
    host->tensors = 1 + optim_state_count(t->optim);
    int unit_count = shard_unit_count(t->shard);
    host->units = arena_array(host->arena, struct host_unit, unit_count);
    size_t size = dtype_bytes(shard_dtype(t->shard));
    for (int u = 0; u < unit_count; u++)
        for (int i = 0; i < host->tensors; i++)
            host->units[u].tensor[i] =
                arena_alloc(host->arena, (size_t)shard_get_unit(t->shard, u)->shard_count * size);
    int count = 0, filled = 0;
    const struct param_range *ranges = shard_ranges(t->shard, &count);
    struct tensor_range *items =
        arena_array(host->arena, struct tensor_range, count * host->tensors);
    for (int i = 0; i < host->tensors; i++)
        for (int p = 0; p < count; p++)
            items[filled++] = tensor_range_of(t, host, &ranges[p], i);
    host->parts[CHECKPOINT_MODEL] = (struct tensor_ranges){items, count};
    host->parts[CHECKPOINT_OPTIMIZER] =
        (struct tensor_ranges){items + count, count * (host->tensors - 1)};
}

void host_state_close(struct host_state *host)
{
    arena_close(host->arena);
}

int host_state_copy(const struct trainer *t, const struct host_state *host, enum host_state_way way,
                    struct error *err)
{
    for (int u = 0; u < shard_unit_count(t->shard); u++) {
        int64_t count = shard_get_unit(t->shard, u)->shard_count;
        for (int i = 0; i < host->tensors; i++) {
            void *there = device_tensor(t, u, i);
            void *here = host->units[u].tensor[i];
            if (way == TO_HOST)
                shard_read(t->shard, here, there, count);
            else
                shard_write(t->shard, there, here, count);
        }
    }
    return shard_sync(t->shard, err);
}
