/* A step's numbers as telemetry has them. */
#include "agent/report/report_parts.h"

#include "tests/agent/config_line.h"
#include "tests/support.h"

/* An epoch that is filled up to whole batches has more samples than the data. */
static void an_epoch_is_never_more_than_one(void **state)
{
    (void)state;
    static const struct {
        int64_t epoch, samples;
        double epoch_samples, expected;
    } rows[] = {
        {0, 50, 100, 0.5}, {0, 100, 100, 1}, {1, 101, 100, 2}, {1, 8, 5, 2}, {1, 8, 0, 1},
    };
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, "", "", &config, &err), &err);
    const struct report_setting setting = {.config = &config, .world_size = 2};
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct trainer_step step = {
            .position = {.epoch = rows[i].epoch, .epoch_samples = rows[i].samples}};
        struct run_numbers n = report_numbers(&setting, &step, rows[i].epoch_samples, 1);
        assert_true(n.epoch == rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_epoch_is_never_more_than_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
