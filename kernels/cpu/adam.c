/* Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as torch.optim. */
#include "kernels/cpu/cpu.h"

#include <math.h>

struct adam_args {
    float *w;
    const float *g;
    float *m, *v;
    float beta1, beta2, eps;
    float l2_decay;    /* added to the gradient: Adam's */
    float keep;        /* what decoupled decay leaves of a weight: AdamW's */
    float step_size;   /* lr / (1 - beta1^step) */
    float root_second; /* sqrt(1 - beta2^step) */
};

CPU_HOT static void adam_piece(const void *args, int64_t first, int64_t last)
{
    const struct adam_args a = *(const struct adam_args *)args;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float g = a.g[i] + a.l2_decay * a.w[i];
        a.m[i] += (1 - a.beta1) * (g - a.m[i]);
        a.v[i] = a.beta2 * a.v[i] + (1 - a.beta2) * g * g;
        float update = a.m[i] / (sqrtf(a.v[i]) / a.root_second + a.eps);
        a.w[i] = a.keep * a.w[i] - a.step_size * update;
    }
}

void cpu_adam(struct stream *s, enum dtype t, void *w, const float *g, void *m, void *v,
              int64_t count, const struct adam_step *step, uint64_t key, uint64_t first)
{
    assert(step->step >= 1 && t == DTYPE_F32);
    (void)key, (void)first;
    struct adam_args args = {
        .w = w,
        .g = g,
        .m = m,
        .v = v,
        .beta1 = step->beta1,
        .beta2 = step->beta2,
        .eps = step->eps,
        .l2_decay = step->decoupled ? 0 : step->weight_decay,
        .keep = step->decoupled ? 1 - step->lr * step->weight_decay : 1,
        .step_size = (float)(step->lr / (1 - pow(step->beta1, (double)step->step))),
        .root_second = (float)sqrt(1 - pow(step->beta2, (double)step->step)),
    };
    cpu_queue_pieces(s, adam_piece, count, CPU_GRAIN, &args, sizeof args);
}
