/* Ops that use random numbers: each element's number is named by its place in the whole tensor. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/random_run.h"
#include "kernels/cpu/strip.h"

#include <math.h>

struct uniform_args {
    float *y;
    uint64_t key, first;
    float low, high;
};

CPU_HOT static void uniform_chunk(const void *args, int64_t first, int64_t last)
{
    const struct uniform_args *a = args;
    float buffer[RANDOM_GROUP];
    const float *numbers;
    for (int64_t i = first, n; i < last; i += n) {
        n = random_run(buffer, a->key, a->first + (uint64_t)i, last - i, &numbers);
        for (int64_t j = 0; j < n; j++)
            a->y[i + j] = a->low + (a->high - a->low) * numbers[j];
    }
}

void cpu_uniform(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first, float low,
                 float high)
{
    cpu_call_chunks(s, uniform_chunk, count, CPU_GRAIN, struct uniform_args, y, key, first, low,
                    high);
}

struct normal_args {
    float *y;
    uint64_t key, first;
    float mean, stddev;
};

/* Turns a group of uniform numbers into normal ones: the first half are radii, the
 * second angles. */
static void normal_group(float numbers[RANDOM_GROUP])
{
    enum { HALF = RANDOM_GROUP / 2 };
    for (int i = 0; i < HALF; i++) {
        /* Box and Muller 1958. The numbers are in [0, 1), so the logarithm is that of 1 - u, which
         * is never 0. */
        float radius = sqrtf(-2 * logf(1 - numbers[i]));
        float angle = 6.2831853f * numbers[HALF + i];
        numbers[i] = radius * cosf(angle);
        numbers[HALF + i] = radius * sinf(angle);
    }
}

static void normal_chunk(const void *args, int64_t first, int64_t last)
{
    const struct normal_args *a = args;
    float buffer[RANDOM_GROUP];
    const float *numbers;
    for (int64_t i = first, n; i < last; i += n) {
        n = random_run(buffer, a->key, a->first + (uint64_t)i, last - i, &numbers);
        normal_group(buffer);
        for (int64_t j = 0; j < n; j++)
            a->y[i + j] = a->mean + a->stddev * numbers[j];
    }
}

void cpu_normal(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first, float mean,
                float stddev)
{
    cpu_call_chunks(s, normal_chunk, count, CPU_GRAIN, struct normal_args, y, key, first, mean,
                    stddev);
}

struct dropout_args {
    enum dtype t;
    void *y;
    const void *x;
    int64_t cols;
    float p;
    uint64_t key, first_row, row_stride;
};

/* Rows. */
CPU_HOT static void dropout_chunk(const void *args, int64_t first, int64_t last)
{
    const struct dropout_args *a = args;
    float p = a->p, scale = 1 / (1 - p), buffer[RANDOM_GROUP], x_strip[STRIP], y_strip[STRIP];
    const float *numbers;
    for (int64_t r = first; r < last; r++) {
        /* The row's place in the batch of all ranks: how many ranks there are does not change what
         * is dropped. */
        uint64_t index = (a->first_row + (uint64_t)r * a->row_stride) * (uint64_t)a->cols;
        for (int64_t c = 0, n; c < a->cols; c += n) {
            int64_t i = r * a->cols + c;
            n = random_run(buffer, a->key, index + (uint64_t)c, a->cols - c, &numbers);
            const float *x = strip_read(a->t, a->x, i, n, x_strip);
            float *y = strip_target(a->t, a->y, i, y_strip);
#pragma omp simd
            for (int64_t j = 0; j < n; j++) {
                float kept = x[j] * scale;
                y[j] = numbers[j] < p ? 0 : kept;
            }
            strip_write(a->t, a->y, i, n, y);
        }
    }
}

void cpu_dropout(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows, int64_t cols,
                 float p, uint64_t key, uint64_t first_row, uint64_t row_stride)
{
    assert(p >= 0 && p < 1 && cols >= 1);
    cpu_call_chunks(s, dropout_chunk, rows, 1 + CPU_GRAIN / cols, struct dropout_args, t, y, x,
                    cols, p, key, first_row, row_stride);
}
