/* Stochastic gradient descent with momentum, as torch.optim.SGD with dampening 0. */
#include "kernels/cuda/ops.h"
#include "kernels/cuda/update.h"

struct plain_rule {
    float lr, weight_decay;

    __device__ void step(float *w, float grad, float *, float *) const
    {
        *w = fmaf(-lr, fmaf(weight_decay, *w, grad), *w);
    }
};

/* m starts at 0, so that the first step sets it to the gradient. */
struct momentum_rule {
    float lr, weight_decay, momentum;
    float gradient_coefficient, momentum_coefficient; /* the update is gradient_coefficient * g +
                                                         momentum_coefficient * m */

    __device__ void step(float *w, float grad, float *m, float *) const
    {
        float g = fmaf(weight_decay, *w, grad);
        *m = fmaf(momentum, *m, g);
        *w = fmaf(-lr, fmaf(momentum_coefficient, *m, gradient_coefficient * g), *w);
    }
};

void cuda_sgd(struct stream *s, enum dtype t, void *w, const float *g, void *m, int64_t count,
              const struct sgd_step *step, const struct update_extras *extras, uint64_t key,
              uint64_t first)
{
    assert(m || step->momentum == 0);
    const struct update u = {w, g, m, nullptr, count, key, first, update_extras_of(extras)};
    if (m)
        update_queue<1>(s, t, u,
                        momentum_rule{step->lr, step->weight_decay, step->momentum,
                                      step->nesterov ? 1.0f : 0.0f,
                                      step->nesterov ? step->momentum : 1.0f});
    else
        update_queue<0>(s, t, u, plain_rule{step->lr, step->weight_decay});
}
