/* What a launcher makes of a termination message. */
#include "tests/support.h"

#include "agent/telemetry/termination_log.h"
#include "base/contract.h"
#include "base/mem.h"

#include <string.h>

static void numbers_stay_and_the_end_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *before, *why, *lines, *expected;
    } rows[] = {
        {"{\"steps\":4}\n", "rank 3: signal 6", "    a\n    b\n",
         "rank 3: signal 6\n    a\n    b\n{\"steps\":4}\n"},
        {"rank 3 is lost\n{\"steps\":4}", "signal 6", "", "signal 6\n{\"steps\":4}"},
        {"", "signal\n6", "    a\n", "signal 6\n    a\n"},
        {"", "no \033[31mfile\033[0m \xc3", "",
         "no  [31mfile [0m ?\n"}, /* cut within a character */
        {"what another program says\n", "signal 6", "    a\n", "signal 6\n    a\n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_str struct str text;
        str_init(&text, 2 * TRAINING_MAX_BYTES);
        termination_log_text(rows[i].before, rows[i].why, rows[i].lines, &text);
        assert_string_equal(str_text(&text), rows[i].expected);
    }
}

/* The kubelet shows so many bytes, and the operator needs the last line of them. */
static void lines_give_way_from_the_first(void **state)
{
    (void)state;
    char numbers[2000] = "{", why[2 * TERMINATION_LOG_WHY_BYTES];
    auto_str struct str lines, text, expected;
    memset(numbers + 1, ' ', sizeof numbers - 3);
    numbers[sizeof numbers - 2] = '}', numbers[sizeof numbers - 1] = '\0';
    memset(why, 'w', sizeof why - 1);
    why[sizeof why - 1] = '\0';
    str_init(&lines, 2 * TRAINING_MAX_BYTES);
    str_init(&text, 2 * TRAINING_MAX_BYTES);
    str_init(&expected, 2 * TRAINING_MAX_BYTES);
    for (int i = 0; i < 20; i++)
        str_printf(&lines, "%99d\n", i);
    termination_log_text(numbers, why, str_text(&lines), &text);
    str_printf(&expected, "%.*s\n", TERMINATION_LOG_WHY_BYTES, why);
    for (int i = 10; i < 20; i++) /* 1,000 of 1,072 bytes */
        str_printf(&expected, "%99d\n", i);
    str_add(&expected, numbers);
    assert_string_equal(str_text(&text), str_text(&expected));
    assert_true(text.length <= TRAINING_MAX_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_stay_and_the_end_is_told),
        cmocka_unit_test(lines_give_way_from_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
