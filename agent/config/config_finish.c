/* What follows from other keys, and the rules between keys. */
#include "agent/config/config_model.h"
#include "agent/config/config_parser.h"
#include "agent/config/name_format.h"
#include "agent/launch/device_choice.h"
#include "agent/shard/optim.h"
#include "agent/telemetry/log_lines.h"
#include "agent/trainer/schedule.h"

#include <string.h>
#include <strings.h>

#define SOURCE_OF(field) config_source_of(p->config, &p->config->value.field)

/* ---- what follows from other keys ---- */

static void forget_preset_value(struct config_parser *p, int i)
{
    struct error ignored; /* defaults are right */
    const struct config_key *key = config_key(i);
    if (p->config->source[i] != SOURCE_PRESET)
        return;
    (void)config_set_value(key, &p->config->value, key->default_value, p->arena, &ignored);
    p->config->source[i] = SOURCE_DEFAULT;
}

/* The sizes and the initial values of a model that is named are its own, whatever a preset for
 * another one says. */
static void forget_preset_sizes(struct config_parser *p)
{
    static const char *const groups[] = {"model.config_overrides", "model.rope_scaling"};
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        bool is_size = key->offset == KEY_AT(model.init);
        for (size_t g = 0; g < array_length(groups); g++)
            is_size |= strcmp(key->group, groups[g]) == 0;
        if (is_size)
            forget_preset_value(p, i);
    }
}

/* A preset for Llama has more to say than a GPT-2 has. */
static void forget_foreign_sizes(struct config_parser *p)
{
    enum architecture_kind kind = config_model_kind(p->config->value.model.type);
    for (int i = 0; i < config_key_count(); i++)
        if (!config_model_has(kind, config_key(i)->offset))
            forget_preset_value(p, i);
}

/* The type of a model that is named by its architecture alone; what nobody knows is told later. */
static enum config_model type_of(const char *architecture)
{
    static const enum config_model types[] = {[ARCHITECTURE_LLAMA] = MODEL_LLAMA,
                                              [ARCHITECTURE_GPT2] = MODEL_GPT2,
                                              [ARCHITECTURE_T5] = MODEL_T5,
                                              [ARCHITECTURE_BERT] = MODEL_BERT};
    struct architecture a;
    return architecture_find(architecture, &a) ? types[a.kind] : MODEL_LLAMA;
}

static int finish_model(struct config_parser *p, struct error *err)
{
    struct agent_config *c = &p->config->value;
    bool is_named = c->model.name_or_path[0];
    if (is_named)
        forget_preset_sizes(p);
    if (c->model.type == MODEL_AUTO && !is_named && c->model.architecture[0])
        c->model.type = type_of(c->model.architecture);
    if (c->model.type != MODEL_AUTO && c->model.type != MODEL_MNIST_CNN)
        forget_foreign_sizes(p);
    if (c->model.type == MODEL_AUTO && !is_named) {
        if (c->overrides.hidden_size > 0)
            return error_set(err, ERR_CONFIG,
                             "model.type is not set, although model.config_overrides is; "
                             "it can be llama, gpt2, t5 or bert");
        if (strstr(p->config->preset, "accelerate"))
            return error_set(
                err, ERR_CONFIG,
                "model.name_or_path is not set: scripts are not opened, so their "
                "arguments must say what they train (--model_name_or_path, --dataset)");
        c->model.type = MODEL_MNIST_CNN;
    }
    /* train.py's llama_v3 always stretches so, without a flag for it. */
    if (p->model_type && strcasecmp(p->model_type, "llama_v3") == 0 && c->rope.type == 0 &&
        !is_named && !c->model.architecture[0]) {
        c->rope.type = 1 + ROPE_DYNAMIC;
        c->rope.factor = 2;
    }
    if (c->checkpoint.prefix[0])
        return 0;
    const char *slash = strrchr(c->model.name_or_path, '/');
    if (p->model_type && c->model.type != MODEL_AUTO)
        c->checkpoint.prefix = p->model_type;
    else if (c->model.type == MODEL_MNIST_CNN)
        c->checkpoint.prefix = "mnist_cnn";
    else
        c->checkpoint.prefix = slash && slash[1] ? slash + 1 : c->model.name_or_path;
    return 0;
}

/* Processes of a pod from those of all pods: accelerate's way to count. */
static int finish_processes(struct config_parser *p, struct error *err)
{
    struct agent_config *c = &p->config->value;
    int64_t nodes = 1, all = c->runtime.num_processes;
    if (all == 0 || SOURCE_OF(runtime.nproc_per_node) > SOURCE_OF(runtime.num_processes))
        return 0;
    if (c->runtime.nnodes[0]) { /* of MIN:MAX, MIN: what cannot be read is told by who uses it */
        char *least = arena_strndup(p->arena, c->runtime.nnodes, strcspn(c->runtime.nnodes, ":"));
        if (!str_to_i64(least, 1, 1000000, &nodes))
            return 0;
    }
    if (all > 0 && all % nodes != 0)
        return error_set(err, ERR_CONFIG,
                         "runtime.num_processes: %lld processes cannot be divided among %lld pods "
                         "(runtime.nnodes)",
                         (long long)all, (long long)nodes);
    c->runtime.nproc_per_node =
        all < 0 ? "auto" : arena_printf(p->arena, "%lld", (long long)(all / nodes));
    return 0;
}

/* What is named but for its place. */
static void finish_places(struct config_parser *p)
{
    struct agent_config *c = &p->config->value;
    if (strcmp(c->checkpoint.save_model, "auto") == 0)
        c->checkpoint.save_model =
            c->checkpoint.dir[0]
                ? arena_printf(p->arena, "%s/model%s", c->checkpoint.dir,
                               c->model.type == MODEL_MNIST_CNN ? ".safetensors" : "")
                : "";
    if (!c->checkpoint.dir[0] && SOURCE_OF(checkpoint.resume) <= SOURCE_PRESET &&
        strcmp(c->checkpoint.resume, "latest") == 0)
        c->checkpoint.resume = ""; /* a preset's, and there is no place */
    if (c->parallel.wrap_policy == WRAP_SIZE && c->parallel.min_num_params == 0)
        c->parallel.wrap_policy = WRAP_NONE;
}

static void finish_by_model(struct agent_config *c)
{
    bool is_mnist = c->model.type == MODEL_MNIST_CNN;
    if (c->parallel.wrap_policy == WRAP_AUTO)
        c->parallel.wrap_policy = is_mnist ? WRAP_NONE : WRAP_TRANSFORMER;
    if (c->precision.mixed == PRECISION_AUTO)
        c->precision.mixed = is_mnist ? PRECISION_FP32 : PRECISION_BF16_MIXED;
    if (c->logging.steps < 0)
        c->logging.steps = is_mnist ? 0 : 10;
    if (c->logging.style == CONFIG_STYLE_AUTO)
        c->logging.style = is_mnist ? STYLE_NONE : STYLE_PLAIN;
}

static void finish_optimizer(struct config_parser *p)
{
    struct agent_config *c = &p->config->value;
    if (c->optimizer.eps < 0)
        c->optimizer.eps = c->optimizer.name == OPTIM_ADADELTA ? 1e-6 : 1e-8;
    if (c->optimizer.weight_decay < 0)
        c->optimizer.weight_decay = c->optimizer.name == OPTIM_ADAMW ? 0.01 : 0;
    if (c->data.eval_batch_size == 0)
        c->data.eval_batch_size = c->data.train_batch_size;
    /* A preset's choice gives way to what contradicts it. */
    if (c->precision.mixed != PRECISION_BF16_TRUE &&
        SOURCE_OF(optimizer.state_dtype) <= SOURCE_PRESET)
        c->optimizer.state_dtype = STATE_FP32;
    if (c->precision.mixed == PRECISION_FP32 && SOURCE_OF(precision.reduce_dtype) <= SOURCE_PRESET)
        c->precision.reduce_dtype = STATE_FP32;
    if (c->precision.mixed == PRECISION_BF16_TRUE &&
        SOURCE_OF(optimizer.state_dtype) <= SOURCE_PRESET)
        c->optimizer.state_dtype = STATE_BF16;
    if (SOURCE_OF(schedule.warmup_steps) > SOURCE_OF(schedule.warmup_ratio))
        c->schedule.warmup_ratio = 0;
    else if (SOURCE_OF(schedule.warmup_ratio) > SOURCE_OF(schedule.warmup_steps))
        c->schedule.warmup_steps = 0;
    if (c->eval.steps > 0 && SOURCE_OF(eval.steps) > SOURCE_OF(eval.strategy))
        c->eval.strategy = EVAL_STEPS;
}

/* ---- rules between keys ---- */

static int check_optimizer(const struct agent_config *c, struct error *err)
{
    if (c->optimizer.nesterov && c->optimizer.momentum == 0)
        return error_set(err, ERR_CONFIG, "optimizer.nesterov needs optimizer.momentum above 0");
    if (c->optimizer.beta1 >= 1 || c->optimizer.beta2 >= 1)
        return error_set(err, ERR_CONFIG, "optimizer.%s must be below 1",
                         c->optimizer.beta1 >= 1 ? "beta1" : "beta2");
    if (c->optimizer.state_dtype == STATE_BF16 && c->precision.mixed != PRECISION_BF16_TRUE)
        return error_set(err, ERR_CONFIG,
                         "optimizer.state_dtype=bf16 needs precision.mixed_precision=bf16-true");
    if (c->optimizer.state_dtype == STATE_FP32 && c->precision.mixed == PRECISION_BF16_TRUE)
        return error_set(err, ERR_CONFIG,
                         "optimizer.state_dtype=fp32: with precision.mixed_precision=bf16-true all "
                         "state is bf16; bf16-mixed keeps weights and state in fp32");
    if (c->precision.mixed == PRECISION_BF16_TRUE && c->optimizer.name != OPTIM_ADAM &&
        c->optimizer.name != OPTIM_ADAMW)
        return error_set(err, ERR_CONFIG,
                         "precision.mixed_precision=bf16-true needs optimizer.name adam or adamw");
    if (c->schedule.warmup_steps > 0 && c->schedule.warmup_ratio > 0)
        return error_set(err, ERR_CONFIG,
                         "schedule.warmup_steps and schedule.warmup_ratio: only one can be given");
    if (c->eval.strategy == EVAL_STEPS && c->eval.steps == 0)
        return error_set(err, ERR_CONFIG, "eval.eval_strategy=steps needs eval.eval_steps");
    return 0;
}

static int check_checkpoint(const struct agent_config *c, struct error *err)
{
    if (c->checkpoint.async && c->checkpoint.state_dict_type == STATE_DICT_FULL)
        return error_set(err, ERR_CONFIG,
                         "checkpoint.async: FULL_STATE_DICT gathers the weights while training "
                         "waits; choose SHARDED_STATE_DICT, or no async");
    if (strcmp(c->checkpoint.resume, "latest") == 0 && !c->checkpoint.dir[0])
        return error_set(err, ERR_CONFIG,
                         "checkpoint.resume_from_checkpoint=latest needs checkpoint.dir");
    if (c->checkpoint.resume[0] && c->model.init_weights[0])
        return error_set(err, ERR_CONFIG,
                         "model.init_weights and checkpoint.resume_from_checkpoint: only one can "
                         "be given");
    if (!strstr(c->checkpoint.name_format, "{step"))
        return error_set(err, ERR_CONFIG,
                         "checkpoint.name_format: '%s' has no {step}: all checkpoints would be one",
                         c->checkpoint.name_format);
    static const char *const fields[] = {"prefix", "step", "epoch", "strategy"};
    if (name_format_check(c->checkpoint.name_format, fields, array_length(fields), err))
        return error_wrap(err, "checkpoint.name_format");
    return 0;
}

static int check_model(const struct agent_config *c, struct error *err)
{
    if (c->model.init == INIT_PRETRAINED && !c->model.name_or_path[0] && !c->model.init_weights[0])
        return error_set(err, ERR_CONFIG, "model.init=pretrained needs model.name_or_path");
    if (c->rope.type > 1 + ROPE_DEFAULT && c->rope.factor < 1)
        return error_set(err, ERR_CONFIG, "model.rope_scaling.factor must be at least 1");
    if (c->rope.type == 1 + ROPE_LLAMA3 &&
        (c->rope.low_freq_factor <= 0 || c->rope.high_freq_factor <= c->rope.low_freq_factor ||
         c->rope.original_max_position_embeddings == 0))
        return error_set(err, ERR_CONFIG,
                         "model.rope_scaling.rope_type=llama3 needs low_freq_factor above 0, "
                         "high_freq_factor above that, and original_max_position_embeddings");
    /* Where a config.json has a say, whoever reads it checks the whole. */
    struct architecture ignored;
    if (c->model.type == MODEL_MNIST_CNN || c->model.name_or_path[0])
        return 0;
    return config_architecture(c, NULL, &ignored, err);
}

#define BERT_HEADS_TEXT "masked_lm, pretraining or sequence_classification"

/* What each type can learn: a row per head, all of its heads for people. */
static const struct {
    enum config_model type;
    enum config_head head;
    const char *heads;
} learned[] = {
    {MODEL_MNIST_CNN, HEAD_IMAGE_CLASSIFICATION, "image_classification"},
    {MODEL_LLAMA, HEAD_CAUSAL_LM, "causal_lm"},
    {MODEL_MISTRAL, HEAD_CAUSAL_LM, "causal_lm"},
    {MODEL_GPT2, HEAD_CAUSAL_LM, "causal_lm"},
    {MODEL_T5, HEAD_SEQ2SEQ_LM, "seq2seq_lm"},
    {MODEL_BERT, HEAD_MASKED_LM, BERT_HEADS_TEXT},
    {MODEL_BERT, HEAD_PRETRAINING, BERT_HEADS_TEXT},
    {MODEL_BERT, HEAD_SEQUENCE_CLASSIFICATION, BERT_HEADS_TEXT},
};

static int check_head(const struct agent_config *c, struct error *err)
{
    bool fits = c->model.head == HEAD_AUTO || c->model.type == MODEL_AUTO;
    const char *heads = "";
    for (size_t i = 0; i < array_length(learned); i++) {
        if ((int64_t)learned[i].type != c->model.type)
            continue;
        fits |= (int64_t)learned[i].head == c->model.head;
        heads = learned[i].heads;
    }
    if (fits)
        return 0;
    return error_set(err, ERR_CONFIG, "model.head: a model of this type can only have %s", heads);
}

static int check_places(const struct agent_config *c, struct error *err)
{
    if (!c->data.root[0])
        return error_set(err, ERR_CONFIG, "data.root is empty; name a directory");
    if (!device_choice_is_valid(c->runtime.device))
        return error_set(err, ERR_CONFIG,
                         "runtime.device: '%s' is not one of: auto cpu cuda cuda:N",
                         c->runtime.device);
    return 0;
}

static int check_loading(const struct config_parser *p, struct error *err)
{
    const struct agent_config *c = &p->config->value;
    if (SOURCE_OF(parallel.cpu_ram_efficient_loading) > SOURCE_PRESET &&
        c->parallel.cpu_ram_efficient_loading && !c->parallel.sync_module_states)
        return error_set(err, ERR_CONFIG,
                         "When using --fsdp_cpu_ram_efficient_loading set "
                         "--fsdp_sync_module_states to True");
    return 0;
}

/* Keys that only some choices use, and were given without them. */
static void note_unused(struct config_parser *p)
{
    const struct agent_config *c = &p->config->value;
    bool adam = c->optimizer.name == OPTIM_ADAM || c->optimizer.name == OPTIM_ADAMW;
    bool sgd = c->optimizer.name == OPTIM_SGD, adadelta = c->optimizer.name == OPTIM_ADADELTA;
    bool hybrid =
        c->parallel.strategy + 1 == HYBRID_SHARD || c->parallel.strategy + 1 == HYBRID_SHARD_ZERO2;
    const struct {
        enum config_source source;
        bool used;
        const char *name, *needs;
    } rows[] = {
        {SOURCE_OF(optimizer.momentum), sgd || c->optimizer.momentum == 0, "optimizer.momentum",
         "optimizer.name=sgd"},
        {SOURCE_OF(optimizer.rho), adadelta, "optimizer.rho", "optimizer.name=adadelta"},
        {SOURCE_OF(optimizer.beta1), adam, "optimizer.beta1", "adam or adamw"},
        {SOURCE_OF(optimizer.beta2), adam, "optimizer.beta2", "adam or adamw"},
        {SOURCE_OF(schedule.plateau_ratio),
         c->schedule.type == SCHEDULE_PLATEAU || c->schedule.plateau_ratio == 0,
         "schedule.plateau_ratio", "schedule.type=plateau"},
        {SOURCE_OF(schedule.cooldown_steps),
         c->schedule.type == SCHEDULE_WSD || c->schedule.cooldown_steps == 0,
         "schedule.cooldown_steps", "schedule.type=wsd"},
        {SOURCE_OF(schedule.gamma), c->schedule.type == SCHEDULE_STEP_LR, "schedule.gamma",
         "schedule.type=step"},
        {SOURCE_OF(parallel.min_num_params), c->parallel.wrap_policy == WRAP_SIZE,
         "parallel.min_num_params", "auto_wrap_policy=SIZE_BASED_WRAP"},
        {SOURCE_OF(parallel.shard_group_size), hybrid || c->parallel.shard_group_size == 0,
         "parallel.shard_group_size", "a HYBRID strategy"},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        if (rows[i].source > SOURCE_PRESET && !rows[i].used)
            config_note(p, "%s is ignored: it needs %s", rows[i].name, rows[i].needs);
}

/* What was asked for and does nothing, although it is no mistake. */
static void note_idle(struct config_parser *p)
{
    const struct agent_config *c = &p->config->value;
    bool falls = c->schedule.type != SCHEDULE_CONSTANT && c->schedule.type != SCHEDULE_STEP_LR;
    if (falls && c->schedule.min_lr > 0 && c->schedule.min_lr >= c->optimizer.lr)
        config_note(p, "schedule.min_lr is not below optimizer.lr: the rate does not fall");
    if (c->memory.cpu_offload)
        config_note(p, "memory.cpu_offload slows training a lot: use it where nothing else fits");
    if (!c->parallel.sync_module_states)
        config_note(p, "parallel.sync_module_states=false is ignored: all ranks begin with the "
                       "same values anyway");
    if (SOURCE_OF(parallel.cpu_ram_efficient_loading) > SOURCE_PRESET &&
        !c->parallel.cpu_ram_efficient_loading)
        config_note(p, "parallel.cpu_ram_efficient_loading=false is ignored: each rank reads its "
                       "own slices anyway");
    if (c->logging.lang != LANG_EN && c->logging.style != STYLE_T5)
        config_note(p, "logging.lang is ignored: only the lines of style t5-fsdp have another");
    note_unused(p);
    config_note_data(p);
    if ((c->model.type == MODEL_LLAMA || c->model.type == MODEL_MISTRAL) &&
        (SOURCE_OF(overrides.resid_pdrop) > SOURCE_PRESET ||
         SOURCE_OF(overrides.embd_pdrop) > SOURCE_PRESET ||
         SOURCE_OF(overrides.attn_pdrop) > SOURCE_PRESET || c->model.dropout > 0))
        config_note(p, "dropout is ignored: the model has none");
}

int config_finish(struct config_parser *p, struct error *err)
{
    const struct agent_config *c = &p->config->value;
    if (finish_model(p, err) || finish_processes(p, err))
        return -1;
    finish_by_model(&p->config->value);
    finish_optimizer(p);
    finish_places(p);
    if (check_optimizer(c, err) || check_checkpoint(c, err) || check_model(c, err) ||
        check_head(c, err) || config_check_data(c, err) || check_places(c, err) ||
        check_loading(p, err))
        return -1;
    note_idle(p);
    return 0;
}
