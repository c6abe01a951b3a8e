/* Keys that mean something under some settings only: told where they were given without them. */
#include "agent/config/config_model.h"
#include "agent/config/config_parser.h"

#include "agent/dataset/token_source.h"
#include "agent/shard/optim.h"
#include "agent/shard/schedule.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

struct need {
    size_t field;     /* of the key, in struct agent_config */
    bool is_met;      /* by the configuration */
    const char *what; /* "... is ignored: it needs WHAT" */
};

static bool is_at_default(const struct config_parser *p, int index)
{
    const struct config_key *key = config_key(index);
    struct agent_config plain = {0};
    struct error ignored; /* defaults are right */
    auto_str struct str now, before;
    str_init(&now, CONFIG_MAX_FILE_BYTES);
    str_init(&before, CONFIG_MAX_FILE_BYTES);
    (void)config_set_value(key, &plain, key->default_value, p->arena, &ignored);
    config_get_value(key, &plain, &before);
    config_get_value(key, &p->config->value, &now);
    return strcmp(str_text(&now), str_text(&before)) == 0;
}

bool config_is_asked_for(const struct config_parser *p, int index)
{
    return p->config->source[index] > SOURCE_PRESET && !p->config->is_resolved[index] &&
           !is_at_default(p, index);
}

static void note_unmet(struct config_parser *p, const struct need *needs, size_t count)
{
    for (int i = 0; i < config_key_count(); i++)
        for (size_t k = 0; k < count; k++)
            if (config_key(i)->offset == needs[k].field && !needs[k].is_met &&
                config_is_asked_for(p, i))
                config_note(p, "%s.%s is ignored: it needs %s", config_key(i)->group,
                            config_key(i)->name, needs[k].what);
}

static void note_optimizer(struct config_parser *p)
{
    static const struct {
        size_t field;
        enum optim_use use;
    } rows[] = {
        {KEY_AT(optimizer.beta1), OPTIM_USES_BETAS},
        {KEY_AT(optimizer.beta2), OPTIM_USES_BETAS},
        {KEY_AT(optimizer.eps), OPTIM_USES_EPS},
        {KEY_AT(optimizer.momentum), OPTIM_USES_MOMENTUM},
        {KEY_AT(optimizer.nesterov), OPTIM_USES_MOMENTUM},
        {KEY_AT(optimizer.rho), OPTIM_USES_RHO},
    };
    unsigned uses = optim_kind(p->config->value.optimizer.name)->uses;
    for (size_t i = 0; i < array_length(rows); i++) {
        char users[64], what[96];
        optim_users(rows[i].use, users, sizeof users);
        snprintf(what, sizeof what, "optimizer.name=%s", users);
        const struct need need = {rows[i].field, uses & rows[i].use, what};
        note_unmet(p, &need, 1);
    }
}

static void note_training(struct config_parser *p)
{
    const struct agent_config *c = &p->config->value;
    bool accumulates = c->optimizer.gradient_accumulation_steps > 1;
    bool by_step = c->schedule.type == SCHEDULE_STEP_LR;
    bool warms_up = !by_step && c->schedule.type != SCHEDULE_HF_CONSTANT;
    bool waves = c->schedule.type == SCHEDULE_HF_COSINE ||
                 c->schedule.type == SCHEDULE_HF_COSINE_WITH_RESTARTS ||
                 c->schedule.type == SCHEDULE_WSD;
    bool evaluates = c->eval.strategy != EVAL_NO;
    bool full = c->checkpoint.dir[0] && c->checkpoint.state_dict_type == STATE_DICT_FULL;
    bool has_dir = c->checkpoint.dir[0];
    const struct need needs[] = {
        {KEY_AT(optimizer.decay_exclude), c->optimizer.weight_decay > 0, "optimizer.weight_decay"},
        {KEY_AT(optimizer.accumulation_sync), accumulates, "gradient_accumulation_steps above 1"},
        {KEY_AT(optimizer.drop_incomplete), accumulates, "gradient_accumulation_steps above 1"},
        {KEY_AT(schedule.plateau_ratio), c->schedule.type == SCHEDULE_PLATEAU,
         "schedule.type=plateau"},
        {KEY_AT(schedule.power), c->schedule.type == SCHEDULE_HF_POLYNOMIAL,
         "schedule.type=hf_polynomial"},
        {KEY_AT(schedule.cooldown_steps), c->schedule.type == SCHEDULE_WSD, "schedule.type=wsd"},
        {KEY_AT(schedule.gamma), by_step, "schedule.type=step"},
        {KEY_AT(schedule.step_size), by_step, "schedule.type=step"},
        {KEY_AT(schedule.unit), by_step, "schedule.type=step"},
        {KEY_AT(schedule.warmup_steps), warms_up, "another schedule.type than step or hf_constant"},
        {KEY_AT(schedule.warmup_ratio), warms_up, "another schedule.type than step or hf_constant"},
        {KEY_AT(schedule.decay_steps), !by_step, "another schedule.type than step"},
        {KEY_AT(schedule.min_lr), !by_step, "another schedule.type than step"},
        {KEY_AT(schedule.num_cycles), waves,
         "schedule.type=hf_cosine, hf_cosine_with_restarts or wsd"},
        {KEY_AT(eval.steps), c->eval.strategy == EVAL_STEPS, "eval.eval_strategy=steps"},
        {KEY_AT(eval.max_batches), evaluates, "an eval.eval_strategy"},
        {KEY_AT(eval.reduction), evaluates, "an eval.eval_strategy"},
        {KEY_AT(data.eval_split), evaluates, "an eval.eval_strategy"},
        {KEY_AT(data.eval_size), evaluates, "an eval.eval_strategy"},
        {KEY_AT(data.eval_batch_size), evaluates, "an eval.eval_strategy"},
        {KEY_AT(checkpoint.prefix), has_dir, "checkpoint.dir"},
        {KEY_AT(checkpoint.name_format), has_dir, "checkpoint.dir"},
        {KEY_AT(checkpoint.state_dict_type), has_dir, "checkpoint.dir"},
        {KEY_AT(checkpoint.max_shard_bytes),
         full || (c->checkpoint.save_model[0] && config_is_language(c)),
         "checkpoint.save_model of a language model, or FULL_STATE_DICT"},
    };
    note_unmet(p, needs, array_length(needs));
}

static void note_layout(struct config_parser *p)
{
    const struct agent_config *c = &p->config->value;
    bool hybrid =
        c->parallel.strategy == HYBRID_SHARD || c->parallel.strategy == HYBRID_SHARD_ZERO2;
    bool shards = c->parallel.strategy != NO_SHARD;
    bool stretched = c->rope.type > ROPE_DEFAULT, llama3 = c->rope.type == ROPE_LLAMA3;
    bool pads = c->data.padding == PADDING_LONGEST, threads = c->data.num_workers > 0;
    bool ids = c->data.format == TOKENS_LLMC || c->data.format == TOKENS_MEGATRON;
    bool columns = !ids && c->data.format != TOKENS_TEXT;
    bool is_language = config_is_language(c);
    const struct need needs[] = {
        {KEY_AT(rope.factor), stretched, "rope_type linear, dynamic or llama3"},
        {KEY_AT(rope.low_freq_factor), llama3, "rope_type=llama3"},
        {KEY_AT(rope.high_freq_factor), llama3, "rope_type=llama3"},
        {KEY_AT(rope.original_max_position_embeddings), llama3, "rope_type=llama3"},
        {KEY_AT(data.pad_to_multiple_of), pads, "data.padding=longest"},
        {KEY_AT(data.prefetch_factor), threads, "data.num_workers above 0"},
        {KEY_AT(data.text_column), columns, "rows: data.format jsonl, hf_arrow, tsv or csv"},
        {KEY_AT(data.shuffle_buffer), !ids, "documents: token files are shuffled whole"},
        {KEY_AT(data.add_bos), !ids, "documents: token files have their ids"},
        {KEY_AT(data.add_eos), !ids, "documents: token files have their ids"},
        {KEY_AT(parallel.min_num_params), c->parallel.wrap_policy == WRAP_SIZE,
         "auto_wrap_policy=SIZE_BASED_WRAP"},
        {KEY_AT(parallel.wrap_classes), c->parallel.wrap_policy == WRAP_TRANSFORMER,
         "auto_wrap_policy=TRANSFORMER_BASED_WRAP"},
        {KEY_AT(parallel.shard_group_size), hybrid, "a HYBRID strategy"},
        {KEY_AT(parallel.backward_prefetch), shards, "another strategy than NO_SHARD"},
        {KEY_AT(parallel.forward_prefetch), shards, "another strategy than NO_SHARD"},
        {KEY_AT(parallel.limit_all_gathers), shards, "another strategy than NO_SHARD"},
        {KEY_AT(memory.activation_checkpointing), is_language, "a language model"},
        {KEY_AT(memory.offload_activations), is_language, "a language model"},
        {KEY_AT(memory.activation_loading_horizon), c->memory.offload_activations,
         "memory.offload_activations"},
    };
    note_unmet(p, needs, array_length(needs));
}

static void note_run(struct config_parser *p)
{
    const struct agent_config *c = &p->config->value;
    bool wandb = c->logging.wandb, server = c->logging.http_port > 0, trace = c->profiler.enable;
    bool gpus = strcmp(c->runtime.device, "cpu") != 0;
    bool gpu_metrics = server && gpus && c->logging.gpu_metrics;
    const struct need needs[] = {
        {KEY_AT(logging.wandb_dir), wandb, "logging.wandb=offline"},
        {KEY_AT(logging.wandb_entity), wandb, "logging.wandb=offline"},
        {KEY_AT(logging.wandb_project), wandb, "logging.wandb=offline"},
        {KEY_AT(logging.wandb_run_name), wandb, "logging.wandb=offline"},
        {KEY_AT(logging.wandb_run_id), wandb, "logging.wandb=offline"},
        {KEY_AT(logging.wandb_group), wandb, "logging.wandb=offline"},
        {KEY_AT(logging.wandb_job_type), wandb, "logging.wandb=offline"},
        {KEY_AT(logging.wandb_tags), wandb, "logging.wandb=offline"},
        {KEY_AT(logging.wandb_notes), wandb, "logging.wandb=offline"},
        {KEY_AT(logging.log_model), wandb, "logging.wandb=offline"},
        {KEY_AT(logging.http_addr), server, "logging.prometheus_port"},
        {KEY_AT(logging.metric_names), gpu_metrics, "logging.gpu_metrics, a GPU and a port"},
        {KEY_AT(logging.gpu_interval_s), gpu_metrics, "logging.gpu_metrics, a GPU and a port"},
        {KEY_AT(profiler.dir), trace, "profiler.enable"},
        {KEY_AT(profiler.file), trace, "profiler.enable"},
        {KEY_AT(profiler.start_step), trace, "profiler.enable"},
        {KEY_AT(profiler.warmup_steps), trace, "profiler.enable"},
        {KEY_AT(profiler.active_steps), trace, "profiler.enable"},
        {KEY_AT(profiler.repeat_every), trace, "profiler.enable"},
        {KEY_AT(profiler.ranks), trace, "profiler.enable"},
        {KEY_AT(profiler.memory), trace, "profiler.enable"},
        {KEY_AT(profiler.gzip), trace, "profiler.enable"},
        {KEY_AT(runtime.monitor_interval_s), c->runtime.max_restarts > 0, "runtime.max_restarts"},
        {KEY_AT(runtime.log_dir), c->runtime.redirects[0] || c->runtime.tee[0],
         "runtime.redirects or runtime.tee"},
        {KEY_AT(runtime.share_gpus), gpus, "another runtime.device than cpu"},
        {KEY_AT(runtime.gpu_ids), gpus, "another runtime.device than cpu"},
        {KEY_AT(runtime.register_buffers), gpus, "another runtime.device than cpu"},
        {KEY_AT(runtime.collectives), gpus, "another runtime.device than cpu"},
        {KEY_AT(runtime.concurrent_collectives), gpus, "another runtime.device than cpu"},
        {KEY_AT(runtime.heartbeat_timeout_s), gpus, "another runtime.device than cpu"},
        {KEY_AT(runtime.collective_notes), gpus, "another runtime.device than cpu"},
        {KEY_AT(runtime.abort_collectives), gpus, "another runtime.device than cpu"},
        {KEY_AT(runtime.exit_if_stuck), gpus, "another runtime.device than cpu"},
        {KEY_AT(runtime.dump_on_timeout), gpus, "another runtime.device than cpu"},
        {KEY_AT(runtime.dump_path), gpus && c->runtime.dump_on_timeout,
         "GPUs, and runtime.dump_on_timeout"},
    };
    note_unmet(p, needs, array_length(needs));
}

void config_note_unmet(struct config_parser *p)
{
    note_optimizer(p);
    note_training(p);
    note_layout(p);
    note_run(p);
}
