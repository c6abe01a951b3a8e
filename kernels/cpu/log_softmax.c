/* Log-softmax and the negative log-likelihood over its rows. Log-probabilities are fp32 whatever
 * they are made of. */
#include "kernels/cpu/cpu.h"
#include "kernels/data_error.h"

#include <math.h>

struct softmax_args {
    enum dtype t;
    float *y;
    const void *x;
    int64_t rows, cols;
};

/* Row r as floats; of bf16 in y's place. */
static const float *read_row(const struct softmax_args *a, int64_t r, float *y)
{
    if (a->t == DTYPE_F32)
        return (const float *)a->x + r * a->cols;
    const bf16 *x = (const bf16 *)a->x + r * a->cols;
    for (int64_t c = 0; c < a->cols; c++)
        y[c] = bf16_to_float(x[c]);
    return y;
}

static void softmax_run(void *args)
{
    const struct softmax_args *a = args;
    for (int64_t r = 0; r < a->rows; r++) {
        float *y = a->y + r * a->cols;
        const float *x = read_row(a, r, y);
        float largest = x[0];
        for (int64_t c = 1; c < a->cols; c++)
            largest = fmaxf(largest, x[c]);
        /* Minus the largest: no exponential overflows, and at least one is 1, so that the sum is
         * never 0. */
        double sum = expf(x[0] - largest);
        for (int64_t c = 1; c < a->cols; c++)
            sum += expf(x[c] - largest);
        float log_sum = (float)log(sum);
        for (int64_t c = 0; c < a->cols; c++)
            y[c] = x[c] - largest - log_sum; /* in this order: largest may swallow log_sum */
    }
}

void cpu_log_softmax(struct stream *s, enum dtype t, float *y, const void *x, int64_t rows,
                     int64_t cols)
{
    assert(cols >= 1 && (y != x || t == DTYPE_F32));
    cpu_call(s, softmax_run, struct softmax_args, t, y, x, rows, cols);
}

struct nll_args {
    struct stream *s;
    double *sums;
    const float *y;
    const int32_t *target;
    int64_t rows, cols;
};

static void nll_run(void *args)
{
    const struct nll_args *a = args;
    double loss = 0;
    int64_t hits = 0;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *y = a->y + r * a->cols;
        int64_t best = 0;
        for (int64_t c = 1; c < a->cols; c++)
            /* The first of equal ones wins, as torch.argmax has it. */
            best = y[c] > y[best] ? c : best;
        if (a->target[r] < 0 || a->target[r] >= a->cols) {
            struct error err;
            data_error(&err, DATA_LABEL, r, a->target[r], a->cols);
            cpu_fail(a->s, &err);
            return;
        }
        loss -= y[a->target[r]];
        hits += best == a->target[r];
    }
    a->sums[0] += loss;
    a->sums[1] += (double)hits;
    a->sums[2] += (double)a->rows;
}

void cpu_nll_loss(struct stream *s, double *sums, const float *y, const int32_t *target,
                  int64_t rows, int64_t cols)
{
    cpu_call(s, nll_run, struct nll_args, s, sums, y, target, rows, cols);
}

struct backward_args {
    enum dtype t;
    void *dx;
    const float *y;
    const int32_t *target;
    float scale;
    int64_t rows, cols;
};

static void backward_run(void *args)
{
    const struct backward_args *a = args;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *y = a->y + r * a->cols;
        for (int64_t c = 0; c < a->cols; c++) {
            /* dx = (softmax - onehot) * scale: the gradient of both ops in one, as their own would
             * each be V x V. */
            float d = a->scale * (expf(y[c]) - (c == a->target[r] ? 1.0f : 0.0f));
            if (a->t == DTYPE_F32)
                ((float *)a->dx)[r * a->cols + c] = d;
            else
                ((bf16 *)a->dx)[r * a->cols + c] = bf16_from_float(d);
        }
    }
}

void cpu_nll_log_softmax_backward(struct stream *s, enum dtype t, void *dx, const float *y,
                                  const int32_t *target, float scale, int64_t rows, int64_t cols)
{
    assert(dx != y || t == DTYPE_F32);
    cpu_call(s, backward_run, struct backward_args, t, dx, y, target, scale, rows, cols);
}
