/* Matrix products: which way they go, and the ways through oneDNN's sgemm. */
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/strip.h"

#include <omp.h>
#include <string.h>

enum { WIDTH = 512, DEPTH = 2048 }; /* of a strip at most */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Columns of `count` that a thread takes at once: its share, or a strip. */
static int64_t strip_width(int64_t count)
{
    int64_t share = (count + omp_get_max_threads() - 1) / omp_get_max_threads();
    return smaller((share + 15) / 16 * 16, WIDTH);
}

/* A strip of columns of x, dense. */
static void copy_strip(float *strip, const float *x, int64_t rows, int64_t width, int64_t stride)
{
    for (int64_t row = 0; row < rows; row++)
        memcpy(strip + row * width, x + row * stride, (size_t)width * sizeof *x);
}

/* The threads share c by strips of columns (of_a: of rows, a being transposed), for each of which a
 * strip of b (of a) is copied first: rows that start a multiple of 4096 bytes apart, as 9216 floats
 * do, fight for the same few lines of the cache, and rows of a vocabulary's length lie on a page
 * each. Read in place they take up to twice the time. A deep sum is made in steps, for the cache's
 * sake too. */
static void fp32_in_strips(struct stream *s, const struct matmul *p, bool of_a, const float *a,
                           const float *b, float *c)
{
    int64_t count = of_a ? p->m : p->n, step = strip_width(count),
            room = smaller(p->k, DEPTH) * step;
    float *scratch = cpu_scratch(s, (size_t)(omp_get_max_threads() * room) * sizeof *scratch);
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < count; first += step) {
        float *strip = scratch + omp_get_thread_num() * room;
        int64_t width = smaller(count - first, step);
        for (int64_t k = 0, rows; k < p->k; k += rows) {
            rows = smaller(p->k - k, DEPTH);
            float beta = k > 0 || p->accumulate ? 1 : 0;
            const float *part_a = a + (p->trans_a ? k * p->a_stride : k);
            const float *part_b = b + k * p->b_stride;
            copy_strip(strip, (of_a ? part_a : part_b) + first, rows, width,
                       of_a ? p->a_stride : p->b_stride);
            if (of_a)
                cpu_gemm_strided('T', 'N', width, p->n, rows, strip, width, part_b, p->b_stride,
                                 beta, c + first * p->c_stride, p->c_stride);
            else
                cpu_gemm_strided(p->trans_a ? 'T' : 'N', 'N', p->m, width, rows, part_a,
                                 p->a_stride, strip, width, beta, c + first, p->c_stride);
        }
    }
}

static void add_bias(const struct matmul *p, const float *bias, float *c)
{
#pragma omp parallel for schedule(static) if (p->m * p->n > CPU_GRAIN)
    for (int64_t r = 0; r < p->m; r++)
        for (int64_t i = 0; i < p->n; i++)
            c[r * p->c_stride + i] += bias[i];
}

static void run_fp32(struct stream *s, const struct matmul *p, const float *a, const float *b,
                     const float *bias, float *c)
{
    enum { NARROW = 96 }; /* too many threads for strips: sgemm shares the rows too */
    bool of_a = p->trans_a && p->m > p->n;
    if (!p->trans_b && (omp_get_max_threads() == 1 || strip_width(of_a ? p->m : p->n) >= NARROW))
        fp32_in_strips(s, p, of_a, a, b, c);
    else
        cpu_gemm_strided(p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', p->m, p->n, p->k, a,
                         p->a_stride, b, p->b_stride, p->accumulate ? 1 : 0, c, p->c_stride);
    if (bias)
        add_bias(p, bias, c);
}

/* x: [rows, cols], stride apart, as dense floats; and back. */
static void widen(float *dense, enum dtype t, const void *x, int64_t rows, int64_t cols,
                  int64_t stride)
{
    float buffer[STRIP];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0, n; i < cols; i += n) {
            n = strip_length(cols - i);
            memcpy(dense + r * cols + i, strip_read(t, x, r * stride + i, n, buffer),
                   (size_t)n * sizeof *dense);
        }
}

static void narrow(enum dtype t, void *y, const float *dense, int64_t rows, int64_t cols,
                   int64_t stride)
{
    float buffer[STRIP];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0, n; i < cols; i += n) {
            n = strip_length(cols - i);
            float *target = strip_target(t, y, r * stride + i, buffer);
            memcpy(target, dense + r * cols + i, (size_t)n * sizeof *target);
            strip_write(t, y, r * stride + i, n, target);
        }
}

enum { ROWS = 256 }; /* of c that are computed at once */

/* Where bf16 is no number of the machine's: rows of c at a time, all of b. */
static void bf16_as_fp32(const struct matmul *p, const bf16 *a, const bf16 *b, const bf16 *bias,
                         void *c, float *room)
{
    int64_t b_rows = p->trans_b ? p->n : p->k, b_cols = p->trans_b ? p->k : p->n;
    float *wide_b = room, *wide_a = wide_b + p->k * p->n, *wide_c = wide_a + ROWS * p->k;
    float *wide_bias = wide_c + ROWS * p->n;
    widen(wide_b, DTYPE_BF16, b, b_rows, b_cols, p->b_stride);
    if (bias)
        widen(wide_bias, DTYPE_BF16, bias, 1, p->n, p->n);
    for (int64_t m = 0, rows; m < p->m; m += rows) {
        rows = smaller(p->m - m, ROWS);
        struct matmul block = *p;
        block.m = rows;
        block.c_stride = p->n;
        widen(wide_a, DTYPE_BF16, a + (p->trans_a ? m : m * p->a_stride), p->trans_a ? p->k : rows,
              p->trans_a ? rows : p->k, p->a_stride);
        void *block_c = (char *)c + (size_t)(m * p->c_stride) * dtype_bytes(p->t_c);
        if (p->accumulate)
            widen(wide_c, p->t_c, block_c, rows, p->n, p->c_stride);
        cpu_gemm(p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', rows, p->n, p->k, wide_a, wide_b,
                 p->accumulate ? 1 : 0, wide_c, p->n);
        if (bias)
            add_bias(&block, wide_bias, wide_c);
        narrow(p->t_c, block_c, wide_c, rows, p->n, p->c_stride);
    }
}

static void run_bf16(struct stream *s, const struct matmul *p, const void *a, const void *b,
                     const void *bias, void *c)
{
    if (matmul_native_bf16(s, p, a, b, bias, c))
        return;
    int64_t room = p->k * p->n + ROWS * (p->k + p->n) + p->n;
    bf16_as_fp32(p, a, b, bias, c, cpu_scratch(s, (size_t)room * sizeof(float)));
}

/* A sum of no terms. */
static void clear(const struct matmul *p, void *c)
{
    size_t element = dtype_bytes(p->t_c);
    for (int64_t r = 0; r < p->m; r++)
        memset((char *)c + (size_t)(r * p->c_stride) * element, 0, (size_t)p->n * element);
}

void matmul_run(struct stream *s, enum dtype t, const struct matmul *p, const void *a,
                const void *b, const void *bias, void *c)
{
    assert(t == DTYPE_BF16 || p->t_c == t);
    assert(!(bias && (p->accumulate || p->k == 0)));
    if (p->m == 0 || p->n == 0 || (p->k == 0 && p->accumulate))
        return;
    if (p->k == 0)
        clear(p, c);
    else if (t == DTYPE_F32)
        run_fp32(s, p, a, b, bias, c);
    else
        run_bf16(s, p, a, b, bias, c);
}
