/* Linear layers on oneDNN's matrix product (row-major). */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"

#include <omp.h>
#include <string.h>

/* Those of the op that is run. */
struct linear_args {
    struct stream *s;
    enum dtype t, t_y;
    void *y, *dx;
    float *dw, *dbias;
    const void *x, *w, *bias, *dy;
    struct linear_shape shape;
    bool relu, accumulate;
};

static void check(const struct linear_shape *shape)
{
    assert(shape->rows >= 0 && shape->in >= 1 && shape->out >= 1 && shape->y_stride >= shape->out);
}

static void forward_run(void *args)
{
    const struct linear_args *a = args;
    const struct linear_shape *z = &a->shape;
    float *y = a->y;
    for (int64_t r = 0; a->bias && r < z->rows; r++)
        memcpy(y + r * z->y_stride, a->bias, (size_t)z->out * sizeof *y);
    cpu_gemm_strided('N', z->in_out ? 'N' : 'T', z->rows, z->out, z->in, a->x, z->in, a->w,
                     z->in_out ? z->out : z->in, a->bias ? 1 : 0, y, z->y_stride);
    for (int64_t r = 0; a->relu && r < z->rows; r++, y += z->y_stride)
        for (int64_t i = 0; i < z->out; i++)
            y[i] = y[i] < 0 ? 0 : y[i];
}

void cpu_linear_forward(struct stream *s, enum dtype t, enum dtype t_y, void *y, const void *x,
                        const void *w, const void *bias, bool relu,
                        const struct linear_shape *shape)
{
    assert(t == DTYPE_F32 && t_y == t);
    check(shape);
    cpu_call(s, forward_run, struct linear_args, .t = t, .t_y = t_y, .y = y, .x = x, .w = w,
             .bias = bias, .relu = relu, .shape = *shape);
}

enum { COLUMNS = 256 }; /* columns: their scratch stays in the L2 cache */

/* c: [m, n] = op(a) b + beta * c, with b: [k, n], in strips of columns that the threads share. A
 * strip of b is copied first, because rows that start a multiple of 4096 bytes apart, as 9216
 * floats do, fight for the same few lines of the cache: read in place they take twice the time. */
static void gemm_in_strips(struct stream *s, char trans_a, int64_t m, int64_t n, int64_t k,
                           const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                           float beta, float *c)
{
    float *scratch =
        cpu_scratch(s, (size_t)(omp_get_max_threads() * k * COLUMNS) * sizeof *scratch);
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < n; first += COLUMNS) {
        float *strip = scratch + omp_get_thread_num() * k * COLUMNS;
        int64_t width = n - first < COLUMNS ? n - first : COLUMNS;
        for (int64_t row = 0; row < k; row++)
            memcpy(strip + row * width, b + row * b_stride + first, (size_t)width * sizeof *b);
        cpu_gemm_strided(trans_a, 'N', m, width, k, a, a_stride, strip, width, beta, c + first, n);
    }
}

static void backward_data_run(void *args)
{
    const struct linear_args *a = args;
    const struct linear_shape *z = &a->shape;
    float beta = a->accumulate ? 1 : 0;
    if (z->in_out)
        cpu_gemm_strided('N', 'T', z->rows, z->in, z->out, a->dy, z->y_stride, a->w, z->out, beta,
                         a->dx, z->in);
    else
        gemm_in_strips(a->s, 'N', z->rows, z->in, z->out, a->dy, z->y_stride, a->w, z->in, beta,
                       a->dx);
}

void cpu_linear_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                              const void *w, const struct linear_shape *shape, bool accumulate)
{
    assert(t == DTYPE_F32);
    check(shape);
    cpu_call(s, backward_data_run, struct linear_args, .s = s, .t = t, .dx = dx, .dy = dy, .w = w,
             .shape = *shape, .accumulate = accumulate);
}

static void backward_weights_run(void *args)
{
    const struct linear_args *a = args;
    const struct linear_shape *z = &a->shape;
    float beta = a->accumulate ? 1 : 0;
    if (z->in_out)
        gemm_in_strips(a->s, 'T', z->in, z->out, z->rows, a->x, z->in, a->dy, z->y_stride, beta,
                       a->dw);
    else
        gemm_in_strips(a->s, 'T', z->out, z->in, z->rows, a->dy, z->y_stride, a->x, z->in, beta,
                       a->dw);
    if (a->dbias)
        cpu_sum_rows(a->dbias, a->t, a->dy, z->rows, z->out, z->y_stride, a->accumulate);
}

void cpu_linear_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                 const void *x, const void *dy, const struct linear_shape *shape,
                                 bool accumulate)
{
    assert(t == DTYPE_F32);
    check(shape);
    cpu_call(s, backward_weights_run, struct linear_args, .s = s, .t = t, .dw = dw, .dbias = dbias,
             .x = x, .dy = dy, .shape = *shape, .accumulate = accumulate);
}
