/* Numbers of JSON texts: what RFC 8259 has and what it has not, exact integers, reals with a point
 * in every locale. */
#include "tests/support.h"

#include "base/json.h"
#include "base/json_text.h"
#include "base/mem.h"
#include "base/str.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_prints(struct json *value, const char *expected)
{
    auto_free char *printed = json_print(value, JSON_COMPACT);
    assert_string_equal(printed, expected);
}

/* RFC 8259, section 6. */
static void the_grammar_is_the_standards(void **state)
{
    (void)state;
    static const char *const good[] = {
        "0",    "-0",   "0.0",    "-0.0",    "10",     "0e0",     "0E+0",       "-0e-0",
        "1e00", "1E-0", "1e+005", "1.0e308", "1e-400", "-1e-400", "123.456e-7", "0.10",
    };
    static const char *const bad[] = {
        "+1",     ".5",  "-.5", "1.",   "1.e5",     "-",         "--1", "00",    "01",     "-01",
        "1e",     "1e+", "1E-", "1e.5", "1e5.",     "0x10",      "0b1", "1_000", "1,5",    "1f",
        "\uff11", "NaN", "nan", "-NaN", "Infinity", "-Infinity", "inf", "1e400", "-1E400", "0x1p3",
    };
    for (size_t i = 0; i < array_length(good); i++) {
        struct json *value = json_parse_text(good[i], JSON_ALLOW_SCALAR, NULL);
        assert_string_equal(json_number_text(value), good[i]);
        assert_true(isfinite(json_as_number(value)));
        assert_prints(value, good[i]);
        json_free(value);
    }
    for (size_t i = 0; i < array_length(bad); i++) {
        struct error err = {0};
        if (json_parse_text(bad[i], JSON_ALLOW_SCALAR, &err))
            fail_msg("%s was taken", bad[i]);
        assert_int_equal(err.code, ERR_INPUT);
        assert_memory_equal(err.msg, "line 1, column ", 15);
    }
}

/* DBL_MAX has 309 digits. */
static void long_numbers_are_taken_while_they_are_finite(void **state)
{
    (void)state;
    auto_str struct str text;
    str_init(&text, 1000);
    for (int i = 0; i < 308; i++)
        str_add(&text, "9");
    struct json *value = json_parse_text(str_text(&text), JSON_ALLOW_SCALAR, NULL);
    assert_prints(value, str_text(&text));
    assert_true(json_is_real(value) && json_as_number(value) == 1e308);
    json_free(value);
    str_add(&text, "99");
    assert_null(json_parse_text(str_text(&text), JSON_ALLOW_SCALAR, NULL));
}

static void numbers_are_exact_or_none(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum json_type type;
        int64_t integer;
        double number;
    } rows[] = {
        {"0", JSON_INTEGER, 0, 0},
        {"-0", JSON_INTEGER, 0, 0},
        {"9007199254740993", JSON_INTEGER, 9007199254740993, 9007199254740992.0},
        {"9223372036854775807", JSON_INTEGER, INT64_MAX, 9223372036854775808.0},
        {"-9223372036854775808", JSON_INTEGER, INT64_MIN, -9223372036854775808.0},
        {"9223372036854775808", JSON_REAL, 0, 9223372036854775808.0},
        {"-9223372036854775809", JSON_REAL, 0, -9223372036854775808.0},
        {"1.0", JSON_REAL, 0, 1},
        {"1e3", JSON_REAL, 0, 1000},
        {"-2.5E-1", JSON_REAL, 0, -0.25},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct json *value = json_parse_text(rows[i].text, JSON_ALLOW_SCALAR, NULL);
        assert_int_equal(json_type_of(value), rows[i].type);
        assert_int_equal(json_is_integer(value), rows[i].type == JSON_INTEGER);
        assert_int_equal(json_is_real(value), rows[i].type == JSON_REAL);
        assert_true(json_is_number(value));
        assert_true(json_as_integer(value) == rows[i].integer);
        assert_true(json_as_number(value) == rows[i].number);
        assert_string_equal(json_number_text(value), rows[i].text);
        json_free(value);
    }
}

static void reals_print_as_json(void **state)
{
    (void)state;
    static const struct {
        double number;
        int digits;
        const char *text;
    } rows[] = {
        {0, 17, "0.0"},
        {1, 17, "1.0"},
        {0.1, 15, "0.1"},
        {0.1, 17, "0.10000000000000001"},
        {-2.5, 6, "-2.5"},
        {1e-5, 15, "1e-5"},
        {1.5e-7, 15, "1.5e-7"},
        {1e20, 17, "1e20"},
        {1e300, 17, "1.0000000000000001e300"},
        {123456789, 6, "1.23457e8"},
        {1.0 / 0.0, 6, "null"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct json *value = json_new_real(rows[i].number, rows[i].digits);
        assert_prints(value, rows[i].text);
        json_free(value);
    }
}

static void numbers_are_written_without_values(void **state)
{
    (void)state;
    auto_str struct str text;
    str_init(&text, 100);
    static const double numbers[] = {0, 3, -0.1, 1e-7, 12345678901.5, NAN, -INFINITY};
    for (size_t i = 0; i < array_length(numbers); i++) {
        str_add(&text, i ? "," : "[");
        json_number(numbers[i], &text);
    }
    str_add(&text, "]");
    assert_string_equal(str_text(&text), "[0,3,-0.1,1e-07,1.23456789e+10,null,null]");
    struct json *value = json_parse_text(str_text(&text), JSON_STRICT, NULL);
    assert_non_null(value);
    json_free(value);
}

/* A locale of our own: few machines have one with a comma. */
static bool enter_locale_with_comma(const char *directory)
{
    static const char source[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\n"
                                 "grouping -1\nEND LC_NUMERIC\n";
    auto_free char *path = xasprintf("%s/source", directory);
    auto_free char *command = xasprintf("cd %s && localedef -c -i source -f ANSI_X3.4-1968 "
                                        "--no-archive ./comma >log 2>&1; test -e comma/LC_NUMERIC",
                                        directory);
    auto_fclose FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(source, 1, sizeof source - 1, file), sizeof source - 1);
    assert_int_equal(fflush(file), 0);
    setenv("LOCPATH", directory, 1);
    return system(command) == 0 && setlocale(LC_NUMERIC, "comma");
}

static void the_locale_does_not_matter(void **state)
{
    assert_true(enter_locale_with_comma(*state));
    char usual[8];
    snprintf(usual, sizeof usual, "%.1f", 0.5);
    assert_string_equal(usual, "0,5"); /* elsewhere it does */
    struct json *value = json_parse_text("[1.5,-2.5e-1]", JSON_STRICT, NULL);
    assert_true(json_as_number(json_at(value, 0)) == 1.5);
    assert_true(json_as_number(json_at(value, 1)) == -0.25);
    json_append(value, json_new_real(0.5, 17));
    json_append(value, json_new_real(2, 17));
    assert_prints(value, "[1.5,-2.5e-1,0.5,2.0]");
    json_free(value);
    auto_str struct str text;
    str_init(&text, 100);
    json_number(0.5, &text);
    assert_string_equal(str_text(&text), "0.5");
    assert_null(json_parse_text("[1.5e999]", JSON_STRICT, NULL));
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_grammar_is_the_standards),
        cmocka_unit_test(long_numbers_are_taken_while_they_are_finite),
        cmocka_unit_test(numbers_are_exact_or_none),
        cmocka_unit_test(reals_print_as_json),
        cmocka_unit_test(numbers_are_written_without_values),
        cmocka_unit_test_setup_teardown(the_locale_does_not_matter, support_enter_dir,
                                        support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
