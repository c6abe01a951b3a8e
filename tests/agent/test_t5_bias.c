/* T5's position biases: which distance has which bucket. */
#include "agent/models/t5.h"
#include "agent/models/t5_bias.h"

#include "base/mem.h"
#include "tests/support.h"

/* Known answers of transformers' formula. */
static void distances_fall_into_their_buckets(void **state)
{
    (void)state;
    static const int rows[][2] = {
        {-200, 15}, {-128, 15}, {-91, 15}, {-90, 14}, {-64, 14}, {-32, 12}, {-16, 10}, {-12, 9},
        {-11, 8},   {-8, 8},    {-7, 7},   {0, 0},    {1, 17},   {7, 23},   {8, 24},   {11, 24},
        {12, 25},   {16, 26},   {32, 28},  {64, 30},  {90, 30},  {91, 31},  {200, 31},
    };
    static const int causal[][2] = {
        {5, 0},    {0, 0},    {-1, 1},   {-15, 15}, {-16, 16}, {-18, 16}, {-19, 17},  {-20, 17},
        {-21, 18}, {-24, 19}, {-32, 21}, {-48, 24}, {-64, 26}, {-96, 29}, {-112, 30}, {-113, 31},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_int_equal(t5_bucket(rows[i][0], true, 32, 128), rows[i][1]);
    for (size_t i = 0; i < array_length(causal); i++)
        assert_int_equal(t5_bucket(causal[i][0], false, 32, 128), causal[i][1]);
}

/* Whatever the length, from tables that grow. */
static void bucket_tables_are_the_formula(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct t5_buckets buckets = {
        .arena = arena, .bidirectional = true, .buckets = 32, .max_distance = 128};
    struct device *device;
    struct stream *stream;
    struct tape *tape;
    struct error err;
    assert_ok(device_open("cpu", 1, &device, &err), &err);
    assert_ok(stream_open(device, "compute", &stream, &err), &err);
    assert_ok(tape_open(stream, DTYPE_F32, NULL, &tape, &err), &err);
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 511, 512, 513, 1500, 7};
    for (size_t i = 0; i < array_length(lengths); i++) {
        int64_t T = lengths[i];
        const int32_t *table = t5_buckets_get(&buckets, tape, T);
        assert_ok(stream_sync(stream, &err), &err);
        assert_int_equal((uintptr_t)table % 16, 0);
        for (int64_t k = 0; k < 2 * T - 1; k++)
            assert_int_equal(table[k], t5_bucket(k - (T - 1), true, 32, 128));
    }
    tape_close(tape);
    stream_close(stream);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_fall_into_their_buckets),
        cmocka_unit_test(bucket_tables_are_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
