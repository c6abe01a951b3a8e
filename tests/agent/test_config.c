#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config.h"
#include "agent/config/config_keys.h"
#include "agent/trainer/schedule.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *line, *summary;
} spellings[] = {
    {"", ""},
    {"--lr 0.5", "optimizer.lr=0.5 (flag)"},
    {"--lr=0.5", "optimizer.lr=0.5 (flag)"},
    {"--optimizer.lr=0.5", "optimizer.lr=0.5 (flag)"},
    {"--learning-rate=0.5", "optimizer.lr=0.5 (flag)"},
    {"--learning_rate 5e-1", "optimizer.lr=0.5 (flag)"},
    {"--batch-size 64", "data.per_device_train_batch_size=64 (flag)"},
    {"--min_num_params=1e5", "parallel.min_num_params=100000 (flag)"},
    {"--min_num_params=20_000", "parallel.min_num_params=20000 (flag)"},
    {"--gradient_acc 4", "optimizer.gradient_accumulation_steps=4 (flag)"},
    {"--sharding_strategy=full", "parallel.sharding_strategy=FULL_SHARD (flag)"},
    {"--sharding_strategy 2", "parallel.sharding_strategy=SHARD_GRAD_OP (flag)"},
    {"--sharding-strategy Hybrid_Shard", "parallel.sharding_strategy=HYBRID_SHARD (flag)"},
    {"--cpu_offload", "memory.cpu_offload=true (flag)"},
    {"--cpu_offload off", "memory.cpu_offload=false (flag)"},
    {"--cpu_offload --lr 1", "optimizer.lr=1 (flag), memory.cpu_offload=true (flag)"},
    {"--save-model", "checkpoint.save_model=mnist_cnn.safetensors (flag)"},
    {"--save-model out.safetensors", "checkpoint.save_model=out.safetensors (flag)"},
    {"--no-cuda --seed 3", "runtime.seed=3 (flag), runtime.device=cpu (flag)"},
    {"--model_type llama_v3",
     "model.type=llama (flag), model.rope_scaling.rope_type=dynamic (flag), "
     "model.rope_scaling.factor=2 (flag)"},
    {"--lr 1 --lr 2", "optimizer.lr=2 (flag)"},
    {"--offload_activation=1", "memory.offload_activations=true (flag)"},
    {"--activation_checkpointing=1", "memory.activation_checkpointing=full (flag)"},
    {"--activation_checkpointing=0", "memory.activation_checkpointing=none (flag)"},
    {"--activation_checkpointing", "memory.activation_checkpointing=full (flag)"},
    {"--hidden_width 64 --model_type llama_v2",
     "model.type=llama (flag), model.config_overrides.hidden_size=64 (flag)"},
    {"--model_type llama --config_overrides.vocab_size 100",
     "model.type=llama (flag), model.config_overrides.vocab_size=100 (flag)"},
    {"--model.config_overrides.vocab-size 100 --model_type llama",
     "model.type=llama (flag), model.config_overrides.vocab_size=100 (flag)"},
    {"--bf16=0", "precision.mixed_precision=no (flag)"},
    {"--bf16", "precision.mixed_precision=bf16 (flag)"},
    {"--precision 32-true", "precision.mixed_precision=no (flag)"},
    {"--use_prefetch=false", "parallel.backward_prefetch=NO_PREFETCH (flag), "
                             "parallel.forward_prefetch=false (flag)"},
    {"--save_steps epoch", "checkpoint.save_steps=0 (flag)"},
    {"--max_shard_size 2GiB", "checkpoint.max_shard_size=2147483648 (flag)"},
    {"--max_shard_size 2_000MB", "checkpoint.max_shard_size=2000000000 (flag)"},
    {"--timeout 30m", "runtime.timeout=1800 (flag)"},
    {"--timeout 0.5h", "runtime.timeout=1800 (flag)"},
    {"--timeout 250ms", "runtime.timeout=0.25 (flag)"},
    {"--timeout 90", "runtime.timeout=90 (flag)"},
    {"--checkpoint_dir c --resume", "checkpoint.dir=c (flag), "
                                    "checkpoint.resume_from_checkpoint=latest (flag)"},
    {"--resume=true --checkpoint=p", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--checkpoint=p --resume=true", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--checkpoint=p --resume=False", "checkpoint.resume_from_checkpoint= (flag)"},
    {"--resume=False --checkpoint=p", "checkpoint.resume_from_checkpoint= (flag)"},
    {"--auto_wrap_policy=GPT2Block", "parallel.auto_wrap_policy=TRANSFORMER_BASED_WRAP (flag)"},
    {"--sharding_strategy=auto", "parallel.sharding_strategy=auto (flag)"},
    {"--wandb --project p --log_model all",
     "logging.wandb=offline (flag), logging.wandb_project=p (flag), logging.log_model=true (flag)"},
    {"--report_to wandb", "logging.wandb=offline (flag)"},
    {"--resume p", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--output_dir c --resume_from_checkpoint True",
     "checkpoint.dir=c (flag), checkpoint.resume_from_checkpoint=latest (flag)"},
    {"--resume_from_checkpoint=p", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--max_steps -1", "schedule.max_steps=0 (flag)"},
    {"--optim adamw_torch", "optimizer.name=adamw (flag)"},
    {"--optim adamw_torch_fused", "optimizer.name=adamw (flag)"},
    {"--save_strategy epoch --do_train --overwrite_output_dir", "checkpoint.save_steps=0 (flag)"},
    {"--save_strategy steps", "checkpoint.save_steps=500 (flag)"},
    {"--train_file t.jsonl --pad_to_max_length",
     "data.dataset=t.jsonl (flag), data.padding=max_length (flag)"},
    {"--eval_steps 5", "eval.eval_steps=5 (flag)"},
    {"--lr 2 # https://example.org/lr", "optimizer.lr=2 (flag)"},
    {"https://example.org --lr 2", "optimizer.lr=2 (flag)"},
    {"--use_orig_params=true --tpu False --fp16=0", ""},
};

static void values_are_found_under_every_spelling(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(spellings); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        assert_ok(config_line_parse(arena, spellings[i].line, "", &config, &err), &err);
        auto_str struct str summary;
        str_init(&summary, 4096);
        config_summary(&config, &summary);
        assert_string_equal(str_text(&summary), spellings[i].summary);
    }
}

static const struct {
    const char *line, *environment, *message;
} mistakes[] = {
    {"--sharding_strategy SOME_SHARD", "",
     "--sharding_strategy: 'SOME_SHARD' is not one of: FULL_SHARD=1=full"},
    {"--model_type gpt2 --rope_theta 5", "", "rope_theta: a gpt2 has none"},
    {"--model_type llama --layer_norm_epsilon 1e-5", "", "layer_norm_epsilon: a llama has none"},
    {"--model_type t5 --num_labels 3", "", "num_labels: a t5 has none"},
    {"--model_type llama --rope_scaling.factor 2", "",
     "model.rope_scaling: numbers without model.rope_scaling.rope_type"},
    {"--model_type gpt2 --rope_type linear --rope_scaling.factor 2", "",
     "model.rope_scaling: a gpt2 has no rotary positions"},
    {"--lr fast", "", "--lr: 'fast' is not a number"},
    {"--lr nan", "", "--lr: 'nan' is not a number"},
    {"--schedule.epoch 3", "", ""},
    {"--epochs 1.5", "", "--epochs: '1.5' is not a whole number from 1 to 1000000"},
    {"--epochs 0", "", "--epochs: '0' is not a whole number"},
    {"--lr", "", "--lr: needs a value"},
    {"--cpu_offload=perhaps", "", "--cpu_offload: 'perhaps' is not true or false"},
    {"--type x", "", "'type' is ambiguous: it can mean model.type, schedule.type"},
    {"--learning_rat 1", "", ""}, /* an unambiguous beginning: right */
    {"--strict --optimiser.lr 1", "",
     "unknown flag --optimiser.lr (the nearest is optimizer.lr); --help lists all"},
    {"--strict --epoch_count 1 --foo", "", "unknown flags --epoch_count, --foo; --help lists all"},
    {"train", "", "unexpected argument 'train'; flags begin with --"},
    {"--preset cifar", "", "--preset: 'cifar' is not one of: mnist, mnist-fsdp"},
    {"--config /nonexistent.yaml", "", "--config: "},
    {"@/nonexistent", "", "argument file: /nonexistent: No such file"},
    {"", "AGENT_OPTIMIZER_LR=x", "environment variable AGENT_OPTIMIZER_LR: 'x' is not a number"},
    {"--max_shard_size 2s", "",
     "--max_shard_size: '2s' is not a number of bytes (KiB, MiB, GiB) from 1048576"},
    {"--timeout soon", "", "--timeout: 'soon' is not a time in seconds (or with s, m, h)"},
    {"--save_steps sometimes", "",
     "'sometimes' is not a whole number from 0 to 1000000000000 or epoch"},
    {"--no_cuda=perhaps", "", "--no_cuda: 'perhaps' is not one of: true false"},
    {"--bf16=2", "", "--bf16: '2' is not one of: true false"},
    {"--lr_decay=zzz", "", "--lr_decay: 'zzz' is not one of: true false"},
    {"--zero_stage 1", "", "--zero_stage: '1' is not one of: 0 2 3"},
    {"--save_strategy zzz", "", "--save_strategy: 'zzz' is not one of: epoch steps"},
    {"--report_to zzz", "", "--report_to: 'zzz' is not one of: tensorboard wandb all none"},
    {"--precision 64-true", "", "--precision: '64-true': not supported: nothing is computed in 64"},
    {"--model_type llama --hidden_width 0", "",
     "model.config_overrides.hidden_size: 0 asks for config.json's, but model.name_or_path"},
    {"--model_type llama --num_layers=0", "", "model.config_overrides.num_hidden_layers: 0 asks"},
    {"--model_type gpt2 --intermediate_size=0", "", "config_overrides.intermediate_size: 0 asks"},
    {"--model_type llama --num_key_value_heads=0", "", ""},
    {"--architecture gpt2 --num_layers=0", "", ""},
    {"--precision fp16", "",
     "--precision: 'fp16': not supported: fp16's gradients need a loss scale"},
    {"--wandb sometimes", "", "--wandb: 'sometimes' is not one of: off=0=false"},
    {"--wandb_run_id a/b", "", "logging.wandb_run_id: 'a/b' has a '/'"},
    {"--log_file x", "", "--log_file: 'x': lines go to the standard output"},
    {"--profiler.with_stack", "", "--profiler.with_stack: 'true': there are no Python stacks"},
    {"--profiler.enable --profiler.ranks 0,x", "", "profiler.ranks: '0,x' is neither \"all\" nor"},
    {"--profiler.enable --profiler.ranks 0,1", "", "profiler.file: 'trace.json' has no {rank}"},
    {"--profiler.enable --profile_freq 9", "", "profiler.file: 'trace.json' has no {step}"},
    {"--profiler.enable --profile_freq 3 --profiler.file t{step}", "",
     "profiler.repeat_every=3 is less than a trace takes: warmup_steps and active_steps are 4"},
    {"--profiler.enable --profiler.file a/b", "", "profiler.file: 'a/b' must be a name without"},
    {"--profiler.enable --profiler.dir a/{stop}", "", "profiler.dir: '{stop}': there is no field"},
    {"--start_step 3 --strict", "",
     "unknown flag --start_step (the nearest is profiler.start_step)"},
    {"--profiler.active_steps 0", "", "--profiler.active_steps: '0' is not a whole number from 1"},
    {"--tpu", "", "--tpu: 'true': there is no TPU backend"},
    {"--eval_strategy steps", "", "eval.eval_strategy=steps needs eval.eval_steps"},
    {"--warmup 0.1 --warmup_steps 5", "", "only one can be given"},
    {"--state_dtype bf16 --model_type llama", "", "needs precision.mixed_precision=bf16-true"},
    {"--precision bf16-true --model_type llama --state_dtype fp32", "",
     "optimizer.state_dtype=fp32: with precision.mixed_precision=bf16-true all"},
    {"--init pretrained", "", "model.init=pretrained needs model.name_or_path"},
    {"--init_weights w --resume c", "", "only one can be given"},
    {"--name_format latest", "", "checkpoint.name_format: 'latest' has no {step}"},
    {"--hidden_width 64", "", "model.type is not set"},
    {"--model_type llama --hidden_width 65", "", "hidden_size"},
    {"--model_type llama --num_heads 32 --num_key_value_heads 5", "", "num_key_value_heads"},
    {"--model_type llama --rope_type linear", "", "model.rope_scaling.factor must be at least 1"},
    {"--model_type llama --rope_type llama3 --factor 8", "", "rope_type=llama3 needs"},
    {"--model_type llama --rope_type yarn", "",
     "--rope_type: 'yarn' is not one of: config default=none linear dynamic llama3"},
    {"--model_type llama --head masked_lm", "",
     "model.head: masked_lm is not for a llama model: it learns causal_lm"},
    {"--label_pad_token_id -1", "", "data.label_pad_token_id: -1 is neither -100 nor"},
    {"--mlm_probability 1", "", "data.mlm_probability must be between 0 and 1"},
    {"--target_column=", "", "data.target_column is empty; name a field of the rows"},
    {"--architecture llama9 --model_type llama", "",
     "model.architecture: 'llama9' is not one of: llama2_7b"},
    {"--architecture gpt2 --model_type llama", "", "model.type: the sizes given are a gpt2's"},
    {"", "NCCL_TIMEOUT=long", "environment variable NCCL_TIMEOUT: 'long' is not a time"},
    {"--nesterov", "", "optimizer.nesterov needs optimizer.momentum above 0"},
    {"--resume", "", "checkpoint.resume_from_checkpoint=latest needs checkpoint.dir"},
    {"--model_type bloom", "", "--model_type: 'bloom': not supported yet; mnist_cnn, llama"},
    {"--gpu_ids first", "", "runtime.gpu_ids: 'first' is neither all nor numbers"},
    {"--main_process_port 0 --nnodes 2", "", "is for one pod, but runtime.nnodes is 2"},
    {"--preset t5-fsdp --model_name= --model_type bert --architecture bert_base_uncased", "",
     "model.head: seq2seq_lm is not for a bert model: it learns masked_lm, pretraining or"},
    {"--model_type llama", "FSDP_IGNORED_MODULES=x",
     "environment variable FSDP_IGNORED_MODULES: 'x': not supported"},
    {"", "ACCELERATE_USE_DEEPSPEED=true", "environment variable ACCELERATE_USE_DEEPSPEED: 'true'"},
    {"--device tpu", "", "runtime.device: 'tpu' is not one of: auto cpu cuda cuda:N"},
};

static void wrong_values_say_what_is_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(mistakes); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        int result =
            config_line_parse(arena, mistakes[i].line, mistakes[i].environment, &config, &err);
        if (mistakes[i].message[0])
            assert_fails(result, &err, ERR_CONFIG, mistakes[i].message);
        else
            assert_ok(result, &err);
    }
}

static void unknown_flags_are_one_warning_when_not_strict(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(
        config_line_parse(arena, "--foo --bar=1 --lr 2 --num_train_epoch5 3", "", &config, &err),
        &err);
    assert_string_equal(
        config.warning,
        "unknown flags are ignored: --foo, --bar, --num_train_epoch5 (the nearest is schedule.num_train_epochs)");
    assert_true(config.value.optimizer.lr == 2.0);
}

static void mistaken_variables_are_told(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    char foo[] = "AGENT_OPTIMIZER_FOO=3", lr[] = "AGENT_OPTIMIZER_LR=1",
         map[] = "AGENT_MODEL_CONFIG_OVERRIDES_HEAD_DIM=4", preset[] = "AGENT_PRESET=mnist",
         port[] = "AGENT_PORT=tcp://10.0.0.1", size[] = "AGENT_DATA_SIZE";
    char *variables[] = {foo, lr, map, preset, port, size, NULL};
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, "--foo", "", &config, &err), &err);
    assert_ok(config_check_variables(variables, arena, &config, &err), &err);
    assert_string_equal(config.warning,
                        "unknown flags are ignored: --foo; unknown variables are ignored: "
                        "AGENT_OPTIMIZER_FOO, AGENT_DATA_SIZE");
    assert_ok(config_line_parse(arena, "--strict", "", &config, &err), &err);
    assert_fails(config_check_variables(variables, arena, &config, &err), &err, ERR_CONFIG,
                 "environment: no key has AGENT_OPTIMIZER_FOO, AGENT_DATA_SIZE; --help lists all");
}

/* Writes `text` to a new file in `directory`. The arena owns the path. */
static void schedules_have_one_name(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    for (enum schedule_type type = 0; type <= SCHEDULE_WSD; type++) {
        struct config config;
        struct error err;
        enum schedule_type found;
        const char *name = schedule_type_name(type);
        assert_ok(config_line_parse(arena, arena_printf(arena, "--schedule.type %s", name), "",
                                    &config, &err),
                  &err);
        assert_int_equal(config.value.schedule.type, type);
        assert_true(schedule_type_find(name, &found) && found == type);
    }
}

static const char *write_file(struct arena *arena, const char *directory, const char *text)
{
    const char *path = arena_printf(arena, "%s/file", directory);
    auto_fclose FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    return path;
}

static void stronger_sources_win(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    const char *path = write_file(arena, directory,
                                  "optimizer:\n  lr: 0.25\n  rho: 0.5\n"
                                  "schedule: {gamma: 0.3, epochs: 7}\n");
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena,
                                arena_printf(arena, "--epochs 9 --config %s --preset mnist", path),
                                "AGENT_OPTIMIZER_RHO=0.75", &config, &err),
              &err);
    const struct agent_config *c = &config.value;
    assert_int_equal(c->schedule.epochs, 9);        /* flag over file over preset */
    assert_true(c->optimizer.rho == 0.75);          /* environment over file */
    assert_true(c->optimizer.lr == 0.25);           /* file over preset */
    assert_int_equal(c->data.train_batch_size, 64); /* preset over default */
    assert_true(c->parallel.limit_all_gathers);     /* default */
    assert_int_equal(c->parallel.strategy + 1, 1);
    support_remove_tree(directory);
}

/* ... of a map within a group, of another trainer, and of a file's own presets. */
static void sources_reach_every_kind_of_key(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    const char *path = write_file(arena, directory,
                                  "preset: [hyperpod, llama3.2-1b]\n"
                                  "model: {config_overrides: {num_layers: 3, rope_theta: 5.0e+5},\n"
                                  "        rope_scaling: {rope_type: linear, factor: 2}}\n"
                                  "parallel: {transformer_layer_cls_to_wrap: [A, B]}\n"
                                  "data: {packing: none}\n");
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, arena_printf(arena, "--config %s", path),
                                "AGENT_MODEL_CONFIG_OVERRIDES_VOCAB_SIZE=77", &config, &err),
              &err);
    const struct agent_config *c = &config.value;
    assert_string_equal(config.preset, "hyperpod,llama3.2-1b");
    assert_int_equal(c->model.type, MODEL_LLAMA);
    assert_int_equal(c->overrides.num_hidden_layers, 3);
    assert_true(c->overrides.rope_theta == 5e5);
    assert_int_equal(c->overrides.vocab_size, 77);
    assert_true(c->rope.factor == 2);
    assert_string_equal(c->parallel.wrap_classes, "A,B");
    assert_ok(config_line_parse(arena, "", "NCCL_TIMEOUT=60", &config, &err), &err);
    assert_true(c->runtime.timeout_s == 60);
    assert_ok(config_line_parse(arena, "", "DATA_PATH=/d", &config, &err), &err);
    assert_string_equal(c->data.root, "/d");
    assert_ok(config_line_parse(arena, "", "AGENT_PRESET=gpt2", &config, &err), &err);
    assert_string_equal(c->model.architecture, "gpt2");
    support_remove_tree(directory);
}

static void variables_of_torchs_watch_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *summary;
    } rows[] = {
        {"NCCL_ASYNC_ERROR_HANDLING=0", "runtime.abort_collectives=false (environment)"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "runtime.abort_collectives=false (environment)"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING=3", "runtime.abort_collectives=true (environment)"},
        {"TORCH_NCCL_ENABLE_MONITORING=0", "runtime.exit_if_stuck=false (environment)"},
        {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=60", "runtime.heartbeat_timeout=60 (environment)"},
        {"TORCH_NCCL_TRACE_BUFFER_SIZE=20", "runtime.collective_notes=20 (environment)"},
        {"TORCH_NCCL_DUMP_ON_TIMEOUT=0", "runtime.dump_on_timeout=false (environment)"},
        {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/t/rank_", "runtime.dump_path=/t/rank_ (environment)"},
        {"TORCH_DISTRIBUTED_DEBUG=DETAIL", "runtime.debug=detail (environment)"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        auto_str struct str summary;
        struct config config;
        struct error err;
        str_init(&summary, 1024);
        assert_ok(config_line_parse(arena, "", rows[i].variable, &config, &err), &err);
        config_summary(&config, &summary);
        assert_string_equal(str_text(&summary), rows[i].summary);
    }
}

static void files_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"optimizer: {lrr: 1}\n", "unknown key 'optimizer.lrr'; the nearest is optimizer.lr"},
        {"optimizer: {lr: x}\n", "optimizer.lr: 'x' is not a number"},
        {"optimizer: 3\n", "optimizer: must be a mapping of keys"},
        {"optimizer: {lr: {a: 1}}\n", "unknown key 'optimizer.lr.a'"},
        {"model: {config_overrides: {sizes: {a: 1}}}\n",
         "model.config_overrides.sizes: must be a single value"},
        {"profiler: {with_stack: true}\n", "profiler.with_stack: 'true': there are no Python"},
        {"preset: {a: 1}\n", "preset: must be a name or a list"},
        {"preset: cifar\n", "'cifar' is not one of: mnist"},
        {"fsdp_config: {}\n", "A `distributed_type` must be specified in"},
        {"- 1\n", "must be one mapping"},
    };
    auto_free char *directory = support_temp_dir();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        const char *path = write_file(arena, directory, rows[i].text);
        int result =
            config_line_parse(arena, arena_printf(arena, "--config %s", path), "", &config, &err);
        assert_fails(result, &err, ERR_CONFIG, path);
        assert_fails(result, &err, ERR_CONFIG, rows[i].message);
    }
    support_remove_tree(directory);
}

/* Two keys under one name would make the name useless, and a test of one of them a lie. */
static void no_name_means_two_keys(void **state)
{
    (void)state;
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        auto_arena struct arena *arena = arena_open();
        char *rest = NULL;
        for (char *name = strtok_r(arena_strdup(arena, key->other_names ? key->other_names : ""),
                                   " ", &rest);
             name; name = strtok_r(NULL, " ", &rest)) {
            int index;
            bool known;
            struct error err;
            assert_ok(config_find_key(name, &index, &known, &err), &err);
            assert_int_equal(index, i);
        }
    }
}

static void argument_files_expand_in_place(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    const char *path =
        write_file(arena, directory, "--lr 3 # comment --lr 4\n# all comment\n--epochs=2\n");
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, arena_printf(arena, "--lr 1 @%s --epochs 5", path), "",
                                &config, &err),
              &err);
    assert_true(config.value.optimizer.lr == 3);
    assert_int_equal(config.value.schedule.epochs, 5);
    const char *self = write_file(arena, directory, arena_printf(arena, "@%s/file", directory));
    assert_fails(config_line_parse(arena, arena_printf(arena, "@%s", self), "", &config, &err),
                 &err, ERR_CONFIG, "nested more than");
    support_remove_tree(directory);
}

static void the_printed_configuration_reads_back_to_itself(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    struct config config, again;
    struct error err;
    assert_ok(config_line_parse(
                  arena,
                  "--preset hyperpod --data.root it's --lr 0.1234567891 --sharding_strategy hybrid "
                  "--model_type llama_v3 --eval_steps 7 --max_shard_size 3MiB",
                  "", &config, &err),
              &err);
    auto_str struct str text, text_again;
    str_init(&text, 65536);
    str_init(&text_again, 65536);
    config_yaml(&config, &text);
    const char *path = write_file(arena, directory, str_text(&text));
    assert_ok(config_line_parse(arena, arena_printf(arena, "--config %s", path), "", &again, &err),
              &err);
    memcpy(again.source, config.source, sizeof again.source);
    config_yaml(&again, &text_again);
    assert_string_equal(str_text(&text), str_text(&text_again));
    support_remove_tree(directory);
}

static void help_names_every_key(void **state)
{
    (void)state;
    auto_str struct str text;
    str_init(&text, 65536);
    config_help(&text);
    assert_false(text.truncated);
    assert_non_null(strstr(str_text(&text), "--parallel.sharding_strategy (default: FULL_SHARD)"));
    assert_non_null(strstr(str_text(&text), "  mnist "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_found_under_every_spelling),
        cmocka_unit_test(wrong_values_say_what_is_allowed),
        cmocka_unit_test(schedules_have_one_name),
        cmocka_unit_test(mistaken_variables_are_told),
        cmocka_unit_test(unknown_flags_are_one_warning_when_not_strict),
        cmocka_unit_test(stronger_sources_win),
        cmocka_unit_test(sources_reach_every_kind_of_key),
        cmocka_unit_test(variables_of_torchs_watch_are_read),
        cmocka_unit_test(files_are_refused_with_their_place),
        cmocka_unit_test(no_name_means_two_keys),
        cmocka_unit_test(argument_files_expand_in_place),
        cmocka_unit_test(the_printed_configuration_reads_back_to_itself),
        cmocka_unit_test(help_names_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
