/* Growing strings, and small questions about texts. */
#include "base/str.h"

#include "base/mem.h"

#include "tests/support.h"

#include <string.h>

static void what_is_behind_the_last_one(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        char character;
        const char *behind;
    } rows[] = {
        {"/usr/bin/torchrun", '/', "torchrun"}, {"torchrun", '/', "torchrun"},
        {"./train.py", '/', "train.py"},        {"models/", '/', ""},
        {"torch.distributed.run", '.', "run"},  {"", '/', ""},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_string_equal(str_after_last(rows[i].text, rows[i].character), rows[i].behind);
}

static void ends_and_equals(void **state)
{
    (void)state;
    assert_true(str_ends_with("a.json", ".json") && str_ends_with(".json", ".json"));
    assert_true(str_ends_with("a", ""));
    assert_false(str_ends_with("json", ".json") || str_ends_with("a.json5", ".json"));
    assert_true(str_equal("a", "a") && str_equal(NULL, NULL));
    assert_false(str_equal("a", "b") || str_equal("", NULL) || str_equal(NULL, ""));
}

static void names_are_listed_whole(void **state)
{
    (void)state;
    static const struct {
        const char *names, *name;
        bool listed;
    } rows[] = {
        {"gpu-1", "gpu-1", true},   {"a,gpu-1,b", "gpu-1", true},
        {"a,gpu-1", "gpu-1", true}, {"gpu-10,gpu-1", "gpu-1", true},
        {"gpu-10", "gpu-1", false}, {"a-gpu-1", "gpu-1", false},
        {"a,b", "a,", false},       {"", "a", false},
        {"a,,b", "", false},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_int_equal(str_is_listed(rows[i].names, rows[i].name), rows[i].listed);
}

static void only_whole_numbers_in_their_range_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } rows[] = {
        {"0", true, 0},   {"-5", true, -5},  {"10", true, 10},  {"11", false, 0},
        {"-6", false, 0}, {" 1", false, 0},  {"\t1", false, 0}, {"", false, 0},
        {"1x", false, 0}, {"1.0", false, 0}, {"0x1", false, 0}, {"99999999999999999999", false, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t value = 0;
        assert_int_equal(str_to_i64(rows[i].text, -5, 10, &value), rows[i].good);
        assert_int_equal(value, rows[i].value);
    }
}

static void only_finite_numbers_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        double value;
    } rows[] = {
        {"1e-3", true, 1e-3}, {"-2.5", true, -2.5}, {"7", true, 7},    {"", false, 0},
        {"1,5", false, 0},    {"\n1", false, 0},    {"inf", false, 0}, {"nan", false, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        double value = 0;
        assert_int_equal(str_to_double(rows[i].text, &value), rows[i].good);
        assert_true(value == rows[i].value);
    }
}

static void what_is_beyond_the_cap_is_dropped_and_remembered(void **state)
{
    (void)state;
    auto_str struct str s;
    str_init(&s, 8);
    assert_string_equal(str_text(&s), "");
    str_add(&s, "abc");
    str_printf(&s, "%d", 4567);
    assert_string_equal(str_text(&s), "abc4567");
    assert_false(s.truncated);
    str_add(&s, "89");
    assert_string_equal(str_text(&s), "abc45678");
    assert_true(s.truncated);
    str_clear(&s);
    assert_int_equal(s.length, 0);
    str_add_bytes(&s, "xyz", 2);
    assert_string_equal(str_text(&s), "xy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_behind_the_last_one),
        cmocka_unit_test(ends_and_equals),
        cmocka_unit_test(names_are_listed_whole),
        cmocka_unit_test(only_whole_numbers_in_their_range_are_taken),
        cmocka_unit_test(only_finite_numbers_are_taken),
        cmocka_unit_test(what_is_beyond_the_cap_is_dropped_and_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
