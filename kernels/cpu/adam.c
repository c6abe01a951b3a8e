/* Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as torch.optim. */
#include "kernels/cpu/update.h"

#include <math.h>

struct adam_settings {
    float beta1, beta2, eps;
    float l2_decay;    /* added to the gradient: Adam's */
    float keep;        /* what decoupled decay leaves of a weight: AdamW's */
    float step_size;   /* lr / (1 - beta1^step) */
    float root_second; /* sqrt(1 - beta2^step) */
};

struct adam_args {
    struct update update;
    struct adam_settings settings;
};

static inline void adam_element(const void *settings, float *w, float grad, float *m, float *v)
{
    const struct adam_settings *s = settings;
    float g = grad + s->l2_decay * *w;
    *m += (1 - s->beta1) * (g - *m);
    *v = s->beta2 * *v + (1 - s->beta2) * g * g;
    float update = *m / (sqrtf(*v) / s->root_second + s->eps);
    *w = s->keep * *w - s->step_size * update;
}

CPU_HOT static void adam_chunk(const void *args, int64_t first, int64_t last)
{
    const struct adam_args a = *(const struct adam_args *)args;
    update_range(&a.update, 2, adam_element, &a.settings, first, last);
}

void cpu_adam(struct stream *s, enum dtype t, void *w, const float *g, void *m, void *v,
              int64_t count, const struct adam_step *step, const struct update_extras *extras,
              uint64_t key, uint64_t first)
{
    assert(step->step >= 1);
    struct adam_args args = {
        .update = {t, w, g, m, v, key, first, update_extras_of(extras)},
        .settings =
            {
                .beta1 = step->beta1,
                .beta2 = step->beta2,
                .eps = step->eps,
                .l2_decay = step->decoupled ? 0 : step->weight_decay,
                .keep = step->decoupled ? 1 - step->lr * step->weight_decay : 1,
                .step_size = (float)(step->lr / (1 - pow(step->beta1, (double)step->step))),
                .root_second = (float)sqrt(1 - pow(step->beta2, (double)step->step)),
            },
    };
    cpu_queue_chunks(s, __func__, adam_chunk, count, CPU_GRAIN, &args, sizeof args);
}
