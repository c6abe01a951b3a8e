#include "agent/trainer/report.h"

#include "agent/telemetry/flops.h"
#include "agent/telemetry/json_row.h"
#include "agent/telemetry/telemetry.h"
#include "agent/trainer/run_plan_facts.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct report {
    struct report_setting setting;
    struct trainer_listener console;
    struct telemetry *telemetry; /* NULL before the run has begun */
    double epoch_samples;        /* of all ranks; 0: not known */
    bool predicts_tokens;
    int64_t begin_us; /* when the trainer was about to be opened */
    int64_t step_end_us, eval_begin_us, save_begin_us;
    double held_up_s; /* by the save that goes on beside the training */
};

static double seconds_since(const struct report *r, int64_t us)
{
    return (double)(r->setting.steady_us() - us) / 1e6;
}

/* ---- the beginning ---- */

static struct run_facts facts_of(const struct report *r, const struct trainer_facts *f)
{
    static const char *const precisions[] = {[PRECISION_FP32] = "fp32",
                                             [PRECISION_BF16_MIXED] = "bf16",
                                             [PRECISION_BF16_TRUE] = "bf16-true"};
    const struct agent_config *c = &r->setting.config->value;
    const struct flops_shape shape = run_plan_flops_shape(c, &f->language, f->parameters, f->T);
    struct run_facts facts = {
        .model = f->model,
        .strategy = f->strategy,
        .precision = precisions[c->precision.mixed],
        .preset = r->setting.config->preset,
        .device = f->device,
        .predicts_tokens = f->predicts_tokens,
        .job = r->setting.job,
        .run = c->runtime.rdzv_id,
        .node = r->setting.node,
        .rank = r->setting.rank,
        .local_rank = r->setting.local_rank,
        .world_size = r->setting.world_size,
        .restarts = r->setting.restarts,
        .parameters = f->parameters,
        .steps = f->steps,
        .epochs = c->schedule.epochs,
        .peak_flops_per_s = flops_peak_per_s(f->device),
    };
    for (int i = 0; f->T > 0 && i < FLOPS_CONVENTIONS; i++)
        facts.flops_per_token[i] = flops_per_token(&shape, (enum run_convention)i);
    return facts;
}

/* The configuration as values of JSON. */
static void list_config(const struct report *r, struct arena *arena, struct wandb_run *run)
{
    struct config_entry *entries;
    run->config_count = config_entries(r->setting.config, arena, &entries);
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
static const struct wandb_setting *wandb_setting_of(const struct report *r, struct arena *arena)
{
    const struct agent_config *c = &r->setting.config->value;
    struct wandb_setting *s = arena_new(arena, struct wandb_setting);
    *s = (struct wandb_setting){
        .dir = c->logging.wandb_dir,
        .run = {.id = c->logging.wandb_run_id,
                .entity = c->logging.wandb_entity,
                .project = c->logging.wandb_project,
                .name = c->logging.wandb_run_name,
                .group = c->logging.wandb_group,
                .job_type = c->logging.wandb_job_type,
                .notes = c->logging.wandb_notes,
                .tags = c->logging.wandb_tags,
                .host = r->setting.pod},
        .logs_models = c->logging.log_model,
        .words = c->logging.style == STYLE_FABRIC ? WORDS_FABRIC : WORDS_TAGS,
    };
    list_config(r, arena, &s->run);
    return c->logging.wandb ? s : NULL;
}

static int on_began(void *ctx, const struct trainer_facts *f, struct error *err)
{
    struct report *r = ctx;
    const struct agent_config *c = &r->setting.config->value;
    auto_arena struct arena *arena = arena_open();
    const struct telemetry_setting setting = {
        .facts = facts_of(r, f),
        .lines = {.style = (enum log_style)c->logging.style,
                  .lang = (enum log_language)c->logging.lang,
                  .every = c->logging.steps},
        .out = stdout,
        .csv = c->logging.csv,
        .jsonl = c->logging.jsonl,
        .tensorboard_dir = c->logging.tensorboard_dir,
        .wandb = wandb_setting_of(r, arena),
        .http_host = c->logging.http_addr,
        .http_port = (int)c->logging.http_port,
        .gpu_metrics = c->logging.gpu_metrics && strcmp(f->device, "cuda") == 0,
        .gpus_visible = r->setting.gpus_visible,
        .gpu_names = (enum gpu_names)c->logging.metric_names,
        .gpu_place = {.driver = "",
                      .hostname = r->setting.node,
                      .pod_namespace = r->setting.pod_namespace,
                      .pod = r->setting.pod,
                      .container = "",
                      .job = r->setting.job},
        .gpu_interval_s = c->logging.gpu_interval_s,
        .healthy_within_s = c->runtime.timeout_s,
        .wall_us = r->setting.wall_us,
        .steady_us = r->setting.steady_us,
    };
    r->epoch_samples = (double)f->epoch_samples;
    r->predicts_tokens = f->predicts_tokens;
    r->step_end_us = r->setting.steady_us();
    return telemetry_open(&r->telemetry, &setting, err);
}

static void on_event(void *ctx, enum run_event event, const char *path, int64_t epoch)
{
    struct report *r = ctx;
    struct run_moment moment = {.event = event, .path = path, .epoch = epoch};
    if (event == RUN_MODEL_DONE)
        moment.seconds = seconds_since(r, r->begin_us);
    if (r->telemetry)
        telemetry_tell(r->telemetry, &moment);
}

/* ---- steps ---- */

static void on_step(void *ctx, const struct trainer_step *step)
{
    struct report *r = ctx;
    int64_t now_us = r->setting.steady_us();
    struct run_numbers n = {
        .step = step->position.step,
        .epoch = (double)step->position.epoch,
        .loss = step->loss,
        .grad_norm = step->grad_norm,
        .lr = step->lr,
        .next_lr = step->next_lr,
        .samples = step->samples,
        .tokens = step->tokens,
        .step_s = (double)(now_us - r->step_end_us) / 1e6,
        .memory = step->memory,
        .nonfinite_steps = step->nonfinite_steps,
        .skipped_steps = step->skipped_steps,
        .collectives = {step->traffic.all_gathers, step->traffic.reduce_scatters,
                        step->traffic.all_reduces, step->traffic.broadcasts},
        .collective_bytes = step->traffic.bytes_sent,
    };
    /* Every micro-batch but an epoch's last has as many samples. */
    int64_t micro_samples = r->setting.config->value.data.train_batch_size * r->setting.world_size;
    n.epochs_done = step->position.epoch;
    n.micro_batches = (step->samples + micro_samples - 1) / micro_samples;
    n.micro_batch =
        (step->position.epoch_samples + micro_samples - 1) / micro_samples - n.micro_batches;
    if (r->epoch_samples > 0)
        n.epoch += (double)step->position.epoch_samples / r->epoch_samples;
    memcpy(n.phase_s, step->phase_s, sizeof n.phase_s);
    r->step_end_us = now_us;
    telemetry_step(r->telemetry, &n);
    r->console.step(r->console.ctx, step);
}

static void on_epoch(void *ctx, const struct trainer_score *score)
{
    struct report *r = ctx;
    r->console.epoch(r->console.ctx, score);
}

/* Time between steps is not a step's. */
static void skip_pause(struct report *r)
{
    r->step_end_us = r->setting.steady_us();
}

static void on_test_begins(void *ctx)
{
    struct report *r = ctx;
    r->eval_begin_us = r->setting.steady_us();
}

static void on_test(void *ctx, const struct trainer_score *score)
{
    struct report *r = ctx;
    const struct run_eval eval = {
        .step = score->step,
        .loss = score->loss,
        .perplexity = r->predicts_tokens ? exp(score->loss) : (double)NAN,
        .accuracy = score->samples > 0 ? score->correct / score->samples : (double)NAN,
        .seconds = seconds_since(r, r->eval_begin_us),
    };
    telemetry_eval(r->telemetry, &eval);
    r->console.test(r->console.ctx, score);
    skip_pause(r);
}

/* ---- checkpoints ---- */

static void on_save_begins(void *ctx, const struct trainer_save *save)
{
    struct report *r = ctx;
    skip_pause(r);
    r->save_begin_us = r->setting.steady_us();
    const struct run_moment begin = {.event = RUN_SAVE_BEGIN,
                                     .path = save->path,
                                     .at_epoch_end = save->at_epoch_end,
                                     .epoch = save->epoch};
    telemetry_tell(r->telemetry, &begin);
}

static void on_save_goes_on(void *ctx)
{
    struct report *r = ctx;
    r->held_up_s = seconds_since(r, r->save_begin_us);
    skip_pause(r);
    r->console.save_goes_on(r->console.ctx);
}

static void tell_save(struct report *r, const struct trainer_save *saved, bool failed)
{
    const struct run_save save = {
        .step = saved->step,
        .path = saved->path,
        .seconds = seconds_since(r, r->save_begin_us),
        .held_up_s = r->held_up_s + seconds_since(r, r->step_end_us),
        .bytes = saved->bytes,
        .at_epoch_end = saved->at_epoch_end,
        .epoch = saved->epoch,
        .failed = failed,
    };
    telemetry_checkpoint(r->telemetry, &save);
    r->held_up_s = 0;
    skip_pause(r);
}

static void on_saved(void *ctx, const struct trainer_save *save)
{
    struct report *r = ctx;
    tell_save(r, save, false);
    r->console.saved(r->console.ctx, save);
}

static void on_not_saved(void *ctx, int64_t step, const char *why)
{
    struct report *r = ctx;
    tell_save(r, &(struct trainer_save){.path = "", .step = step}, true);
    r->console.not_saved(r->console.ctx, step, why);
}

static void on_resumed(void *ctx, const char *path, int64_t step)
{
    struct report *r = ctx;
    r->console.resumed(r->console.ctx, path, step);
}

static void on_weights(void *ctx, const char *path, const char *unused)
{
    struct report *r = ctx;
    r->console.weights(r->console.ctx, path, unused);
}

static void on_skipped(void *ctx, const char *why)
{
    struct report *r = ctx;
    r->console.skipped(r->console.ctx, why);
}

static void on_differs(void *ctx, const char *what)
{
    struct report *r = ctx;
    r->console.differs(r->console.ctx, what);
}

static void on_notice(void *ctx, const char *what)
{
    struct report *r = ctx;
    r->console.notice(r->console.ctx, what);
}

/* ---- life cycle ---- */

struct report *report_open(const struct report_setting *setting)
{
    struct report *r = xcalloc(1, sizeof *r);
    r->setting = *setting;
    r->console = console_listener(setting->console);
    r->begin_us = setting->steady_us();
    return r;
}

void report_failed(struct report *r, int exit_code)
{
    if (r->telemetry)
        telemetry_failed(r->telemetry, exit_code);
}

void report_close(struct report *r)
{
    if (!r)
        return;
    telemetry_close(r->telemetry);
    free(r);
}

struct trainer_listener report_listener(struct report *r)
{
    return (struct trainer_listener){
        .ctx = r,
        .began = on_began,
        .event = on_event,
        .step = on_step,
        .epoch = on_epoch,
        .test_begins = on_test_begins,
        .test = on_test,
        .save_begins = on_save_begins,
        .save_goes_on = on_save_goes_on,
        .saved = on_saved,
        .not_saved = on_not_saved,
        .resumed = on_resumed,
        .weights = on_weights,
        .skipped = on_skipped,
        .differs = on_differs,
        .notice = on_notice,
    };
}
