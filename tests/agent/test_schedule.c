#include "agent/plan/trainer_settings.h"
#include "agent/shard/schedule.h"
#include "base/mem.h"
#include "tests/agent/config_line.h"
#include "tests/agent/fixture.h"
#include "tests/support.h"

#include <math.h>

static void the_rate_follows_the_epoch(void **state)
{
    (void)state;
    const struct schedule constant = {.type = SCHEDULE_CONSTANT, .lr = 0.5};
    const struct schedule every = {SCHEDULE_STEP_LR, .lr = 1.0, .gamma = 0.7, .step_size = 1};
    const struct schedule third = {SCHEDULE_STEP_LR, .lr = 2.0, .gamma = 0.1, .step_size = 3};
    const struct schedule by_step = {SCHEDULE_STEP_LR, .lr = 2.0, .gamma = 0.1, .step_size = 3,
                                     .unit = SCHEDULE_PER_STEP};
    const struct {
        const struct schedule *schedule;
        struct schedule_position position;
        double lr;
    } rows[] = {
        {&constant, {0, 0}, 0.5}, {&constant, {9, 999}, 0.5}, {&every, {0, 7}, 1.0},
        {&every, {1, 8}, 0.7},    {&every, {3, 0}, 0.343},    {&third, {2, 0}, 2.0},
        {&third, {3, 0}, 0.2},    {&third, {5, 0}, 0.2},      {&third, {6, 0}, 0.02},
        {&by_step, {6, 2}, 2.0},  {&by_step, {0, 3}, 0.2},
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
        const struct schedule schedule = {SCHEDULE_STEP_LR, .lr = 1.0, .gamma = 0.7,
                                          .step_size = step_sizes[i]};
        for (int64_t epoch = 0; epoch < count; epoch++) {
            float lr = (float)schedule_lr(&schedule, (struct schedule_position){epoch, 0});
            fixture_compare("lr", &lr, &expected[epoch], 1, 0, 1e-7);
        }
    }
    fixture_close(file);
}

/* AnnealingLR: what AWS's logs print with %f after the first steps, and the formulas by hand. */
static void annealing_is_the_samples(void **state)
{
    (void)state;
    struct schedule s = {.lr = 1e-4, .min_lr = 1e-5};
    const struct {
        enum schedule_type type;
        int64_t decay_steps;
        double warmup_ratio, plateau_ratio;
        int64_t step;
        double lr, within;
    } rows[] = {
        {SCHEDULE_COSINE, 100, 0.0032, 0, 0, 0, 0},
        {SCHEDULE_COSINE, 100, 0.0032, 0, 1, 0.000100, 5e-7},
        {SCHEDULE_COSINE, 100, 0.0032, 0, 10, 0.000098, 5e-7},
        {SCHEDULE_COSINE, 100, 0.0032, 0, 50, 0.000051, 5e-7},
        {SCHEDULE_COSINE, 100, 0.0032, 0, 80, 0.000010, 5e-7},
        {SCHEDULE_COSINE, 5000, 0.0032, 0, 1, 0.000006, 5e-7},
        {SCHEDULE_COSINE, 5000, 0.0032, 0, 2, 0.000013, 5e-7},
        {SCHEDULE_COSINE, 5000, 0.0032, 0, 6, 0.000038, 5e-7},
        {SCHEDULE_COSINE, 5000, 0.0032, 0, 16, 0.000100, 5e-7},
        {SCHEDULE_CONSTANT, 0, 0, 0, 1000, 1e-4, 1e-18},
        {SCHEDULE_CONSTANT, 100, 0.1, 0, 5, 0.5e-4, 1e-18},
        {SCHEDULE_CONSTANT, 100, 0.1, 0, 500, 1e-4, 1e-18},
        {SCHEDULE_LINEAR, 100, 0.1, 0, 50, 0.6e-4, 1e-18},        /* m = 40 */
        {SCHEDULE_LINEAR, 100, 0.1, 0, 300, 0.2e-4, 1e-18},       /* m ends at E - 2 W = 80 */
        {SCHEDULE_EXPONENTIAL, 100, 0.1, 0, 60, 7.0716e-5, 1e-9}, /* exp(-0.3465) */
        {SCHEDULE_PLATEAU, 100, 0.1, 0.4, 50, 1e-4, 1e-18},
        {SCHEDULE_PLATEAU, 100, 0.1, 0.4, 75, 0.5e-4, 1e-18},
        {SCHEDULE_PLATEAU, 100, 0.1, 0.4, 99, 1e-5, 1e-18}, /* the floor */
        {SCHEDULE_PLATEAU, 100, 0.1, 0.4, 150, 1e-5, 1e-18},
        {SCHEDULE_LINEAR, 100, 0.7, 0, 60, 1e-4 * 30 / 70, 1e-18}, /* the sample's warm-up: E - W */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        s.type = rows[i].type;
        s.decay_steps = rows[i].decay_steps;
        s.warmup_ratio = rows[i].warmup_ratio;
        s.plateau_ratio = rows[i].plateau_ratio;
        double lr = schedule_lr(&s, (struct schedule_position){0, rows[i].step});
        if (!(fabs(lr - rows[i].lr) <= rows[i].within))
            fail_msg("row %zu: %.17g, not %.17g", i, lr, rows[i].lr);
    }
}

static void the_others_are_transformers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum schedule_type type;
        int64_t warmup_steps;
        double warmup_ratio, num_cycles, min_lr;
    } rows[] = {
        {"constant_with_warmup", SCHEDULE_HF_CONSTANT_WITH_WARMUP, 7, 0, 0, 0},
        {"linear", SCHEDULE_HF_LINEAR, 7, 0, 0, 0},
        {"linear", SCHEDULE_HF_LINEAR, 0, 6.2 / 57, 0, 0}, /* rounded up to 7 */
        {"linear_no_warmup", SCHEDULE_HF_LINEAR, 0, 0, 0, 0},
        {"cosine", SCHEDULE_HF_COSINE, 7, 0, 0, 0},
        {"cosine", SCHEDULE_HF_COSINE, 7, 0, 0.5, 0},
        {"cosine_2_waves", SCHEDULE_HF_COSINE, 7, 0, 2, 0},
        {"cosine_min_lr", SCHEDULE_HF_COSINE, 7, 0, 0, 3e-5},
        {"cosine_min_lr", SCHEDULE_COSINE_TO_MIN, 7, 0, 3, 3e-5},
        {"restarts", SCHEDULE_HF_COSINE_WITH_RESTARTS, 7, 0, 0, 0},
        {"restarts_3", SCHEDULE_HF_COSINE_WITH_RESTARTS, 7, 0, 3, 0},
        {"wsd", SCHEDULE_WSD, 7, 0, 0, 0},
        {"wsd_min_lr", SCHEDULE_WSD, 7, 0, 0, 3e-5},
    };
    struct fixture_file *file = fixture_open("schedules.safetensors");
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t count;
        const float *expected = fixture_get(file, &count, "%s", rows[i].name);
        const struct schedule schedule = {.type = rows[i].type,
                                          .lr = 3e-4,
                                          .min_lr = rows[i].min_lr,
                                          .decay_steps = 57,
                                          .warmup_steps = rows[i].warmup_steps,
                                          .warmup_ratio = rows[i].warmup_ratio,
                                          .num_cycles = rows[i].num_cycles,
                                          .cooldown_steps = 20};
        for (int64_t step = 0; step < count; step++) {
            float lr = (float)schedule_lr(&schedule, (struct schedule_position){0, step});
            fixture_compare(rows[i].name, &lr, &expected[step], 1, 1e-18, 2e-7);
        }
    }
    fixture_close(file);
}

/* What Trainer's command line asks for, down to the rates of get_scheduler(). */
static void trainers_words_are_trainers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *line;
    } rows[] = {
        {"linear", "--lr_scheduler_type linear --warmup_steps 3"},
        {"linear", "--lr-scheduler-type=LINEAR --warmup_steps 3"},
        {"linear", "--lr_sched linear --warmup_steps 3"},
        {"linear", "--scheduler linear --warmup_steps 3"},
        {"linear", "--schedule.lr_scheduler_type linear --warmup_steps 3"},
        {"linear", "--preset hyperpod --lr_scheduler_type linear --warmup_steps 3 --min_lr 0"},
        {"linear_long", "--lr_scheduler_type linear --warmup_steps 10 --max_steps 4"},
        {"cosine", "--lr_scheduler_type cosine --warmup_ratio 0.3"},
        {"cosine_long", "--lr_scheduler_type cosine --warmup_steps 10 --max_steps 4"},
        {"constant", "--lr_scheduler_type constant --warmup_steps 3"},
        {"constant_with_warmup", "--lr_scheduler_type constant_with_warmup --warmup_steps 3"},
        {"cosine_with_restarts", "--lr_scheduler_type cosine_with_restarts --warmup_steps 3 "
                                 "--lr_scheduler_kwargs {\"num_cycles\":2}"},
        {"polynomial", "--lr_scheduler_type polynomial --warmup_steps 3"},
        {"polynomial_2", "--lr_scheduler_type polynomial --warmup_steps 3 --lr_scheduler_kwargs "
                         "{'power':2,'lr_end':1e-5}"},
        {"inverse_sqrt", "--lr_scheduler_type inverse_sqrt --warmup_steps 3"},
        {"inverse_sqrt_cold", "--lr_scheduler_type inverse_sqrt"},
        {"cosine_with_min_lr",
         "--lr_scheduler_type cosine_with_min_lr --warmup_steps 3 --min_lr 1e-5"},
        {"cosine_with_min_lr_rate", "--lr_scheduler_kwargs {\"min_lr_rate\":0.1} "
                                    "--lr_scheduler_type cosine_with_min_lr --warmup_steps 3"},
        {"warmup_stable_decay",
         "--lr_scheduler_type warmup_stable_decay --warmup_steps 3 --lr_scheduler_kwargs "
         "{\"num_decay_steps\":4,\"min_lr_ratio\":0.1}"},
        {"warmup_stable_waves",
         "--lr_scheduler_type warmup_stable_decay --warmup_steps 3 --lr_scheduler_kwargs "
         "{\"num_decay_steps\":6,\"num_cycles\":1.25}"},
    };
    struct fixture_file *file = fixture_open("schedules.safetensors");
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct schedule schedule;
        struct error err;
        int64_t count;
        const char *line = arena_printf(arena, "--max_steps 10 --lr 3e-4 %s", rows[i].line);
        const float *expected = fixture_get(file, &count, "trainer_%s", rows[i].name);
        assert_ok(config_line_parse(arena, line, "", &config, &err), &err);
        assert_ok(trainer_schedule(&config.value, config.value.schedule.max_steps, &schedule, &err),
                  &err);
        for (int64_t step = 0; step < count; step++) {
            float lr = (float)schedule_lr(&schedule, (struct schedule_position){0, step});
            fixture_compare(rows[i].line, &lr, &expected[step], 1, 1e-18, 2e-7);
        }
    }
    fixture_close(file);
}

/* Of every type, whatever min_lr says, and however long the warm-up: none below 0, either. */
static void all_rates_are_from_0_to_the_highest(void **state)
{
    (void)state;
    static const int64_t warmups[] = {3, 19, 20, 21, 60}, decays[] = {20, 4, 0};
    for (int type = SCHEDULE_CONSTANT; type <= SCHEDULE_WSD; type++)
        for (size_t i = 0; i < array_length(warmups) * array_length(decays); i++) {
            const struct schedule s = {.type = (enum schedule_type)type,
                                       .lr = 1e-5,
                                       .min_lr = i % 2 ? 2e-5 : 0,
                                       .decay_steps = decays[i % array_length(decays)],
                                       .warmup_steps = warmups[i / array_length(decays)],
                                       .gamma = 0.5,
                                       .step_size = 2,
                                       .power = 2,
                                       .cooldown_steps = 5};
            for (int64_t step = 0; step < 90; step++) {
                double lr = schedule_lr(&s, (struct schedule_position){0, step});
                if (!(lr >= 0 && lr <= 1e-5 * (1 + 1e-12)))
                    fail_msg("%s, step %lld of %lld, warm-up %lld: %g", schedule_type_name(s.type),
                             (long long)step, (long long)s.decay_steps, (long long)s.warmup_steps,
                             lr);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_follows_the_epoch),
        cmocka_unit_test(step_lr_is_pytorchs),
        cmocka_unit_test(annealing_is_the_samples),
        cmocka_unit_test(the_others_are_transformers),
        cmocka_unit_test(trainers_words_are_trainers),
        cmocka_unit_test(all_rates_are_from_0_to_the_highest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
