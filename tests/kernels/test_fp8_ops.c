/* The ops of fp8 on a device: scales and casts are exactly what kernels/fp8.h says, on any device;
 * products are those of the decoded numbers. */
#include "tests/kernels/op_check.h"

#include <math.h>
#include <string.h>

/* ---- scales and casts ---- */

struct cast_row {
    const char *name;
    int64_t rows, cols, stride;
    float low, high; /* values */
    enum fp8 f;
};

static const struct cast_row casts[] = {
    {"one vector", 1, 8, 8, -1, 1, FP8_E4M3},
    {"no rows", 0, 16, 16, -1, 1, FP8_E4M3},
    {"a tile", 64, 64, 64, -3, 2, FP8_E4M3},
    {"odd rows, padded columns", 77, 72, 72, -1e-3f, 1e-3f, FP8_E5M2},
    {"columns of a wider tensor", 33, 48, 120, -500, 400, FP8_E5M2},
    {"more than a grid of blocks", 600, 2048, 2048, -1, 1, FP8_E4M3},
    {"more rows than blocks", 2100, 16, 24, -1, 1, FP8_E5M2},
    {"nearly nothing", 3, 16, 16, -1e-38f, 1e-38f, FP8_E4M3},
    {"zeros", 5, 16, 16, 0, 0, FP8_E5M2},
};

/* What lies between rows is a NaN, which must not be read. */
static float *values_of(struct world *world, const struct cast_row *row)
{
    float *x = host_random(world, row->rows * row->stride, row->low, row->high);
    for (int64_t i = 0; i < row->rows * row->stride; i++)
        x[i] = i % row->stride < row->cols ? x[i] : NAN;
    return round_to(DTYPE_BF16, x, row->rows * row->stride);
}

static struct fp8_scale scale_of(const struct cast_row *row, const float *x)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < row->rows * row->stride; i++) {
        float magnitude = fabsf(x[i]);
        uint32_t bits;
        memcpy(&bits, &magnitude, sizeof bits);
        largest = i % row->stride < row->cols && bits > largest ? bits : largest;
    }
    return fp8_scale_of(row->f, largest);
}

/* y as a cast must give it; transposed: [cols, padded rows]. */
static uint8_t *codes_of(struct world *world, const struct cast_row *row, const float *x,
                         float scale, bool transposed)
{
    int64_t rows = transposed ? row->cols : row->rows, cols = transposed ? row->rows : row->cols;
    int64_t width = fp8_padded(cols);
    uint8_t *y = arena_array(world->arena, uint8_t, rows * width + 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            y[r * width + c] = fp8_from_float(
                row->f, x[transposed ? c * row->stride + r : r * row->stride + c] * scale);
    return y;
}

static void *fresh_codes(struct world *world, int64_t count)
{
    uint8_t *host = arena_array(world->arena, uint8_t, count + 1);
    memset(host, 0xa5, (size_t)count);
    return to_device_bytes(world, host, (size_t)count);
}

static void assert_codes(struct world *world, void *memory, const uint8_t *want, int64_t count,
                         const char *name)
{
    uint8_t *got = arena_array(world->arena, uint8_t, count + 1);
    from_device_bytes(world, got, memory, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        if (got[i] != want[i])
            fail_msg("%s: code %lld is %02x, should be %02x", name, (long long)i, got[i], want[i]);
}

/* That the largest magnitude gives the scale, too. */
static void check_largest(struct world *world, const struct cast_row *row, const bf16 *values,
                          struct fp8_scale want)
{
    const bf16 none = 7;
    bf16 *largest = to_device_bytes(world, &none, sizeof none), got;
    world->ops->fp8_largest(world->stream, largest, values, row->rows * row->cols);
    from_device_bytes(world, &got, largest, sizeof got);
    const struct fp8_scale scale = fp8_scale_of(row->f, (uint32_t)got << 16);
    assert_true(scale.scale == want.scale && scale.inverse == want.inverse);
}

/* which: 1: y, 2: y_transposed, 3: both. */
static void check_cast(struct world *world, const struct cast_row *row, unsigned which)
{
    const float *x = values_of(world, row);
    int64_t count = row->rows * row->stride;
    const struct fp8_scale want = scale_of(row, x), none = {7, 7};
    int64_t plain = row->rows * fp8_padded(row->cols),
            transposed = row->cols * fp8_padded(row->rows);
    bf16 *values = to_device_as(world, DTYPE_BF16, x, count);
    struct fp8_scale *scale = to_device_bytes(world, &none, sizeof none), got;
    uint8_t *y = fresh_codes(world, plain), *y_transposed = fresh_codes(world, transposed);
    world->ops->fp8_scale(world->stream, row->f, scale, values, row->rows, row->cols, row->stride);
    world->ops->fp8_cast(world->stream, row->f, which & 1 ? y : NULL,
                         which & 2 ? y_transposed : NULL, scale, values, row->rows, row->cols,
                         row->stride);
    if (which & 1)
        assert_codes(world, y, codes_of(world, row, x, want.scale, false), plain, row->name);
    else
        device_free(world->device, y);
    if (which & 2)
        assert_codes(world, y_transposed, codes_of(world, row, x, want.scale, true), transposed,
                     row->name);
    else
        device_free(world->device, y_transposed);
    from_device_bytes(world, &got, scale, sizeof got);
    assert_true(got.scale == want.scale && got.inverse == want.inverse);
    if (row->stride == row->cols)
        check_largest(world, row, values, want);
    from_device_as(world, DTYPE_BF16, values, count);
}

static void test_casts(void **state)
{
    for (size_t i = 0; i < array_length(casts); i++)
        for (unsigned which = 1; which <= 3; which++)
            check_cast(*state, &casts[i], which);
}

/* One number that is none makes all of them NaN: a run that diverges is seen. */
static void test_broken_tensors(void **state)
{
    struct world *world = *state;
    enum { ROWS = 40, COLS = 64 };
    const float broken[] = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < array_length(broken); i++) {
        float *x = host_random(world, ROWS * COLS, -1, 1);
        uint8_t codes[ROWS * COLS];
        x[ROWS * COLS - 3] = broken[i];
        bf16 *values = to_device_as(world, DTYPE_BF16, x, ROWS * COLS);
        struct fp8_scale *scale = to_device_bytes(world, &(struct fp8_scale){1, 1}, sizeof *scale);
        uint8_t *y = fresh_codes(world, ROWS * COLS);
        world->ops->fp8_scale(world->stream, FP8_E5M2, scale, values, ROWS, COLS, COLS);
        world->ops->fp8_cast(world->stream, FP8_E5M2, y, NULL, scale, values, ROWS, COLS, COLS);
        from_device_bytes(world, codes, y, sizeof codes);
        for (int j = 0; j < ROWS * COLS; j++)
            assert_int_equal(codes[j] & 0x7f, 0x7f);
        from_device_bytes(world, codes, scale, sizeof *scale);
        bf16 *largest = to_device_bytes(world, &(bf16){0}, sizeof *largest), got;
        world->ops->fp8_largest(world->stream, largest, values, ROWS * COLS);
        from_device_bytes(world, &got, largest, sizeof got);
        assert_true(got >= 0x7f80 && got < 0x8000);
        from_device_as(world, DTYPE_BF16, values, ROWS * COLS);
    }
}

/* ---- codes, transposed ---- */

static void test_transposes(void **state)
{
    struct world *world = *state;
    static const int64_t shapes[][2] = {{16, 16},  {64, 64}, {16, 208}, {208, 16},
                                        {80, 144}, {0, 32},  {512, 320}};
    for (size_t i = 0; i < array_length(shapes); i++) {
        const int64_t rows = shapes[i][0], cols = shapes[i][1];
        const float *draws = host_random(world, rows * cols + 1, 0, 256);
        uint8_t *x = arena_array(world->arena, uint8_t, rows * cols + 1);
        uint8_t *want = arena_array(world->arena, uint8_t, rows * cols + 1);
        for (int64_t k = 0; k < rows * cols; k++)
            want[k % cols * rows + k / cols] = x[k] = (uint8_t)draws[k];
        uint8_t *codes = to_device_bytes(world, x, (size_t)(rows * cols));
        uint8_t *y = fresh_codes(world, rows * cols);
        world->ops->fp8_transpose(world->stream, y, codes, rows, cols);
        assert_codes(world, y, want, rows * cols, "transposed");
        device_free(world->device, codes);
    }
}

/* ---- products ---- */

struct product_row {
    const char *name;
    struct fp8_matmul p;
    bool bias;
};

static const struct product_row products[] = {
    {"forward", {FP8_E4M3, FP8_E4M3, 33, 48, 64, 48, DTYPE_BF16, false, false}, false},
    {"with a bias", {FP8_E4M3, FP8_E4M3, 7, 32, 16, 32, DTYPE_BF16, false, false}, true},
    {"with relu", {FP8_E4M3, FP8_E4M3, 20, 32, 48, 32, DTYPE_BF16, false, true}, true},
    {"into columns", {FP8_E4M3, FP8_E4M3, 9, 32, 16, 80, DTYPE_BF16, false, false}, true},
    {"data", {FP8_E5M2, FP8_E4M3, 33, 64, 48, 64, DTYPE_BF16, false, false}, false},
    {"data, added", {FP8_E5M2, FP8_E4M3, 33, 64, 48, 64, DTYPE_BF16, true, false}, false},
    {"weights", {FP8_E5M2, FP8_E4M3, 48, 64, 320, 64, DTYPE_F32, false, false}, false},
    {"weights, added", {FP8_E5M2, FP8_E4M3, 48, 64, 32, 64, DTYPE_F32, true, false}, false},
    {"weights of a Conv1D", {FP8_E4M3, FP8_E5M2, 64, 48, 32, 48, DTYPE_F32, false, false}, false},
    {"no rows", {FP8_E4M3, FP8_E4M3, 0, 48, 64, 48, DTYPE_BF16, false, false}, false},
    {"weights of no rows", {FP8_E5M2, FP8_E4M3, 48, 64, 0, 64, DTYPE_F32, false, false}, false},
    {"added, of no rows", {FP8_E5M2, FP8_E4M3, 48, 64, 0, 64, DTYPE_F32, true, false}, false},
};

/* Finite codes at random, and the numbers that they and a power of two are. */
static uint8_t *random_codes(struct world *world, enum fp8 f, int64_t count, float inverse,
                             double *ret_values)
{
    const float *draws = host_random(world, count + 1, 0, 256);
    uint8_t *codes = arena_array(world->arena, uint8_t, count + 1);
    for (int64_t i = 0; i < count; i++) {
        codes[i] = (uint8_t)draws[i];
        if ((codes[i] & 0x7f) > fp8_form(f).largest)
            codes[i] = 0;
        ret_values[i] = (double)fp8_to_float(f, codes[i]) * (double)inverse;
    }
    return codes;
}

struct operand {
    double *values;
    uint8_t *codes;
    struct fp8_scale *scale;
    int64_t count;
};

static struct operand operand_of(struct world *world, enum fp8 f, int64_t count, float inverse)
{
    const struct fp8_scale scale = {1 / inverse, inverse};
    struct operand o = {.count = count};
    o.values = arena_array(world->arena, double, count + 1);
    o.codes =
        to_device_bytes(world, random_codes(world, f, count, inverse, o.values), (size_t)count);
    o.scale = to_device_bytes(world, &scale, sizeof scale);
    return o;
}

static void operand_free(struct world *world, const struct operand *o)
{
    device_free(world->device, o->codes);
    device_free(world->device, o->scale);
}

/* The product in double precision, over what was in c. bias: host's, or NULL. */
static void multiply(const struct fp8_matmul *p, double *c, const double *a, const double *b,
                     const float *bias, double *ret_sizes)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = bias ? (double)bias[j] : 0, size = 0;
            for (int64_t k = 0; k < p->k; k++) {
                sum += a[i * p->k + k] * b[j * p->k + k];
                size += fabs(a[i * p->k + k] * b[j * p->k + k]);
            }
            double *to = &c[i * p->c_stride + j];
            *to = sum + (p->accumulate ? *to : 0);
            *to = p->relu && *to < 0 ? 0 : *to;
            ret_sizes[i * p->c_stride + j] = size + fabs(*to);
        }
}

static void check_product(struct world *world, const struct product_row *row)
{
    const struct fp8_matmul *p = &row->p;
    const struct operand a = operand_of(world, p->a_format, p->m * p->k, 0x1p-7f),
                         b = operand_of(world, p->b_format, p->n * p->k, 0x1p-9f);
    const float *bias = round_to(DTYPE_BF16, host_random(world, p->n, -9, 9), p->n);
    int64_t count = p->m * p->c_stride;
    float *before = round_to(p->t_c, host_random(world, count + 1, -5, 5), count);
    double *want = to_double(world, before, count), *sizes = to_double(world, before, count);
    multiply(p, want, a.values, b.values, row->bias ? bias : NULL, sizes);
    void *c = to_device_as(world, p->t_c, before, count);
    void *device_bias = to_device_as(world, DTYPE_BF16, bias, p->n);
    world->ops->fp8_matmul(world->stream, p, c, a.codes, a.scale, b.codes, b.scale,
                           row->bias ? device_bias : NULL);
    const float *got = from_device_as(world, p->t_c, c, count);
    /* sums of k terms in fp32, and what bf16 rounds away of the result */
    const double rounding = p->t_c == DTYPE_BF16 ? 0x1p-8 : 0;
    for (int64_t i = 0; i < count; i++) {
        double allowed = 0x1p-20 * sizes[i] + rounding * fabs(want[i]);
        if (i % p->c_stride >= p->n ? got[i] != before[i] : !(fabs(got[i] - want[i]) <= allowed))
            fail_msg("%s: element %lld is %.9g, should be %.9g", row->name, (long long)i,
                     (double)got[i], want[i]);
    }
    from_device_as(world, DTYPE_BF16, device_bias, p->n);
    operand_free(world, &a);
    operand_free(world, &b);
}

static void test_products(void **state)
{
    for (size_t i = 0; i < array_length(products); i++)
        check_product(*state, &products[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_casts, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_casts, world_setup_two_threads, world_teardown),
        cmocka_unit_test_setup_teardown(test_broken_tensors, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_transposes, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_transposes, world_setup_two_threads, world_teardown),
        cmocka_unit_test_setup_teardown(test_products, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_products, world_setup_two_threads, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
