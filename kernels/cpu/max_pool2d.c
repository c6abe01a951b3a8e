/* Max pooling over 2x2 windows of channels-last images. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"

#include <string.h>

struct forward_args {
    enum dtype t;
    void *y;
    uint8_t *index;
    const void *x;
    int64_t H, W, C;
};

/* All bits set if b is larger than a, as what is no number is, as in torch's max_pool2d. An int,
 * because GCC does not vectorize a loop over bools of floats. */
static inline int32_t larger(float b, float a)
{
    return -(b > a) | -(b != b);
}

/* A strip of channels of one window. x: its four pixels. */
static inline void pool(float *y, uint8_t *index, const float *const x[4], int64_t count)
{
    const float *p0 = x[0], *p1 = x[1], *p2 = x[2], *p3 = x[3];
#pragma omp simd
    for (int64_t c = 0; c < count; c++) {
        float x0 = p0[c], x1 = p1[c], x2 = p2[c], x3 = p3[c];
        int32_t right = larger(x1, x0), lower_right = larger(x3, x2);
        float upper = right ? x1 : x0, lower = lower_right ? x3 : x2;
        int32_t down = larger(lower, upper);
        y[c] = down ? lower : upper;
        index[c] = (uint8_t)(down ? 2 - lower_right : -right);
    }
}

/* out, top: where the channels of the window and of its first pixel begin. */
static inline __attribute__((always_inline)) void pool_window(const struct forward_args *a,
                                                              int64_t out, int64_t top)
{
    const int64_t pixels[4] = {top, top + a->C, top + a->W * a->C, top + (a->W + 1) * a->C};
    float x_strips[4][STRIP], y_strip[STRIP];
    for (int64_t c = 0, n; c < a->C; c += n) {
        const float *x[4];
        n = strip_length(a->C - c);
        for (int i = 0; i < 4; i++)
            x[i] = strip_read(a->t, a->x, pixels[i] + c, n, x_strips[i]);
        float *y = strip_target(a->t, a->y, out + c, y_strip);
        pool(y, a->index + out + c, x, n);
        strip_write(a->t, a->y, out + c, n, y);
    }
}

/* Rows of the output, of all images. */
CPU_HOT static void forward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct forward_args a = *(const struct forward_args *)args; /* index may alias all else */
    int64_t H = a.H, W = a.W, C = a.C;
    for (int64_t row = first; row < last; row++) {
        int64_t b = row / (H / 2), h = row % (H / 2);
        int64_t top = (b * H + 2 * h) * W * C;
        for (int64_t w = 0; w < W / 2; w++, top += 2 * C)
            pool_window(&a, (row * (W / 2) + w) * C, top);
    }
}

void cpu_max_pool2d_forward(struct stream *s, enum dtype t, void *y, uint8_t *index, const void *x,
                            int64_t B, int64_t H, int64_t W, int64_t C)
{
    cpu_call_chunks(s, forward_chunk, B * (H / 2), 1 + CPU_GRAIN / (W * C), struct forward_args, t,
                    y, index, x, H, W, C);
}

struct backward_args {
    enum dtype t;
    void *dx;
    const uint8_t *index;
    const void *dy;
    int64_t H, W, C;
};

/* A strip of channels of one pixel of the window. */
static inline void unpool(float *dx, const uint8_t *index, uint8_t pixel, const float *dy,
                          int64_t count)
{
#pragma omp simd
    for (int64_t c = 0; c < count; c++) {
        float d = dy[c];
        dx[c] = index[c] == pixel ? d : 0;
    }
}

/* in, top: where the channels of the window and of its first pixel begin. */
static inline __attribute__((always_inline)) void unpool_window(const struct backward_args *a,
                                                                int64_t in, int64_t top)
{
    const int64_t pixels[4] = {top, top + a->C, top + a->W * a->C, top + (a->W + 1) * a->C};
    float dy_strip[STRIP], dx_strip[STRIP];
    for (int64_t c = 0, n; c < a->C; c += n) {
        n = strip_length(a->C - c);
        const float *dy = strip_read(a->t, a->dy, in + c, n, dy_strip);
        for (int i = 0; i < 4; i++) {
            float *dx = strip_target(a->t, a->dx, pixels[i] + c, dx_strip);
            unpool(dx, a->index + in + c, (uint8_t)i, dy, n);
            strip_write(a->t, a->dx, pixels[i] + c, n, dx);
        }
    }
}

/* Images. */
CPU_HOT static void backward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct backward_args *a = args;
    int64_t H = a->H, W = a->W, C = a->C;
    size_t image_bytes = (size_t)(H * W * C) * dtype_bytes(a->t);
    if (H % 2 || W % 2) /* a row or column belongs to no window */
        memset((char *)a->dx + (size_t)first * image_bytes, 0,
               (size_t)(last - first) * image_bytes);
    for (int64_t row = first * (H / 2); row < last * (H / 2); row++) {
        int64_t b = row / (H / 2), h = row % (H / 2);
        int64_t top = (b * H + 2 * h) * W * C;
        for (int64_t w = 0; w < W / 2; w++, top += 2 * C)
            unpool_window(a, (row * (W / 2) + w) * C, top);
    }
}

void cpu_max_pool2d_backward(struct stream *s, enum dtype t, void *dx, const uint8_t *index,
                             const void *dy, int64_t B, int64_t H, int64_t W, int64_t C)
{
    cpu_call_chunks(s, backward_chunk, B, 1, struct backward_args, t, dx, index, dy, H, W, C);
}
