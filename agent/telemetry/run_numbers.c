#include "agent/telemetry/run_numbers.h"

const char *run_phase_name(enum run_phase phase)
{
    static const char *const names[RUN_PHASES] = {
        [PHASE_DATA] = "data",           [PHASE_FORWARD] = "forward",
        [PHASE_BACKWARD] = "backward",   [PHASE_COMMUNICATION] = "communication",
        [PHASE_OPTIMIZER] = "optimizer", [PHASE_CHECKPOINT] = "checkpoint",
        [PHASE_EVAL] = "eval",
    };
    return names[phase];
}

const char *run_collective_name(enum run_collective collective)
{
    static const char *const names[RUN_COLLECTIVES] = {
        [RUN_ALL_GATHER] = "all_gather",
        [RUN_REDUCE_SCATTER] = "reduce_scatter",
        [RUN_ALL_REDUCE] = "all_reduce",
        [RUN_BROADCAST] = "broadcast",
    };
    return names[collective];
}

const char *run_convention_name(enum run_convention convention)
{
    return convention == FLOPS_CAUSAL ? "causal" : "full";
}
