/* Products in fp8 on a machine that has none: what they mean, not a way to be fast. Codes times a
 * power of two are bf16 numbers, so the product is that of bf16, which sums in fp32. */
#include "base/mem.h"
#include "kernels/cpu/matmul.h"

#include <string.h>

/* Of a scale or a cast. */
struct tensor_args {
    struct stream *s;
    enum fp8 f;
    struct fp8_scale *scale;
    bf16 *largest;
    uint8_t *y, *y_transposed;
    const bf16 *x;
    int64_t rows, cols, stride;
};

/* Of bf16 the order is that of the bits, too. */
static uint32_t largest_of_row(const bf16 *x, int64_t count)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t magnitude = x[i] & 0x7fffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

static uint32_t largest_of(const struct tensor_args *a)
{
    uint32_t largest = 0;
#pragma omp parallel for schedule(static) reduction(max                                            \
                                                    : largest) if (a->rows * a->cols > CPU_GRAIN)
    for (int64_t r = 0; r < a->rows; r++) {
        uint32_t of_row = largest_of_row(a->x + r * a->stride, a->cols);
        largest = of_row > largest ? of_row : largest;
    }
    return largest;
}

static void scale_run(void *args)
{
    const struct tensor_args *a = args;
    *a->scale = fp8_scale_of(a->f, largest_of(a) << 16);
}

void cpu_fp8_scale(struct stream *s, enum fp8 f, struct fp8_scale *scale, const bf16 *x,
                   int64_t rows, int64_t cols, int64_t stride)
{
    assert(cols % 8 == 0 && stride % 8 == 0 && stride >= cols);
    cpu_call(s, scale_run, struct tensor_args, .f = f, .scale = scale, .x = x, .rows = rows,
             .cols = cols, .stride = stride);
}

static void largest_run(void *args)
{
    const struct tensor_args *a = args;
    *a->largest = (bf16)largest_of(a);
}

void cpu_fp8_largest(struct stream *s, bf16 *largest, const bf16 *x, int64_t count)
{
    enum { ROW = 8 };
    assert(count % ROW == 0);
    cpu_call(s, largest_run, struct tensor_args, .largest = largest, .x = x, .rows = count / ROW,
             .cols = ROW, .stride = ROW);
}

enum { TILE = 64 };

/* The codes of a tile of x, at most TILE by TILE. */
CPU_HOT static void encode(uint8_t tile[TILE][TILE], enum fp8 f, const bf16 *x, int64_t rows,
                           int64_t cols, int64_t stride, float scale)
{
    for (int64_t r = 0; r < rows; r++) {
        const bf16 *row = x + r * stride;
        if (f == FP8_E4M3)
            for (int64_t c = 0; c < cols; c++)
                tile[r][c] = fp8_from_float(FP8_E4M3, bf16_to_float(row[c]) * scale);
        else
            for (int64_t c = 0; c < cols; c++)
                tile[r][c] = fp8_from_float(FP8_E5M2, bf16_to_float(row[c]) * scale);
    }
}

/* TILE rows from `first` on, in whole lines of both results. */
static void cast_rows(const struct tensor_args *a, int64_t first)
{
    const int64_t width = fp8_padded(a->cols), height = fp8_padded(a->rows);
    const int64_t left = a->rows - first, rows = left < TILE ? left : TILE;
    uint8_t tile[TILE][TILE];
    for (int64_t col = 0; col < a->cols; col += TILE) {
        int64_t cols = a->cols - col < TILE ? a->cols - col : TILE;
        encode(tile, a->f, a->x + first * a->stride + col, rows, cols, a->stride, a->scale->scale);
        for (int64_t r = 0; a->y && r < rows; r++)
            memcpy(a->y + (first + r) * width + col, tile[r], (size_t)cols);
        for (int64_t c = 0; a->y_transposed && c < cols; c++)
            for (int64_t r = 0; r < rows; r++)
                a->y_transposed[(col + c) * height + first + r] = tile[r][c];
    }
}

static void cast_run(void *args)
{
    const struct tensor_args *a = args;
    const int64_t width = fp8_padded(a->cols), height = fp8_padded(a->rows);
#pragma omp parallel for schedule(static) if (a->rows * a->cols > CPU_GRAIN)
    for (int64_t first = 0; first < a->rows; first += TILE)
        cast_rows(a, first);
    for (int64_t r = 0; a->y && r < a->rows; r++)
        memset(a->y + r * width + a->cols, 0, (size_t)(width - a->cols));
    for (int64_t c = 0; a->y_transposed && c < a->cols; c++)
        memset(a->y_transposed + c * height + a->rows, 0, (size_t)(height - a->rows));
}

void cpu_fp8_cast(struct stream *s, enum fp8 f, uint8_t *y, uint8_t *y_transposed,
                  const struct fp8_scale *scale, const bf16 *x, int64_t rows, int64_t cols,
                  int64_t stride)
{
    assert(cols % 8 == 0 && stride % 8 == 0 && stride >= cols);
    cpu_call(s, cast_run, struct tensor_args, .f = f, .scale = (struct fp8_scale *)scale, .y = y,
             .y_transposed = y_transposed, .x = x, .rows = rows, .cols = cols, .stride = stride);
}

struct transpose_args {
    struct stream *s;
    uint8_t *y;
    const uint8_t *x;
    int64_t rows, cols;
};

static void transpose_run(void *args)
{
    const struct transpose_args *a = args;
#pragma omp parallel for schedule(static) if (a->rows * a->cols > CPU_GRAIN)
    for (int64_t first = 0; first < a->cols; first += TILE)
        for (int64_t r = 0; r < a->rows; r++)
            for (int64_t c = first; c < a->cols && c < first + TILE; c++)
                a->y[c * a->rows + r] = a->x[r * a->cols + c];
}

void cpu_fp8_transpose(struct stream *s, uint8_t *y, const uint8_t *x, int64_t rows, int64_t cols)
{
    assert(rows % FP8_ALIGN == 0 && cols % FP8_ALIGN == 0);
    cpu_call(s, transpose_run, struct transpose_args, s, y, x, rows, cols);
}

struct matmul_args {
    struct stream *s;
    struct fp8_matmul p;
    void *c;
    const uint8_t *a, *b;
    const struct fp8_scale *a_scale, *b_scale;
    const bf16 *bias;
};

/* All numbers that the scale makes of codes are bf16's, but for what is below its smallest. */
static void decode(bf16 *values, enum fp8 f, const uint8_t *codes, const struct fp8_scale *scale,
                   int64_t count)
{
    bf16 table[256];
    for (int code = 0; code < 256; code++)
        table[code] = bf16_from_float(fp8_to_float(f, (uint8_t)code) * scale->inverse);
#pragma omp parallel for schedule(static) if (count > CPU_GRAIN)
    for (int64_t i = 0; i < count; i++)
        values[i] = table[codes[i]];
}

static void relu(const struct fp8_matmul *p, void *c)
{
    for (int64_t i = 0; i < p->m * p->c_stride; i++) {
        if (i % p->c_stride >= p->n)
            continue;
        if (p->t_c == DTYPE_F32)
            ((float *)c)[i] = ((float *)c)[i] < 0 ? 0 : ((float *)c)[i];
        else if (bf16_to_float(((bf16 *)c)[i]) < 0)
            ((bf16 *)c)[i] = 0;
    }
}

static void matmul_run_fp8(void *args)
{
    const struct matmul_args *x = args;
    const struct fp8_matmul *p = &x->p;
    const struct matmul product = matmul_of_fp8(p);
    /* not the stream's scratch, which the product uses */
    auto_free bf16 *a = xmalloc((size_t)((p->m + p->n) * p->k + 1) * sizeof *a);
    bf16 *b = a + p->m * p->k;
    decode(a, p->a_format, x->a, x->a_scale, p->m * p->k);
    decode(b, p->b_format, x->b, x->b_scale, p->n * p->k);
    matmul_run(x->s, DTYPE_BF16, &product, a, b, x->bias, x->c);
    if (p->relu)
        relu(p, x->c);
}

void cpu_fp8_matmul(struct stream *s, const struct fp8_matmul *p, void *c, const uint8_t *a,
                    const struct fp8_scale *a_scale, const uint8_t *b,
                    const struct fp8_scale *b_scale, const bf16 *bias)
{
    assert(p->k % FP8_ALIGN == 0 && p->n % FP8_ALIGN == 0 && p->c_stride >= p->n);
    assert(!(bias && (p->accumulate || p->t_c == DTYPE_F32)) && !(p->relu && p->accumulate));
    cpu_call(s, matmul_run_fp8, struct matmul_args, s, *p, c, a, b, a_scale, b_scale, bias);
}
