/* Layer normalisation (Ba, Kiros and Hinton 2016), as torch.nn.LayerNorm. The variance is that of x
 * - mean, in a second pass over the row: mean(x^2) - mean^2 loses all digits where the mean is
 * large. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"

#include <math.h>
#include <string.h>

struct layer_args {
    struct stream *s;
    enum dtype t;
    void *y, *x, *dx;
    float *stats, *dw, *dbias;
    const void *residual, *w, *bias, *dy;
    int64_t rows, D;
    float eps;
    bool add_dx, accumulate;
};

/* The sum over row r of x - shift, or of its square. */
static inline double row_sum(const struct layer_args *a, int64_t r, float shift, bool square)
{
    float x_strip[STRIP];
    double sum = 0;
    for (int64_t i = 0, n; i < a->D; i += n) {
        n = strip_length(a->D - i);
        const float *x = strip_read(a->t, a->x, r * a->D + i, n, x_strip);
        float partial = 0;
#pragma omp simd reduction(+ : partial)
        for (int64_t j = 0; j < n; j++) {
            float d = x[j] - shift;
            partial += square ? d * d : d;
        }
        sum += partial;
    }
    return sum;
}

/* Row r of x becomes itself and the residual's. */
static inline __attribute__((always_inline)) void add_residual(const struct layer_args *a,
                                                               int64_t r)
{
    float strip[STRIP];
    for (int64_t i = 0, n; i < a->D; i += n) {
        n = strip_length(a->D - i);
        strip_add(a->t, a->x, r * a->D + i, n,
                  strip_read(a->t, a->residual, r * a->D + i, n, strip));
    }
}

CPU_HOT static void forward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct layer_args *a = args;
    float x_strip[STRIP], w_strip[STRIP], bias_strip[STRIP], y_strip[STRIP];
    for (int64_t r = first; r < last; r++) {
        if (a->residual)
            add_residual(a, r);
        float mean = (float)(row_sum(a, r, 0, false) / (double)a->D);
        float rstd = (float)(1 / sqrt(row_sum(a, r, mean, true) / (double)a->D + a->eps));
        a->stats[2 * r] = mean;
        a->stats[2 * r + 1] = rstd;
        for (int64_t i = 0, n; i < a->D; i += n) {
            n = strip_length(a->D - i);
            const float *x = strip_read(a->t, a->x, r * a->D + i, n, x_strip);
            const float *w = strip_read(a->t, a->w, i, n, w_strip);
            const float *bias = strip_read(a->t, a->bias, i, n, bias_strip);
            float *y = strip_target(a->t, a->y, r * a->D + i, y_strip);
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                y[j] = w[j] * ((x[j] - mean) * rstd) + bias[j];
            strip_write(a->t, a->y, r * a->D + i, n, y);
        }
    }
}

void cpu_layer_norm_forward(struct stream *s, enum dtype t, void *y, float *stats, void *x,
                            const void *residual, const void *w, const void *bias, int64_t rows,
                            int64_t D, float eps)
{
    assert(D >= 1);
    struct layer_args args = {.t = t,
                              .y = y,
                              .stats = stats,
                              .x = x,
                              .residual = residual,
                              .w = w,
                              .bias = bias,
                              .rows = rows,
                              .D = D,
                              .eps = eps};
    cpu_queue_chunks(s, __func__, forward_chunk, rows, 1 + CPU_GRAIN / D, &args, sizeof args);
}

/* The means over a row of w dy and of w dy z, z = (x - mean) * rstd. */
static inline __attribute__((always_inline)) void
gradient_means(const struct layer_args *a, int64_t r, float *ret_plain, float *ret_with_z)
{
    float x_strip[STRIP], w_strip[STRIP], dy_strip[STRIP];
    float mean = a->stats[2 * r], rstd = a->stats[2 * r + 1];
    double plain = 0, with_z = 0;
    for (int64_t i = 0, n; i < a->D; i += n) {
        n = strip_length(a->D - i);
        const float *x = strip_read(a->t, a->x, r * a->D + i, n, x_strip);
        const float *w = strip_read(a->t, a->w, i, n, w_strip);
        const float *dy = strip_read(a->t, a->dy, r * a->D + i, n, dy_strip);
        float plain_partial = 0, z_partial = 0;
#pragma omp simd reduction(+ : plain_partial, z_partial)
        for (int64_t j = 0; j < n; j++) {
            plain_partial += w[j] * dy[j];
            z_partial += w[j] * dy[j] * ((x[j] - mean) * rstd);
        }
        plain += plain_partial;
        with_z += z_partial;
    }
    *ret_plain = (float)(plain / (double)a->D);
    *ret_with_z = (float)(with_z / (double)a->D);
}

/* A row's dx = rstd * (w dy - mean(w dy) - z * mean(w dy z)), and its shares of dw and dbias. */
static inline __attribute__((always_inline)) void backward_row(const struct layer_args *a,
                                                               int64_t r, float *dw, float *dbias)
{
    float x_strip[STRIP], w_strip[STRIP], dy_strip[STRIP], dx_strip[STRIP], plain, with_z;
    float mean = a->stats[2 * r], rstd = a->stats[2 * r + 1];
    gradient_means(a, r, &plain, &with_z);
    for (int64_t i = 0, n; i < a->D; i += n) {
        n = strip_length(a->D - i);
        const float *x = strip_read(a->t, a->x, r * a->D + i, n, x_strip);
        const float *w = strip_read(a->t, a->w, i, n, w_strip);
        const float *dy = strip_read(a->t, a->dy, r * a->D + i, n, dy_strip);
        float *dx = a->add_dx ? dx_strip : strip_target(a->t, a->dx, r * a->D + i, dx_strip);
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            float d = dy[j], z = (x[j] - mean) * rstd;
            dw[i + j] += d * z;
            dbias[i + j] += d;
            dx[j] = rstd * (w[j] * d - plain - z * with_z);
        }
        if (a->add_dx)
            strip_add(a->t, a->dx, r * a->D + i, n, dx);
        else
            strip_write(a->t, a->dx, r * a->D + i, n, dx);
    }
}

CPU_HOT static void backward_rows(const struct layer_args *a, int64_t first, int64_t last,
                                  float *dw)
{
    memset(dw, 0, (size_t)(2 * a->D) * sizeof *dw);
    for (int64_t r = first; r < last; r++)
        backward_row(a, r, dw, dw + a->D);
}

/* A chunk of the rows has sums of its own, dw and dbias side by side. */
static void backward_run(void *args)
{
    const struct layer_args *a = args;
    int64_t stride = 2 * a->D;
    float *partials = cpu_scratch(a->s, (size_t)(CPU_ROW_CHUNKS * stride) * sizeof *partials);
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < CPU_ROW_CHUNKS; p++)
        backward_rows(a, a->rows * p / CPU_ROW_CHUNKS, a->rows * (p + 1) / CPU_ROW_CHUNKS,
                      partials + p * stride);
    cpu_sum_rows(a->dw, DTYPE_F32, partials, CPU_ROW_CHUNKS, a->D, stride, a->accumulate);
    cpu_sum_rows(a->dbias, DTYPE_F32, partials + a->D, CPU_ROW_CHUNKS, a->D, stride, a->accumulate);
}

void cpu_layer_norm_backward(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                             float *dbias, const void *dy, const void *x, const void *w,
                             const float *stats, int64_t rows, int64_t D, bool accumulate)
{
    assert(D >= 1);
    cpu_call(s, backward_run, struct layer_args, .s = s, .t = t, .dx = dx, .add_dx = add_dx,
             .dw = dw, .dbias = dbias, .stats = (float *)stats, .x = (void *)x, .w = w, .dy = dy,
             .rows = rows, .D = D, .accumulate = accumulate);
}
