/* Linear layers: three matrix products. */
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/strip.h"

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

/* y = max(0, y), a NaN stays. Rows. */
static void relu_rows(const struct linear_args *a)
{
    const struct linear_shape *z = &a->shape;
#pragma omp parallel for schedule(static) if (z->rows * z->out > CPU_GRAIN)
    for (int64_t r = 0; r < z->rows; r++) {
        float read_strip[STRIP], strip[STRIP];
        for (int64_t i = 0, n; i < z->out; i += n) {
            n = strip_length(z->out - i);
            const float *x = strip_read(a->t_y, a->y, r * z->y_stride + i, n, read_strip);
            float *y = strip_target(a->t_y, a->y, r * z->y_stride + i, strip);
            for (int64_t j = 0; j < n; j++)
                y[j] = x[j] < 0 ? 0 : x[j];
            strip_write(a->t_y, a->y, r * z->y_stride + i, n, y);
        }
    }
}

static void forward_run(void *args)
{
    const struct linear_args *a = args;
    const struct matmul matmul = matmul_forward(&a->shape, a->t_y);
    matmul_run(a->s, a->t, &matmul, a->x, a->w, a->bias, a->y);
    if (a->relu)
        relu_rows(a);
}

void cpu_linear_forward(struct stream *s, enum dtype t, enum dtype t_y, void *y, const void *x,
                        const void *w, const void *bias, bool relu,
                        const struct linear_shape *shape)
{
    assert(t_y == t || t_y == DTYPE_F32);
    cpu_call(s, forward_run, struct linear_args, .s = s, .t = t, .t_y = t_y, .y = y, .x = x, .w = w,
             .bias = bias, .relu = relu, .shape = *shape);
}

static void backward_data_run(void *args)
{
    const struct linear_args *a = args;
    /* dx = dy W. */
    const struct matmul matmul = matmul_backward_data(&a->shape, a->t, a->accumulate);
    matmul_run(a->s, a->t, &matmul, a->dy, a->w, NULL, a->dx);
}

void cpu_linear_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                              const void *w, const struct linear_shape *shape, bool accumulate)
{
    cpu_call(s, backward_data_run, struct linear_args, .s = s, .t = t, .dx = dx, .dy = dy, .w = w,
             .shape = *shape, .accumulate = accumulate);
}

static void backward_weights_run(void *args)
{
    const struct linear_args *a = args;
    const struct linear_shape *z = &a->shape;
    const struct matmul matmul = matmul_backward_weights(z, a->accumulate);
    /* dW = dy^T x, [out, in] as torch.nn.Linear has it; transposed (in_out), as GPT-2's Conv1D has
     * it, dW = x^T dy. */
    matmul_run(a->s, a->t, &matmul, z->in_out ? a->x : a->dy, z->in_out ? a->dy : a->x, NULL,
               a->dw);
    if (a->dbias)
        cpu_sum_rows(a->dbias, a->t, a->dy, z->rows, z->out, z->y_stride, a->accumulate);
}

void cpu_linear_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                 const void *x, const void *dy, const struct linear_shape *shape,
                                 bool accumulate)
{
    cpu_call(s, backward_weights_run, struct linear_args, .s = s, .t = t, .dw = dw, .dbias = dbias,
             .x = x, .dy = dy, .shape = *shape, .accumulate = accumulate);
}

static void backward_bias_run(void *args)
{
    const struct linear_args *a = args;
    const struct linear_shape *z = &a->shape;
    cpu_sum_rows(a->dbias, a->t, a->dy, z->rows, z->out, z->y_stride, a->accumulate);
}

void cpu_linear_backward_bias(struct stream *s, enum dtype t, float *dbias, const void *dy,
                              const struct linear_shape *shape, bool accumulate)
{
    cpu_call(s, backward_bias_run, struct linear_args, .s = s, .t = t, .dbias = dbias, .dy = dy,
             .shape = *shape, .accumulate = accumulate);
}
