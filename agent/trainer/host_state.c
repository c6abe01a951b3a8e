#include "agent/trainer/host_state.h"

#include <string.h>

static void *device_tensor(const struct host_state *host, int unit, int tensor)
{
    return tensor == 0 ? shard_get_unit(host->shard, unit)->value
                       : optim_state(host->optim, unit, tensor - 1);
}

static struct tensor_range tensor_range_of(const struct host_state *host,
                                           const struct param_range *range, int tensor)
{
    const struct param *param = range->param;
    enum dtype dtype = shard_dtype(host->shard);
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
        out.name = arena_printf(host->arena, "%s.%s", param->name,
                                optim_state_name(host->optim, tensor - 1));
    return out;
}

int64_t host_state_bytes(struct shard *shard, struct optim *optim)
{
    int64_t count = 0;
    for (int u = 0; u < shard_unit_count(shard); u++)
        count += shard_get_unit(shard, u)->shard_count;
    return count * (int64_t)dtype_bytes(shard_dtype(shard)) * (1 + optim_state_count(optim));
}

void host_state_open(struct shard *shard, struct optim *optim, void *memory,
                     struct host_state *host)
{
    *host = (struct host_state){.arena = arena_open(), .shard = shard, .optim = optim};
    host->tensors = 1 + optim_state_count(optim);
    int unit_count = shard_unit_count(shard);
    host->units = arena_array(host->arena, struct host_unit, unit_count);
    char *at = memory ? memory : arena_alloc(host->arena, (size_t)host_state_bytes(shard, optim));
    for (int u = 0; u < unit_count; u++) {
        size_t bytes =
            (size_t)shard_get_unit(shard, u)->shard_count * dtype_bytes(shard_dtype(shard));
        for (int i = 0; i < host->tensors; i++, at += bytes)
            host->units[u].tensor[i] = at;
    }
    int count = 0, filled = 0;
    const struct param_range *ranges = shard_ranges(shard, &count);
    struct tensor_range *items =
        arena_array(host->arena, struct tensor_range, count * host->tensors);
    for (int i = 0; i < host->tensors; i++)
        for (int p = 0; p < count; p++)
            items[filled++] = tensor_range_of(host, &ranges[p], i);
    /* Tensor 0 is the weights, those behind it the optimizer's states: so both parts are runs of
     * one array. */
    host->parts[CHECKPOINT_MODEL] = (struct tensor_ranges){items, count};
    host->parts[CHECKPOINT_OPTIMIZER] =
        (struct tensor_ranges){items + count, count * (host->tensors - 1)};
}

void host_state_close(struct host_state *host)
{
    arena_close(host->arena);
}

int host_state_copy(const struct host_state *host, enum host_state_way way, struct error *err)
{
    for (int u = 0; u < shard_unit_count(host->shard); u++) {
        int64_t count = shard_get_unit(host->shard, u)->shard_count;
        for (int i = 0; i < host->tensors; i++) {
            void *there = device_tensor(host, u, i);
            void *here = host->units[u].tensor[i];
            if (way == TO_HOST)
                shard_read(host->shard, here, there, count);
            else
                shard_write(host->shard, there, here, count);
        }
    }
    return shard_sync(host->shard, err);
}

void host_state_each(const struct host_state *host,
                     void (*visit)(void *ctx, void *here, void *there, size_t bytes), void *ctx)
{
    const size_t size = dtype_bytes(shard_dtype(host->shard));
    for (int u = 0; u < shard_unit_count(host->shard); u++)
        for (int i = 0; i < host->tensors; i++)
            visit(ctx, host->units[u].tensor[i], device_tensor(host, u, i),
                  (size_t)shard_get_unit(host->shard, u)->shard_count * size);
}
