/* Stochastic gradient descent with momentum, as torch.optim.SGD with dampening 0. */
#include "kernels/cpu/update.h"

struct sgd_settings {
    float lr, momentum, weight_decay;
    float gradient_coefficient, momentum_coefficient; /* the update is gradient_coefficient * g +
                                                         momentum_coefficient * m */
};

struct sgd_args {
    struct update update;
    struct sgd_settings settings;
};

static inline void plain_element(const void *settings, float *w, float grad, float *a, float *b)
{
    (void)a, (void)b;
    const struct sgd_settings *s = settings;
    *w -= s->lr * (grad + s->weight_decay * *w);
}

/* m starts at 0, so the first step sets m = g. */
static inline void momentum_element(const void *settings, float *w, float grad, float *m, float *b)
{
    (void)b;
    const struct sgd_settings *s = settings;
    float g = grad + s->weight_decay * *w;
    *m = s->momentum * *m + g;
    *w -= s->lr * (s->gradient_coefficient * g + s->momentum_coefficient * *m);
}

CPU_HOT static void plain_chunk(const void *args, int64_t first, int64_t last)
{
    const struct sgd_args a = *(const struct sgd_args *)args;
    update_range(&a.update, 0, plain_element, &a.settings, first, last);
}

CPU_HOT static void momentum_chunk(const void *args, int64_t first, int64_t last)
{
    const struct sgd_args a = *(const struct sgd_args *)args;
    update_range(&a.update, 1, momentum_element, &a.settings, first, last);
}

void cpu_sgd(struct stream *s, enum dtype t, void *w, const float *g, void *m, int64_t count,
             const struct sgd_step *step, const struct update_extras *extras, uint64_t key,
             uint64_t first)
{
    assert(m || step->momentum == 0);
    struct sgd_args args = {{t, w, g, m, NULL, key, first, update_extras_of(extras)},
                            {step->lr, step->momentum, step->weight_decay,
                             .gradient_coefficient = step->nesterov ? 1 : 0,
                             .momentum_coefficient = step->nesterov ? step->momentum : 1}};
    cpu_queue_chunks(s, __func__, m ? momentum_chunk : plain_chunk, count, CPU_GRAIN, &args,
                     sizeof args);
}
