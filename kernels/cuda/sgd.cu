/* Stochastic gradient descent with momentum, as torch.optim.SGD with dampening 0. */
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/ops.h"

enum { THREADS = 256, N = NUMBERS<float> };

struct settings {
    float lr, momentum;
    float of_g, of_m; /* the update is of_g * g + of_m * m */
    float weight_decay;
};

/* m: NULL without momentum. It starts at 0, so that the first step sets it to the gradient. */
static __global__ void sgd_kernel(float *w, const float *g, float *m, int64_t count,
                                  struct settings a)
{
    for (int64_t i = N * grid_thread(); i < count; i += N * grid_threads()) {
        float weight[N], grad[N], moved[N] = {};
        numbers_load(weight, w + i, count - i);
        numbers_load(grad, g + i, count - i);
        if (m)
            numbers_load(moved, m + i, count - i);
        for (int j = 0; j < N; j++) {
            const float d = grad[j] + a.weight_decay * weight[j];
            moved[j] = a.momentum * moved[j] + d;
            weight[j] -= a.lr * (a.of_g * d + a.of_m * moved[j]);
        }
        numbers_store(w + i, weight, count - i);
        if (m)
            numbers_store(m + i, moved, count - i);
    }
}

void cuda_sgd(struct stream *s, float *w, const float *g, float *m, int64_t count, float lr,
              float momentum, bool nesterov, float weight_decay, int64_t step)
{
    assert(step >= 1 && (m || momentum == 0));
    const struct settings settings = {lr, momentum, nesterov ? 1.0f : 0.0f,
                                      nesterov ? momentum : 1.0f, weight_decay};
    if (count > 0)
        CUDA_LAUNCH(s, sgd_kernel,
                    cuda_blocks((count + N - 1) / N, THREADS, 16 * cuda_multiprocessors(s)),
                    THREADS, 0, w, g, m, count, settings);
}
