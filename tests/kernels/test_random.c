/* Philox against Random123's published answers, and the numbers made of it. */
#include "kernels/random.h"
#include "tests/kernels/op_check.h"

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
        const struct philox_keys keys =
            philox_keys_of((uint64_t)rows[i].key[1] << 32 | rows[i].key[0]);
        got = philox_of_keys(rows[i].counter, &keys);
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

/* Number `counter` of the normal ones, as ops.h makes it. */
static double normal_number(uint64_t key, uint64_t counter)
{
    uint64_t group = counter / 32 * 32, n = counter % 32;
    double u = random_uniform(key, group + n % 16), v = random_uniform(key, group + n % 16 + 16);
    double angle = 2 * acos(-1) * v;
    return sqrt(-2 * log(1 - u)) * (n < 16 ? cos(angle) : sin(angle));
}

/* From any first number on: a tensor filled in pieces is the tensor filled at once. */
static void test_normal(void **state)
{
    struct world *world = *state;
    static const struct {
        int64_t count;
        uint64_t first;
    } rows[] = {{0, 0}, {1, 0}, {1, 31}, {33, 31}, {20000, 5}, {64, 0xfffffffffull}};
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t count = rows[i].count;
        float *y = to_device(world, host_zeros(world, count), count);
        world->ops->normal(world->stream, y, count, 99, rows[i].first, 0.5f, 2);
        float *got = from_device(world, y, count);
        for (int64_t j = 0; j < count; j++) {
            double want = 0.5 + 2 * normal_number(99, rows[i].first + (uint64_t)j);
            assert_true(fabs(got[j] - want) < 1e-5);
        }
    }
}

/* Mean, variance and the share beyond one deviation are the normal distribution's, within five
 * standard errors. */
static void test_numbers_are_normal(void **state)
{
    struct world *world = *state;
    enum { COUNT = 40000 };
    double sum = 0, squares = 0, beyond = 0;
    float *y = to_device(world, host_zeros(world, COUNT), COUNT);
    world->ops->normal(world->stream, y, COUNT, 7, 3, 0, 1);
    const float *z = from_device(world, y, COUNT);
    for (int i = 0; i < COUNT; i++) {
        sum += z[i];
        squares += z[i] * z[i];
        beyond += fabs(z[i]) > 1;
    }
    assert_true(fabs(sum / COUNT) < 5 / sqrt(COUNT));
    assert_true(fabs(squares / COUNT - 1) < 5 * sqrt(2.0 / COUNT));
    assert_true(fabs(beyond / COUNT - 0.3173105) < 5 * sqrt(0.2166 / COUNT));
}

struct dropout_row {
    int64_t rows, cols;
    float p;
    uint64_t first_row, row_stride;
    bool in_place;
};

static const struct dropout_row dropout_rows[] = {
    {1, 1, 0.5f, 0, 1, false},  {3, 7, 0, 0, 1, false},       {5, 33, 0.25f, 2, 4, true},
    {4, 128, 0.5f, 3, 2, true}, {2, 9216, 0.9f, 1, 4, false}, {4100, 3, 0.5f, 7, 1, true},
};

/* The mask is named by the row's place in the batch of all ranks; kept elements are scaled: every
 * device gives the same bits. */
static void check_dropout(struct world *world, const struct dropout_row *r, enum dtype t)
{
    int64_t count = r->rows * r->cols;
    float *host = round_to(t, host_random(world, count, 1, 2), count);
    void *x = to_device_as(world, t, host, count), *y = to_device_as(world, t, host, count);
    world->ops->dropout(world->stream, t, y, r->in_place ? y : x, r->rows, r->cols, r->p, 5,
                        r->first_row, r->row_stride);
    float *got = from_device_as(world, t, y, count);
    for (int64_t j = 0; j < count; j++) {
        uint64_t row = r->first_row + (uint64_t)(j / r->cols) * r->row_stride;
        uint64_t place = row * (uint64_t)r->cols + (uint64_t)(j % r->cols);
        float want = random_uniform(5, place) < r->p ? 0 : host[j] * (1 / (1 - r->p));
        assert_true(got[j] == *round_to(t, &want, 1));
    }
    from_device_as(world, t, x, count);
}

static void test_dropout(void **state)
{
    for (size_t i = 0; i < array_length(dropout_rows); i++) {
        check_dropout(*state, &dropout_rows[i], DTYPE_F32);
        check_dropout(*state, &dropout_rows[i], DTYPE_BF16);
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
        cmocka_unit_test_setup_teardown(test_normal, world_setup_two_threads, world_teardown),
        cmocka_unit_test_setup_teardown(test_numbers_are_normal, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_dropout, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
