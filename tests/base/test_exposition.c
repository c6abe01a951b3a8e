#include "tests/support.h"

#include "base/exposition.h"
#include "base/mem.h"

#include <math.h>

static void a_metric_has_its_two_lines(void **state)
{
    (void)state;
    auto_str struct str text;
    str_init(&text, 1024);
    exposition_head("up_seconds", "How long it is up.", "gauge", &text);
    assert_string_equal(str_text(&text),
                        "# HELP up_seconds How long it is up.\n# TYPE up_seconds gauge\n");
}

static void labels_are_separated_and_escaped(void **state)
{
    (void)state;
    auto_str struct str text, alone;
    str_init(&text, 1024);
    str_init(&alone, 1024);
    str_add(&text, "up{");
    exposition_label("a", "plain", &text);
    exposition_label("b", "\"q\" \\ \n.", &text);
    assert_string_equal(str_text(&text), "up{a=\"plain\",b=\"\\\"q\\\" \\\\ \\n.\"");
    exposition_label("a", "", &alone);
    exposition_label("b", "x", &alone);
    assert_string_equal(str_text(&alone), "a=\"\",b=\"x\"");
}

static void values_keep_what_matters(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, " 0\n"},
        {2.5, " 2.5\n"},
        {123456789012345, " 123456789012345\n"},
        {1750177497.123, " 1750177497.123\n"},
        {1e-9, " 1e-09\n"},
        {(double)NAN, " NaN\n"},
        {(double)INFINITY, " +Inf\n"},
        {-(double)INFINITY, " -Inf\n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_str struct str text;
        str_init(&text, 64);
        exposition_value(rows[i].value, &text);
        assert_string_equal(str_text(&text), rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_metric_has_its_two_lines),
        cmocka_unit_test(labels_are_separated_and_escaped),
        cmocka_unit_test(values_keep_what_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
