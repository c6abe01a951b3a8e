/* The gated activation of Llama's MLP (Shazeer 2020). */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"
#include "kernels/cpu/vector_math.h"

struct swiglu_args {
    enum dtype t;
    void *out; /* y or dx */
    const void *x, *dy;
    int64_t I;
};

/* Rows. */
CPU_HOT static void forward_piece(const void *args, int64_t first, int64_t last)
{
    const struct swiglu_args *a = args;
    float gate_strip[STRIP], up_strip[STRIP], y_strip[STRIP];
    for (int64_t r = first; r < last; r++)
        for (int64_t i = 0, n; i < a->I; i += n) {
            n = strip_length(a->I - i);
            const float *gate = strip_read(a->t, a->x, r * 2 * a->I + i, n, gate_strip);
            const float *up = strip_read(a->t, a->x, (r * 2 + 1) * a->I + i, n, up_strip);
            float *y = strip_target(a->t, a->out, r * a->I + i, y_strip);
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                y[j] = gate[j] * vector_sigmoid(gate[j]) * up[j];
            strip_write(a->t, a->out, r * a->I + i, n, y);
        }
}

void cpu_swiglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                        int64_t I)
{
    assert(I >= 1);
    cpu_call_pieces(s, forward_piece, rows, 1 + CPU_GRAIN / I, struct swiglu_args, t, y, x, NULL,
                    I);
}

CPU_HOT static void backward_piece(const void *args, int64_t first, int64_t last)
{
    const struct swiglu_args *a = args;
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
#pragma omp simd
            for (int64_t j = 0; j < n; j++) {
                float g = gate[j], u = up[j], d = dy[j], sigmoid = vector_sigmoid(g);
                dup[j] = d * g * sigmoid;
                dgate[j] = d * u * sigmoid * (1 + g * (1 - sigmoid));
            }
            strip_write(a->t, a->out, at_gate, n, dgate);
            strip_write(a->t, a->out, at_up, n, dup);
        }
}

void cpu_swiglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                         int64_t rows, int64_t I)
{
    assert(I >= 1);
    cpu_call_pieces(s, backward_piece, rows, 1 + CPU_GRAIN / I, struct swiglu_args, t, dx, x, dy,
                    I);
}
