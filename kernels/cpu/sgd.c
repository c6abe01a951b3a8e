/* Stochastic gradient descent with momentum, as torch.optim.SGD with dampening 0. */
#include "kernels/cpu/cpu.h"

struct sgd_args {
    float *w;
    const float *g;
    float *m;
    float lr, momentum;
    float of_g, of_m; /* the update is of_g * g + of_m * m */
    float weight_decay;
};

CPU_HOT static void plain_piece(const void *args, int64_t first, int64_t last)
{
    const struct sgd_args *a = args;
    float *w = a->w, lr = a->lr, weight_decay = a->weight_decay;
#pragma omp simd
    for (int64_t i = first; i < last; i++)
        w[i] -= lr * (a->g[i] + weight_decay * w[i]);
}

/* m starts at 0, so the first step sets m = g. */
CPU_HOT static void momentum_piece(const void *args, int64_t first, int64_t last)
{
    const struct sgd_args *a = args;
    float *w = a->w, *m = a->m, lr = a->lr, momentum = a->momentum;
    float of_g = a->of_g, of_m = a->of_m, weight_decay = a->weight_decay;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float g = a->g[i] + weight_decay * w[i];
        m[i] = momentum * m[i] + g;
        w[i] -= lr * (of_g * g + of_m * m[i]);
    }
}

void cpu_sgd(struct stream *s, float *w, const float *g, float *m, int64_t count, float lr,
             float momentum, bool nesterov, float weight_decay, int64_t step)
{
    assert(step >= 1 && (m || momentum == 0));
    struct sgd_args args = {w, g, m, lr, momentum, .weight_decay = weight_decay};
    args.of_g = nesterov ? 1 : 0;
    args.of_m = nesterov ? momentum : 1;
    cpu_queue_pieces(s, __func__, m ? momentum_piece : plain_piece, count, CPU_GRAIN, &args,
                     sizeof args);
}
