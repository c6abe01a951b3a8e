/* When a pod is asked again. */
#include "operator/progress/ask_times.h"

#include "base/mem.h"
#include "base/table.h"
#include "tests/support.h"

#include <stdio.h>

enum { EVERY = 15000 };

/* A letter for each outcome: h heard, s silent, x a stranger; and the seconds to the next ask, 0:
 * never. */
static const struct {
    const char *outcomes;
    int seconds[10];
    bool quiet; /* in the end */
} rows[] = {
    {"hhh", {15, 15, 15}, false},
    {"sssss", {15, 30, 60, 120, 240}, false}, /* an agent that starts? */
    {"ssssssss", {15, 30, 60, 120, 240, 480, 600, 600}, true},
    {"sssh", {15, 30, 60, 15}, false},
    {"hs", {15, 15}, false},
    {"ssshsss", {15, 30, 60, 15, 15, 15, 15}, true},
    {"x", {0}, true},
    {"sx", {15, 0}, true},
    {"hx", {15, 15}, false}, /* what was an agent is one again soon */
    {"hxx", {15, 15, 15}, true},
    {"hxxh", {15, 15, 15, 15}, false},
};

static void asks_become_rarer_where_nobody_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct ask_times times = {0};
        for (int k = 0; rows[i].outcomes[k]; k++) {
            char letter = rows[i].outcomes[k];
            enum ask_outcome outcome = letter == 'h'   ? ASK_HEARD
                                       : letter == 's' ? ASK_SILENT
                                                       : ASK_STRANGER;
            int64_t next_ms = ask_times_next(&times, outcome, 1000, EVERY);
            int64_t s = next_ms == ASK_NEVER ? 0 : (next_ms - 1000) / 1000;
            if (s != rows[i].seconds[k])
                fail_msg("%s: after ask %d: %d s, not %d", rows[i].outcomes, k + 1, (int)s,
                         rows[i].seconds[k]);
        }
        if (ask_times_quiet(&times) != rows[i].quiet)
            fail_msg("%s: %s", rows[i].outcomes, rows[i].quiet ? "not quiet" : "quiet");
    }
}

/* No second of the interval has many more asks than another. */
static void jobs_are_spread_over_the_interval(void **state)
{
    (void)state;
    int in_second[EVERY / 1000] = {0};
    for (int i = 0; i < 3000; i++) {
        char key[32];
        snprintf(key, sizeof key, "default/job-%d", i);
        int64_t at_ms = ask_times_first(5000, EVERY, table_hash(key));
        assert_in_range(at_ms, 5000, 5000 + EVERY - 1);
        in_second[(at_ms - 5000) / 1000]++;
    }
    for (int s = 0; s < EVERY / 1000; s++)
        assert_in_range(in_second[s], 140, 260);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_become_rarer_where_nobody_answers),
        cmocka_unit_test(jobs_are_spread_over_the_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
