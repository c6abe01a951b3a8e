/* Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as torch.optim. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/random_run.h"

#include <math.h>

struct adam_args {
    void *w;
    const float *g;
    void *m, *v;
    float beta1, beta2, eps;
    float l2_decay;    /* added to the gradient: Adam's */
    float keep;        /* what decoupled decay leaves of a weight: AdamW's */
    float step_size;   /* lr / (1 - beta1^step) */
    float root_second; /* sqrt(1 - beta2^step) */
    uint64_t key, first;
};

static inline void adam_element(const struct adam_args *a, float *w, float grad, float *m, float *v)
{
    float g = grad + a->l2_decay * *w;
    *m += (1 - a->beta1) * (g - *m);
    *v = a->beta2 * *v + (1 - a->beta2) * g * g;
    float update = *m / (sqrtf(*v) / a->root_second + a->eps);
    *w = a->keep * *w - a->step_size * update;
}

CPU_HOT static void fp32_piece(const void *args, int64_t first, int64_t last)
{
    const struct adam_args a = *(const struct adam_args *)args;
    float *w = a.w, *m = a.m, *v = a.v;
#pragma omp simd
    for (int64_t i = first; i < last; i++)
        adam_element(&a, &w[i], a.g[i], &m[i], &v[i]);
}

CPU_HOT static void bf16_piece(const void *args, int64_t first, int64_t last)
{
    const struct adam_args a = *(const struct adam_args *)args;
    float buffer[RANDOM_GROUP];
    const float *numbers;
    for (int64_t i = first, n; i < last; i += n) {
        bf16 *w = (bf16 *)a.w + i, *m = (bf16 *)a.m + i, *v = (bf16 *)a.v + i;
        const float *g = a.g + i;
        n = random_run(buffer, a.key, a.first + (uint64_t)i, last - i, &numbers);
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            float new_w = bf16_to_float(w[j]);
            float new_m = bf16_to_float(m[j]), new_v = bf16_to_float(v[j]);
            adam_element(&a, &new_w, g[j], &new_m, &new_v);
            w[j] = bf16_stochastic(new_w, numbers[j]);
            m[j] = bf16_stochastic(new_m, numbers[j]);
            v[j] = bf16_stochastic(new_v, numbers[j]);
        }
    }
}

void cpu_adam(struct stream *s, enum dtype t, void *w, const float *g, void *m, void *v,
              int64_t count, const struct adam_step *step, uint64_t key, uint64_t first)
{
    assert(step->step >= 1);
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
        .key = key,
        .first = first,
    };
    cpu_queue_pieces(s, __func__, t == DTYPE_F32 ? fp32_piece : bf16_piece, count, CPU_GRAIN, &args,
                     sizeof args);
}
