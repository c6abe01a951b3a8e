#include "agent/dataset/id_type.h"

#include "base/mem.h"
#include "tests/support.h"

/* Every width and sign, from an odd address. */
static void test_copy(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0,    0x01, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                    0x02, 0,    0,    0,    0,    0,    0,    0};
    static const struct {
        enum id_type type;
        int width;
        int32_t first, second; /* of the numbers from bytes[1] on */
    } rows[] = {
        {ID_U8, 1, 1, 0x80},
        {ID_I8, 1, 1, -128},
        {ID_U16, 2, 0x8001, 0xffff},
        {ID_I16, 2, -0x7fff, -1},
        {ID_U32, 4, INT32_MAX, INT32_MAX},
        {ID_I32, 4, (int32_t)0xffff8001, -1},
        {ID_U64, 8, -0x7fff, 2}, /* beyond int64: in no vocabulary */
        {ID_I64, 8, -0x7fff, 2},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int32_t out[3] = {0, 0, 77};
        assert_int_equal(id_type_bytes(rows[i].type), rows[i].width);
        id_type_copy(rows[i].type, bytes + 1, 2, out);
        assert_int_equal(out[0], rows[i].first);
        assert_int_equal(out[1], rows[i].second);
        assert_int_equal(out[2], 77);
    }
    static const int64_t far[] = {INT32_MAX + 1LL, INT32_MIN - 1LL, INT64_MIN};
    int32_t out[3];
    id_type_copy(ID_I64, (const uint8_t *)far, 3, out);
    assert_int_equal(out[0], INT32_MAX);
    assert_int_equal(out[1], INT32_MIN);
    assert_int_equal(out[2], INT32_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
