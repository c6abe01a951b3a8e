/* Adadelta (Zeiler 2012), as torch.optim.Adadelta. */
#include "agent/shard/optim_kind.h"

#include "kernels/ops.h"

static void step(const struct optim_config *c, const struct optim_range *p)
{
    const struct adadelta_step step = {p->lr, c->rho, c->eps, p->weight_decay};
    device_ops(stream_device(p->stream))
        ->adadelta(p->stream, p->dtype, p->weights, p->gradient, p->states[0], p->states[1],
                   p->count, &step, &p->extras, p->key, p->first);
}

const struct optim_kind optim_adadelta = {
    .name = "adadelta",
    .states = {"square_avg", "acc_delta"},
    .uses = OPTIM_USES_RHO | OPTIM_USES_EPS,
    .rho = 0.9,
    .eps = 1e-6,
    .step = step,
};
