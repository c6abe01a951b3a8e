#include "agent/plan/run_plan.h"

#include "agent/shard/wrap.h"

enum { NCCL_PART = 64, NCCL_MOST = 768 << 20 };

int64_t run_plan_libraries(int ranks, int64_t gpu_bytes)
{
    const int64_t nccl = gpu_bytes / NCCL_PART < NCCL_MOST ? gpu_bytes / NCCL_PART : NCCL_MOST;
    return RUN_PLAN_LIBRARIES + (ranks > 1 ? nccl : 0);
}

enum tape_checkpointing run_plan_least_recompute(const struct run_plan_facts *facts,
                                                 enum shard_strategy strategy, int64_t *ret_device)
{
    const int64_t most = (int64_t)RUN_PLAN_GPU_GB * 1000000000 - RUN_PLAN_LIBRARIES;
    enum tape_checkpointing configured = facts->activations.checkpointing;
    struct run_plan_facts f = *facts;
    struct run_plan plan;
    for (int c = TAPE_CHECKPOINTING_NONE; c <= (int)configured; c++) {
        f.activations.checkpointing = (enum tape_checkpointing)c;
        run_plan_make(&f, &plan);
        *ret_device = plan.strategies[strategy - FULL_SHARD].device;
        if (plan.activations > 0 && *ret_device <= most)
            return (enum tape_checkpointing)c;
    }
    return configured;
}

bool run_plan_units_are_small(int64_t parameters, int units)
{
    return units > 1 && parameters / units < WRAP_SMALL_UNIT;
}

struct run_plan_advice run_plan_advise(int64_t parameters)
{
    static const struct {
        int64_t below;
        struct run_plan_advice advice;
    } rows[] = {
        {INT64_C(1000000000), {"below 1B parameters", NO_SHARD, false, false, 1, 4, 1, 1}},
        {INT64_C(10000000000), {"1B to 10B parameters", SHARD_GRAD_OP, true, false, 4, 8, 1, 2}},
        {INT64_C(70000000000), {"10B to 70B parameters", FULL_SHARD, true, false, 8, 8, 2, 8}},
        {INT64_MAX, {"70B parameters and more", FULL_SHARD, true, true, 8, 8, 8, 32}},
    };
    int i = 0;
    while (parameters >= rows[i].below)
        i++;
    return rows[i].advice;
}
