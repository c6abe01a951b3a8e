/* The rules between keys: errors for contradictions, warnings for settings without effect. */
#include "agent/config/config_model.h"
#include "agent/config/config_parser.h"
#include "agent/config/name_format.h"
#include "agent/config/profile_plan.h"
#include "agent/launch/device_choice.h"
#include "agent/shard/schedule.h"
#include "agent/telemetry/log_lines.h"

#include <stdlib.h>
#include <string.h>

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
    if (c->precision.fp8 && config_is_language(c) && c->precision.mixed == PRECISION_FP32)
        return error_set(err, ERR_CONFIG,
                         "precision.fp8 needs precision.mixed_precision=bf16 or bf16-true: what is "
                         "cast to 8 bits is bf16, as is all that stays");
    if (c->schedule.warmup_steps > 0 && c->schedule.warmup_ratio > 0)
        return error_set(err, ERR_CONFIG,
                         "schedule.warmup_steps and schedule.warmup_ratio: only one can be given");
    if (c->schedule.epochs == 0 && c->schedule.max_steps == 0)
        return error_set(err, ERR_CONFIG,
                         "schedule.num_train_epochs=0 needs schedule.max_steps: else nothing ends "
                         "the run, or nothing is trained");
    if (c->eval.strategy == EVAL_STEPS && c->eval.steps == 0)
        return error_set(err, ERR_CONFIG, "eval.eval_strategy=steps needs eval.eval_steps");
    return 0;
}

/* Some run gets the longest of names: it must be one that is found again, in any directory. */
static int check_checkpoint_name(const struct agent_config *c, struct error *err)
{
    enum { LONGEST = 200 }; /* bytes; the suffix of what is being written comes on top */
    const struct name_field fields[] = {
        {"prefix", .text = c->checkpoint.prefix},
        {"strategy", .text = "_HYBRID_SHARD_ZERO2"},
        {"step", .number = INT64_MAX},
        {"epoch", .number = INT64_MAX},
    };
    const char *names[array_length(fields)];
    for (size_t i = 0; i < array_length(fields); i++)
        names[i] = fields[i].name;
    if (name_format_check(c->checkpoint.name_format, names, array_length(names), err))
        return error_wrap(err, "checkpoint.name_format");
    char name[LONGEST + 2];
    name_format(c->checkpoint.name_format, fields, array_length(fields), name, sizeof name);
    const char *wrong = strchr(name, '/')        ? "has a '/'"
                        : name[0] == '.'         ? "begins with a '.', which hides it"
                        : strlen(name) > LONGEST ? "is longer than 200 bytes"
                                                 : NULL;
    if (wrong)
        return error_set(err, ERR_CONFIG,
                         "checkpoint.prefix, checkpoint.name_format: '%.80s...', a checkpoint's "
                         "name, %s",
                         name, wrong);
    return 0;
}

/* Whoever says when checkpoints are written or how many stay wants some. */
static int check_saving(const struct config_parser *p, struct error *err)
{
    static const size_t fields[] = {KEY_AT(checkpoint.save_steps), KEY_AT(checkpoint.keep_last),
                                    KEY_AT(checkpoint.async)};
    const struct agent_config *c = &p->config->value;
    bool only_last = c->checkpoint.save_steps >= (int64_t)1e12;
    if (c->checkpoint.dir[0])
        return 0;
    for (size_t i = only_last ? 1 : 0; i < array_length(fields); i++)
        if (i == 0 ? config_is_given(p->config, &c->checkpoint.save_steps)
                   : config_is_set_by_user(p->config, config_key_at(fields[i])))
            return error_set(err, ERR_CONFIG,
                             "checkpoint.%s asks for checkpoints, but nothing says where they go: "
                             "name a directory by checkpoint.dir (--checkpoint_dir, --output_dir)",
                             config_key(config_key_at(fields[i]))->name);
    return 0;
}

static int check_checkpoint(const struct agent_config *c, struct error *err)
{
    if (c->checkpoint.async && c->checkpoint.state_dict_type == STATE_DICT_FULL)
        return error_set(err, ERR_CONFIG,
                         "checkpoint.async: FULL_STATE_DICT gathers the weights while training "
                         "waits; choose SHARDED_STATE_DICT, or no async");
    if (config_names_have("latest true", c->checkpoint.resume, false) && !c->checkpoint.dir[0])
        return error_set(err, ERR_CONFIG,
                         "checkpoint.resume_from_checkpoint=%s needs checkpoint.dir",
                         c->checkpoint.resume);
    if (c->checkpoint.resume[0] && c->model.init_weights[0])
        return error_set(err, ERR_CONFIG,
                         "model.init_weights and checkpoint.resume_from_checkpoint: only one can "
                         "be given");
    if (!strstr(c->checkpoint.name_format, "{step"))
        return error_set(err, ERR_CONFIG,
                         "checkpoint.name_format: '%s' has no {step}: all checkpoints would be one",
                         c->checkpoint.name_format);
    return check_checkpoint_name(c, err);
}

/* 0 asks for config.json's size: where there is none it would be a size that nobody chose. */
static int check_sizes(const struct config_parser *p, struct error *err)
{
    const struct agent_config *c = &p->config->value;
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        bool has_own = key->offset == KEY_AT(overrides.num_key_value_heads) ||
                       key->offset == KEY_AT(overrides.head_dim);
        if (strcmp(key->group, "model.config_overrides") != 0 || key->type != TYPE_INT ||
            key->low < 0 || has_own || p->config->source[i] < SOURCE_ENVIRONMENT)
            continue;
        int64_t size = *(const int64_t *)((const char *)c + key->offset);
        if (size == 0 && !c->model.name_or_path[0] && !c->model.architecture[0])
            return error_set(err, ERR_CONFIG,
                             "%s.%s: 0 asks for config.json's, but model.name_or_path names none",
                             key->group, key->name);
    }
    return 0;
}

static int check_model(const struct agent_config *c, struct error *err)
{
    if (c->model.init == INIT_PRETRAINED && !c->model.name_or_path[0] && !c->model.init_weights[0])
        return error_set(err, ERR_CONFIG, "model.init=pretrained needs model.name_or_path");
    if (c->rope.type > ROPE_DEFAULT && c->rope.factor < 1)
        return error_set(err, ERR_CONFIG, "model.rope_scaling.factor must be at least 1");
    if (c->rope.type == ROPE_LLAMA3 &&
        (c->rope.low_freq_factor <= 0 || c->rope.high_freq_factor <= c->rope.low_freq_factor ||
         c->rope.original_max_position_embeddings == 0))
        return error_set(err, ERR_CONFIG,
                         "model.rope_scaling.rope_type=llama3 needs low_freq_factor above 0, "
                         "high_freq_factor above that, and original_max_position_embeddings");
    /* Where a config.json has a say, whoever reads it checks the whole. */
    struct architecture ignored;
    if (!config_is_language(c) || c->model.name_or_path[0])
        return 0;
    return config_architecture(c, NULL, &ignored, err);
}

/* The length of the next part of *path, which is moved there; 0: there is none. "." is none. */
static size_t next_component(const char **path)
{
    for (;;) {
        *path += strspn(*path, "/");
        size_t length = strcspn(*path, "/");
        if (length != 1 || **path != '.')
            return length;
        ++*path;
    }
}

/* "./x" and "x" are one. */
static bool is_same_path(const char *a, const char *b)
{
    size_t length;
    if ((*a == '/') != (*b == '/'))
        return false;
    do {
        length = next_component(&a);
        if (next_component(&b) != length || strncmp(a, b, length) != 0)
            return false;
        a += length, b += length;
    } while (length > 0);
    return true;
}

static int check_paths(const struct agent_config *c, struct error *err)
{
    const char *slash = strrchr(c->checkpoint.save_model, '/');
    if (!config_is_language(c) && slash && !slash[1])
        return error_set(err, ERR_CONFIG,
                         "checkpoint.save_model: '%s' is a directory; mnist_cnn is saved as one "
                         "file: add its name (mnist_cnn.safetensors)",
                         c->checkpoint.save_model);
    if (c->logging.csv[0] && is_same_path(c->logging.csv, c->logging.jsonl))
        return error_set(err, ERR_CONFIG,
                         "logging.csv and logging.jsonl are both '%s': name a file for each",
                         c->logging.csv);
    if (!c->data.source.root[0])
        return error_set(err, ERR_CONFIG, "data.root is empty; name a directory");
    if (strchr(c->logging.wandb_run_id, '/'))
        return error_set(err, ERR_CONFIG,
                         "logging.wandb_run_id: '%s' has a '/': it is part of a file's name",
                         c->logging.wandb_run_id);
    if (strspn(c->runtime.gpu_ids, "0123456789,") != strlen(c->runtime.gpu_ids) &&
        strcmp(c->runtime.gpu_ids, "all") != 0)
        return error_set(err, ERR_CONFIG,
                         "runtime.gpu_ids: '%s' is neither all nor numbers separated by commas",
                         c->runtime.gpu_ids);
    if (c->runtime.standalone && strtol(c->runtime.nnodes, NULL, 10) > 1)
        return error_set(err, ERR_CONFIG,
                         "runtime.standalone (main_process_port 0, a free port) is for one pod, "
                         "but runtime.nnodes is %s: name a port that is free on the first",
                         c->runtime.nnodes);
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

static int check_profiler(const struct agent_config *c, struct error *err)
{
    int highest;
    bool several;
    if (!c->profiler.enable)
        return 0;
    if (profile_ranks_check(c->profiler.ranks, &highest, &several, err) ||
        profile_path_check(c->profiler.dir, c->profiler.file, several, c->profiler.repeat_every > 0,
                           err))
        return -1;
    int64_t window = c->profiler.warmup_steps + c->profiler.active_steps;
    if (c->profiler.repeat_every > 0 && c->profiler.repeat_every < window)
        return error_set(err, ERR_CONFIG,
                         "profiler.repeat_every=%lld is less than a trace takes: warmup_steps and "
                         "active_steps are %lld",
                         (long long)c->profiler.repeat_every, (long long)window);
    return 0;
}

/* Slots are there for the bits. What is chosen by time may be another in the next run. */
static int check_bits(const struct agent_config *c, struct error *err)
{
    if (c->runtime.tune && c->runtime.deterministic)
        return error_set(
            err, ERR_CONFIG,
            "runtime.tune=true takes algorithms by their time, so that another run may "
            "have other bits, and runtime.deterministic=true promises equal ones: set "
            "runtime.deterministic=false, or leave runtime.tune out");
    if (c->runtime.deterministic || c->parallel.reduction_slots <= 0)
        return 0;
    return error_set(err, ERR_CONFIG,
                     "parallel.reduction_slots=%lld gives the same bits on fewer ranks, and "
                     "runtime.deterministic=false gives them up: leave one of them out",
                     (long long)c->parallel.reduction_slots);
}

int config_check_rules(const struct config_parser *p, struct error *err)
{
    const struct agent_config *c = &p->config->value;
    return check_optimizer(c, err) || check_checkpoint(c, err) || check_saving(p, err) ||
                   check_sizes(p, err) || check_model(c, err) ||
                   config_check_head(c, config_family(c), err) || config_check_data(c, err) ||
                   check_paths(c, err) || check_loading(p, err) || check_profiler(c, err) ||
                   check_bits(c, err)
               ? -1
               : 0;
}

/* A rate that never reaches optimizer.lr. */
static void warn_schedule(struct config_parser *p)
{
    const struct agent_config *c = &p->config->value;
    bool warms_up =
        c->schedule.type != SCHEDULE_STEP_LR && c->schedule.type != SCHEDULE_HF_CONSTANT;
    if (warms_up && c->schedule.max_steps > 0 && c->schedule.warmup_steps >= c->schedule.max_steps)
        config_add_headline(p->config, p->arena,
                            "schedule.warmup_steps=%lld is not below schedule.max_steps=%lld: the "
                            "rate never reaches optimizer.lr",
                            (long long)c->schedule.warmup_steps, (long long)c->schedule.max_steps);
}

/* A run by epochs has its number of steps from the data: the trainer warns then. */
static void warn_evaluation(struct config_parser *p)
{
    const struct agent_config *c = &p->config->value;
    if (c->eval.strategy == EVAL_STEPS && c->schedule.max_steps > 0 &&
        c->eval.steps > c->schedule.max_steps)
        config_add_headline(p->config, p->arena,
                            "eval.eval_steps=%lld is beyond schedule.max_steps=%lld: the run is "
                            "never evaluated",
                            (long long)c->eval.steps, (long long)c->schedule.max_steps);
}

/* A directory that nobody named. */
static void warn_saving(struct config_parser *p)
{
    const struct agent_config *c = &p->config->value;
    if (c->checkpoint.dir[0] && SOURCE_OF(checkpoint.dir) == SOURCE_PRESET)
        config_add_headline(p->config, p->arena,
                            "checkpoints go to %s, as no checkpoint.dir says otherwise "
                            "(--checkpoint_dir, --output_dir)",
                            c->checkpoint.dir);
}

/* Settings that have no effect, although they are valid. */
void config_warn_rules(struct config_parser *p)
{
    const struct agent_config *c = &p->config->value;
    if (schedule_has_end((enum schedule_type)c->schedule.type) && c->schedule.min_lr > 0 &&
        c->schedule.min_lr >= c->optimizer.lr)
        config_add_headline(p->config, p->arena,
                            "schedule.min_lr is not below optimizer.lr: the rate does not fall");
    warn_schedule(p);
    warn_evaluation(p);
    warn_saving(p);
    if (c->memory.cpu_offload)
        config_warn(p, "memory.cpu_offload slows training a lot: use it where nothing else fits");
    if (!c->parallel.sync_module_states)
        config_warn(p, "parallel.sync_module_states=false is ignored: all ranks begin with the "
                       "same values anyway");
    if (SOURCE_OF(parallel.cpu_ram_efficient_loading) > SOURCE_PRESET &&
        !c->parallel.cpu_ram_efficient_loading)
        config_warn(p, "parallel.cpu_ram_efficient_loading=false is ignored: each rank reads its "
                       "own slices anyway");
    if (c->logging.lang != LANG_EN && c->logging.style != STYLE_T5)
        config_warn(p, "logging.lang is ignored: only the lines of style t5-fsdp have another");
    if (c->model.init_weights[0] && c->model.init == INIT_RANDOM &&
        SOURCE_OF(model.init) > SOURCE_PRESET)
        config_warn(p, "model.init=random is ignored: model.init_weights says where values are");
    config_warn_unused(p);
}
