/* The command line of Transformers' Trainer: what is refused, and in which words. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config.h"
#include "base/mem.h"

static void what_would_train_otherwise_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message; /* "": it is right */
    } rows[] = {
        {"--lr_scheduler_type reduce_lr_on_plateau",
         "'reduce_lr_on_plateau': not supported: the rate follows the step alone"},
        {"--lr_scheduler_type greedy", "choose linear, cosine, polynomial, inverse_sqrt"},
        {"--lr_scheduler_type cosine_warmup_with_min_lr", "choose cosine_with_min_lr and --min_lr"},
        {"--lr_scheduler_type cosine_with_min_lr",
         "cosine_with_min_lr needs schedule.min_lr above 0"},
        {"--lr_scheduler_type cosine_with_min_lr --lr_decay false", ""},
        {"--lr_scheduler_type warmup_stable_decay",
         "warmup_stable_decay needs schedule.cooldown_steps above 0"},
        {"--lr_scheduler_kwargs {\"timescale\":9}", "'timescale' is not supported; num_cycles"},
        {"--lr_scheduler_kwargs {\"power\":-1}", "--lr_scheduler_kwargs: power: '-1' is not"},
        {"--lr_scheduler_kwargs {\"min_lr_rate\":2}",
         "min_lr_rate: '2' is not a number from 0 to 1"},
        {"--lr_scheduler_kwargs 3", "'3' is no mapping of single values, as {\"min_lr\": 1e-6}"},
        {"--lr_scheduler_kwargs {", "--lr_scheduler_kwargs: its text"},
        {"--label_smoothing_factor 0.1",
         "'0.1': not supported: the loss takes the targets as they are; leave it out, or 0"},
        {"--label_smoothing_factor 0.0", ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        int result = config_line_parse(arena, rows[i].line, "", &config, &err);
        if (rows[i].message[0])
            assert_fails(result, &err, ERR_CONFIG, rows[i].message);
        else
            assert_ok(result, &err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_would_train_otherwise_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
