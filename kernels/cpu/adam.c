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

void cpu_adam(struct stream *s, float *w, const float *g, float *m, float *v, int64_t count,
              float lr, float beta1, float beta2, float eps, float weight_decay, bool decoupled,
              int64_t step)
{
    assert(step >= 1);
    struct adam_args args = {
        .w = w,
        .g = g,
        .m = m,
        .v = v,
        .beta1 = beta1,
        .beta2 = beta2,
        .eps = eps,
        .l2_decay = decoupled ? 0 : weight_decay,
        .keep = decoupled ? 1 - lr * weight_decay : 1,
        .step_size = (float)(lr / (1 - pow(beta1, (double)step))),
        .root_second = (float)sqrt(1 - pow(beta2, (double)step)),
    };
    cpu_queue_pieces(s, adam_piece, count, CPU_GRAIN, &args, sizeof args);
}
