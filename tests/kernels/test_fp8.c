/* Numbers of 8 bits: every code and every border of rounding as ml_dtypes has them; what is too
 * large, and what is none; and the scale of a tensor. */
#include "base/mem.h"
#include "kernels/fp8.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* x and -x become `code` and the code of the other sign. */
static void assert_becomes(enum fp8 f, uint32_t bits, unsigned code)
{
    assert_int_equal(fp8_from_float(f, fp8_float_of_bits(bits)), code);
    assert_int_equal(fp8_from_float(f, fp8_float_of_bits(bits | 0x80000000)), code | 0x80);
}

static void check_code(enum fp8 f, unsigned code, const char *value, const char *first)
{
    float x = fp8_to_float(f, (uint8_t)code);
    if (strcmp(value, "nan") == 0)
        assert_true(isnan(x));
    else
        assert_int_equal(bits_of(x), strtoul(value, NULL, 16));
    if (!isfinite(x))
        return;
    assert_int_equal(fp8_from_float(f, x), code);
    if (strcmp(first, "-") == 0)
        return;
    uint32_t bits = (uint32_t)strtoul(first, NULL, 16);
    assert_becomes(f, bits, code);
    if (code > 0)
        assert_becomes(f, bits - 1, code - 1);
}

static void test_codes(void **state)
{
    (void)state;
    static const char *const files[] = {[FP8_E4M3] = "tests/data/parity/fp8_e4m3.txt",
                                        [FP8_E5M2] = "tests/data/parity/fp8_e5m2.txt"};
    for (size_t i = 0; i < array_length(files); i++) {
        FILE *file = fopen(files[i], "r");
        char value[16], first[16];
        unsigned code, expected = 0;
        assert_non_null(file);
        for (; fscanf(file, "%x %15s %15s", &code, value, first) == 3; expected++) {
            assert_int_equal(code, expected);
            check_code((enum fp8)i, code, value, first);
        }
        assert_int_equal(expected, 256);
        fclose(file);
    }
}

/* Where ml_dtypes gives up. */
static void test_saturation(void **state)
{
    (void)state;
    static const struct {
        enum fp8 f;
        float x;
        unsigned code;
    } rows[] = {
        {FP8_E4M3, 448, 0x7e},     {FP8_E4M3, 464, 0x7e},      {FP8_E4M3, 464.1f, 0x7e},
        {FP8_E4M3, 480, 0x7e},     {FP8_E4M3, 1e38f, 0x7e},    {FP8_E4M3, INFINITY, 0x7e},
        {FP8_E5M2, 57344, 0x7b},   {FP8_E5M2, 61440, 0x7b},    {FP8_E5M2, 65536, 0x7b},
        {FP8_E5M2, 3.4e38f, 0x7b}, {FP8_E5M2, INFINITY, 0x7b}, {FP8_E4M3, NAN, 0x7f},
        {FP8_E5M2, NAN, 0x7f},     {FP8_E4M3, 1e-40f, 0},      {FP8_E5M2, 1e-40f, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_becomes(rows[i].f, bits_of(rows[i].x), rows[i].code);
}

/* The largest power of two with which the largest magnitude is not above the format's. */
static void test_scale(void **state)
{
    (void)state;
    static const struct {
        enum fp8 f;
        float largest;
        int exponent;
    } rows[] = {
        {FP8_E4M3, 448, 0},         {FP8_E4M3, 448.1f, -1},     {FP8_E4M3, 224, 1},
        {FP8_E4M3, 225, 0},         {FP8_E4M3, 1, 8},           {FP8_E4M3, 1.75f, 8},
        {FP8_E4M3, 1.76f, 7},       {FP8_E4M3, 3.4e38f, -120},  {FP8_E5M2, 57344, 0},
        {FP8_E5M2, 57345, -1},      {FP8_E5M2, 1, 15},          {FP8_E5M2, 0x1p-100f, 115},
        {FP8_E5M2, 0x1p-120f, 126}, {FP8_E4M3, 0x1p-140f, 126}, {FP8_E4M3, 0, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct fp8_scale scale = fp8_scale_of(rows[i].f, bits_of(rows[i].largest));
        if (scale.scale != ldexpf(1, rows[i].exponent))
            fail_msg("row %zu: %a", i, (double)scale.scale);
        assert_true(scale.inverse == ldexpf(1, -rows[i].exponent));
    }
    for (int i = 0; i < 2; i++) {
        struct fp8_scale scale = fp8_scale_of(FP8_E4M3, bits_of(i ? NAN : INFINITY));
        assert_true(isnan(scale.scale) && isnan(scale.inverse));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
