/* Adadelta (Zeiler 2012), as torch.optim.Adadelta. */
#include "kernels/cpu/cpu.h"

#include <math.h>

struct adadelta_args {
    float *w;
    const float *g;
    float *v, *u;
    float lr, rho, eps, weight_decay;
};

CPU_HOT static void adadelta_piece(const void *args, int64_t first, int64_t last)
{
    const struct adadelta_args *a = args;
    float *w = a->w, *v = a->v, *u = a->u;
    float lr = a->lr, rho = a->rho, eps = a->eps, weight_decay = a->weight_decay;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float g = a->g[i] + weight_decay * w[i];
        v[i] = rho * v[i] + (1 - rho) * g * g;
        float update = sqrtf(u[i] + eps) / sqrtf(v[i] + eps) * g;
        u[i] = rho * u[i] + (1 - rho) * update * update;
        w[i] -= lr * update;
    }
}

void cpu_adadelta(struct stream *s, float *w, const float *g, float *v, float *u, int64_t count,
                  float lr, float rho, float eps, float weight_decay)
{
    cpu_call_pieces(s, adadelta_piece, count, CPU_GRAIN, struct adadelta_args, w, g, v, u, lr, rho,
                    eps, weight_decay);
}
