/* Gated activations (Shazeer 2020): Llama's with silu, T5 v1.1's with GELU by tanh. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gelu.h"
#include "kernels/cpu/strip.h"

struct gated_args {
    enum dtype t;
    void *out; /* y or dx */
    const void *x, *dy;
    int64_t I;
    bool gelu;
};

/* Rows. */
CPU_HOT static void forward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct gated_args *a = args;
    float gate_strip[STRIP], up_strip[STRIP], y_strip[STRIP];
    for (int64_t r = first; r < last; r++)
        for (int64_t i = 0, n; i < a->I; i += n) {
            n = strip_length(a->I - i);
            const float *gate = strip_read(a->t, a->x, r * 2 * a->I + i, n, gate_strip);
            const float *up = strip_read(a->t, a->x, (r * 2 + 1) * a->I + i, n, up_strip);
            float *y = strip_target(a->t, a->out, r * a->I + i, y_strip);
            if (a->gelu) {
#pragma omp simd
                for (int64_t j = 0; j < n; j++)
                    y[j] = gate[j] * gelu_tanh_cdf(gate[j]) * up[j];
            } else {
#pragma omp simd
                for (int64_t j = 0; j < n; j++)
                    y[j] = gate[j] * vector_sigmoid(gate[j]) * up[j];
            }
            strip_write(a->t, a->out, r * a->I + i, n, y);
        }
}

/* name: the op's. */
static void forward(struct stream *s, const char *name, const struct gated_args *args, int64_t rows)
{
    assert(args->I >= 1);
    cpu_queue_chunks(s, name, forward_chunk, rows, 1 + CPU_GRAIN / args->I, args, sizeof *args);
}

void cpu_swiglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                        int64_t I)
{
    forward(s, __func__, &(struct gated_args){.t = t, .out = y, .x = x, .I = I}, rows);
}

void cpu_geglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                       int64_t I)
{
    forward(s, __func__, &(struct gated_args){.t = t, .out = y, .x = x, .I = I, .gelu = true},
            rows);
}

CPU_HOT static void backward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct gated_args *a = args;
    float gate_strip[STRIP], up_strip[STRIP], dy_strip[STRIP], dgate_strip[STRIP], dup_strip[STRIP];
    for (int64_t r = first; r < last; r++)
        for (int64_t i = 0, n; i < a->I; i += n) {
            n = strip_length(a->I - i);
            int64_t at_gate = r * 2 * a->I + i, at_up = at_gate + a->I;
            const float *gate = strip_read(a->t, a->x, at_gate, n, gate_strip);
            const float *up = strip_read(a->t, a->x, at_up, n, up_strip);
            const float *dy = strip_read(a->t, a->dy, r * a->I + i, n, dy_strip);
            float *dgate = strip_target(a->t, a->out, at_gate, dgate_strip);
            float *dup = strip_target(a->t, a->out, at_up, dup_strip);
            if (a->gelu) {
#pragma omp simd
                for (int64_t j = 0; j < n; j++) {
                    float g = gate[j], u = up[j], d = dy[j];
                    dup[j] = d * g * gelu_tanh_cdf(g);
                    dgate[j] = d * u * gelu_tanh_slope(g);
                }
            } else {
#pragma omp simd
                for (int64_t j = 0; j < n; j++) {
                    /* silu(g) = g sigma(g), and its slope is sigma(g) (1 + g (1 - sigma(g))). */
                    float g = gate[j], u = up[j], d = dy[j], sigmoid = vector_sigmoid(g);
                    dup[j] = d * g * sigmoid;
                    dgate[j] = d * u * sigmoid * (1 + g * (1 - sigmoid));
                }
            }
            strip_write(a->t, a->out, at_gate, n, dgate);
            strip_write(a->t, a->out, at_up, n, dup);
        }
}

static void backward(struct stream *s, const char *name, const struct gated_args *args,
                     int64_t rows)
{
    assert(args->I >= 1);
    cpu_queue_chunks(s, name, backward_chunk, rows, 1 + CPU_GRAIN / args->I, args, sizeof *args);
}

void cpu_swiglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                         int64_t rows, int64_t I)
{
    backward(s, __func__, &(struct gated_args){.t = t, .out = dx, .x = x, .dy = dy, .I = I}, rows);
}

void cpu_geglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                        int64_t rows, int64_t I)
{
    backward(s, __func__,
             &(struct gated_args){.t = t, .out = dx, .x = x, .dy = dy, .I = I, .gelu = true}, rows);
}
