#include "agent/plan/run_plan_facts.h"
#include "base/gigabytes.h"
#include "base/mem.h"

void run_plan_print_fewest(const struct agent_config *c, const struct model *model,
                           const struct run_plan_world *fewest, enum shard_strategy strategy,
                           struct str *out)
{
    auto_arena struct arena *arena = arena_open();
    struct run_plan_facts facts;
    struct run_plan plan;
    struct error ignored;
    if (run_plan_facts_make(c, model, fewest, arena, &facts, &ignored))
        return;
    run_plan_make(&facts, &plan);
    const struct run_plan_strategy *s = &plan.strategies[strategy - FULL_SHARD];
    if (s->memory_checkpoints > 0)
        str_printf(
            out,
            "With %d rank%s, the fewest there may be, checkpoints in memory take %.3f GB per "
            "rank on the host, and %.3f GB more while they are cut anew\n",
            fewest->world_size, fewest->world_size == 1 ? "" : "s",
            gigabytes(s->memory_checkpoints), gigabytes(s->snapshot));
}
