#include "tests/agent/telemetry_fixture.h"

#include "tests/agent/run_fixture.h"
#include "tests/support.h"

int64_t telemetry_fixture_us;

static int64_t tick_us(void)
{
    return RUN_FIXTURE_WALL_US + (telemetry_fixture_us += 1000000);
}

struct telemetry_setting telemetry_fixture_setting(FILE *out)
{
    telemetry_fixture_us = 0;
    return (struct telemetry_setting){
        .facts = run_fixture_facts(),
        .lines = {.style = STYLE_PLAIN, .every = 2},
        .out = out,
        .csv = "",
        .jsonl = "",
        .tensorboard_dir = "",
        .http_host = "127.0.0.1",
        .healthy_within_s = 3600,
        .wall_us = tick_us,
        .steady_us = tick_us,
    };
}

struct telemetry *telemetry_fixture_open(const struct telemetry_setting *setting)
{
    struct telemetry *t = NULL;
    struct error err;
    assert_ok(telemetry_open(&t, setting, &err), &err);
    return t;
}

void telemetry_fixture_run(struct telemetry *t, int64_t first, int64_t last)
{
    for (int64_t step = first; step <= last; step++) {
        const struct run_numbers numbers = run_fixture_numbers(step);
        telemetry_step(t, &numbers);
    }
    const struct run_eval eval = {.step = last, .loss = 2.25, .perplexity = 9.5, .seconds = 1};
    const struct run_save save = {.step = last, .path = "c/4", .seconds = 2};
    telemetry_eval(t, &eval);
    telemetry_checkpoint(t, &save);
}
