/* Images between channels-last and channels-first: a transpose of [H * W, C] for each image. */
#include "kernels/cpu/cpu.h"

struct transpose_args {
    enum dtype t;
    void *y;
    const void *x;
    int64_t rows, cols; /* of an image of x; y's is [cols, rows] */
};

/* An image of elements of that type. */
#define TRANSPOSE(a, b, type)                                                                      \
    do {                                                                                           \
        const int64_t rows = (a)->rows, cols = (a)->cols;                                          \
        const type *x = (const type *)(a)->x + (b)*rows * cols;                                    \
        type *y = (type *)(a)->y + (b)*rows * cols;                                                \
        for (int64_t c = 0; c < cols; c++)                                                         \
            for (int64_t r = 0; r < rows; r++)                                                     \
                y[c * rows + r] = x[r * cols + c];                                                 \
    } while (0)

static void transpose_chunk(const void *args, int64_t first, int64_t last)
{
    const struct transpose_args *a = args;
    for (int64_t b = first; b < last; b++)
        if (a->t == DTYPE_F32)
            TRANSPOSE(a, b, float);
        else
            TRANSPOSE(a, b, bf16);
}

void cpu_channels_first(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                        int64_t H, int64_t W, int64_t C)
{
    cpu_call_chunks(s, transpose_chunk, B, 1, struct transpose_args, t, y, x, H * W, C);
}

void cpu_channels_last(struct stream *s, enum dtype t, void *y, const void *x, int64_t B, int64_t H,
                       int64_t W, int64_t C)
{
    cpu_call_chunks(s, transpose_chunk, B, 1, struct transpose_args, t, y, x, C, H * W);
}
