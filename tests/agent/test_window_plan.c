/* Which units lie in a symmetric window, and where. */
#include "agent/shard/window_plan.h"
#include "base/mem.h"
#include "tests/support.h"

enum { MIB = 1 << 20 };

/* No two pieces share a byte, and all of them lie inside. */
static void assert_apart(const struct window_plan *plan, const int64_t (*pieces)[2], int count)
{
    for (int i = 0; i < count; i++) {
        assert_true(pieces[i][0] >= 0 && pieces[i][0] % WINDOW_ALIGN == 0);
        assert_true(pieces[i][0] + pieces[i][1] <= plan->bytes);
        for (int other = 0; other < i; other++)
            assert_true(pieces[i][0] >= pieces[other][0] + pieces[other][1] ||
                        pieces[other][0] >= pieces[i][0] + pieces[i][1]);
    }
}

static void test_gathers(void **state)
{
    (void)state;
    const int64_t flat[] = {1000, 2 * MIB, 3 * MIB, 16 * MIB, 0};
    const struct window_rules rules = window_rules_of_gathers(2, 2, true);
    struct window_plan plan;
    struct window_place places[5];
    window_plan_make(&rules, flat, 5, &plan, places);
    assert_int_equal(plan.units, 3); /* 16 Mi elements are 32 MiB; no elements are no unit */
    assert_int_equal(places[1].buffer, WINDOW_IN_TURN);
    assert_int_equal(places[2].buffer, WINDOW_IN_TURN);
    for (int i = 3; i < 5; i++) {
        assert_false(places[i].is_inside);
        assert_int_equal(places[i].slice, WINDOW_OUTSIDE);
        assert_int_equal(places[i].buffer, WINDOW_OUTSIDE);
    }
    const int64_t pieces[][2] = {
        {places[0].slice, 1000},  {places[1].slice, 2 * MIB}, {places[2].slice, 3 * MIB},
        {places[0].buffer, 2000}, {plan.turns[0], 6 * MIB},   {plan.turns[1], 6 * MIB},
    };
    assert_apart(&plan, pieces, array_length(pieces));
    assert_int_equal(plan.bytes, 18 * MIB); /* 3 KiB and 17 MiB, in granules */
    assert_int_equal(plan.slice_bytes, 1024 + 5 * MIB);
    assert_int_equal(plan.kept_bytes, 2048);
    assert_int_equal(plan.shared, WINDOW_OUTSIDE);
    assert_int_equal(plan.scratch, WINDOW_OUTSIDE);
}

/* What is not resharded is never given back. */
static void test_units_that_stay(void **state)
{
    (void)state;
    const int64_t flat[] = {1024, 2048, 4096};
    const struct window_rules rules = window_rules_of_gathers(4, 4, false);
    struct window_plan plan;
    struct window_place places[3];
    window_plan_make(&rules, flat, 3, &plan, places);
    assert_int_equal(plan.kept_bytes, 4 * (1024 + 2048 + 4096));
    assert_int_equal(plan.slice_bytes, 1024 + 2048 + 4096);
    assert_int_equal(plan.bytes, WINDOW_GRANULE);
    for (int i = 0; i < WINDOW_TURNS; i++)
        assert_int_equal(plan.turns[i], WINDOW_OUTSIDE);
    const int64_t pieces[][2] = {
        {places[0].slice, 1024},  {places[1].slice, 2048},  {places[2].slice, 4096},
        {places[0].buffer, 4096}, {places[1].buffer, 8192}, {places[2].buffer, 16384},
    };
    assert_apart(&plan, pieces, array_length(pieces));
}

static void test_reductions(void **state)
{
    (void)state;
    const int64_t flat[] = {1024, 2 * MIB, 8 * MIB};
    struct window_rules rules = window_rules_of_reductions(2, 4);
    struct window_plan plan;
    struct window_place places[3];
    window_plan_make(&rules, flat, 3, &plan, places);
    assert_int_equal(plan.units, 2); /* 8 Mi elements are 32 MiB in fp32 */
    const int64_t pieces[][2] = {
        {places[0].slice, 2048},  {places[1].slice, 4 * MIB}, {places[0].buffer, 4096},
        {plan.turns[0], 8 * MIB}, {plan.turns[1], 8 * MIB},   {plan.scratch, 4 * MIB},
    };
    assert_apart(&plan, pieces, array_length(pieces));
    assert_int_equal(plan.bytes, 26 * MIB);
    /* in bf16 they are packed, and all of them are small */
    rules = window_rules_of_reductions(2, 2);
    window_plan_make(&rules, flat, 3, &plan, places);
    assert_int_equal(plan.units, 3);
    assert_int_equal(plan.slice_bytes + plan.kept_bytes, 0);
    const int64_t packed[][2] = {{plan.shared, 16 * MIB}, {plan.scratch, 8 * MIB}};
    assert_apart(&plan, packed, array_length(packed));
    assert_int_equal(plan.bytes, 24 * MIB);
    for (int i = 0; i < 3; i++)
        assert_true(places[i].slice == WINDOW_OUTSIDE && places[i].buffer == WINDOW_OUTSIDE);
}

static void test_nothing_is_small(void **state)
{
    (void)state;
    const int64_t flat[] = {0, 16 * MIB, 32 * MIB};
    const struct window_rules rules = window_rules_of_gathers(8, 2, true);
    struct window_plan plan;
    window_plan_make(&rules, flat, 3, &plan, NULL);
    assert_int_equal(plan.bytes, 0);
    assert_int_equal(plan.units, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gathers),
        cmocka_unit_test(test_units_that_stay),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_nothing_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
