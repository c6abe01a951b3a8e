/* Command lines as other trainers' documents have them, and what they come to here. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config.h"
#include "agent/config/config_model.h"
#include "agent/models/rope.h"
#include "agent/nn/module.h"
#include "agent/shard/optim.h"
#include "agent/shard/schedule.h"
#include "agent/shard/shard.h"
#include "agent/telemetry/log_lines.h"
#include "agent/trainer/build.h"
#include "base/file.h"
#include "base/mem.h"

#include <string.h>

static int parse(struct arena *arena, const char *line, struct config *config, struct error *err)
{
    return config_line_parse(arena, line, "", config, err);
}

/* The guide's own command line behind "train.py". */
static const char guide[] =
    "--preset hyperpod "
    "--max_context_width=8192 --num_key_value_heads=2 --intermediate_size=8192 --hidden_width=2048 "
    "--num_layers=16 --num_heads=32 --model_type=llama_v3 "
    "--tokenizer=hf-internal-testing/llama-tokenizer --checkpoint_freq=50 --validation_freq=100 "
    "--max_steps=100 --checkpoint_dir=./checkpoints --dataset=allenai/c4 --dataset_config_name=en "
    "--resume_from_checkpoint=./checkpoints --train_batch_size=1 --val_batch_size=1 "
    "--sharding_strategy=full --offload_activations=1";

static void the_hyperpod_guide_is_understood(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(parse(arena, guide, &config, &err), &err);
    const struct agent_config *c = &config.value;
    assert_string_equal(config.warning, "");
    assert_string_equal(config.preset, "hyperpod");
    assert_ptr_equal(config_family(c), &family_llama);
    assert_int_equal(c->model.init, INIT_RANDOM);
    assert_int_equal(c->overrides.max_position_embeddings, 8192);
    assert_int_equal(c->data.max_seq_length, 8192);
    assert_string_equal(c->data.tokenizer, "hf-internal-testing/llama-tokenizer");
    assert_string_equal(c->data.source.dataset, "allenai/c4");
    assert_string_equal(c->data.source.dataset_config_name, "en");
    assert_int_equal(c->data.train_batch_size, 1);
    assert_int_equal(c->data.eval_batch_size, 1);
    assert_int_equal(c->schedule.max_steps, 100);
    assert_int_equal(c->schedule.epochs, 3);
    assert_int_equal(c->schedule.type, SCHEDULE_COSINE);
    assert_true(c->schedule.warmup_ratio == 0.0032);
    assert_true(c->schedule.min_lr == 1e-5);
    assert_ptr_equal(optim_kind(c->optimizer.name), &optim_adamw);
    assert_true(c->optimizer.lr == 1e-4);
    assert_true(c->optimizer.beta2 == 0.95);
    assert_true(c->optimizer.weight_decay == 0.2);
    assert_true(c->optimizer.grad_clip == 1);
    assert_int_equal(c->parallel.strategy, FULL_SHARD);
    assert_int_equal(c->parallel.wrap_policy, WRAP_TRANSFORMER);
    assert_int_equal(c->precision.mixed, PRECISION_BF16_MIXED);
    assert_int_equal(c->precision.reduce_dtype, STATE_FP32);
    assert_int_equal(c->memory.activation_checkpointing, RECOMPUTE_FULL);
    assert_true(c->memory.offload_activations);
    assert_string_equal(c->checkpoint.dir, "./checkpoints");
    assert_string_equal(c->checkpoint.resume, "./checkpoints");
    assert_string_equal(c->checkpoint.prefix, "llama_v3");
    assert_int_equal(c->checkpoint.save_steps, 50);
    assert_int_equal(c->eval.strategy, EVAL_STEPS);
    assert_int_equal(c->eval.steps, 100);
    assert_int_equal(c->eval.max_batches, 10);
    assert_int_equal(c->logging.steps, 1);
    assert_int_equal(c->logging.style, STYLE_ADT);
    assert_int_equal(c->runtime.seed, 12345);
    assert_int_equal(c->rope.type, ROPE_DYNAMIC);
    assert_true(c->rope.factor == 2);
}

static void the_fabric_scripts_are_understood(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(
        parse(arena,
              "--preset fabric --devices=4 --tpu=False --train_data_dir=/data/tokenized "
              "--model_name=meta-llama/Meta-Llama-3-8B --precision=bf16-true "
              "--auto_wrap_policy=LlamaDecoderLayer --sharding_strategy=FULL_SHARD "
              "--state_dict_type=full --limit_all_gathers=True --cpu_offload=False --resume=True "
              "--checkpoint=/ckpt/e-001 --number_epochs=2 --micro_batch_size=1 "
              "--gradient_accumulation_steps=64 --grad_clip=1.0 --max_step=6145 --lr=2e-5 "
              "--min_lr=1e-6 --lr_decay=True --warmup_steps=10 --weight_decay=0.01 --beta1=0.9 "
              "--beta2=0.95 --eval_batch_size=1 --eval_iters=1000000 --save_step_interval=1000 "
              "--entity=gplsi_continual --project=fabric_llama --log_model=all",
              &config, &err),
        &err);
    const struct agent_config *c = &config.value;
    assert_string_equal(c->runtime.nproc_per_node, "4");
    assert_string_equal(c->data.source.dataset, "/data/tokenized");
    assert_string_equal(c->model.name_or_path, "meta-llama/Meta-Llama-3-8B");
    assert_int_equal(c->model.type, MODEL_AUTO);
    assert_string_equal(c->checkpoint.prefix, "Meta-Llama-3-8B");
    assert_int_equal(c->precision.mixed, PRECISION_BF16_TRUE);
    assert_int_equal(c->precision.reduce_dtype, STATE_BF16);
    assert_int_equal(c->optimizer.state_dtype, STATE_BF16);
    assert_int_equal(c->parallel.wrap_policy, WRAP_TRANSFORMER);
    assert_string_equal(c->checkpoint.resume, "/ckpt/e-001");
    assert_int_equal(c->schedule.epochs, 2);
    assert_int_equal(c->schedule.max_steps, 6145);
    assert_int_equal(c->schedule.type, SCHEDULE_COSINE_TO_MIN);
    assert_int_equal(c->schedule.warmup_steps, 10);
    assert_int_equal(c->optimizer.gradient_accumulation_steps, 64);
    assert_int_equal(c->eval.strategy, EVAL_HALF_EPOCH);
    assert_int_equal(c->eval.max_batches, 1000000);
    assert_int_equal(c->logging.style, STYLE_FABRIC);
    assert_int_equal(c->checkpoint.state_dict_type, STATE_DICT_FULL);
    assert_string_equal(c->parallel.wrap_classes, "LlamaDecoderLayer");
    assert_int_equal(c->logging.wandb, 1);
    assert_string_equal(c->logging.wandb_entity, "gplsi_continual");
    assert_string_equal(c->logging.wandb_project, "fabric_llama");
    assert_int_equal(c->logging.log_model, 1);
    assert_string_equal(config.warning, "");
}

/* Adds what an add_argument() of `text` sets: --NAME=DEFAULT. Returns what follows; NULL: there is
 * none. */
static const char *next_argument(struct arena *arena, const char *text, char **line)
{
    const char *name = strstr(text, "'--");
    const char *value = name ? strstr(name, "default=") : NULL;
    if (!value)
        return NULL;
    value += strlen("default=");
    value += *value == '\'';
    *line = arena_printf(arena, "%s %.*s=%.*s", *line, (int)strcspn(name + 1, "'"), name + 1,
                         (int)strcspn(value, "',)"), value);
    return value;
}

/* All of its arguments.py, whose weights are to be saved "en el step 64000" without a word where:
 * they are, and what it asks of the rate is told. */
static void the_wikis_arguments_save_what_they_train(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    auto_free char *text = NULL;
    size_t bytes = 0;
    char *line = arena_strdup(arena, "--preset fabric");
    assert_ok(file_read("tests/data/fabric/arguments.py", 1 << 16, &text, &bytes, &err), &err);
    int count = 0;
    for (const char *rest = text; (rest = next_argument(arena, rest, &line)); count++)
        ;
    assert_int_equal(count, 31);
    assert_ok(parse(arena, line, &config, &err), &err);
    const struct agent_config *c = &config.value;
    assert_string_equal(c->checkpoint.dir, "./checkpoints");
    assert_int_equal(c->checkpoint.save_steps, 1000);
    assert_int_equal(c->checkpoint.state_dict_type, STATE_DICT_FULL);
    assert_string_equal(c->checkpoint.resume, "");
    assert_int_equal(c->optimizer.gradient_accumulation_steps, 64);
    assert_string_equal(config.headline,
                        "schedule.min_lr is not below optimizer.lr: the rate does not fall\n"
                        "checkpoints go to ./checkpoints, as no checkpoint.dir says otherwise "
                        "(--checkpoint_dir, --output_dir)\n");
    assert_string_equal(config.warning, "");
}

/* Every flag of t5-fsdp.py, and its defaults. */
static void the_chapter_is_understood(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(parse(arena, "--preset t5-fsdp", &config, &err), &err);
    const struct agent_config *c = &config.value;
    assert_string_equal(config.warning, "");
    assert_string_equal(c->model.name_or_path, "google-t5/t5-small");
    assert_int_equal(c->model.init, INIT_PRETRAINED); /* its from_pretrained() */
    assert_string_equal(c->data.source.dataset, "billsum");
    assert_string_equal(c->data.source.source_prefix, "summarize: ");
    assert_int_equal(c->data.max_source_length, 512);
    assert_int_equal(c->data.max_target_length, 128);
    assert_int_equal(c->data.padding, PADDING_MAX_LENGTH);
    assert_int_equal(c->data.label_pad_token_id, 0);
    assert_int_equal(c->data.train_size, 1000);
    assert_int_equal(c->data.train_batch_size, 4);
    assert_int_equal(c->data.num_workers, 4);
    assert_int_equal(c->schedule.epochs, 1);
    assert_int_equal(c->schedule.type, SCHEDULE_CONSTANT);
    assert_ptr_equal(optim_kind(c->optimizer.name), &optim_adamw);
    assert_true(c->optimizer.lr == 1e-5);
    assert_true(c->optimizer.beta1 == 0.9 && c->optimizer.beta2 == 0.999);
    assert_true(c->optimizer.eps == 1e-8);
    assert_true(c->optimizer.weight_decay == 0.01);
    assert_true(c->optimizer.grad_clip == 0);
    assert_true(c->optimizer.drop_incomplete);
    assert_int_equal(c->parallel.strategy, FULL_SHARD);
    assert_int_equal(c->parallel.wrap_policy, WRAP_TRANSFORMER);
    assert_true(c->parallel.limit_all_gathers);
    assert_int_equal(c->precision.mixed, PRECISION_BF16_MIXED);
    assert_int_equal(c->precision.reduce_dtype, STATE_BF16);
    assert_int_equal(c->checkpoint.state_dict_type, STATE_DICT_SHARDED);
    assert_string_equal(c->checkpoint.dir, "");
    assert_string_equal(c->checkpoint.resume, "");
    assert_string_equal(c->checkpoint.save_model, "");
    assert_int_equal(c->logging.steps, 10);
    assert_int_equal(c->logging.style, STYLE_T5);

    assert_ok(parse(arena,
                    "--preset t5-fsdp --lr 1e-4 --batch_size 8 --grad_acc_steps 2 --epochs 3 "
                    "--train_size 500 --model_id google-t5/t5-large --sharding_strategy "
                    "SHARD_GRAD_OP --precision fp32 --use_offload --use_checkpointing "
                    "--use_prefetch --num_workers 2 --save_path out --lang ko",
                    &config, &err),
              &err);
    assert_string_equal(c->model.name_or_path, "google-t5/t5-large");
    assert_true(c->optimizer.lr == 1e-4);
    assert_int_equal(c->data.train_batch_size, 8);
    assert_int_equal(c->optimizer.gradient_accumulation_steps, 2);
    assert_int_equal(c->schedule.epochs, 3);
    assert_int_equal(c->data.train_size, 500);
    assert_int_equal(c->parallel.strategy, SHARD_GRAD_OP);
    assert_int_equal(c->precision.mixed, PRECISION_FP32);
    assert_int_equal(c->precision.reduce_dtype, STATE_FP32);
    assert_true(c->memory.cpu_offload);
    assert_int_equal(c->memory.activation_checkpointing, RECOMPUTE_FULL);
    assert_int_equal(c->parallel.backward_prefetch, BACKWARD_PRE);
    assert_true(c->parallel.forward_prefetch);
    assert_string_equal(c->checkpoint.dir, "out");
    assert_string_equal(c->checkpoint.name_format, "checkpoint_{strategy}-{step}steps");
    assert_string_equal(c->checkpoint.resume, "latest");
    assert_string_equal(c->checkpoint.save_model, "out/model");
    assert_int_equal(c->logging.lang, LANG_KO);
    assert_fails(parse(arena, "--preset t5-fsdp --sharding_strategy ZERO", &config, &err), &err,
                 ERR_CONFIG, "--sharding_strategy: 'ZERO' is not one of");
}

/* Totals: the formula of the layers' sizes by hand; 3.1-8B and mathstral also from the sample's own
 * logs. */
static void models_have_the_published_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t parameters;
    } rows[] = {
        {"--preset hyperpod @tests/data/adt/llama2_7b.txt", 6889410560},
        {"--preset hyperpod @tests/data/adt/llama2_13b.txt", 13204608000},
        {"--preset hyperpod @tests/data/adt/llama2_70b.txt", 69278638080},
        {"--preset hyperpod @tests/data/adt/llama3_1_8b.txt", 7392727040},
        {"--preset hyperpod @tests/data/adt/llama3_1_70b.txt", 69278638080},
        {"--preset hyperpod @tests/data/adt/llama3_2_1b.txt", 1154549760},
        {"--preset hyperpod @tests/data/adt/llama3_2_3b.txt", 2996481024},
        {"--preset hyperpod @tests/data/adt/mathstral_7b.txt", 7248023552},
        {"--preset llama2-7b", 6738415616},
        {"--preset llama2-13b", 13015864320},
        {"--preset llama2-70b", 68976648192},
        {"--preset llama3-8b", 8030261248},
        {"--preset llama3.1-8b", 8030261248},
        {"--preset llama3.1-70b", 70553706496},
        {"--preset llama3.2-1b", 1235814400},
        {"--preset llama3.2-3b", 3212749824},
        {"--preset hyperpod,llama3.2-1b", 1235814400},
        {"--preset hyperpod --preset llama3.2-1b", 1235814400},
        {"--preset llama-single-gpu", 172508160},
        {"--preset hyperpod,llama-single-gpu", 172508160},
        {"--preset gpt2", 124439808},
        {"--preset gpt2 --vocab_size=50304", 124475904},
        {"--preset gpt2-medium", 354823168},
        {"--preset gpt2-large", 774030080},
        {"--preset gpt2-xl", 1557611200},
        {"--preset t5-small", 60506624},
        {"--preset t5-fsdp,t5-small", 60506624},
        {"--preset t5-base", 222903552},
        {"--model.architecture=google-t5/t5-base", 222903552},
        {"--preset t5-large", 737668096},
        {"--preset bert-base", 109514298},
        {"--preset bert-base --head pretraining", 110106428},
        {"--preset bert-base --head sequence_classification", 109483778},
        {"--preset bert-large", 335174458},
        {"--preset bert-large --head pretraining", 336226108},
        {"--preset mnist", 1199882},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct model *model;
        struct error err;
        assert_ok(parse(arena, rows[i].line, &config, &err), &err);
        assert_ok(build_model(&config.value, arena, &model, &err), &err);
        if (module_param_count(model->root) != rows[i].parameters)
            print_error("%s: %lld parameters\n", rows[i].line,
                        (long long)module_param_count(model->root));
        assert_int_equal(module_param_count(model->root), rows[i].parameters);
    }
}

static void checkpoints_have_their_models_name(void **state)
{
    (void)state;
    static const struct {
        const char *model, *prefix;
    } rows[] = {
        {"meta-llama/Llama-3.2-1B", "Llama-3.2-1B"}, {"./tiny//", "tiny"}, {".", "checkpoint"},
        {"/models/.hidden", "checkpoint"},           {"/", "checkpoint"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        const char *words = arena_printf(arena, "--model_name_or_path %s", rows[i].model);
        assert_ok(parse(arena, words, &config, &err), &err);
        assert_string_equal(config.value.checkpoint.prefix, rows[i].prefix);
    }
}

static void argument_files_say_what_they_ask_in_vain(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(parse(arena, "--preset hyperpod @tests/data/adt/mathstral_7b.txt", &config, &err),
              &err);
    assert_ptr_equal(config_family(&config.value), &family_mistral);
    assert_string_equal(config.value.checkpoint.prefix, "mistral");
    assert_int_equal(config.value.rope.type, ROPE_OF_CONFIG);
    assert_string_equal(config.warning,
                        "summary_first_pdrop is ignored: there is no summary head; rotary_pct is "
                        "ignored: only gpt_neox turns a part of a head; dropout is ignored: the "
                        "model has none");
    assert_fails(
        parse(arena, "--preset hyperpod @tests/data/adt/mistral_8x7b.txt", &config, &err), &err,
        ERR_CONFIG,
        "--model_type: 'mixtral' (the nearest is mistral) is not one of: auto mnist_cnn llama");
}

/* What a preset says for its own model or precision gives way to what was asked for. */
static void presets_give_way(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(parse(arena, "--preset hyperpod --model_name /models/mine --hidden_width 64", &config,
                    &err),
              &err);
    assert_int_equal(config.value.overrides.hidden_size, 64);
    assert_int_equal(config.value.overrides.num_hidden_layers, 0); /* config.json's */
    assert_int_equal(config.value.model.init, INIT_AUTO);
    assert_int_equal(config.value.rope.type, ROPE_OF_CONFIG); /* config.json's too */
    assert_ok(parse(arena, "--preset fabric --model_name /models/mine --precision 32-true", &config,
                    &err),
              &err);
    assert_int_equal(config.value.precision.reduce_dtype, STATE_FP32);
    assert_int_equal(config.value.model.init, INIT_PRETRAINED); /* its scripts take no other */
}

/* A preset's eps, rho and decay are its optimizer's; another one has torch's own. */
static void another_optimizer_has_its_own_defaults(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        double eps, weight_decay, beta2;
        const char *headline;
    } rows[] = {
        {"--preset mnist", 1e-6, 0, 0.999, ""},
        {"--preset mnist-ddp-adam", 1e-8, 0, 0.999, ""},
        {"--preset mnist --optimizer.name adamw --lr 1e-3", 1e-8, 0.01, 0.999, ""},
        {"--preset mnist --optimizer.name adamw --lr 1e-3 --eps 1e-5", 1e-5, 0.01, 0.999, ""},
        {"--preset mnist --optim adam", 1e-8, 0, 0.999,
         "optimizer.lr=1 is the preset's, for another optimizer: give one for this (--lr)\n"},
        {"--preset hyperpod --lr 1", 1e-8, 0.2, 0.95, ""},
        {"--preset hyperpod --optim sgd --lr 1", 0, 0, 0.999, ""},
        {"--preset hyperpod --optim adam --weight_decay 0.3 --lr 1", 1e-8, 0.3, 0.999, ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        assert_ok(parse(arena, rows[i].line, &config, &err), &err);
        const struct agent_config *c = &config.value;
        assert_true(c->optimizer.eps == rows[i].eps);
        assert_true(c->optimizer.weight_decay == rows[i].weight_decay);
        assert_true(c->optimizer.beta2 == rows[i].beta2);
        assert_true(c->optimizer.rho == 0.9);
        assert_string_equal(config.headline, rows[i].headline);
    }
}

static void presets_fill_every_part(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(parse(arena, "--preset hyperpod,llama3.2-1b --lr 3e-4", &config, &err), &err);
    const struct agent_config *c = &config.value;
    assert_string_equal(config.preset, "hyperpod,llama3.2-1b");
    assert_string_equal(c->model.architecture, "llama3_2_1b");
    assert_int_equal(c->overrides.hidden_size, 0); /* hyperpod's is taken back */
    assert_int_equal(c->rope.type, ROPE_OF_CONFIG);
    assert_true(c->optimizer.lr == 3e-4);
    assert_true(c->optimizer.weight_decay == 0.2);
    assert_ok(parse(arena, "--preset mnist-ddp-adam", &config, &err), &err);
    assert_ptr_equal(optim_kind(c->optimizer.name), &optim_adam);
    assert_int_equal(c->parallel.strategy, NO_SHARD);
    assert_int_equal(c->model.loss_reduction, LOSS_MEAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hyperpod_guide_is_understood),
        cmocka_unit_test(the_fabric_scripts_are_understood),
        cmocka_unit_test(the_wikis_arguments_save_what_they_train),
        cmocka_unit_test(the_chapter_is_understood),
        cmocka_unit_test(models_have_the_published_sizes),
        cmocka_unit_test(checkpoints_have_their_models_name),
        cmocka_unit_test(argument_files_say_what_they_ask_in_vain),
        cmocka_unit_test(presets_give_way),
        cmocka_unit_test(another_optimizer_has_its_own_defaults),
        cmocka_unit_test(presets_fill_every_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
