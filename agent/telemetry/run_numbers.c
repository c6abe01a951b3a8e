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

const char *run_convention_name(enum run_convention convention)
{
    return convention == FLOPS_CAUSAL ? "causal" : "full";
}
