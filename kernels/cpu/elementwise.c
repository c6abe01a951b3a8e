/* Ops in which each element is on its own, and sums. `omp simd` says that equal pointers are the
 * only overlap, so the loops are vector code in place too. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"

#include <math.h>

struct fill_args {
    float *y;
    float value;
};

CPU_HOT static void fill_chunk(const void *args, int64_t first, int64_t last)
{
    const struct fill_args *a = args;
    float *y = a->y, value = a->value;
    for (int64_t i = first; i < last; i++)
        y[i] = value;
}

void cpu_fill(struct stream *s, float *y, float value, int64_t count)
{
    cpu_call_chunks(s, fill_chunk, count, CPU_GRAIN, struct fill_args, y, value);
}

struct scale_args {
    enum dtype t;
    void *y;
    float a;
};

CPU_HOT static void scale_chunk(const void *args, int64_t first, int64_t last)
{
    const struct scale_args *a = args;
    float x_strip[STRIP], y_strip[STRIP], factor = a->a;
    for (int64_t i = first, n; i < last; i += n) {
        n = strip_length(last - i);
        const float *x = strip_read(a->t, a->y, i, n, x_strip);
        float *y = strip_target(a->t, a->y, i, y_strip);
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[j] = factor * x[j];
        strip_write(a->t, a->y, i, n, y);
    }
}

void cpu_scale(struct stream *s, enum dtype t, void *y, float a, int64_t count)
{
    cpu_call_chunks(s, scale_chunk, count, CPU_GRAIN, struct scale_args, t, y, a);
}

/* Of add and cast. */
struct two_args {
    enum dtype t_y, t_x;
    void *y;
    const void *x;
};

CPU_HOT static void add_chunk(const void *args, int64_t first, int64_t last)
{
    const struct two_args *a = args;
    float x_strip[STRIP], y_strip[STRIP], sum_strip[STRIP];
    for (int64_t i = first, n; i < last; i += n) {
        n = strip_length(last - i);
        const float *x = strip_read(a->t_x, a->x, i, n, x_strip);
        const float *y = strip_read(a->t_y, a->y, i, n, y_strip);
        float *sum = strip_target(a->t_y, a->y, i, sum_strip);
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            sum[j] = y[j] + x[j];
        strip_write(a->t_y, a->y, i, n, sum);
    }
}

void cpu_add(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
             int64_t count)
{
    cpu_call_chunks(s, add_chunk, count, CPU_GRAIN, struct two_args, t_y, t_x, y, x);
}

CPU_HOT static void cast_chunk(const void *args, int64_t first, int64_t last)
{
    const struct two_args *a = args;
    float x_strip[STRIP], y_strip[STRIP];
    for (int64_t i = first, n; i < last; i += n) {
        n = strip_length(last - i);
        const float *x = strip_read(a->t_x, a->x, i, n, x_strip);
        float *y = strip_target(a->t_y, a->y, i, y_strip);
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[j] = x[j];
        strip_write(a->t_y, a->y, i, n, y);
    }
}

void cpu_cast(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
              int64_t count)
{
    assert(y != x || t_y == t_x);
    cpu_call_chunks(s, cast_chunk, count, CPU_GRAIN, struct two_args, t_y, t_x, y, x);
}

struct normalize_args {
    enum dtype t;
    void *y;
    const uint8_t *x;
    float mean, stddev;
};

CPU_HOT static void normalize_chunk(const void *args, int64_t first, int64_t last)
{
    const struct normalize_args *a = args;
    float mean = a->mean, stddev = a->stddev, y_strip[STRIP];
    for (int64_t i = first, n; i < last; i += n) {
        n = strip_length(last - i);
        const uint8_t *x = a->x + i;
        float *y = strip_target(a->t, a->y, i, y_strip);
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[j] = ((float)x[j] / 255.0f - mean) / stddev;
        strip_write(a->t, a->y, i, n, y);
    }
}

void cpu_normalize(struct stream *s, enum dtype t, void *y, const uint8_t *x, int64_t count,
                   float mean, float stddev)
{
    cpu_call_chunks(s, normalize_chunk, count, CPU_GRAIN, struct normalize_args, t, y, x, mean,
                    stddev);
}

struct relu_args {
    enum dtype t;
    void *dx;
    const void *y, *dy;
};

CPU_HOT static void relu_chunk(const void *args, int64_t first, int64_t last)
{
    const struct relu_args *a = args;
    float y_strip[STRIP], dy_strip[STRIP], dx_strip[STRIP];
    for (int64_t i = first, n; i < last; i += n) {
        n = strip_length(last - i);
        const float *y = strip_read(a->t, a->y, i, n, y_strip);
        const float *dy = strip_read(a->t, a->dy, i, n, dy_strip);
        float *dx = strip_target(a->t, a->dx, i, dx_strip);
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            float d = dy[j];
            dx[j] = y[j] > 0 ? d : 0;
        }
        strip_write(a->t, a->dx, i, n, dx);
    }
}

void cpu_relu_backward(struct stream *s, enum dtype t, void *dx, const void *y, const void *dy,
                       int64_t count)
{
    cpu_call_chunks(s, relu_chunk, count, CPU_GRAIN, struct relu_args, t, dx, y, dy);
}

struct sum_args {
    struct stream *s;
    double *sum;
    const float *x;
    int64_t count;
};

/* Eight sums side by side. */
CPU_HOT static double sum_chunk(const float *x, int64_t count)
{
    /* One sum would be a chain of additions, each of which waits for the one before. The compiler
     * may not reorder them, so the code does. */
    enum { SUMS = 8 };
    double sums[SUMS] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + SUMS <= count; i += SUMS)
        for (int j = 0; j < SUMS; j++)
            sums[j] += (double)x[i + j] * x[i + j];
    for (; i < count; i++)
        sum += (double)x[i] * x[i];
    for (int j = 0; j < SUMS; j++)
        sum += sums[j];
    return sum;
}

/* The chunks' sums add up in order: the same bits whatever the thread count. */
static void sum_run(void *args)
{
    enum { CHUNK = 1 << 16 };
    const struct sum_args *a = args;
    int64_t chunks = (a->count + CHUNK - 1) / CHUNK;
    double *sums = cpu_scratch(a->s, (size_t)chunks * sizeof *sums);
#pragma omp parallel for schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t left = a->count - i * CHUNK;
        sums[i] = sum_chunk(a->x + i * CHUNK, left < CHUNK ? left : CHUNK);
    }
    for (int64_t i = 0; i < chunks; i++)
        *a->sum += sums[i];
}

void cpu_sum_of_squares(struct stream *s, double *sum, const float *x, int64_t count)
{
    cpu_call(s, sum_run, struct sum_args, s, sum, x, count);
}

enum { COLUMNS = 64 };

/* A strip of columns at a time, in double precision: a convolution's bias has a row for each place
 * of each image. */
CPU_HOT static void sum_columns(float *sums, enum dtype t, const void *x, int64_t rows,
                                int64_t stride, int64_t first, int64_t width, bool accumulate)
{
    double strip[COLUMNS] = {0};
    float buffer[STRIP];
    for (int64_t r = 0; r < rows; r++) {
        const float *row = strip_read(t, x, r * stride + first, width, buffer);
        for (int64_t c = 0; c < width; c++)
            strip[c] += (double)row[c];
    }
    for (int64_t c = 0; c < width; c++)
        sums[first + c] = (float)(strip[c] + (accumulate ? (double)sums[first + c] : 0));
}

void cpu_sum_rows(float *sums, enum dtype t, const void *x, int64_t rows, int64_t cols,
                  int64_t stride, bool accumulate)
{
#pragma omp parallel for schedule(static) if (rows * cols > CPU_GRAIN)
    for (int64_t first = 0; first < cols; first += COLUMNS) {
        int64_t width = cols - first < COLUMNS ? cols - first : COLUMNS;
        sum_columns(sums, t, x, rows, stride, first, width, accumulate);
    }
}
