/* Optimizer steps on the CPU: applies a rule, in fp32, to each element of a flat range, and rounds
 * weights and state to their dtype. What comes with a step, clipping and a copy, is done a strip at
 * a time, while it is in the L1 cache. */
#ifndef SHOAL_KERNELS_CPU_UPDATE_H
#define SHOAL_KERNELS_CPU_UPDATE_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/random_run.h"
#include "kernels/cpu/strip.h"

#include <math.h>

/* The tensors of a step, as ops.h's optimizers take them. */
struct update {
    enum dtype t;
    void *w;
    const float *g;
    void *a, *b; /* the state */
    uint64_t key, first;
    struct update_extras extras;
};

static inline struct update_extras update_extras_of(const struct update_extras *extras)
{
    return extras ? *extras : (struct update_extras){0};
}

/* One step of one element with its gradient; a, b: its state. settings: the rule's own. */
typedef void update_rule(const void *settings, float *w, float g, float *a, float *b);

/* What clipping multiplies gradients by: 1, less, or a NaN, which goes on. */
static inline float update_clip_factor(const struct update *u)
{
    const struct update_extras *e = &u->extras;
    if (!e->sum_of_squares)
        return 1;
    float factor = (float)(e->max_norm / (sqrt(*e->sum_of_squares) + 1e-6));
    return factor >= 1 ? 1 : factor;
}

/* Gradients from `first` on, clipped in `strip`: in a loop of its own, so that no multiplication
 * is joined with the rule's additions, and a clipped step has the bits of its gradients. */
static inline __attribute__((always_inline)) const float *
update_gradients(const struct update *u, float factor, int64_t first, int64_t count, float *strip)
{
    if (factor == 1)
        return u->g + first;
    for (int64_t i = 0; i < count; i++)
        strip[i] = u->g[first + i] * factor;
    return strip;
}

static inline __attribute__((always_inline)) void update_fp32(const struct update *u, int states,
                                                              update_rule *rule,
                                                              const void *settings, int64_t first,
                                                              int64_t last)
{
    float strip[STRIP], factor = update_clip_factor(u);
    for (int64_t i = first, n; i < last; i += n) {
        n = strip_length(last - i);
        const float *g = update_gradients(u, factor, i, n, strip);
        float *w = (float *)u->w + i, *a = states > 0 ? (float *)u->a + i : NULL,
              *b = states > 1 ? (float *)u->b + i : NULL;
#pragma GCC ivdep
        for (int64_t j = 0; j < n; j++) {
            float new_w = w[j], new_a = states > 0 ? a[j] : 0, new_b = states > 1 ? b[j] : 0;
            rule(settings, &new_w, g[j], &new_a, &new_b);
            w[j] = new_w;
            if (states > 0)
                a[j] = new_a;
            if (states > 1)
                b[j] = new_b;
        }
        if (u->extras.copy)
            strip_write(DTYPE_BF16, u->extras.copy, i, n, w);
    }
}

static inline __attribute__((always_inline)) void update_bf16(const struct update *u, int states,
                                                              update_rule *rule,
                                                              const void *settings, int64_t first,
                                                              int64_t last)
{
    float buffer[RANDOM_GROUP], strip[RANDOM_GROUP], factor = update_clip_factor(u);
    const float *numbers;
    for (int64_t i = first, n; i < last; i += n) {
        bf16 *w = (bf16 *)u->w + i;
        bf16 *a = states > 0 ? (bf16 *)u->a + i : NULL, *b = states > 1 ? (bf16 *)u->b + i : NULL;
        n = random_run(buffer, u->key, u->first + (uint64_t)i, last - i, &numbers);
        const float *g = update_gradients(u, factor, i, n, strip);
#pragma GCC ivdep
        for (int64_t j = 0; j < n; j++) {
            float new_w = bf16_to_float(w[j]);
            float new_a = states > 0 ? bf16_to_float(a[j]) : 0;
            float new_b = states > 1 ? bf16_to_float(b[j]) : 0;
            rule(settings, &new_w, g[j], &new_a, &new_b);
            w[j] = bf16_stochastic(new_w, numbers[j]);
            if (states > 0)
                a[j] = bf16_stochastic(new_a, numbers[j]);
            if (states > 1)
                b[j] = bf16_stochastic(new_b, numbers[j]);
        }
    }
}

/* Steps elements [first, last). states: how many of a and b there are; it and the rule are known
 * where this is called, so that the loops come out as if written for them. */
static inline __attribute__((always_inline)) void update_range(const struct update *u, int states,
                                                               update_rule *rule,
                                                               const void *settings, int64_t first,
                                                               int64_t last)
{
    if (u->t == DTYPE_F32)
        update_fp32(u, states, rule, settings, first, last);
    else
        update_bf16(u, states, rule, settings, first, last);
}

#endif
