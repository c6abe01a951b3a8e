/* Cross-entropy straight from the logits: the probabilities of a large vocabulary are never kept,
 * only their logarithms' sum, row by row. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/data_error.h"

#include <math.h>
#include <omp.h>
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
    const void *logits;
    const int32_t *target;
    float scale;
    int64_t rows, V, stride;
};

static float read_element(enum dtype t, const void *x, int64_t at)
{
    return t == DTYPE_F32 ? ((const float *)x)[at] : bf16_to_float(((const bf16 *)x)[at]);
}

CPU_HOT static float largest_of(enum dtype t, const void *logits, int64_t first, int64_t count)
{
    float largest = read_element(t, logits, first), strip[STRIP];
    for (int64_t i = 0, n; i < count; i += n) {
        n = strip_length(count - i);
        const float *x = strip_read(t, logits, first + i, n, strip);
#pragma omp simd reduction(max : largest)
        for (int64_t j = 0; j < n; j++)
            largest = x[j] > largest ? x[j] : largest;
    }
    return largest;
}

/* The sum of exp(x - largest); with `kept`, they stay there. kept may be the row. */
CPU_HOT static double sum_of_exponents(float *kept, enum dtype t, const void *logits, int64_t first,
                                       int64_t count, float largest)
{
    double sum = 0;
    for (int64_t i = 0, n; i < count; i += n) {
        n = strip_length(count - i);
        float partial = 0, strip[STRIP], *e = kept ? kept + i : strip;
        const float *x = strip_read(t, logits, first + i, n, strip);
#pragma omp simd reduction(+ : partial)
        for (int64_t j = 0; j < n; j++) {
            e[j] = vector_exp(x[j] - largest);
            partial += e[j];
        }
        sum += partial;
    }
    return sum;
}

/* A row of dlogits = factor * e. */
CPU_HOT static void write_row(enum dtype t, void *dlogits, int64_t first, const float *e,
                              int64_t count, float factor)
{
    float strip[STRIP];
    for (int64_t i = 0, n; i < count; i += n) {
        n = strip_length(count - i);
        float *y = strip_target(t, dlogits, first + i, strip);
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[j] = factor * e[i + j];
        strip_write(t, dlogits, first + i, n, y);
    }
}

static void write_element(const struct cross_entropy_args *a, int64_t at, float value)
{
    if (a->t == DTYPE_F32)
        ((float *)a->dlogits)[at] = value;
    else
        ((bf16 *)a->dlogits)[at] = bf16_from_float(value);
}

/* e: room for a row. */
static struct row_loss do_row(const struct cross_entropy_args *a, int64_t row, float *e)
{
    int64_t V = a->V, first = row * a->stride, target = a->target[row];
    /* As torch's ignore_index (-100): no loss, no gradient, and not counted in the mean. */
    if (target < 0) {
        if (a->dlogits)
            memset((char *)a->dlogits + (size_t)first * dtype_bytes(a->t), 0,
                   (size_t)V * dtype_bytes(a->t));
        return (struct row_loss){0};
    }
    if (target >= V) {
        struct error err;
        data_error(&err, DATA_LABEL, row, target, V);
        cpu_fail(a->s, &err);
        return (struct row_loss){0};
    }
    float largest = largest_of(a->t, a->logits, first, V);
    float chosen = read_element(a->t, a->logits, first + target);
    /* Of equal logits the first counts as the prediction, as with argmax. */
    bool hit = chosen == largest;
    for (int64_t i = 0; hit && i < target; i++)
        hit = read_element(a->t, a->logits, first + i) != largest;
    /* What follows may write over the logits. */
    if (a->dlogits && a->t == DTYPE_F32)
        e = (float *)a->dlogits + first;
    double sum = sum_of_exponents(a->dlogits ? e : NULL, a->t, a->logits, first, V, largest);
    float log_probability = chosen - largest - (float)log(sum);
    if (a->dlogits) {
        write_row(a->t, a->dlogits, first, e, V, (float)(a->scale / sum));
        /* dlogits = (softmax - onehot) * scale. The target's own element comes from the logarithm:
         * p - 1 loses its digits where p is almost 1. */
        write_element(a, first + target, a->scale * (expf(log_probability) - 1));
    }
    return (struct row_loss){-(double)log_probability, hit};
}

static void cross_entropy_run(void *args)
{
    const struct cross_entropy_args *a = args;
    int64_t losses_bytes = (a->rows * (int64_t)sizeof(struct row_loss) + 63) / 64 * 64;
    int64_t row_bytes = a->V * (int64_t)sizeof(float);
    char *scratch = cpu_scratch(a->s, (size_t)(losses_bytes + omp_get_max_threads() * row_bytes));
    struct row_loss *losses = (struct row_loss *)scratch;
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < a->rows; r++)
        losses[r] =
            do_row(a, r, (float *)(scratch + losses_bytes + omp_get_thread_num() * row_bytes));
    for (int64_t r = 0; r < a->rows; r++) { /* in order, whoever did them */
        a->sums[0] += losses[r].loss;
        a->sums[1] += losses[r].hit;
        a->sums[2] += a->target[r] >= 0;
    }
}

void cpu_cross_entropy(struct stream *s, enum dtype t, void *dlogits, double *sums,
                       const void *logits, const int32_t *target, float scale, int64_t rows,
                       int64_t V, int64_t stride)
{
    assert(V >= 1 && stride >= V);
    cpu_call(s, cross_entropy_run, struct cross_entropy_args, s, t, dlogits, sums, logits, target,
             scale, rows, V, stride);
}
