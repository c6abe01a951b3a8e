/* The command line of Transformers' Trainer: its defaults, and what is refused in which words. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config.h"
#include "agent/shard/optim.h"
#include "agent/shard/schedule.h"
#include "base/mem.h"

#include <string.h>

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
        {"--lr_scheduler_kwargs {\"min_lr\":1e-6,\"min_lr_rate\":0.1}",
         "min_lr (lr_end) and min_lr_rate (min_lr_ratio): only one can be given"},
        {"--lr_scheduler_kwargs {\"min_lr_rate\":0.1,\"min_lr\":1e-6}", "only one can be given"},
        {"--min_lr 1e-6 --lr_scheduler_kwargs {\"min_lr_rate\":0.1}", "only one can be given"},
        {"--preset hyperpod --lr_scheduler_kwargs {\"min_lr_rate\":0.1}", ""},
        {"--lr_scheduler_kwargs 3", "'3' is no mapping of single values, as {\"min_lr\": 1e-6}"},
        {"--lr_scheduler_kwargs {", "--lr_scheduler_kwargs: its text"},
        {"--label_smoothing_factor 0.1",
         "'0.1': not supported: the loss takes the targets as they are; leave it out, or 0"},
        {"--label_smoothing_factor 0.0", ""},
        {"--neftune_noise_alpha 5", "'5': not supported: nothing is added to embeddings"},
        {"--load_best_model_at_end", "'true': not supported: the model at the end is the last"},
        {"--load_best_model_at_end False", ""},
        {"--group_by_length True", "not supported: rows are drawn at random"},
        {"--auto_find_batch_size", "name a batch that fits"},
        {"--average_tokens_across_devices False", "the mean over the tokens of all ranks"},
        {"--deepspeed ds.json", "the ranks shard as FSDP does"},
        {"--optim_args a=1", "optimizer's keys say what it takes"},
        {"--torch_dtype bfloat16", "bf16, or bf16-true for weights in bf16"},
        {"--torch_dtype float32 --overwrite_cache --cache_dir x --dataset_num_proc 4", ""},
        {"--config_name m", "--model.init=random draws the weights"},
        {"--use_peft", "all parameters are trained"},
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
    assert_int_equal(c->model.init, INIT_PRETRAINED);
    assert_int_equal(c->data.train_batch_size, 8);
    assert_int_equal(c->data.eval_batch_size, 8);
    assert_true(c->schedule.epochs == 3);
    assert_int_equal(c->schedule.max_steps, 0);
    assert_int_equal(c->schedule.type, SCHEDULE_HF_LINEAR);
    assert_int_equal(c->schedule.warmup_steps, 0);
    assert_ptr_equal(optim_kind(c->optimizer.name), &optim_adamw);
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
    const char *sizes = "--preset accelerate --preset trainer --preset bert-base --dataset d";
    assert_ok(config_line_parse(arena, sizes, "", &config, &err), &err);
    assert_int_equal(c->model.init, INIT_AUTO); /* nobody named a model */
    line = arena_printf(arena, "%s --max_steps 5 --output_dir o --eval_steps 2 --lr 1e-3", line);
    assert_ok(config_line_parse(arena, line, "", &config, &err), &err);
    assert_true(c->schedule.epochs == 0 && c->schedule.max_steps == 5);
    assert_int_equal(c->eval.strategy, EVAL_STEPS);
    assert_string_equal(config.headline, "");
    line = "--preset accelerate --preset trainer --model_name m --dataset d --do_eval";
    assert_ok(config_line_parse(arena, line, "", &config, &err), &err);
    assert_int_equal(c->eval.strategy, EVAL_EPOCH);
}

/* Some flags decide what others come to, and say so, whichever comes first. */
static void the_order_of_flags_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *one, *other, *headline;
    } rows[] = {
        {"--save_strategy no", "--save_steps 2",
         "checkpoint.save_steps=2 is ignored: save_strategy=no decides, as in Trainer\n"},
        {"--save_strategy epoch", "--checkpointing_steps 2",
         "checkpoint.save_steps=2 is ignored: save_strategy=epoch decides, as in Trainer\n"},
        {"--save_strategy steps", "--save_steps 2", ""},
        {"--save_strategy epoch", "--save_steps epoch", ""},
        {"--report_to none", "--logging_dir x",
         "logging.tensorboard_dir=x is ignored: report_to does not name tensorboard, and "
         "decides\n"},
        {"--report_to wandb", "--logging_dir x",
         "logging.tensorboard_dir=x is ignored: report_to does not name tensorboard, and "
         "decides\n"},
        {"--report_to none", "--wandb",
         "logging.wandb=offline is ignored: report_to does not name wandb, and decides\n"},
        {"--report_to tensorboard", "--logging_dir x", ""},
        {"--report_to wandb", "--wandb off",
         "report_to names wandb, but logging.wandb=off turns it off, and decides\n"},
        {"--report_to tensorboard", "--tensorboard_dir=",
         "report_to names tensorboard, but logging.tensorboard_dir='' turns it off, and decides\n"},
        {"--report_to none", "--wandb off", ""},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        for (int turned = 0; turned < 2; turned++) {
            auto_arena struct arena *arena = arena_open();
            struct config config;
            struct error err;
            const char *line = arena_printf(arena,
                                            "--preset accelerate --preset trainer --model_name m "
                                            "--dataset d --output_dir o %s %s",
                                            turned ? rows[i].other : rows[i].one,
                                            turned ? rows[i].one : rows[i].other);
            assert_ok(config_line_parse(arena, line, "", &config, &err), &err);
            assert_string_equal(config.headline, rows[i].headline);
        }
}

/* Every field of TrainingArguments (transformers 5.23, and some of 4.x): none is a flag that nobody
 * knows, which a run would pass over as if it were misspelt. */
static void every_argument_is_known(void **state)
{
    (void)state;
    static const char names[] =
        "accelerator_config activation_checkpointing activation_checkpointing_kwargs adam_beta1 "
        "adam_beta2 adam_epsilon auto_find_batch_size average_tokens_across_devices "
        "batch_eval_metrics bf16 bf16_full_eval data_seed dataloader_drop_last dataloader_in_order "
        "dataloader_multiprocessing_context dataloader_num_workers dataloader_persistent_workers "
        "dataloader_pin_memory dataloader_prefetch_factor ddp_backend ddp_broadcast_buffers "
        "ddp_bucket_cap_mb ddp_find_unused_parameters ddp_static_graph ddp_timeout debug deepspeed "
        "disable_tqdm do_eval do_predict do_train enable_jit_checkpoint eval_accumulation_steps "
        "eval_delay eval_do_concat_batches eval_on_start eval_steps eval_strategy "
        "eval_use_gather_object fp16 fp16_full_eval fsdp fsdp_config full_determinism "
        "gradient_accumulation_steps gradient_checkpointing gradient_checkpointing_kwargs "
        "greater_is_better group_by_length hub_always_push hub_model_id hub_private_repo "
        "hub_revision hub_strategy hub_token ignore_data_skip include_for_metrics "
        "include_num_input_tokens_seen label_names label_smoothing_factor learning_rate "
        "length_column_name liger_kernel_config load_best_model_at_end local_rank log_level "
        "log_level_replica log_on_each_node logging_dir logging_first_step logging_nan_inf_filter "
        "logging_steps logging_strategy lr_scheduler_kwargs lr_scheduler_type max_grad_norm "
        "max_steps metric_for_best_model neftune_noise_alpha num_train_epochs optim optim_args "
        "optim_target_modules output_dir overwrite_output_dir parallelism_config past_index "
        "per_device_eval_batch_size per_device_train_batch_size prediction_loss_only project "
        "push_to_hub remove_unused_columns report_to restore_callback_states_from_checkpoint "
        "resume_from_checkpoint run_name save_on_each_node save_only_model save_safetensors "
        "save_steps save_strategy save_total_limit seed skip_memory_metrics tf32 torch_compile "
        "torch_compile_backend torch_compile_mode torch_empty_cache_steps trackio_bucket_id "
        "trackio_space_id trackio_static_space_id train_sampling_strategy use_cache use_cpu "
        "use_legacy_prediction_loop use_liger_kernel use_mps_device warmup_ratio warmup_steps "
        "weight_decay";
    auto_free char *list = xstrdup(names);
    char *rest = NULL;
    for (char *name = strtok_r(list, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        const char *line = arena_printf(arena, "--%s=1", name);
        bool fails = config_line_parse(arena, line, "", &config, &err) != 0;
        if (strstr(fails ? err.msg : config.headline, "unknown"))
            fail_msg("%s: %s", name, fails ? err.msg : config.headline);
    }
}

static void steps_are_counted_as_trainer_does(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t eval_steps, warmup_steps;
        double warmup_ratio;
    } rows[] = {
        {"--preset trainer --max_steps 9 --eval_strategy steps", 500, 0, 0},
        {"--eval_strategy steps --logging_steps 50", 50, 0, 0},
        {"--eval_strategy steps --logging_steps 50 --eval_steps 7", 7, 0, 0},
        {"--eval_strategy epoch --logging_steps 50", 0, 0, 0},
        {"--warmup_steps 5", 0, 5, 0},
        {"--warmup_steps 0.03", 0, 0, 0.03},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        assert_ok(config_line_parse(arena, rows[i].line, "", &config, &err), &err);
        assert_int_equal(config.value.eval.steps, rows[i].eval_steps);
        assert_int_equal(config.value.schedule.warmup_steps, rows[i].warmup_steps);
        assert_true(config.value.schedule.warmup_ratio == rows[i].warmup_ratio);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_counted_as_trainer_does),
        cmocka_unit_test(its_defaults_are_trainers),
        cmocka_unit_test(the_order_of_flags_changes_nothing),
        cmocka_unit_test(every_argument_is_known),
        cmocka_unit_test(what_would_train_otherwise_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
