/* Max pooling over 2x2 windows of channels-last images. */
#include "kernels/cpu/cpu.h"

#include <string.h>

struct forward_args {
    float *y;
    uint8_t *index;
    const float *x;
    int64_t H, W, C;
};

/* One window of all channels. */
static inline void pool(float *y, uint8_t *index, const float *top, const float *bottom, int64_t C)
{
#pragma omp simd
    for (int64_t c = 0; c < C; c++) {
        float x0 = top[c], x1 = top[C + c], x2 = bottom[c], x3 = bottom[C + c];
        float upper = x1 > x0 ? x1 : x0, lower = x3 > x2 ? x3 : x2;
        int32_t upper_index = x1 > x0 ? 1 : 0, lower_index = x3 > x2 ? 3 : 2;
        y[c] = lower > upper ? lower : upper;
        index[c] = (uint8_t)(lower > upper ? lower_index : upper_index);
    }
}

/* Rows of the output, of all images. */
CPU_HOT static void forward_piece(const void *args, int64_t first, int64_t last)
{
    const struct forward_args *a = args;
    int64_t H = a->H, W = a->W, C = a->C;
    for (int64_t row = first; row < last; row++) {
        int64_t b = row / (H / 2), h = row % (H / 2);
        const float *top = a->x + (b * H + 2 * h) * W * C;
        for (int64_t w = 0; w < W / 2; w++, top += 2 * C) {
            int64_t out = (row * (W / 2) + w) * C;
            pool(a->y + out, a->index + out, top, top + W * C, C);
        }
    }
}

void cpu_max_pool2d_forward(struct stream *s, float *y, uint8_t *index, const float *x, int64_t B,
                            int64_t H, int64_t W, int64_t C)
{
    cpu_call_pieces(s, forward_piece, B * (H / 2), 1 + CPU_GRAIN / (W * C), struct forward_args, y,
                    index, x, H, W, C);
}

struct backward_args {
    float *dx;
    const uint8_t *index;
    const float *dy;
    int64_t H, W, C;
};

/* One pixel of the window of all channels. */
static inline void unpool(float *dx, const uint8_t *index, uint8_t pixel, const float *dy,
                          int64_t C)
{
#pragma omp simd
    for (int64_t c = 0; c < C; c++) {
        float d = dy[c];
        dx[c] = index[c] == pixel ? d : 0;
    }
}

/* Images. */
CPU_HOT static void backward_piece(const void *args, int64_t first, int64_t last)
{
    const struct backward_args *a = args;
    int64_t H = a->H, W = a->W, C = a->C;
    if (H % 2 || W % 2) /* a row or column belongs to no window */
        memset(a->dx + first * H * W * C, 0, (size_t)((last - first) * H * W * C) * sizeof *a->dx);
    for (int64_t row = first * (H / 2); row < last * (H / 2); row++) {
        int64_t b = row / (H / 2), h = row % (H / 2);
        float *top = a->dx + (b * H + 2 * h) * W * C;
        for (int64_t w = 0; w < W / 2; w++, top += 2 * C) {
            int64_t in = (row * (W / 2) + w) * C;
            unpool(top, a->index + in, 0, a->dy + in, C);
            unpool(top + C, a->index + in, 1, a->dy + in, C);
            unpool(top + W * C, a->index + in, 2, a->dy + in, C);
            unpool(top + W * C + C, a->index + in, 3, a->dy + in, C);
        }
    }
}

void cpu_max_pool2d_backward(struct stream *s, float *dx, const uint8_t *index, const float *dy,
                             int64_t B, int64_t H, int64_t W, int64_t C)
{
    cpu_call_pieces(s, backward_piece, B, 1, struct backward_args, dx, index, dy, H, W, C);
}
