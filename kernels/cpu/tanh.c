#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"

#include <math.h>

struct tanh_args {
    enum dtype t;
    void *out;           /* y or dx */
    const void *in, *dy; /* in: x or y */
};

static void forward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct tanh_args *a = args;
    float x_strip[STRIP], y_strip[STRIP];
    for (int64_t i = first, n; i < last; i += n) {
        n = strip_length(last - i);
        const float *x = strip_read(a->t, a->in, i, n, x_strip);
        float *y = strip_target(a->t, a->out, i, y_strip);
        for (int64_t j = 0; j < n; j++)
            y[j] = tanhf(x[j]);
        strip_write(a->t, a->out, i, n, y);
    }
}

void cpu_tanh_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t count)
{
    cpu_call_chunks(s, forward_chunk, count, CPU_GRAIN, struct tanh_args, t, y, x, NULL);
}

static void backward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct tanh_args *a = args;
    float y_strip[STRIP], dy_strip[STRIP], dx_strip[STRIP];
    for (int64_t i = first, n; i < last; i += n) {
        n = strip_length(last - i);
        const float *y = strip_read(a->t, a->in, i, n, y_strip);
        const float *dy = strip_read(a->t, a->dy, i, n, dy_strip);
        float *dx = strip_target(a->t, a->out, i, dx_strip);
        for (int64_t j = 0; j < n; j++)
            /* From y and not from x: forward need not keep x, nor backward compute tanh again. */
            dx[j] = dy[j] * (1 - y[j] * y[j]);
        strip_write(a->t, a->out, i, n, dx);
    }
}

void cpu_tanh_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *y,
                       int64_t count)
{
    cpu_call_chunks(s, backward_chunk, count, CPU_GRAIN, struct tanh_args, t, dx, y, dy);
}
