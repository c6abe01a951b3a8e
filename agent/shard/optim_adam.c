/* Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as torch.optim's. */
#include "agent/shard/optim_kind.h"

#include "kernels/ops.h"

static void step(const struct optim_config *c, const struct optim_range *p)
{
    const struct adam_step step = {p->lr,           c->beta1,           c->beta2, c->eps,
                                   p->weight_decay, c->kind->decoupled, p->step};
    device_ops(stream_device(p->stream))
        ->adam(p->stream, p->dtype, p->weights, p->gradient, p->states[0], p->states[1], p->count,
               &step, &p->extras, p->key, p->first);
}

const struct optim_kind optim_adam = {
    .name = "adam",
    .states = {"exp_avg", "exp_avg_sq"},
    .uses = OPTIM_USES_BETAS | OPTIM_USES_EPS,
    .beta1 = 0.9,
    .beta2 = 0.999,
    .eps = 1e-8,
    .step = step,
};

/* Adam adds weight_decay * w to the gradient, AdamW shrinks the weight by lr * weight_decay itself:
 * so their defaults differ, too. */
const struct optim_kind optim_adamw = {
    .name = "adamw",
    .states = {"exp_avg", "exp_avg_sq"},
    .uses = OPTIM_USES_BETAS | OPTIM_USES_EPS,
    .beta1 = 0.9,
    .beta2 = 0.999,
    .eps = 1e-8,
    .decoupled = true,
    .weight_decay = 0.01,
    .step = step,
};
