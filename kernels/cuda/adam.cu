/* Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as torch.optim. */
#include "kernels/cuda/ops.h"
#include "kernels/cuda/update.h"

#include <math.h>

struct adam_rule {
    float beta1, beta2, eps;
    float l2_decay;    /* added to the gradient: Adam's */
    float keep;        /* what decoupled decay leaves of a weight: AdamW's */
    float step_size;   /* lr / (1 - beta1^step) */
    float root_second; /* sqrt(1 - beta2^step) */

    __device__ void step(float *w, float grad, float *m, float *v) const
    {
        float g = fmaf(l2_decay, *w, grad);
        *m = fmaf(1 - beta1, g - *m, *m);
        *v = fmaf((1 - beta2) * g, g, beta2 * *v);
        float update = *m / (sqrtf(*v) / root_second + eps);
        *w = fmaf(-step_size, update, keep * *w);
    }
};

void cuda_adam(struct stream *s, enum dtype t, void *w, const float *g, void *m, void *v,
               int64_t count, const struct adam_step *step, const struct update_extras *extras,
               uint64_t key, uint64_t first)
{
    assert(step->step >= 1);
    struct adam_rule rule;
    rule.beta1 = step->beta1;
    rule.beta2 = step->beta2;
    rule.eps = step->eps;
    rule.l2_decay = step->decoupled ? 0 : step->weight_decay;
    rule.keep = step->decoupled ? 1 - step->lr * step->weight_decay : 1;
    rule.step_size = (float)(step->lr / (1 - pow(step->beta1, (double)step->step)));
    rule.root_second = (float)sqrt(1 - pow(step->beta2, (double)step->step));
    update_queue<2>(s, t, {w, g, m, v, count, key, first, update_extras_of(extras)}, rule);
}
