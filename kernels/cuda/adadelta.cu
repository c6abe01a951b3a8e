/* Adadelta (Zeiler 2012), as torch.optim.Adadelta. */
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/ops.h"

enum { THREADS = 256, N = NUMBERS<float> };

struct settings {
    float lr, rho, eps, weight_decay;
};

static __global__ void adadelta_kernel(float *w, const float *g, float *v, float *u, int64_t count,
                                       struct settings a)
{
    for (int64_t i = N * grid_thread(); i < count; i += N * grid_threads()) {
        float weight[N], grad[N], second[N], updates[N];
        numbers_load(weight, w + i, count - i);
        numbers_load(grad, g + i, count - i);
        numbers_load(second, v + i, count - i);
        numbers_load(updates, u + i, count - i);
        for (int j = 0; j < N; j++) {
            const float d = grad[j] + a.weight_decay * weight[j];
            second[j] = a.rho * second[j] + (1 - a.rho) * d * d;
            const float update = sqrtf(updates[j] + a.eps) / sqrtf(second[j] + a.eps) * d;
            updates[j] = a.rho * updates[j] + (1 - a.rho) * update * update;
            weight[j] -= a.lr * update;
        }
        numbers_store(w + i, weight, count - i);
        numbers_store(v + i, second, count - i);
        numbers_store(u + i, updates, count - i);
    }
}

void cuda_adadelta(struct stream *s, float *w, const float *g, float *v, float *u, int64_t count,
                   float lr, float rho, float eps, float weight_decay)
{
    const struct settings settings = {lr, rho, eps, weight_decay};
    if (count > 0)
        CUDA_LAUNCH(s, adadelta_kernel,
                    cuda_blocks((count + N - 1) / N, THREADS, 16 * cuda_multiprocessors(s)),
                    THREADS, 0, w, g, v, u, count, settings);
}
