#include "tests/agent/world_result.h"

#include "base/mem.h"
#include "tests/agent/world_data.h"

#include <stdlib.h>
#include <string.h>

/* Parameters in declaration order may be anywhere in the tree: counts first, then their sums. */
static void count_params(const struct module *m, struct world_result *result)
{
    for (int k = 0; k < m->param_count; k++)
        result->offsets[m->params[k]->index + 1] = m->params[k]->count;
    for (int i = 0; i < m->child_count; i++)
        count_params(m->children[i], result);
}

void world_result_open(const struct world *world, struct world_result *result)
{
    auto_arena struct arena *arena = arena_open();
    *result = (struct world_result){0};
    count_params(world_model(arena, world)->root, result);
    for (int i = 0; i < WORLD_MAX_PARAMS; i++)
        result->offsets[i + 1] += result->offsets[i];
    result->count = result->offsets[WORLD_MAX_PARAMS];
    result->gradients = xcalloc((size_t)result->count, sizeof(float));
    result->gathered = xcalloc((size_t)result->count, sizeof(float));
    result->weights = xcalloc((size_t)result->count, sizeof(float));
}

void world_result_free(struct world_result *result)
{
    free(result->gradients);
    free(result->weights);
    free(result->gathered);
}

/* Copies the ranges of a unit's slice out of it; what is left is padding and must be 0. */
static int collect_unit(struct shard *shard, int u, bool gradients, const int64_t *offsets,
                        float *into, struct error *err)
{
    int count;
    const struct param_range *ranges = shard_ranges(shard, &count);
    const struct shard_unit *unit = shard_get_unit(shard, u);
    int64_t size = unit->shard_count;
    auto_free float *host = xcalloc((size_t)size, sizeof *host);
    if (gradients)
        stream_copy(shard_update_stream(shard), host, unit->gradient, (size_t)size * sizeof *host);
    else
        shard_read(shard, host, unit->value, size);
    if (stream_sync(shard_update_stream(shard), err) < 0)
        return -1;
    bool is_bf16 = !gradients && shard_dtype(shard) == DTYPE_BF16;
    for (int64_t i = size - 1; is_bf16 && i >= 0; i--) { /* from behind: none is overwritten */
        bf16 x;
        memcpy(&x, (const char *)host + i * (int64_t)sizeof x, sizeof x);
        host[i] = bf16_to_float(x);
    }
    for (int i = 0; i < count; i++) {
        const struct param_range *p = &ranges[i];
        size_t bytes = (size_t)p->count * sizeof *host;
        if (p->unit != u)
            continue;
        if (shard_is_first_replica(shard))
            memcpy(into + offsets[p->param->index] + p->param_offset, host + p->shard_offset,
                   bytes);
        memset(host + p->shard_offset, 0, bytes);
    }
    for (int64_t i = 0; i < size; i++)
        if (host[i] != 0)
            return error_set(err, ERR_SHAPE, "padding of unit %d is %g", u, (double)host[i]);
    return 0;
}

int world_collect(struct shard *shard, bool gradients, const int64_t *offsets, float *into,
                  struct error *err)
{
    for (int u = 0; u < shard_unit_count(shard); u++)
        if (collect_unit(shard, u, gradients, offsets, into, err) < 0)
            return -1;
    return 0;
}

int world_gather(struct shard *shard, const struct module *m, const int64_t *offsets, float *into,
                 struct error *err)
{
    for (int k = 0; k < m->param_count; k++) {
        const struct param *p = m->params[k];
        auto_free float *values = xcalloc((size_t)p->count, sizeof *values);
        if (shard_gather_param(shard, p, values, err) < 0)
            return -1;
        if (into)
            memcpy(into + offsets[p->index], values, (size_t)p->count * sizeof *values);
    }
    for (int i = 0; i < m->child_count; i++)
        if (world_gather(shard, m->children[i], offsets, into, err) < 0)
            return -1;
    return 0;
}
