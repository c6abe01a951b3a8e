#include "tests/agent/plan_facts.h"

#include "tests/support.h"

#include <math.h>

enum { LAYER_8B = 218112000, EMBEDDING_8B = 525336576 };

struct plan_unit plan_facts_units_1b[1 + PLAN_FACTS_LAYERS_1B];
static struct plan_unit units_8b[3 + PLAN_FACTS_LAYERS_8B];

int plan_facts_fill(void **state)
{
    (void)state;
    plan_facts_units_1b[0] = (struct plan_unit){PLAN_FACTS_EMBEDDING_1B + 2048, PLAN_ROOT, 0};
    for (int i = 0; i < PLAN_FACTS_LAYERS_1B; i++)
        plan_facts_units_1b[1 + i] = (struct plan_unit){PLAN_FACTS_LAYER_1B, PLAN_BLOCK, 0};
    units_8b[0] = (struct plan_unit){4096, PLAN_ROOT, 0};
    units_8b[1] = units_8b[2] = (struct plan_unit){EMBEDDING_8B, PLAN_OTHER, 0};
    for (int i = 0; i < PLAN_FACTS_LAYERS_8B; i++)
        units_8b[3 + i] = (struct plan_unit){LAYER_8B, PLAN_BLOCK, 0};
    return 0;
}

struct run_plan_facts plan_facts_1b(int world_size)
{
    return (struct run_plan_facts){
        .parameters = 1235814400,
        .units = plan_facts_units_1b,
        .unit_count = 1 + PLAN_FACTS_LAYERS_1B,
        .bytes = {2, 4, 8, 4, 4},
        .activations = {.L = PLAN_FACTS_LAYERS_1B,
                        .D = 2048,
                        .heads = 32,
                        .kv_heads = 8,
                        .hd = 64,
                        .I = 8192,
                        .logit_stride = 128256,
                        .gated = true,
                        .chunk_rows = 1024},
        .batch_rows = 1,
        .sequence_tokens = 8192,
        .world_size = world_size,
        .group_size = world_size < 8 ? world_size : 8,
        .micro_batches = 1,
    };
}

struct run_plan_facts plan_facts_8b(int world_size)
{
    struct run_plan_facts f = plan_facts_1b(world_size);
    f.parameters = 8030261248;
    f.units = units_8b;
    f.unit_count = 3 + PLAN_FACTS_LAYERS_8B;
    f.activations.L = PLAN_FACTS_LAYERS_8B;
    f.activations.D = 4096;
    f.activations.hd = 128;
    f.activations.I = 14336;
    return f;
}

struct run_plan_strategy plan_facts_strategy(const struct run_plan_facts *f, enum shard_strategy s)
{
    struct run_plan plan;
    run_plan_make(f, &plan);
    assert_int_equal(plan.strategies[s - FULL_SHARD].strategy, s);
    return plan.strategies[s - FULL_SHARD];
}

void plan_facts_assert_gb(int64_t bytes, double gb, const char *what)
{
    if (fabs((double)bytes / 1e9 - gb) > 0.06) /* the tables add rounded parts */
        fail_msg("%s: %.3f GB, not %.1f", what, (double)bytes / 1e9, gb);
}
