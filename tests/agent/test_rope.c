#include "agent/models/rope.h"
#include "tests/support.h"

#include <math.h>

static struct rope llama3(double factor)
{
    return (struct rope){ROPE_LLAMA3, 500000, factor, 1, 4, 8192};
}

static void assert_near(float got, double expected, double relative)
{
    if (!(fabs((double)got - expected) <= relative * fabs(expected)))
        fail_msg("%.9g, not %.9g", (double)got, expected);
}

/* To the seven digits that are known. */
static void llama3_frequencies_are_the_known_ones(void **state)
{
    (void)state;
    static const struct {
        int64_t hd;
        double factor;
        int i;
        double inv_freq;
    } rows[] = {
        {64, 32, 0, 1},
        {64, 32, 1, .6636012},
        {64, 32, 14, .003211446}, /* the last that is unchanged */
        {64, 32, 15, .001290548},
        {64, 32, 16, .0004295568},
        {64, 32, 17, 9.708288e-05},
        {64, 32, 18, 1.946164e-05},
        {64, 32, 31, 9.418307e-08},
        {128, 8, 28, .003211446},
        {128, 8, 29, .002166571},
        {128, 8, 30, .001371894},
        {128, 8, 31, .0008567514},
        {128, 8, 32, .0005248462},
        {128, 8, 33, .0003126938},
        {128, 8, 34, .0001785078},
        {128, 8, 35, 9.556212e-05},
        {128, 8, 63, 3.068926e-07},
        {128, 32, 29, .002118407},
        {128, 32, 30, .001290548},
        {128, 32, 31, .0007625412},
        {128, 32, 32, .0004295568},
        {128, 32, 33, .0002227635},
        {128, 32, 34, 9.708288e-05},
        {128, 32, 35, 2.389053e-05},
        {128, 32, 63, 7.672315e-08},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct rope rope = llama3(rows[i].factor);
        float inv_freq[64];
        rope_inv_freq(&rope, rows[i].hd, 8192, 131072, inv_freq);
        assert_near(inv_freq[rows[i].i], rows[i].inv_freq, 5e-7);
    }
}

static void linear_divides_positions(void **state)
{
    (void)state;
    const struct rope plain = {.theta = 10000, .factor = 1};
    const struct rope linear = {.type = ROPE_LINEAR, .theta = 10000, .factor = 4};
    float a[8], b[8];
    rope_inv_freq(&plain, 16, 100, 64, a);
    rope_inv_freq(&linear, 16, 100, 64, b);
    for (int i = 0; i < 8; i++) {
        assert_near(a[i], pow(10000, -i / 8.0), 1e-7);
        assert_true(b[i] == a[i] / 4);
    }
}

/* Up to max_positions nothing changes; beyond, the base grows. */
static void dynamic_changes_only_long_sequences(void **state)
{
    (void)state;
    const struct rope plain = {.theta = 10000, .factor = 1};
    const struct rope dynamic = {.type = ROPE_DYNAMIC, .theta = 10000, .factor = 2};
    float a[8], b[8];
    rope_inv_freq(&plain, 16, 64, 64, a);
    rope_inv_freq(&dynamic, 16, 64, 64, b);
    assert_memory_equal(a, b, sizeof a);
    rope_inv_freq(&dynamic, 16, 128, 64, b);
    double base = 10000 * pow(3, 16.0 / 14); /* 2 * 128 / 64 - 1 */
    for (int i = 0; i < 8; i++)
        assert_near(b[i], pow(base, -i / 8.0), 1e-7);
}

static void tables_turn_by_position_and_pair(void **state)
{
    (void)state;
    enum { HD = 8, T = 50 };
    const struct rope rope = {.theta = 10000, .factor = 1};
    float cos_[T * HD / 2], sin_[T * HD / 2];
    rope_table(&rope, HD, T, 64, cos_, sin_);
    for (int t = 0; t < T; t++)
        for (int i = 0; i < HD / 2; i++) {
            double angle = t * pow(10000, -2.0 * i / HD);
            assert_true(fabs((double)cos_[t * HD / 2 + i] - cos(angle)) < 4e-6);
            assert_true(fabs((double)sin_[t * HD / 2 + i] - sin(angle)) < 4e-6);
        }
}

/* The same memory for the same need, so that a device keeps one copy. */
static void tables_are_made_once(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    const struct rope plain = {.theta = 10000, .factor = 1};
    const struct rope dynamic = {.type = ROPE_DYNAMIC, .theta = 10000, .factor = 2};
    struct rope_tables tables = {0};
    const struct rope_pair *a = rope_tables_get(&tables, arena, &plain, 8, 100, 64);
    assert_true(a->T >= 100);
    assert_ptr_equal(rope_tables_get(&tables, arena, &plain, 8, 7, 64), a);
    tables = (struct rope_tables){0};
    a = rope_tables_get(&tables, arena, &dynamic, 8, 64, 64);
    assert_int_equal(a->T, 64);
    const struct rope_pair *b = rope_tables_get(&tables, arena, &dynamic, 8, 65, 64);
    assert_int_equal(b->T, 65);
    assert_ptr_equal(rope_tables_get(&tables, arena, &dynamic, 8, 3, 64), a);
    assert_ptr_equal(rope_tables_get(&tables, arena, &dynamic, 8, 65, 64), b);
    for (int T = 66; tables.count < ROPE_MAX_TABLES; T++)
        assert_non_null(rope_tables_get(&tables, arena, &dynamic, 8, T, 64));
    assert_null(rope_tables_get(&tables, arena, &dynamic, 8, 1000, 64));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama3_frequencies_are_the_known_ones),
        cmocka_unit_test(linear_divides_positions),
        cmocka_unit_test(dynamic_changes_only_long_sequences),
        cmocka_unit_test(tables_turn_by_position_and_pair),
        cmocka_unit_test(tables_are_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
