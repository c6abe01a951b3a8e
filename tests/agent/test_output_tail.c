/* The last lines of an output. */
#include "agent/launch/output_tail.h"
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

static void test_a_tail_keeps_the_last_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int times; /* that it is added */
        const char *expected;
    } rows[] = {
        {"", 1, ""},
        {"\n\n", 1, ""},
        {"one\n", 1, "    one\n"},
        {"one\ntwo", 1, "    one\n    two\n"},
        {"\033[1mbold\r\n", 1, "     [1mbold \n"},
        {"ab\n", 12,
         "    ab\n    ab\n    ab\n    ab\n    ab\n    ab\n    ab\n    ab\n    ab\n    ab\n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct output_tail tail = {.total = 0};
        auto_str struct str text;
        str_init(&text, 4 * OUTPUT_TAIL_BYTES);
        for (int t = 0; t < rows[i].times; t++)
            output_tail_add(&tail, rows[i].text, strlen(rows[i].text));
        output_tail_print(&tail, &text);
        assert_string_equal(str_text(&text), rows[i].expected);
    }
}

/* What the ring has lost the beginning of is not shown. */
static void test_a_tail_shows_whole_lines(void **state)
{
    (void)state;
    enum { LINE = 1000 };
    char line[3 * OUTPUT_TAIL_BYTES];
    struct output_tail tail = {.total = 0};
    auto_str struct str text;
    str_init(&text, 4 * OUTPUT_TAIL_BYTES);
    for (int i = 0; i < 7; i++) {
        memset(line, 'a' + i, LINE);
        line[LINE - 1] = '\n';
        output_tail_add(&tail, line, LINE);
    }
    output_tail_print(&tail, &text);
    assert_int_equal(text.length, 4 * (LINE + 4));
    for (int i = 0; i < 4; i++)
        assert_int_equal(str_text(&text)[(size_t)i * (LINE + 4) + 4], 'd' + i);
    str_clear(&text);
    memset(line, 'x', sizeof line); /* all of it, of one line */
    output_tail_add(&tail, line, sizeof line);
    output_tail_print(&tail, &text);
    assert_int_equal(text.length, OUTPUT_TAIL_BYTES + 5);
    assert_int_equal(strspn(str_text(&text) + 4, "x"), OUTPUT_TAIL_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tail_keeps_the_last_lines),
        cmocka_unit_test(test_a_tail_shows_whole_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
