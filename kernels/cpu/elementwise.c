/* Ops in which each element is on its own, and sums. `omp simd` says that equal pointers are the
 * only overlap, so the loops are vector code in place too. */
#include "kernels/cpu/cpu.h"

struct fill_args {
    float *y;
    float value;
};

CPU_HOT static void fill_piece(const void *args, int64_t first, int64_t last)
{
    const struct fill_args *a = args;
    float *y = a->y, value = a->value;
    for (int64_t i = first; i < last; i++)
        y[i] = value;
}

void cpu_fill(struct stream *s, float *y, float value, int64_t count)
{
    cpu_call_pieces(s, fill_piece, count, CPU_GRAIN, struct fill_args, y, value);
}

CPU_HOT static void scale_piece(const void *args, int64_t first, int64_t last)
{
    const struct fill_args *a = args;
    float *y = a->y, value = a->value;
    for (int64_t i = first; i < last; i++)
        y[i] *= value;
}

void cpu_scale(struct stream *s, float *y, float a, int64_t count)
{
    cpu_call_pieces(s, scale_piece, count, CPU_GRAIN, struct fill_args, y, a);
}

struct add_args {
    float *y;
    const float *x;
};

CPU_HOT static void add_piece(const void *args, int64_t first, int64_t last)
{
    const struct add_args *a = args;
    float *y = a->y;
    const float *x = a->x;
#pragma omp simd
    for (int64_t i = first; i < last; i++)
        y[i] += x[i];
}

void cpu_add(struct stream *s, enum dtype t, void *y, const void *x, int64_t count)
{
    assert(t == DTYPE_F32);
    cpu_call_pieces(s, add_piece, count, CPU_GRAIN, struct add_args, y, x);
}

struct normalize_args {
    float *y;
    const uint8_t *x;
    float mean, stddev;
};

CPU_HOT static void normalize_piece(const void *args, int64_t first, int64_t last)
{
    const struct normalize_args *a = args;
    float *y = a->y, mean = a->mean, stddev = a->stddev;
    const uint8_t *x = a->x;
#pragma omp simd
    for (int64_t i = first; i < last; i++)
        y[i] = ((float)x[i] / 255.0f - mean) / stddev;
}

void cpu_normalize(struct stream *s, float *y, const uint8_t *x, int64_t count, float mean,
                   float stddev)
{
    cpu_call_pieces(s, normalize_piece, count, CPU_GRAIN, struct normalize_args, y, x, mean,
                    stddev);
}

struct relu_args {
    float *dx;
    const float *y, *dy;
};

CPU_HOT static void relu_piece(const void *args, int64_t first, int64_t last)
{
    const struct relu_args *a = args;
    float *dx = a->dx;
    const float *y = a->y, *dy = a->dy;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float d = dy[i];
        dx[i] = y[i] > 0 ? d : 0;
    }
}

void cpu_relu_backward(struct stream *s, enum dtype t, void *dx, const void *y, const void *dy,
                       int64_t count)
{
    assert(t == DTYPE_F32);
    cpu_call_pieces(s, relu_piece, count, CPU_GRAIN, struct relu_args, dx, y, dy);
}

struct sum_args {
    double *sum;
    const float *x;
    int64_t count;
};

/* Eight sums side by side, by one thread: the same bits whatever the thread count. */
CPU_HOT static void sum_run(void *args)
{
    const struct sum_args *a = args;
    enum { SUMS = 8 };
    const float *x = a->x;
    double sums[SUMS] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + SUMS <= a->count; i += SUMS)
        for (int j = 0; j < SUMS; j++)
            sums[j] += (double)x[i + j] * x[i + j];
    for (; i < a->count; i++)
        sum += (double)x[i] * x[i];
    for (int j = 0; j < SUMS; j++)
        sum += sums[j];
    *a->sum += sum;
}

void cpu_sum_of_squares(struct stream *s, double *sum, const float *x, int64_t count)
{
    cpu_call(s, sum_run, struct sum_args, sum, x, count);
}

/* A strip of columns at a time, in double precision: a convolution's bias has a row for each place
 * of each image. */
CPU_HOT void cpu_sum_rows(float *sums, const float *x, int64_t rows, int64_t cols, bool accumulate)
{
    enum { STRIP = 64 };
    for (int64_t first = 0; first < cols; first += STRIP) {
        double strip[STRIP] = {0};
        int64_t width = cols - first < STRIP ? cols - first : STRIP;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < width; c++)
                strip[c] += (double)x[r * cols + first + c];
        for (int64_t c = 0; c < width; c++)
            sums[first + c] = (float)(strip[c] + (accumulate ? (double)sums[first + c] : 0));
    }
}
