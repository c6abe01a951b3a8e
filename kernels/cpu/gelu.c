/* Gaussian error linear unit (Hendrycks and Gimpel 2016): x times the normal distribution's
 * cumulative function at x, or its approximation by a tanh. */
#include "kernels/cpu/gelu.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"

#include <math.h>

struct gelu_args {
    enum dtype t;
    void *out; /* y or dx */
    const void *x, *dy;
    bool tanh;
};

/* The normal distribution's cumulative function, off by less than 1e-7: erf by Abramowitz and
 * Stegun's formula 7.1.26. */
static inline float erf_cdf(float x)
{
    float z = fabsf(x) * 0.70710678f, t = 1 / (1 + 0.3275911f * z);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    float beyond = 0.5f * p * t * vector_exp(-z * z);
    return x > 0 ? 1 - beyond : beyond;
}

/* d/dx x Phi(x) = Phi(x) + x phi(x); 0.3989... is 1 / sqrt(2 pi). */
static inline float erf_slope(float x)
{
    return erf_cdf(x) + x * 0.39894228f * vector_exp(-0.5f * x * x);
}

CPU_HOT static void forward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct gelu_args *a = args;
    float x_strip[STRIP], y_strip[STRIP];
    for (int64_t i = first, n; i < last; i += n) {
        n = strip_length(last - i);
        const float *x = strip_read(a->t, a->x, i, n, x_strip);
        float *y = strip_target(a->t, a->out, i, y_strip);
        if (a->tanh) {
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                y[j] = x[j] * gelu_tanh_cdf(x[j]);
        } else {
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                y[j] = x[j] * erf_cdf(x[j]);
        }
        strip_write(a->t, a->out, i, n, y);
    }
}

void cpu_gelu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t count,
                      bool tanh)
{
    cpu_call_chunks(s, forward_chunk, count, CPU_GRAIN, struct gelu_args, t, y, x, NULL, tanh);
}

CPU_HOT static void backward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct gelu_args *a = args;
    float x_strip[STRIP], dy_strip[STRIP], dx_strip[STRIP];
    for (int64_t i = first, n; i < last; i += n) {
        n = strip_length(last - i);
        const float *x = strip_read(a->t, a->x, i, n, x_strip);
        const float *dy = strip_read(a->t, a->dy, i, n, dy_strip);
        float *dx = strip_target(a->t, a->out, i, dx_strip);
        if (a->tanh) {
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                dx[j] = dy[j] * gelu_tanh_slope(x[j]);
        } else {
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                dx[j] = dy[j] * erf_slope(x[j]);
        }
        strip_write(a->t, a->out, i, n, dx);
    }
}

void cpu_gelu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                       int64_t count, bool tanh)
{
    cpu_call_chunks(s, backward_chunk, count, CPU_GRAIN, struct gelu_args, t, dx, x, dy, tanh);
}
