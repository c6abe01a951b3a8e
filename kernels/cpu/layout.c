/* Images between channels-last and channels-first: a transpose of [H * W, C] for each image. */
#include "kernels/cpu/cpu.h"

#include <string.h>

struct transpose_args {
    enum dtype t;
    char *y;
    const char *x;
    int64_t rows, cols; /* of an image of x; y's is [cols, rows] */
};

/* An image of elements of so many bytes, a number that the compiler knows. */
static inline __attribute__((always_inline)) void transpose(const struct transpose_args *a,
                                                            int64_t b, size_t bytes)
{
    size_t rows = (size_t)a->rows, cols = (size_t)a->cols, image = (size_t)b * rows * cols * bytes;
    for (size_t c = 0; c < cols; c++)
        for (size_t r = 0; r < rows; r++)
            memcpy(a->y + image + (c * rows + r) * bytes, a->x + image + (r * cols + c) * bytes,
                   bytes);
}

static void transpose_piece(const void *args, int64_t first, int64_t last)
{
    const struct transpose_args *a = args;
    for (int64_t b = first; b < last; b++)
        if (a->t == DTYPE_F32)
            transpose(a, b, sizeof(float));
        else
            transpose(a, b, sizeof(bf16));
}

void cpu_channels_first(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                        int64_t H, int64_t W, int64_t C)
{
    cpu_call_pieces(s, transpose_piece, B, 1, struct transpose_args, t, y, x, H * W, C);
}

void cpu_channels_last(struct stream *s, enum dtype t, void *y, const void *x, int64_t B, int64_t H,
                       int64_t W, int64_t C)
{
    cpu_call_pieces(s, transpose_piece, B, 1, struct transpose_args, t, y, x, C, H * W);
}
