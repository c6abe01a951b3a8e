/* Whether a run may add up in any order, which gives up equal bits (runtime.deterministic). */
#include "agent/trainer/trainer_internal.h"

bool trainer_may_differ(const struct trainer *t)
{
    return !t->config->runtime.deterministic && trainer_is_language(t) &&
           !device_is_host(t->device);
}

void trainer_tell_order(struct trainer *t)
{
    if (t->config->runtime.deterministic || !trainer_is_language(t))
        return;
    t->listener->notice(
        t->listener->ctx,
        trainer_may_differ(t)
            ? "runtime.deterministic=false: where cuDNN does attention, its backward adds up in any "
              "order, and matrix products add up gradients of biases: two runs from the same start "
              "may differ in their last bits, as may one that is resumed, or goes on with other "
              "nodes"
            : "runtime.deterministic=false changes nothing: the model runs on the CPU, where equal "
              "runs have equal bits in any case");
}
