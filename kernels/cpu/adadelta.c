/* Adadelta (Zeiler 2012), as torch.optim.Adadelta. */
#include "kernels/cpu/update.h"

#include <math.h>

struct adadelta_args {
    struct update update;
    struct adadelta_step step;
};

/* v: average of the gradient's squares; u: of the updates'. */
static inline void adadelta_element(const void *settings, float *w, float grad, float *v, float *u)
{
    const struct adadelta_step *s = settings;
    float g = grad + s->weight_decay * *w;
    *v = s->rho * *v + (1 - s->rho) * g * g;
    float update = sqrtf(*u + s->eps) / sqrtf(*v + s->eps) * g;
    *u = s->rho * *u + (1 - s->rho) * update * update;
    *w -= s->lr * update;
}

CPU_HOT static void adadelta_chunk(const void *args, int64_t first, int64_t last)
{
    const struct adadelta_args a = *(const struct adadelta_args *)args;
    update_range(&a.update, 2, adadelta_element, &a.step, first, last);
}

void cpu_adadelta(struct stream *s, enum dtype t, void *w, const float *g, void *v, void *u,
                  int64_t count, const struct adadelta_step *step,
                  const struct update_extras *extras, uint64_t key, uint64_t first)
{
    cpu_call_chunks(s, adadelta_chunk, count, CPU_GRAIN, struct adadelta_args,
                    {t, w, g, v, u, key, first, update_extras_of(extras)}, *step);
}
