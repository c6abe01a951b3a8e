/* Root mean square normalisation (Zhang and Sennrich 2019). Sums are of fp32 within a strip and of
 * double over the strips: D is up to tens of thousands, and vector lanes hold floats. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"

#include <math.h>
#include <string.h>

struct rms_args {
    struct stream *s;
    enum dtype t;
    void *y, *x, *dx;
    float *rstd, *dw;
    const void *residual, *w, *dy;
    int64_t rows, D;
    float eps;
    bool add_dx, accumulate;
};

/* z = x * rstd, rounded as x is. */
static inline void normalized(enum dtype t, float *z, const float *x, float rstd, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        z[i] = x[i] * rstd;
    if (t == DTYPE_F32)
        return;
    for (int64_t i = 0; i < count; i++)
        z[i] = bf16_to_float(bf16_from_float(z[i]));
}

CPU_HOT static void forward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct rms_args *a = args;
    float x_strip[STRIP], w_strip[STRIP], y_strip[STRIP], z[STRIP];
    for (int64_t r = first; r < last; r++) {
        double squares = 0;
        for (int64_t i = 0, n; i < a->D; i += n) {
            n = strip_length(a->D - i);
            if (a->residual)
                strip_add(a->t, a->x, r * a->D + i, n,
                          strip_read(a->t, a->residual, r * a->D + i, n, x_strip));
            const float *x = strip_read(a->t, a->x, r * a->D + i, n, x_strip);
            float partial = 0;
#pragma omp simd reduction(+ : partial)
            for (int64_t j = 0; j < n; j++)
                partial += x[j] * x[j];
            squares += partial;
        }
        float rstd = (float)(1 / sqrt(squares / (double)a->D + a->eps));
        a->rstd[r] = rstd;
        for (int64_t i = 0, n; i < a->D; i += n) {
            n = strip_length(a->D - i);
            const float *w = strip_read(a->t, a->w, i, n, w_strip);
            float *y = strip_target(a->t, a->y, r * a->D + i, y_strip);
            normalized(a->t, z, strip_read(a->t, a->x, r * a->D + i, n, x_strip), rstd, n);
            for (int64_t j = 0; j < n; j++)
                /* Llama's order: x is normalized in fp32, rounded to its dtype, and multiplied by
                 * the weight then. */
                y[j] = z[j] * w[j];
            strip_write(a->t, a->y, r * a->D + i, n, y);
        }
    }
}

void cpu_rms_norm_forward(struct stream *s, enum dtype t, void *y, float *rstd, void *x,
                          const void *residual, const void *w, int64_t rows, int64_t D, float eps)
{
    assert(D >= 1);
    struct rms_args args = {.t = t,
                            .y = y,
                            .rstd = rstd,
                            .x = x,
                            .residual = residual,
                            .w = w,
                            .rows = rows,
                            .D = D,
                            .eps = eps};
    cpu_queue_chunks(s, __func__, forward_chunk, rows, 1 + CPU_GRAIN / D, &args, sizeof args);
}

/* A row's dx = rstd * (w dy - z * mean(w dy z)), and its share of dw: dy * z. */
static inline __attribute__((always_inline)) void backward_row(const struct rms_args *a, int64_t r,
                                                               float *dw)
{
    float x_strip[STRIP], w_strip[STRIP], dy_strip[STRIP], dx_strip[STRIP], z[STRIP];
    float rstd = a->rstd[r];
    double sum = 0;
    for (int64_t i = 0, n; i < a->D; i += n) {
        n = strip_length(a->D - i);
        const float *x = strip_read(a->t, a->x, r * a->D + i, n, x_strip);
        const float *w = strip_read(a->t, a->w, i, n, w_strip);
        const float *dy = strip_read(a->t, a->dy, r * a->D + i, n, dy_strip);
        float partial = 0;
#pragma omp simd reduction(+ : partial)
        for (int64_t j = 0; j < n; j++)
            partial += w[j] * dy[j] * x[j];
        sum += partial;
    }
    float mean = (float)(sum / (double)a->D) * rstd;
    for (int64_t i = 0, n; i < a->D; i += n) {
        n = strip_length(a->D - i);
        const float *x = strip_read(a->t, a->x, r * a->D + i, n, x_strip);
        const float *w = strip_read(a->t, a->w, i, n, w_strip);
        const float *dy = strip_read(a->t, a->dy, r * a->D + i, n, dy_strip);
        float *dx = a->add_dx ? dx_strip : strip_target(a->t, a->dx, r * a->D + i, dx_strip);
        normalized(a->t, z, x, rstd, n);
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            float d = dy[j];
            dw[i + j] += d * z[j];
            dx[j] = rstd * (w[j] * d - x[j] * rstd * mean);
        }
        if (a->add_dx)
            strip_add(a->t, a->dx, r * a->D + i, n, dx);
        else
            strip_write(a->t, a->dx, r * a->D + i, n, dx);
    }
}

CPU_HOT static void backward_rows(const struct rms_args *a, int64_t first, int64_t last, float *dw)
{
    memset(dw, 0, (size_t)a->D * sizeof *dw);
    for (int64_t r = first; r < last; r++)
        backward_row(a, r, dw);
}

/* A fixed number of chunks, whatever the thread count, and their sums in order: so dw has the same
 * bits on any machine. */
static void backward_run(void *args)
{
    const struct rms_args *a = args;
    float *partials = cpu_scratch(a->s, (size_t)(CPU_ROW_CHUNKS * a->D) * sizeof *partials);
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < CPU_ROW_CHUNKS; p++)
        backward_rows(a, a->rows * p / CPU_ROW_CHUNKS, a->rows * (p + 1) / CPU_ROW_CHUNKS,
                      partials + p * a->D);
    cpu_sum_rows(a->dw, DTYPE_F32, partials, CPU_ROW_CHUNKS, a->D, a->D, a->accumulate);
}

void cpu_rms_norm_backward(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                           const void *dy, const void *x, const void *w, const float *rstd,
                           int64_t rows, int64_t D, bool accumulate)
{
    assert(D >= 1);
    cpu_call(s, backward_run, struct rms_args, .s = s, .t = t, .dx = dx, .add_dx = add_dx, .dw = dw,
             .rstd = (float *)rstd, .x = (void *)x, .w = w, .dy = dy, .rows = rows, .D = D,
             .accumulate = accumulate);
}
