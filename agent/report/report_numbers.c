#include "agent/report/report_numbers.h"

#include "agent/plan/run_plan_facts.h"
#include "agent/plan/trainer_settings.h"
#include "agent/telemetry/flops.h"
#include "agent/telemetry/serving.h"
#include "base/json_text.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

/* ---- the beginning ---- */

static struct run_facts facts_of(const struct report_setting *s, const struct trainer_facts *f)
{
    static const char *const precisions[] = {[PRECISION_FP32] = "fp32",
                                             [PRECISION_BF16_MIXED] = "bf16",
                                             [PRECISION_BF16_TRUE] = "bf16-true"};
    const struct agent_config *c = &s->config->value;
    const struct flops_shape shape = run_plan_flops_shape(c, &f->language, f->parameters, f->T);
    struct run_facts facts = {
        .model = f->model,
        .strategy = f->strategy,
        .precision = trainer_is_fp8(c) ? "fp8" : precisions[c->precision.mixed],
        .preset = s->config->preset,
        .device = f->device,
        .predicts_tokens = f->predicts_tokens,
        .job = s->job,
        .run = c->runtime.rdzv_id,
        .run_id = s->run_id,
        .node = s->node,
        .pod_namespace = s->pod_namespace,
        .rank = s->rank,
        .local_rank = s->local_rank,
        .world_size = s->world_size,
        .restarts = s->restarts,
        .parameters = f->parameters,
        .steps = f->steps,
        .epochs = trainer_epochs(c),
        .peak_flops_per_s = flops_peak_per_s(f->device_model),
    };
    for (int i = 0; f->T > 0 && i < FLOPS_CONVENTIONS; i++)
        facts.flops_per_token[i] = flops_per_token(&shape, (enum run_convention)i);
    return facts;
}

/* The configuration as values of JSON. */
static void list_config(const struct report_setting *s, struct arena *arena, struct wandb_run *run)
{
    struct config_entry *entries;
    run->config_count = config_entries(s->config, arena, &entries);
    struct wandb_item *items = arena_array(arena, struct wandb_item, run->config_count);
    auto_str struct str text;
    str_init(&text, WANDB_RECORD_MAX_BYTES);
    for (int i = 0; i < run->config_count; i++) {
        str_clear(&text);
        json_text(entries[i].value, &text);
        items[i] = (struct wandb_item){entries[i].key, entries[i].is_number
                                                           ? entries[i].value
                                                           : arena_strdup(arena, str_text(&text))};
    }
    run->config = items;
}

/* NULL: no record is asked for. */
static const struct wandb_setting *wandb_setting_of(const struct report_setting *s,
                                                    struct arena *arena)
{
    const struct agent_config *c = &s->config->value;
    struct wandb_setting *w = arena_new(arena, struct wandb_setting);
    *w = (struct wandb_setting){
        .dir = c->logging.wandb_dir,
        .run = {.id = c->logging.wandb_run_id,
                .entity = c->logging.wandb_entity,
                .project = c->logging.wandb_project,
                .name = c->logging.wandb_run_name,
                .group = c->logging.wandb_group,
                .job_type = c->logging.wandb_job_type,
                .notes = c->logging.wandb_notes,
                .tags = c->logging.wandb_tags,
                .host = s->pod},
        .logs_models = c->logging.log_model,
        .words = c->logging.style == STYLE_FABRIC ? WORDS_FABRIC : WORDS_TAGS,
    };
    list_config(s, arena, &w->run);
    return c->logging.wandb ? w : NULL;
}

/* By more than a preset. */
static bool is_set_by_user(const struct report_setting *s, const void *field)
{
    return config_source_of(s->config, field) > SOURCE_PRESET;
}

void report_telemetry_setting(const struct report_setting *s, const struct trainer_facts *f,
                              struct arena *arena, struct telemetry_setting *ret_setting)
{
    const struct agent_config *c = &s->config->value;
    const struct serving_rank serving = {.rank = s->rank,
                                         .local_rank = s->local_rank,
                                         .shares_machine = s->shares_machine,
                                         .in_pod = s->in_pod};
    *ret_setting = (struct telemetry_setting){
        .facts = facts_of(s, f),
        .lines = {.style = (enum log_style)c->logging.style,
                  .lang = (enum log_language)c->logging.lang,
                  .every = c->logging.steps},
        .out = stdout,
        .csv = c->logging.csv,
        .jsonl = c->logging.jsonl,
        .tensorboard_dir = c->logging.tensorboard_dir,
        .wandb = wandb_setting_of(s, arena),
        .needs_tensorboard = is_set_by_user(s, &c->logging.tensorboard_dir),
        .needs_wandb =
            is_set_by_user(s, &c->logging.wandb) || is_set_by_user(s, &c->logging.wandb_dir),
        .http_host = serving_host(&serving, c->logging.http_addr),
        .http_port = (int)c->logging.http_port,
        /* whoever named the port, and who scrapes a pod, looks there and nowhere else */
        .http_port_moves = !s->in_pod && !is_set_by_user(s, &c->logging.http_port),
        .gpu_metrics = c->logging.gpu_metrics && strcmp(f->device, "cuda") == 0,
        .gpu_names = (enum gpu_names)c->logging.metric_names,
        .gpu_labels = {.driver = "",
                       .hostname = s->node,
                       .pod_namespace = s->pod_namespace,
                       .pod = s->pod,
                       .container = "",
                       .job = s->job},
        .gpu_interval_s = c->logging.gpu_interval_s,
        .watches_hardware = c->runtime.leave_bad_hardware && s->in_pod && s->local_rank == 0 &&
                            strcmp(f->device, "cuda") == 0,
        .trainjob = s->trainjob,
        .termination_log = s->termination_log,
        .page = s->page,
        .healthy_within_s = c->runtime.timeout_s,
        .wall_us = s->wall_us,
        .steady_us = s->steady_us,
    };
}

struct run_eval report_eval(const struct trainer_score *score, bool predicts_tokens, double seconds)
{
    return (struct run_eval){
        .step = score->step,
        .loss = score->loss,
        .perplexity = predicts_tokens ? exp(score->loss) : (double)NAN,
        .accuracy = score->samples > 0 ? score->correct / score->samples : (double)NAN,
        .seconds = seconds,
    };
}
