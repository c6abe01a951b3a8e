/* Amounts of resources: what Kubernetes writes, and what is no amount. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/job/quantity.h"

static const struct {
    const char *text;
    int64_t milli; /* -1: no quantity */
} rows[] = {
    {"0", 0},
    {"1", 1000},
    {"+2", 2000},
    {"500m", 500},
    {"0.1", 100},
    {".5", 500},
    {"2.", 2000},
    {"1Ki", 1024000},
    {"1.5Gi", 1610612736000},
    {"16Gi", 17179869184000},
    {"2k", 2000000},
    {"2e3", 2000000},
    {"2E-1", 200},
    {"1E", INT64_MAX},
    {"9Pi", INT64_MAX},
    {"1n", 1}, /* rounded up */
    {"1e-99", 1},
    {"1e-99999999999999999999", 1},
    {"1e99999999999999999999", INT64_MAX},
    {"0.001e9223372036854775807", INT64_MAX},
    {"0e99", 0},
    {"99999999999999999999999999999999999999999999999", INT64_MAX},
    {"", -1},
    {".", -1},
    {"-1", -1},
    {"1 ", -1},
    {"1K", -1},
    {"1ki", -1},
    {"1e", -1},
    {"1e+", -1},
    {"1e2x", -1},
    {"Gi", -1},
    {"1.2.3", -1},
};

static void quantities_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t milli = -1;
        assert_int_equal(quantity_parse(rows[i].text, &milli), rows[i].milli >= 0);
        if (milli != rows[i].milli)
            fail_msg("%s: %lld", rows[i].text, (long long)milli);
    }
}

static void sums_are_kept_by_resource(void **state)
{
    (void)state;
    struct arena *arena = arena_open();
    struct quantities sum = {0}, pod = {0}, init = {0};
    quantities_set(&pod, "memory", 300, arena);
    quantities_set(&pod, "cpu", 500, arena);
    quantities_set(&init, "cpu", 2000, arena);
    quantities_set(&init, "memory", 1, arena);
    quantities_add(&sum, &pod, 3, arena);
    assert_int_equal(quantities_get(&sum, "cpu"), 1500);
    quantities_raise(&sum, &init, arena);
    assert_int_equal(quantities_get(&sum, "cpu"), 2000);
    assert_int_equal(quantities_get(&sum, "memory"), 900);
    assert_int_equal(quantities_get(&sum, "gpu"), 0);
    assert_string_equal(sum.items[0].resource, "cpu");
    assert_int_equal(pod.items[1].milli, 300);
    assert_false(quantities_equal(&sum, &pod));
    assert_true(quantities_equal(&sum, &sum));
    quantities_set(&pod, "cpu", INT64_MAX, arena);
    quantities_add(&sum, &pod, 1, arena);
    assert_int_equal(quantities_get(&sum, "cpu"), INT64_MAX);
    arena_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities_are_read),
        cmocka_unit_test(sums_are_kept_by_resource),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
