#include "agent/checkpoint/nonfinite.h"

#include "agent/checkpoint/checkpoint.h"
#include "base/mem.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one number ---- */

static void every_kind_of_number(void **state)
{
    (void)state;
    static const struct {
        enum safetensors_dtype dtype;
        uint64_t bits;
        const char *value; /* NULL: finite, or no floating point */
    } rows[] = {
        {SAFETENSORS_F32, 0x00000000, NULL},
        {SAFETENSORS_F32, 0x80000000, NULL},
        {SAFETENSORS_F32, 0x00000001, NULL}, /* the smallest, and the largest subnormal */
        {SAFETENSORS_F32, 0x807fffff, NULL},
        {SAFETENSORS_F32, 0x7f7fffff, NULL},
        {SAFETENSORS_F32, 0xff7fffff, NULL},
        {SAFETENSORS_F32, 0x7f800000, "inf"},
        {SAFETENSORS_F32, 0xff800000, "-inf"},
        {SAFETENSORS_F32, 0x7fc00000, "NaN"},
        {SAFETENSORS_F32, 0x7f800001, "NaN"}, /* signalling */
        {SAFETENSORS_F32, 0xffbfffff, "NaN"},
        {SAFETENSORS_F32, 0xffffffff, "NaN"},
        {SAFETENSORS_BF16, 0x7f7f, NULL},
        {SAFETENSORS_BF16, 0xff7f, NULL},
        {SAFETENSORS_BF16, 0x0001, NULL},
        {SAFETENSORS_BF16, 0x7f80, "inf"},
        {SAFETENSORS_BF16, 0xff80, "-inf"},
        {SAFETENSORS_BF16, 0x7f81, "NaN"},
        {SAFETENSORS_BF16, 0xffc0, "NaN"},
        {SAFETENSORS_F16, 0x7bff, NULL},
        {SAFETENSORS_F16, 0x83ff, NULL},
        {SAFETENSORS_F16, 0x7c00, "inf"},
        {SAFETENSORS_F16, 0xfc00, "-inf"},
        {SAFETENSORS_F16, 0x7c01, "NaN"},
        {SAFETENSORS_F16, 0xfe00, "NaN"},
        {SAFETENSORS_F64, 0x7fefffffffffffff, NULL},
        {SAFETENSORS_F64, 0x000fffffffffffff, NULL},
        {SAFETENSORS_F64, 0x7ff0000000000000, "inf"},
        {SAFETENSORS_F64, 0xfff0000000000000, "-inf"},
        {SAFETENSORS_F64, 0x7ff0000000000001, "NaN"},
        {SAFETENSORS_I64, UINT64_MAX, NULL},
        {SAFETENSORS_U64, UINT64_MAX, NULL},
        {SAFETENSORS_I32, 0x7f800000, NULL},
        {SAFETENSORS_U32, 0xffffffff, NULL},
        {SAFETENSORS_I16, 0x7f80, NULL},
        {SAFETENSORS_U16, 0x7c00, NULL},
        {SAFETENSORS_I8, 0xff, NULL},
        {SAFETENSORS_U8, 0xff, NULL},
        {SAFETENSORS_BOOL, 1, NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct nonfinite found;
        bool has = nonfinite_find(rows[i].dtype, &rows[i].bits, 1, &found);
        assert_int_equal(has, rows[i].value != NULL);
        if (has) {
            assert_int_equal(found.element, 0);
            assert_string_equal(found.value, rows[i].value);
        }
    }
}

static void all_bf16_as_isfinite_has_them(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits <= UINT16_MAX; bits++) {
        struct nonfinite found;
        bf16 x = (bf16)bits;
        float value = bf16_to_float(x);
        assert_int_equal(nonfinite_find(SAFETENSORS_BF16, &x, 1, &found), !isfinite(value));
        if (!isfinite(value))
            assert_string_equal(found.value, isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf");
    }
}

/* ---- where it is ---- */

/* The worst neighbours: all bits set but the exponent's lowest one, so that a carry out of any of
 * them would show. */
static void fill(char *data, enum safetensors_dtype dtype, int64_t count)
{
    static const uint64_t patterns[] = {[SAFETENSORS_F64] = 0xffefffffffffffff,
                                        [SAFETENSORS_F32] = 0xff7fffff,
                                        [SAFETENSORS_F16] = 0xfbff,
                                        [SAFETENSORS_BF16] = 0xff7f};
    size_t size = (size_t)safetensors_dtype_bytes(dtype);
    for (int64_t i = 0; i < count; i++)
        memcpy(data + (size_t)i * size, &patterns[dtype], size);
}

static void the_first_of_any_length_and_alignment(void **state)
{
    (void)state;
    static const enum safetensors_dtype dtypes[] = {SAFETENSORS_F64, SAFETENSORS_F32,
                                                    SAFETENSORS_F16, SAFETENSORS_BF16};
    /* Around a word, and around a block of 4 KiB of each dtype. */
    static const int64_t counts[] = {1,    2,    3,    4,    5,    7,    9,    511,  512,  513,
                                     1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 6150};
    enum { MOST = 6150 };
    auto_free char *memory = xmalloc((size_t)MOST * 8 + 8);
    const uint64_t all_ones = UINT64_MAX;
    for (size_t d = 0; d < array_length(dtypes); d++)
        for (size_t c = 0; c < array_length(counts); c++)
            for (int shift = 0; shift < 8; shift += 3) {
                int64_t count = counts[c], size = safetensors_dtype_bytes(dtypes[d]);
                char *data = memory + shift;
                struct nonfinite found;
                fill(data, dtypes[d], count);
                assert_false(nonfinite_find(dtypes[d], data, count, &found));
                assert_false(nonfinite_find(dtypes[d], data, 0, &found));
                /* The last one, then the middle one too: the first is what counts. */
                memcpy(data + (count - 1) * size, &all_ones, (size_t)size);
                assert_true(nonfinite_find(dtypes[d], data, count, &found));
                assert_int_equal(found.element, count - 1);
                assert_false(nonfinite_find(dtypes[d], data, count - 1, &found));
                memcpy(data + count / 2 * size, &all_ones, (size_t)size);
                assert_true(nonfinite_find(dtypes[d], data, count, &found));
                assert_int_equal(found.element, count / 2);
            }
}

/* ---- its name ---- */

static void ranges_name_tensor_and_place(void **state)
{
    (void)state;
    static const struct {
        int dims;
        int64_t shape[BOX_MAX_DIMS], first, count, bad; /* bad: within the range; -1: none */
        const char *fails;
    } rows[] = {
        {2, {7, 11}, 0, 77, -1, NULL},
        {2, {7, 11}, 0, 77, 0, "tensor w[0, 0] is inf: neither saved nor loaded"},
        {2, {7, 11}, 20, 30, 18, "tensor w[3, 5] is inf:"},
        {1, {77}, 70, 7, 6, "tensor w[76] is inf:"},
        {0, {0}, 0, 1, 0, "tensor w is inf:"},
        {4, {3, 2, 3, 5}, 1, 80, 70, "tensor w[2, 0, 2, 1] is inf:"},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
            float good[4] = {0}, data[128] = {0};
            struct tensor_range items[] = {{"fine", 1, {4}, 0, 4, DTYPE_F32, good},
                                           {.name = "w",
                                            .dims = rows[i].dims,
                                            .first = rows[i].first,
                                            .count = rows[i].count,
                                            .dtype = (enum dtype)dtype,
                                            .data = data}};
            memcpy(items[1].shape, rows[i].shape, sizeof items[1].shape);
            float inf = INFINITY;
            dtype_narrow((enum dtype)dtype, &inf, 1);
            size_t size = dtype_bytes((enum dtype)dtype);
            if (rows[i].bad >= 0)
                memcpy((char *)data + (size_t)rows[i].bad * size, &inf, size);
            const struct tensor_ranges ranges = {items, 2};
            struct error err;
            int result = nonfinite_check(&ranges, &err);
            if (rows[i].fails)
                assert_fails(result, &err, ERR_DIVERGED, rows[i].fails);
            else
                assert_ok(result, &err);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_number),
        cmocka_unit_test(all_bf16_as_isfinite_has_them),
        cmocka_unit_test(the_first_of_any_length_and_alignment),
        cmocka_unit_test(ranges_name_tensor_and_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
