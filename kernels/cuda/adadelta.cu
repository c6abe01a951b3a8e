/* Adadelta (Zeiler 2012), as torch.optim.Adadelta. */
#include "kernels/cuda/ops.h"
#include "kernels/cuda/update.h"

#include <math.h>

struct adadelta_rule {
    float lr, rho, eps, weight_decay;

    /* v: average of the gradient's squares; u: of the updates'. */
    __device__ void step(float *w, float grad, float *v, float *u) const
    {
        float g = fmaf(weight_decay, *w, grad);
        *v = fmaf((1 - rho) * g, g, rho * *v);
        float update = sqrtf(*u + eps) / sqrtf(*v + eps) * g;
        *u = fmaf((1 - rho) * update, update, rho * *u);
        *w = fmaf(-lr, update, *w);
    }
};

void cuda_adadelta(struct stream *s, enum dtype t, void *w, const float *g, void *v, void *u,
                   int64_t count, const struct adadelta_step *step,
                   const struct update_extras *extras, uint64_t key, uint64_t first)
{
    update_queue<2>(s, t, {w, g, v, u, count, key, first, update_extras_of(extras)},
                    adadelta_rule{step->lr, step->rho, step->eps, step->weight_decay});
}
