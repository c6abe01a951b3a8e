/* Philox against Random123's published answers, and the numbers made of it. */
#include "kernels/random.h"
#include "tests/kernels/ops_fixture.h"

#include <math.h>

/* Random123's kat_vectors, philox4x32 with 10 rounds. */
static void test_known_answers(void **state)
{
    (void)state;
    static const struct {
        struct philox_block counter;
        uint32_t key[2];
        struct philox_block answer;
    } rows[] = {
        {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         {0xffffffff, 0xffffffff},
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         {0xa4093822, 0x299f31d0},
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct philox_block got = philox(rows[i].counter, rows[i].key[0], rows[i].key[1]);
        assert_memory_equal(&got, &rows[i].answer, sizeof got);
    }
}

/* Number n of a group of 32 is word n / 8 of block n % 8: what makes the seed reproducible. */
static void test_numbers_are_philox_words(void **state)
{
    (void)state;
    assert_true(random_uniform(0, 0) == (float)(0x6627e8d5 >> 8) * 0x1p-24f);
    assert_true(random_uniform(0, 8) == (float)(0xe169c58d >> 8) * 0x1p-24f);
    assert_true(random_uniform(0, 24) == (float)(0x9b00dbd8 >> 8) * 0x1p-24f);
}

/* 40000 numbers: none outside [0, 1), mean and variance of the uniform distribution within five
 * standard errors. The numbers are fixed, so this passes always or never. */
static void test_numbers_are_uniform(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double x = random_uniform(random_key(7, i / 100, 0, 0), i % 100);
        assert_true(x >= 0 && x < 1);
        sum += x;
        squares += (x - 0.5) * (x - 0.5);
    }
    assert_true(fabs(sum / COUNT - 0.5) < 5 * sqrt(1.0 / 12 / COUNT));
    assert_true(fabs(squares / COUNT - 1.0 / 12) < 5 * sqrt(1.0 / 180 / COUNT));
}

static void test_keys_differ(void **state)
{
    (void)state;
    static const uint64_t names[][4] = {
        {0, 0, 0, 0},          {1, 0, 0, 0},          {0, 1, 0, 0},
        {0, 0, 1, 0},          {0, 0, 0, 1},          {1ull << 32, 0, 0, 0},
        {0, 1ull << 32, 0, 0}, {0, 0, 1ull << 32, 0}, {0, 0, 0, 1ull << 32}};
    for (size_t i = 0; i < array_length(names); i++)
        for (size_t j = 0; j < i; j++)
            assert_true(random_key(names[i][0], names[i][1], names[i][2], names[i][3]) !=
                        random_key(names[j][0], names[j][1], names[j][2], names[j][3]));
}

/* The op gives the host's numbers, from any first number on. */
static void test_uniform(void **state)
{
    struct world *world = *state;
    static const struct {
        int64_t count;
        uint64_t first;
    } rows[] = {{0, 0}, {1, 0}, {1, 31}, {33, 31}, {20000, 5}, {64, 0xfffffffffull}};
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t count = rows[i].count;
        float *y = to_device(world, host_zeros(world, count), count);
        world->ops->uniform(world->stream, y, count, 99, rows[i].first, -2, 3);
        float *got = from_device(world, y, count);
        for (int64_t j = 0; j < count; j++) {
            double u = random_uniform(99, rows[i].first + (uint64_t)j);
            assert_true(fabs(got[j] - (-2 + 5 * u)) < 1e-6);
        }
    }
}

/* The mask is named by the row's place in the batch of all ranks; kept elements are scaled. */
static void test_dropout(void **state)
{
    struct world *world = *state;
    static const struct {
        int64_t rows, cols;
        float p;
        uint64_t first_row, row_stride;
        bool in_place;
    } rows[] = {
        {1, 1, 0.5f, 0, 1, false},  {3, 7, 0, 0, 1, false},       {5, 33, 0.25f, 2, 4, true},
        {4, 128, 0.5f, 3, 2, true}, {2, 9216, 0.9f, 1, 4, false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t cols = rows[i].cols, count = rows[i].rows * cols;
        float *host = host_random(world, count, 1, 2);
        float *x = to_device(world, host, count), *y = to_device(world, host, count);
        world->ops->dropout(world->stream, DTYPE_F32, y, rows[i].in_place ? y : x, rows[i].rows,
                            cols, rows[i].p, 5, rows[i].first_row, rows[i].row_stride);
        float *got = from_device(world, y, count);
        for (int64_t j = 0; j < count; j++) {
            uint64_t row = rows[i].first_row + (uint64_t)(j / cols) * rows[i].row_stride;
            bool drop = random_uniform(5, row * (uint64_t)cols + (uint64_t)(j % cols)) < rows[i].p;
            double want = drop ? 0 : host[j] / (1 - (double)rows[i].p);
            assert_true(fabs(got[j] - want) <= 1e-6 * want);
        }
        from_device(world, x, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_numbers_are_philox_words),
        cmocka_unit_test(test_numbers_are_uniform),
        cmocka_unit_test(test_keys_differ),
        cmocka_unit_test_setup_teardown(test_uniform, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_dropout, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
