/* Tokens taken and refilled. */
#include "tests/support.h"

#include "operator/apply/event_budget.h"

static void events_have_a_budget(void **state)
{
    (void)state;
    struct event_budget budget = {0};
    int told = 0;
    while (event_budget_take(&budget, true, 1000))
        told++;
    assert_int_equal(told, EVENT_BUDGET_TOKENS - EVENT_BUDGET_RESERVE);
    while (event_budget_take(&budget, false, 1000))
        told++;
    assert_int_equal(told, EVENT_BUDGET_TOKENS);
    assert_false(event_budget_take(&budget, false, 1000 + EVENT_BUDGET_REFILL_MS - 1));
    assert_true(event_budget_take(&budget, false, 1000 + EVENT_BUDGET_REFILL_MS));
    assert_false(event_budget_take(&budget, false, 1000 + 2 * EVENT_BUDGET_REFILL_MS - 1));
    assert_true(event_budget_take(&budget, false, 1000 + 2 * EVENT_BUDGET_REFILL_MS));
    told = 0;
    while (event_budget_take(&budget, false, INT64_MAX / 2)) /* full, and not more than full */
        told++;
    assert_int_equal(told, EVENT_BUDGET_TOKENS);
}

static void what_fails_again_and_again_is_told_once(void **state)
{
    (void)state;
    static const char a[] = "pods \"a\" already exists", other[] = "pods \"b\" already exists";
    const int64_t again_ms = EVENT_BUDGET_AGAIN_MS;
    struct event_budget b = {0};
    assert_true(event_budget_is_new(&b, a, 5));
    assert_true(event_budget_is_new(&b, other, 8));
    for (int64_t now_ms = 9; now_ms < 5 + again_ms; now_ms += again_ms / 9) {
        assert_false(event_budget_is_new(&b, a, now_ms));
        assert_false(event_budget_is_new(&b, other, now_ms));
    }
    assert_false(event_budget_is_new(&b, a, 4 + again_ms));
    assert_true(event_budget_is_new(&b, a, 5 + again_ms)); /* nobody sees it any more */
    assert_false(event_budget_is_new(&b, a, 4 + 2 * again_ms));
    assert_false(event_budget_is_new(&b, other, 7 + again_ms));
    assert_true(event_budget_is_new(&b, other, 8 + again_ms));
    char text[2] = "0";
    for (; text[0] < '0' + EVENT_BUDGET_TEXTS; text[0]++)
        assert_true(event_budget_is_new(&b, text, 9 + again_ms));
    assert_true(event_budget_is_new(&b, a, 9 + again_ms)); /* forgotten by now */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_fails_again_and_again_is_told_once),
                                       cmocka_unit_test(events_have_a_budget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
