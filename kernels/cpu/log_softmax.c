/* Log-softmax and the negative log-likelihood over its rows. */
#include "kernels/cpu/cpu.h"

#include <math.h>

struct softmax_args {
    float *y;
    const float *x;
    int64_t rows, cols;
};

static void softmax_run(void *args)
{
    const struct softmax_args *a = args;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->cols;
        float *y = a->y + r * a->cols;
        float largest = x[0];
        for (int64_t c = 1; c < a->cols; c++)
            largest = fmaxf(largest, x[c]);
        double sum = expf(x[0] - largest);
        for (int64_t c = 1; c < a->cols; c++)
            sum += expf(x[c] - largest);
        float log_sum = (float)log(sum);
        for (int64_t c = 0; c < a->cols; c++)
            y[c] = x[c] - largest - log_sum; /* in this order: largest may swallow log_sum */
    }
}

void cpu_log_softmax(struct stream *s, float *y, const float *x, int64_t rows, int64_t cols)
{
    assert(cols >= 1);
    cpu_call(s, softmax_run, struct softmax_args, y, x, rows, cols);
}

struct nll_args {
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
            best = y[c] > y[best] ? c : best;
        assert(a->target[r] >= 0 && a->target[r] < a->cols);
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
    cpu_call(s, nll_run, struct nll_args, sums, y, target, rows, cols);
}

struct backward_args {
    float *dx;
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
        float *dx = a->dx + r * a->cols;
        for (int64_t c = 0; c < a->cols; c++)
            dx[c] = a->scale * (expf(y[c]) - (c == a->target[r] ? 1.0f : 0.0f));
    }
}

void cpu_nll_log_softmax_backward(struct stream *s, float *dx, const float *y,
                                  const int32_t *target, float scale, int64_t rows, int64_t cols)
{
    cpu_call(s, backward_run, struct backward_args, dx, y, target, scale, rows, cols);
}
