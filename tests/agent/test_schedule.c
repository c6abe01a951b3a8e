#include "agent/schedule.h"
#include "base/mem.h"
#include "tests/agent/fixture.h"
#include "tests/support.h"

#include <math.h>

static void the_rate_follows_the_epoch(void **state)
{
    (void)state;
    const struct schedule constant = {.type = SCHEDULE_CONSTANT, .lr = 0.5};
    const struct schedule every = {SCHEDULE_STEP_LR, 1.0, 0.7, 1};
    const struct schedule third = {SCHEDULE_STEP_LR, 2.0, 0.1, 3};
    const struct {
        const struct schedule *schedule;
        struct schedule_position position;
        double lr;
    } rows[] = {
        {&constant, {0, 0}, 0.5}, {&constant, {9, 999}, 0.5}, {&every, {0, 7}, 1.0},
        {&every, {1, 8}, 0.7},    {&every, {3, 0}, 0.343},    {&third, {2, 0}, 2.0},
        {&third, {3, 0}, 0.2},    {&third, {5, 0}, 0.2},      {&third, {6, 0}, 0.02},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        double lr = schedule_lr(rows[i].schedule, rows[i].position);
        if (fabs(lr - rows[i].lr) > 1e-12)
            fail_msg("row %zu: %.17g, not %.17g", i, lr, rows[i].lr);
    }
}

/* PyTorch multiplies step by step, in double; both are stored as float. */
static void step_lr_is_pytorchs(void **state)
{
    (void)state;
    struct fixture_file *file = fixture_open("rules.safetensors");
    static const int step_sizes[] = {1, 3};
    for (size_t i = 0; i < array_length(step_sizes); i++) {
        int64_t count;
        const float *expected = fixture_get(file, &count, "step_lr/step_size%d", step_sizes[i]);
        const struct schedule schedule = {SCHEDULE_STEP_LR, 1.0, 0.7, step_sizes[i]};
        for (int64_t epoch = 0; epoch < count; epoch++) {
            float lr = (float)schedule_lr(&schedule, (struct schedule_position){epoch, 0});
            fixture_compare("lr", &lr, &expected[epoch], 1, 0, 1e-7);
        }
    }
    fixture_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_follows_the_epoch),
        cmocka_unit_test(step_lr_is_pytorchs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
