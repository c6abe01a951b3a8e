/* Linear layers on oneDNN's matrix product (row-major). */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"

#include <omp.h>
#include <string.h>

struct forward_args {
    float *y;
    const float *x, *w, *bias;
    bool relu;
    int64_t rows, in, out;
};

static void forward_run(void *args)
{
    const struct forward_args *a = args;
    if (a->bias)
        for (int64_t r = 0; r < a->rows; r++)
            memcpy(a->y + r * a->out, a->bias, (size_t)a->out * sizeof *a->y);
    cpu_gemm('N', 'T', a->rows, a->out, a->in, a->x, a->w, a->bias ? 1 : 0, a->y, a->out);
    if (a->relu)
        for (int64_t i = 0; i < a->rows * a->out; i++)
            a->y[i] = a->y[i] < 0 ? 0 : a->y[i];
}

void cpu_linear_forward(struct stream *s, enum dtype t, enum dtype t_y, void *y, const void *x,
                        const void *w, const void *bias, bool relu,
                        const struct linear_shape *shape)
{
    assert(t == DTYPE_F32 && t_y == t && shape->y_stride == shape->out && !shape->in_out);
    cpu_call(s, forward_run, struct forward_args, y, x, w, bias, relu, shape->rows, shape->in,
             shape->out);
}

enum { STRIP = 256 }; /* columns: their scratch stays in the L2 cache */

/* c: [m, n] = op(a) b + beta * c, with b: [k, n], in strips of columns that the threads share. A
 * strip of b is copied first, because rows that start a multiple of 4096 bytes apart, as 9216
 * floats do, fight for the same few lines of the cache: read in place they take twice the time. */
static void gemm_in_strips(struct stream *s, char trans_a, int64_t m, int64_t n, int64_t k,
                           const float *a, const float *b, float beta, float *c)
{
    float *scratch = cpu_scratch(s, (size_t)(omp_get_max_threads() * k * STRIP) * sizeof *scratch);
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < n; first += STRIP) {
        float *strip = scratch + omp_get_thread_num() * k * STRIP;
        int64_t width = n - first < STRIP ? n - first : STRIP;
        for (int64_t row = 0; row < k; row++)
            memcpy(strip + row * width, b + row * n + first, (size_t)width * sizeof *b);
        cpu_gemm(trans_a, 'N', m, width, k, a, strip, beta, c + first, n);
    }
}

struct backward_args {
    struct stream *s;
    float *dx, *dw, *dbias;
    const float *x, *dy, *w;
    int64_t rows, in, out;
    bool accumulate;
};

static void backward_data_run(void *args)
{
    const struct backward_args *a = args;
    gemm_in_strips(a->s, 'N', a->rows, a->in, a->out, a->dy, a->w, a->accumulate ? 1 : 0, a->dx);
}

void cpu_linear_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                              const void *w, const struct linear_shape *shape, bool accumulate)
{
    assert(t == DTYPE_F32 && shape->y_stride == shape->out && !shape->in_out);
    cpu_call(s, backward_data_run, struct backward_args, .s = s, .dx = dx, .dy = dy, .w = w,
             .rows = shape->rows, .in = shape->in, .out = shape->out, .accumulate = accumulate);
}

static void backward_weights_run(void *args)
{
    const struct backward_args *a = args;
    gemm_in_strips(a->s, 'T', a->out, a->in, a->rows, a->dy, a->x, a->accumulate ? 1 : 0, a->dw);
    if (a->dbias)
        cpu_sum_rows(a->dbias, a->dy, a->rows, a->out, a->accumulate);
}

void cpu_linear_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                 const void *x, const void *dy, const struct linear_shape *shape,
                                 bool accumulate)
{
    assert(t == DTYPE_F32 && shape->y_stride == shape->out && !shape->in_out);
    cpu_call(s, backward_weights_run, struct backward_args, .s = s, .dw = dw, .dbias = dbias,
             .x = x, .dy = dy, .rows = shape->rows, .in = shape->in, .out = shape->out,
             .accumulate = accumulate);
}
