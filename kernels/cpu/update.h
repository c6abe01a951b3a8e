/* Optimizer steps on the CPU: applies a rule, in fp32, to each element of a flat range, and rounds
 * weights and state to their dtype. */
#ifndef SHOAL_KERNELS_CPU_UPDATE_H
#define SHOAL_KERNELS_CPU_UPDATE_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/random_run.h"

/* The tensors of a step, as ops.h's optimizers take them. */
struct update {
    enum dtype t;
    void *w;
    const float *g;
    void *a, *b; /* the state */
    uint64_t key, first;
};

/* One step of one element with its gradient; a, b: its state. settings: the rule's own. */
typedef void update_rule(const void *settings, float *w, float g, float *a, float *b);

static inline __attribute__((always_inline)) void update_fp32(const struct update *u, int states,
                                                              update_rule *rule,
                                                              const void *settings, int64_t first,
                                                              int64_t last)
{
    float *w = (float *)u->w, *a = (float *)u->a, *b = (float *)u->b;
    const float *g = u->g;
#pragma GCC ivdep
    for (int64_t i = first; i < last; i++) {
        float new_w = w[i], new_a = states > 0 ? a[i] : 0, new_b = states > 1 ? b[i] : 0;
        rule(settings, &new_w, g[i], &new_a, &new_b);
        w[i] = new_w;
        if (states > 0)
            a[i] = new_a;
        if (states > 1)
            b[i] = new_b;
    }
}

static inline __attribute__((always_inline)) void update_bf16(const struct update *u, int states,
                                                              update_rule *rule,
                                                              const void *settings, int64_t first,
                                                              int64_t last)
{
    float buffer[RANDOM_GROUP];
    const float *numbers;
    for (int64_t i = first, n; i < last; i += n) {
        bf16 *w = (bf16 *)u->w + i;
        bf16 *a = states > 0 ? (bf16 *)u->a + i : NULL, *b = states > 1 ? (bf16 *)u->b + i : NULL;
        const float *g = u->g + i;
        n = random_run(buffer, u->key, u->first + (uint64_t)i, last - i, &numbers);
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
