/* What would make a rank's part smaller: each choice is planned and named with what it saves. */
#include "agent/plan/run_plan_facts.h"

#include "agent/config/config.h"
#include "base/gigabytes.h"
#include "base/mem.h"

#include <stdlib.h>

struct saving {
    const char *flag;
    int64_t bytes;
};

static int more(const void *a, const void *b)
{
    const struct saving *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Bytes on a rank's device. */
static int plan(const struct agent_config *c, const struct model *model,
                const struct run_plan_world *world, enum shard_strategy strategy,
                int64_t *ret_bytes, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct run_plan_facts facts;
    struct run_plan made;
    if (run_plan_facts_make(c, model, world, arena, &facts, err) < 0)
        return -1;
    run_plan_make(&facts, &made);
    *ret_bytes = made.strategies[strategy - FULL_SHARD].device;
    return 0;
}

int run_plan_savings(const struct agent_config *config, const struct model *model,
                     const struct run_plan_world *world, enum shard_strategy strategy,
                     struct str *out, struct error *err)
{
    struct agent_config every = *config, recomputes = *config, half = *config, offloads = *config;
    every.optimizer.accumulation_sync = ACCUMULATE_EVERY;
    recomputes.memory.activation_checkpointing = RECOMPUTE_FULL;
    half.data.train_batch_size /= 2;
    offloads.memory.cpu_offload = true;
    const struct {
        const char *flag;
        bool applies;
        const struct agent_config *config;
        enum shard_strategy strategy;
    } rows[] = {
        {"--accumulation_sync=every", config->optimizer.gradient_accumulation_steps > 1, &every,
         strategy},
        {"--activation_checkpointing=full", true, &recomputes, strategy},
        {"a half of --train_batch_size", config->data.train_batch_size > 1, &half, strategy},
        {"--sharding_strategy=full", world->world_size > 1, config, FULL_SHARD},
        {"--cpu_offload (slow)", true, &offloads, strategy},
    };
    struct saving savings[array_length(rows)];
    size_t count = 0;
    int64_t now;
    if (plan(config, model, world, strategy, &now, err))
        return -1;
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t then;
        if (!rows[i].applies)
            continue;
        if (plan(rows[i].config, model, world, rows[i].strategy, &then, err))
            return -1;
        if (now - then > now / 100) /* the rest is not worth a word */
            savings[count++] = (struct saving){rows[i].flag, now - then};
    }
    qsort(savings, count, sizeof *savings, more);
    for (size_t i = 0; i < count; i++)
        str_printf(out, "%s%s saves %.3g GB", i ? ", " : "", savings[i].flag,
                   gigabytes(savings[i].bytes));
    str_add(out, count ? ", more GPUs share the rest" : "more GPUs");
    return 0;
}
