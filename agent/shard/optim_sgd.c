/* Stochastic gradient descent with momentum, as torch.optim.SGD. */
#include "agent/shard/optim_kind.h"

#include "kernels/ops.h"

static int state_count(const struct optim_config *c)
{
    return c->momentum > 0;
}

static void step(const struct optim_config *c, const struct optim_range *p)
{
    const struct sgd_step step = {p->lr, c->momentum, p->weight_decay, c->nesterov};
    device_ops(stream_device(p->stream))
        ->sgd(p->stream, p->dtype, p->weights, p->gradient, p->states[0], p->count, &step,
              &p->extras, p->key, p->first);
}

const struct optim_kind optim_sgd = {
    .name = "sgd",
    .states = {"momentum_buffer"},
    .state_count = state_count,
    .uses = OPTIM_USES_MOMENTUM,
    .step = step,
};
