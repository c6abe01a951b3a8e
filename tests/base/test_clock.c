#include "tests/support.h"

#include "base/clock.h"
#include "base/mem.h"

static void the_time_until_then(void **state)
{
    (void)state;
    static const struct {
        int64_t then_ms, now_ms, until_ms;
    } rows[] = {
        {15, 10, 5},        {10, 10, 0},
        {9, 10, 0},         {INT64_MAX, 10, INT64_MAX},
        {INT64_MIN, 10, 0}, {INT64_MAX - 1, 1, INT64_MAX - 2},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_int_equal(clock_until_ms(rows[i].then_ms, rows[i].now_ms), rows[i].until_ms);
}

static void times_are_written_and_read(void **state)
{
    (void)state;
    static const struct {
        int64_t wall_ms;
        const char *seconds, *micro;
    } rows[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
        {INT64_C(1767225600250), "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.250000Z"},
        {INT64_C(951782400000), "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000000Z"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char text[40];
        int64_t read_ms;
        clock_format_micro(rows[i].wall_ms, text, sizeof text);
        assert_string_equal(text, rows[i].micro);
        assert_true(clock_parse_rfc3339(text, &read_ms));
        assert_int_equal(read_ms, rows[i].wall_ms / 1000 * 1000);
        assert_true(clock_parse_micro(text, &read_ms));
        assert_int_equal(read_ms, rows[i].wall_ms);
        clock_format_rfc3339(rows[i].wall_ms, text, sizeof text);
        assert_string_equal(text, rows[i].seconds);
        assert_true(clock_parse_rfc3339(text, &read_ms));
        assert_int_equal(read_ms, rows[i].wall_ms / 1000 * 1000);
    }
}

static void offsets_from_utc_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t wall_ms;
    } rows[] = {
        {"2026-01-01T02:30:00+02:30", INT64_C(1767225600000)},
        {"2025-12-31T19:00:00.5-05:00", INT64_C(1767225600000)},
        {"2026-01-01T00:00:00+00:00", INT64_C(1767225600000)},
        {"2026-01-01T00:00:00-00:00", INT64_C(1767225600000)},
        {"2026-01-01T23:59:00+23:59", INT64_C(1767225600000)},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t read_ms;
        assert_true(clock_parse_rfc3339(rows[i].text, &read_ms));
        assert_int_equal(read_ms, rows[i].wall_ms);
    }
}

static void what_is_no_time_is_not_read(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "now",
                                       "2026-01-01",
                                       "2026-01-01T00:00:00",
                                       "2026-13-01T00:00:00Z",
                                       "2026-01-01T00:00:00.Z",
                                       "2026-01-01T00:00:00Z ",
                                       "2026-01-01 00:00:00Z",
                                       "2026-01-01T00:00:00+2:00",
                                       "2026-01-01T00:00:00+0200",
                                       "2026-01-01T00:00:00+24:00",
                                       "2026-01-01T00:00:00+02:60",
                                       "2026-01-01T00:00:00+02:3x",
                                       "2026-01-01T00:00:00+02:00Z"};
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t wall_ms = 7;
        if (clock_parse_rfc3339(rows[i], &wall_ms))
            fail_msg("\"%s\" was read as %lld", rows[i], (long long)wall_ms);
        assert_int_equal(wall_ms, 7);
    }
}

static int64_t wall_ms, steady_ms;

static int64_t read_wall(void)
{
    return wall_ms;
}

static int64_t read_steady(void)
{
    return steady_ms;
}

static void a_run_does_not_follow_a_clock_that_is_set(void **state)
{
    (void)state;
    const struct clocks clocks = {read_wall, read_steady};
    wall_ms = 1000000, steady_ms = 77;
    struct clock_run run = clock_run_open(&clocks);
    assert_int_equal(clock_run_ms(&run), 1000000);
    wall_ms -= 7200000, steady_ms += 5;
    assert_int_equal(clock_run_ms(&run), 1000005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_until_then),
        cmocka_unit_test(a_run_does_not_follow_a_clock_that_is_set),
        cmocka_unit_test(times_are_written_and_read),
        cmocka_unit_test(offsets_from_utc_are_read),
        cmocka_unit_test(what_is_no_time_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
