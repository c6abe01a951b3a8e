/* The command line of Transformers' Trainer: its defaults, and what is refused in which words. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config.h"
#include "agent/shard/optim.h"
#include "agent/trainer/schedule.h"
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

/* TrainingArguments' own defaults hold where nothing else is said. */
static void its_defaults_are_trainers(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    const char *line = "--preset accelerate --preset trainer --model_name m --dataset d";
    assert_ok(config_line_parse(arena, line, "", &config, &err), &err);
    const struct agent_config *c = &config.value;
    assert_int_equal(c->data.train_batch_size, 8);
    assert_int_equal(c->data.eval_batch_size, 8);
    assert_true(c->schedule.epochs == 3);
    assert_int_equal(c->schedule.max_steps, 0);
    assert_int_equal(c->schedule.type, SCHEDULE_HF_LINEAR);
    assert_int_equal(c->schedule.warmup_steps, 0);
    assert_int_equal(c->optimizer.name, OPTIM_ADAMW);
    assert_true(c->optimizer.lr == 5e-5);
    assert_true(c->optimizer.beta1 == 0.9 && c->optimizer.beta2 == 0.999);
    assert_true(c->optimizer.eps == 1e-8);
    assert_true(c->optimizer.weight_decay == 0);
    assert_string_equal(c->optimizer.decay_exclude, "norm_bias");
    assert_true(c->optimizer.grad_clip == 1);
    assert_int_equal(c->optimizer.gradient_accumulation_steps, 1);
    assert_int_equal(c->runtime.seed, 42);
    assert_int_equal(c->eval.strategy, EVAL_NO);
    assert_string_equal(c->checkpoint.dir, "trainer_output");
    assert_int_equal(c->checkpoint.save_steps, 500);
    assert_int_equal(c->precision.mixed, PRECISION_FP32);
    assert_string_equal(config.headline, "checkpoints go to trainer_output, as no checkpoint.dir "
                                         "says otherwise (--checkpoint_dir, --output_dir)\n");
    assert_string_equal(config.warning, "");
    line = arena_printf(arena, "%s --max_steps 5 --output_dir o --eval_steps 2 --lr 1e-3", line);
    assert_ok(config_line_parse(arena, line, "", &config, &err), &err);
    assert_true(c->schedule.epochs == 0 && c->schedule.max_steps == 5);
    assert_int_equal(c->eval.strategy, EVAL_STEPS);
    assert_string_equal(config.headline, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_defaults_are_trainers),
        cmocka_unit_test(what_would_train_otherwise_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
