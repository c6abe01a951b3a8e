/* Cross-entropy straight from the logits: the probabilities of a large vocabulary are never kept,
 * only their logarithms' sum, row by row. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"
#include "kernels/cpu/vector_math.h"

#include <math.h>
#include <string.h>

struct row_loss {
    double loss;
    bool hit;
};

struct cross_entropy_args {
    struct stream *s;
    enum dtype t;
    void *dlogits;
    double *sums;
    const float *logits;
    const int32_t *target;
    float scale;
    int64_t rows, V;
};

CPU_HOT static float largest_of(const float *x, int64_t count)
{
    float largest = x[0];
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < count; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

CPU_HOT static double sum_of_exponents(const float *x, int64_t count, float largest)
{
    double sum = 0;
    for (int64_t i = 0, n; i < count; i += n) {
        n = strip_length(count - i);
        float part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t j = i; j < i + n; j++)
            part += vector_exp(x[j] - largest);
        sum += part;
    }
    return sum;
}

/* dlogits = scale * exp(x - largest - log_sum). */
CPU_HOT static void write_probabilities(const struct cross_entropy_args *a, int64_t row,
                                        float largest, float log_sum)
{
    const float *x = a->logits + row * a->V;
    float strip[STRIP], scale = a->scale;
    for (int64_t i = 0, n; i < a->V; i += n) {
        n = strip_length(a->V - i);
        float *y = strip_target(a->t, a->dlogits, row * a->V + i, strip);
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[j] = scale * vector_exp(x[i + j] - largest - log_sum);
        strip_write(a->t, a->dlogits, row * a->V + i, n, y);
    }
}

static void write_element(const struct cross_entropy_args *a, int64_t at, float value)
{
    if (a->t == DTYPE_F32)
        ((float *)a->dlogits)[at] = value;
    else
        ((bf16 *)a->dlogits)[at] = bf16_from_float(value);
}

static struct row_loss do_row(const struct cross_entropy_args *a, int64_t row)
{
    int64_t V = a->V, target = a->target[row];
    const float *x = a->logits + row * V;
    if (target < 0) {
        if (a->dlogits)
            memset((char *)a->dlogits + (size_t)(row * V) * dtype_bytes(a->t), 0,
                   (size_t)V * dtype_bytes(a->t));
        return (struct row_loss){0};
    }
    assert(target < V);
    float largest = largest_of(x, V), log_sum = (float)log(sum_of_exponents(x, V, largest));
    float log_probability = x[target] - largest - log_sum;
    bool hit = x[target] == largest;
    for (int64_t i = 0; hit && i < target; i++)
        hit = x[i] != largest;
    if (a->dlogits) {
        write_probabilities(a, row, largest, log_sum);
        write_element(a, row * V + target, a->scale * (expf(log_probability) - 1));
    }
    return (struct row_loss){-(double)log_probability, hit};
}

static void cross_entropy_run(void *args)
{
    const struct cross_entropy_args *a = args;
    struct row_loss *losses = cpu_scratch(a->s, (size_t)a->rows * sizeof *losses);
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < a->rows; r++)
        losses[r] = do_row(a, r);
    for (int64_t r = 0; r < a->rows; r++) { /* in order, whoever did them */
        a->sums[0] += losses[r].loss;
        a->sums[1] += losses[r].hit;
        a->sums[2] += a->target[r] >= 0;
    }
}

void cpu_cross_entropy(struct stream *s, enum dtype t, void *dlogits, double *sums,
                       const float *logits, const int32_t *target, float scale, int64_t rows,
                       int64_t V)
{
    assert(V >= 1 && (dlogits != logits || t == DTYPE_F32));
    cpu_call(s, cross_entropy_run, struct cross_entropy_args, s, t, dlogits, sums, logits, target,
             scale, rows, V);
}
