/* The model in units, and how it will be cut into slices. */
#include "agent/comm/agree.h"
#include "agent/plan/run_plan.h"
#include "agent/trainer/build.h"
#include "agent/trainer/trainer_internal.h"

#include <stdio.h>

static int greatest_common_divisor(int a, int b)
{
    return b == 0 ? a : greatest_common_divisor(b, a % b);
}

/* HYBRID's groups: as asked for, or such that each node's ranks make whole ones. Collective. */
static int choose_group(struct trainer *t, struct error *err)
{
    int asked = (int)t->config->parallel.shard_group_size, world = t->world->size;
    bool hybrid = t->strategy == HYBRID_SHARD || t->strategy == HYBRID_SHARD_ZERO2;
    t->group_size = asked > 0 ? asked : t->env.local_size;
    if (asked == 0 && hybrid) {
        int32_t mine = t->env.local_size;
        auto_free int32_t *all = xcalloc((size_t)world, sizeof *all);
        if (agree_gather(t->world, t->compute, &mine, all, sizeof mine, err))
            return -1;
        for (int rank = 0; rank < world; rank++)
            /* Nodes may have different numbers of ranks: the greatest common divisor lets no group
             * span two nodes. */
            t->group_size = greatest_common_divisor(t->group_size, all[rank]);
    }
    if (!hybrid || world % t->group_size == 0)
        return 0;
    error_set(err, ERR_CONFIG,
              "parallel.shard_group_size: groups of %d ranks do not divide the %d ranks of the job",
              t->group_size, world);
    err->shared = true;
    return -1;
}

static void notify_strategy(struct trainer *t)
{
    char text[128];
    snprintf(text, sizeof text, "parallel.sharding_strategy=auto: %s, for %s",
             shard_strategy_name(t->strategy),
             run_plan_advise(module_param_count(t->model->root)).size);
    t->listener->notice(t->listener->ctx, text);
}

int trainer_open_model(struct trainer *t, struct error *err)
{
    int result = build_model(t->config, t->arena, &t->model, err);
    if (agree_all(t->world, t->compute, result, err))
        return -1;
    t->strategy = build_strategy(t->config, t->model);
    if (t->config->parallel.strategy == STRATEGY_AUTO)
        notify_strategy(t);
    return choose_group(t, err);
}
