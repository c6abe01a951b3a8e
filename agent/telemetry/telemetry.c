#include "agent/telemetry/telemetry.h"

#include "agent/telemetry/append_file.h"
#include "agent/telemetry/csv.h"
#include "agent/telemetry/gpu_poller.h"
#include "agent/telemetry/json_row.h"
#include "agent/telemetry/run_metrics.h"
#include "agent/telemetry/run_server.h"
#include "agent/telemetry/tensorboard.h"
#include "agent/telemetry/wandb.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernels/device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_MAX_BYTES = 64 * 1024, PUBLISH_EVERY_US = 200 * 1000 };

enum sink { SINK_CSV, SINK_JSONL, SINK_TENSORBOARD, SINKS };

struct telemetry {
    struct telemetry_setting setting;
    struct run_state state;
    struct append_file *files[SINKS]; /* NULL: not written */
    struct wandb *wandb;              /* likewise */
    int exit_code;
    struct run_server *server;        /* NULL: not served */
    struct gpu_poller *poller;        /* NULL: no GPU metrics */
    struct trainjob_status *trainjob; /* NULL: nobody asks */
    int64_t published_us;
    struct str text; /* of the rows or lines that are being written */
};

/* ---- files ---- */

static bool is_fabric(const struct telemetry *t)
{
    return t->setting.lines.style == STYLE_FABRIC;
}

static void add_row(const struct telemetry *t, enum sink sink, enum field_event event,
                    struct str *out)
{
    enum field_words words = is_fabric(t) ? WORDS_FABRIC : WORDS_HF;
    switch (sink) {
    case SINK_CSV:
        csv_row(event, words, &t->state, out);
        break;
    case SINK_JSONL:
        json_row(event, words, &t->state, out);
        str_add(out, "\n");
        break;
    case SINK_TENSORBOARD:
        tensorboard_row(event, is_fabric(t) ? WORDS_FABRIC : WORDS_TAGS, &t->state, out);
        break;
    case SINKS:
        break;
    }
}

/* path: of a checkpoint; NULL: none. */
static void write_rows(struct telemetry *t, enum field_event event, const char *path)
{
    struct error err;
    if (t->wandb && wandb_add_event(t->wandb, event, path, &t->state, &err) < 0) {
        log_warning("%s; nothing more is written to it", err.msg);
        wandb_close(take(t->wandb), t->exit_code, &t->state);
    }
    for (int i = 0; i < SINKS; i++) {
        if (!t->files[i])
            continue;
        str_clear(&t->text);
        add_row(t, (enum sink)i, event, &t->text);
        if (append_file_write(t->files[i], str_text(&t->text), t->text.length, &err) == 0)
            continue;
        log_warning("%s; nothing more is written to it", err.msg);
        append_file_close(take(t->files[i]));
    }
}

static int open_csv(struct telemetry *t, struct error *err)
{
    str_clear(&t->text);
    csv_header(is_fabric(t) ? WORDS_FABRIC : WORDS_HF, &t->text);
    return append_file_open(t->setting.csv, str_text(&t->text), &t->files[SINK_CSV], err);
}

static int open_tensorboard(struct telemetry *t, struct error *err)
{
    char host[HOST_NAME_MAX + 1] = "local";
    auto_str struct str path;
    str_init(&path, TEXT_MAX_BYTES);
    gethostname(host, sizeof host - 1);
    tensorboard_path(t->setting.tensorboard_dir, t->state.start_wall_us, host, getpid(), &path);
    if (append_file_open(str_text(&path), "", &t->files[SINK_TENSORBOARD], err) < 0)
        return -1;
    str_clear(&t->text);
    tensorboard_head(t->state.start_wall_us, &t->text);
    if (append_file_write(t->files[SINK_TENSORBOARD], t->text.text, t->text.length, err) == 0)
        return 0;
    append_file_close(take(t->files[SINK_TENSORBOARD]));
    return -1;
}

/* Nobody but a preset asked for the file: the trainer that it stands in for writes it where it is
 * started, and in a pod that may be a folder of root's. */
static int unless_needed(bool is_needed, int result, const char *key, struct error *err)
{
    if (result == 0)
        return 0;
    if (is_needed)
        return error_wrap(err, "%s", key);
    log_warning("%s: %s; the run goes on without what the preset would write there", key, err->msg);
    return 0;
}

static int open_files(struct telemetry *t, struct error *err)
{
    const struct telemetry_setting *s = &t->setting;
    if (s->facts.rank != 0)
        return 0;
    if (s->csv[0] && open_csv(t, err) < 0)
        return -1;
    if (s->jsonl[0] && append_file_open(s->jsonl, "", &t->files[SINK_JSONL], err) < 0)
        return -1;
    if (s->tensorboard_dir[0] && unless_needed(s->needs_tensorboard, open_tensorboard(t, err),
                                               "logging.tensorboard_dir", err) < 0)
        return -1;
    if (!s->wandb)
        return 0;
    return unless_needed(s->needs_wandb,
                         wandb_open(&t->wandb, s->wandb, t->state.start_wall_us, err),
                         "logging.wandb", err);
}

/* ---- HTTP ---- */

static void add_gpu_page(void *ctx, const char *text, size_t bytes)
{
    struct telemetry *t = ctx;
    run_server_add_metrics(t->server, RUN_SERVER_GPUS, text, bytes);
}

/* Of all GPUs that the pod sees. Without them the run is served all the same. */
static void open_poller(struct telemetry *t)
{
    const struct telemetry_setting *s = &t->setting;
    char pci[GPU_MAX][DEVICE_PCI_BYTES], name[24];
    const char *addresses[GPU_MAX];
    int gpus = 0;
    for (; gpus < GPU_MAX; gpus++) {
        snprintf(name, sizeof name, "cuda:%d", gpus);
        if (!device_pci(name, pci[gpus]))
            break;
        addresses[gpus] = pci[gpus];
    }
    const struct gpu_poller_setting setting = {
        .pci = addresses,
        .gpus = gpus,
        .names = s->gpu_names,
        .labels = s->gpu_labels,
        .interval_ms = (int)(1000 * s->gpu_interval_s),
        .page = add_gpu_page,
        .ctx = t,
    };
    struct error err;
    if (gpus == 0)
        log_warning("no GPU metrics: CUDA reports no PCI address of a GPU");
    else if (gpu_poller_open(&t->poller, &setting, &err) < 0)
        log_warning("no GPU metrics: %s", err.msg);
}

static void open_server(struct telemetry *t)
{
    const struct telemetry_setting *s = &t->setting;
    struct error err;
    if (!s->http_host || s->http_port == 0)
        return;
    if (run_server_open(&t->server, s->http_host, s->http_port, s->healthy_within_s, &t->state,
                        &err) < 0)
        log_warning("%s; the run is not served over HTTP (--prometheus_port, --prometheus_addr)",
                    err.msg);
    t->published_us = s->steady_us();
    if (t->server && s->gpu_metrics)
        open_poller(t);
}

/* Without it the run goes on all the same. */
static void open_trainjob(struct telemetry *t)
{
    const struct trainjob_status_setting *s = &t->setting.trainjob;
    struct error err;
    if (t->setting.facts.rank == 0 && s->url && s->url[0] &&
        trainjob_status_open(&t->trainjob, s, &err) < 0)
        log_warning("the TrainJob does not show this run's progress: %s", err.msg);
}

static void publish_trainjob(struct telemetry *t, bool is_done)
{
    if (!t->trainjob)
        return;
    str_clear(&t->text);
    trainjob_status_format(&t->state, is_done, &t->text);
    trainjob_status_publish(t->trainjob, str_text(&t->text));
}

/* Steps of a millisecond do not each write the pages anew. */
static void serve(struct telemetry *t, enum field_event event)
{
    if (!t->server && !t->trainjob)
        return;
    if (t->server)
        run_server_push(t->server, event, &t->state);
    int64_t now_us = t->setting.steady_us();
    if (event == FIELD_STEP && now_us - t->published_us < PUBLISH_EVERY_US)
        return;
    if (t->server)
        run_server_publish(t->server, &t->state);
    publish_trainjob(t, false);
    t->published_us = now_us;
}

/* ---- what happens ---- */

void telemetry_event(struct telemetry *t, const struct run_moment *moment)
{
    if (t->setting.facts.rank != 0)
        return;
    struct run_moment now = *moment;
    now.wall_us = t->setting.wall_us();
    str_clear(&t->text);
    log_lines(&t->setting.lines, &now, &t->state, &t->text);
    if (t->text.length == 0)
        return;
    log_print(t->setting.out, str_text(&t->text));
}

void telemetry_step(struct telemetry *t, const struct run_numbers *numbers)
{
    run_state_step(&t->state, numbers, t->setting.wall_us());
    telemetry_event(t, &(struct run_moment){.event = RUN_STEP});
    write_rows(t, FIELD_STEP, NULL);
    serve(t, FIELD_STEP);
}

void telemetry_eval(struct telemetry *t, const struct run_eval *eval)
{
    run_state_eval(&t->state, eval, t->setting.wall_us());
    telemetry_event(t, &(struct run_moment){.event = RUN_EVAL, .seconds = eval->seconds});
    write_rows(t, FIELD_EVAL, NULL);
    serve(t, FIELD_EVAL);
}

void telemetry_checkpoint(struct telemetry *t, const struct run_save *save)
{
    run_state_save(&t->state, save, t->setting.wall_us());
    const struct run_moment done = {.event = RUN_SAVE_DONE,
                                    .seconds = save->seconds,
                                    .path = save->path,
                                    .epoch = save->epoch,
                                    .at_epoch_end = save->at_epoch_end};
    if (!save->failed)
        telemetry_event(t, &done);
    write_rows(t, FIELD_SAVE, save->failed ? NULL : save->path);
    serve(t, FIELD_SAVE);
}

void telemetry_health(struct telemetry *t, const struct telemetry_health *health)
{
    auto_str struct str metrics;
    str_init(&metrics, TEXT_MAX_BYTES);
    if (!t->server)
        return;
    run_metrics_print_health(&t->setting.facts, health->hung, health->straggling, &metrics);
    run_server_add_metrics(t->server, RUN_SERVER_HEALTH, str_text(&metrics), metrics.length);
    run_server_add_ranks(t->server, health->ranks_json);
}

/* ---- life cycle ---- */

int telemetry_open(struct telemetry **ret_telemetry, const struct telemetry_setting *setting,
                   struct error *err)
{
    struct telemetry *t = xcalloc(1, sizeof *t);
    t->setting = *setting;
    str_init(&t->text, TEXT_MAX_BYTES);
    run_state_init(&t->state, &setting->facts, setting->wall_us());
    if (open_files(t, err) < 0) {
        t->setting.lines.style = STYLE_NONE;
        telemetry_close(t);
        return -1;
    }
    open_server(t);
    open_trainjob(t);
    publish_trainjob(t, false);
    *ret_telemetry = t;
    return 0;
}

void telemetry_failed(struct telemetry *t, int exit_code)
{
    t->exit_code = exit_code;
}

void telemetry_close(struct telemetry *t)
{
    if (!t)
        return;
    if (t->exit_code == 0 || t->state.steps > 0) /* what failed before has no times to report */
        telemetry_event(t, &(struct run_moment){.event = RUN_END});
    publish_trainjob(t, t->exit_code == 0);
    trainjob_status_close(t->trainjob);
    gpu_poller_close(t->poller);
    run_server_close(t->server);
    for (int i = 0; i < SINKS; i++)
        append_file_close(t->files[i]);
    wandb_close(t->wandb, t->exit_code, &t->state);
    str_free(&t->text);
    free(t);
}

int telemetry_port(const struct telemetry *t)
{
    return t->server ? run_server_port(t->server) : 0;
}
