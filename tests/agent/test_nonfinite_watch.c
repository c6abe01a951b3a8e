/* What is said of steps without numbers, and at the end. */
#include "agent/report/nonfinite_watch.h"

#include "base/mem.h"
#include "tests/support.h"

#include <math.h>
#include <string.h>

enum { STEPS = 6 };

struct row {
    const char *losses;  /* of each step: '.' a number, 'n' none, 'e' no data */
    const char *skipped; /* '1': it was left out */
    const char *warned;  /* "2:diverged ": at which step which warning */
    const char *end;     /* "2 diverged" */
};

static const char *kind_of(const char *text)
{
    return strstr(text, "diverged") ? "diverged" : strstr(text, "left out") ? "skipped" : "?";
}

static void each_kind_is_told_once_and_the_end_tells_how_it_is(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"......", "000000", "", ""},
        {"..nnnn", "000000", "3:diverged ", "since step 3 (lr 0.3)"},
        {"..n...", "000000", "3:diverged ", ""}, /* it came back */
        {".n.nn.", "000000", "2:diverged ", ""},
        {"..n...", "001000", "3:skipped ", "Warning: 1 step was left out"},
        {".....n", "000001", "6:skipped ", "Warning: 1 step was left out"},
        {"......", "011100", "2:skipped ", "Warning: 3 steps were left out"}, /* gradients alone */
        {".nennn", "010000", "2:skipped 4:diverged ", "since step 4 (lr 0.4)"},
        {".enenn", "000000", "3:diverged ", "since step 3 (lr 0.3)"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct nonfinite_watch watch = {0};
        auto_str struct str warned, end;
        str_init(&warned, 1024);
        str_init(&end, 1024);
        struct run_numbers step = {0};
        for (int s = 0; s < STEPS; s++) {
            auto_str struct str line;
            str_init(&line, 1024);
            step.step = s + 1;
            step.lr = 0.1 * (s + 1);
            step.loss = rows[i].losses[s] == '.' ? 1 : (double)NAN;
            step.is_empty = rows[i].losses[s] == 'e';
            step.skipped_steps += rows[i].skipped[s] == '1';
            nonfinite_watch_step(&watch, &step, &line);
            if (line.length > 0)
                str_printf(&warned, "%d:%s ", s + 1, kind_of(str_text(&line)));
        }
        nonfinite_watch_end(&watch, &end);
        assert_string_equal(str_text(&warned), rows[i].warned);
        if (rows[i].end[0] ? !strstr(str_text(&end), rows[i].end) : end.length > 0)
            fail_msg("row %zu: %s", i, str_text(&end));
        assert_int_equal(strstr(str_text(&end), "diverged") != NULL,
                         strstr(rows[i].end, "since") != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_told_once_and_the_end_tells_how_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
