/* Images between channels-last and channels-first: a transpose of [H * W, C] for each image. */
#include "kernels/cpu/cpu.h"

struct transpose_args {
    float *y;
    const float *x;
    int64_t rows, cols; /* of an image of x; y's is [cols, rows] */
};

static void transpose_piece(const void *args, int64_t first, int64_t last)
{
    const struct transpose_args *a = args;
    int64_t rows = a->rows, cols = a->cols;
    for (int64_t b = first; b < last; b++) {
        const float *x = a->x + b * rows * cols;
        float *y = a->y + b * rows * cols;
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = 0; r < rows; r++)
                y[c * rows + r] = x[r * cols + c];
    }
}

void cpu_channels_first(struct stream *s, float *y, const float *x, int64_t B, int64_t H, int64_t W,
                        int64_t C)
{
    cpu_call_pieces(s, transpose_piece, B, 1, struct transpose_args, y, x, H * W, C);
}

void cpu_channels_last(struct stream *s, float *y, const float *x, int64_t B, int64_t H, int64_t W,
                       int64_t C)
{
    cpu_call_pieces(s, transpose_piece, B, 1, struct transpose_args, y, x, C, H * W);
}
