#include "agent/telemetry/telemetry.h"

#include "agent/telemetry/gpu_poller.h"
#include "agent/telemetry/run_files.h"
#include "agent/telemetry/run_metrics.h"
#include "agent/telemetry/run_server.h"
#include "agent/telemetry/serving.h"
#include "agent/telemetry/status_json.h"
#include "agent/telemetry/termination_log.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/page.h"
#include "kernels/device.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX_BYTES = 64 * 1024, PUBLISH_EVERY_US = 200 * 1000 };

struct telemetry {
    struct telemetry_setting setting;
    struct run_state state;
    struct run_files *files;
    int exit_code;
    struct run_server *server;               /* NULL: not served */
    struct gpu_poller *poller;               /* NULL: no GPU metrics */
    struct trainjob_status *trainjob;        /* NULL: nobody asks */
    struct termination_log *termination_log; /* NULL: nobody reads one */
    int64_t logged_us;                       /* when that was written last */
    int64_t published_us;
    struct str text; /* of the lines that are being written */
};

/* ---- HTTP ---- */

static void add_gpu_page(void *ctx, const char *text, size_t bytes)
{
    struct telemetry *t = ctx;
    if (t->server && t->setting.gpu_metrics)
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
        .slowdown_ms = GPU_SLOWDOWN_MS,
        .page = add_gpu_page,
        .ctx = t,
    };
    struct error err;
    if (gpus == 0)
        log_warning("no GPU metrics: CUDA reports no PCI address of a GPU");
    else if (gpu_poller_open(&t->poller, &setting, &err) < 0)
        log_warning("no GPU metrics: %s", err.msg);
}

static int open_server_at(struct telemetry *t, int port, struct error *err)
{
    const struct run_server_setting setting = {.host = t->setting.http_host,
                                               .port = port,
                                               .healthy_within_s = t->setting.healthy_within_s,
                                               .sign_of_life_ms = PAGE_SIGN_OF_LIFE_MS,
                                               .steady_us = t->setting.steady_us,
                                               .keeper = t->setting.page};
    return run_server_open(&t->server, &setting, &t->state, err);
}

/* At the port, or if it may move at the next one that is free: other runs of the machine have those
 * before it. What else is wrong with an address is so at all ports. */
static int open_server_near(struct telemetry *t, struct error *err)
{
    enum { PORTS_TRIED = 64, PORT_MAX = 65535 };
    const struct telemetry_setting *s = &t->setting;
    int result = open_server_at(t, s->http_port, err), port = s->http_port;
    struct error why = *err;
    for (int i = 0; i < PORTS_TRIED && port < PORT_MAX; i++) {
        if (result == 0 || !s->http_port_moves || why.code != ERR_EXISTS)
            break;
        result = open_server_at(t, ++port, &why);
    }
    if (result == 0 && port != s->http_port) {
        char url[TELEMETRY_URL_BYTES];
        telemetry_url(t, url);
        log_info("port %d is in use: this run is served at %s", s->http_port, url);
    }
    return result;
}

static void open_server(struct telemetry *t)
{
    const struct telemetry_setting *s = &t->setting;
    struct error err;
    if (!s->http_host || s->http_port == 0)
        return;
    if (open_server_near(t, &err) < 0)
        log_warning("%s; the run is not served over HTTP (--prometheus_port, --prometheus_addr)",
                    err.msg);
    t->published_us = s->steady_us();
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

/* Whoever outlives this process and accounts for it. */
static bool has_accountant(const struct telemetry *t)
{
    return t->termination_log || (t->setting.tell && t->setting.facts.rank == 0);
}

static void log_numbers(struct telemetry *t, const char *why)
{
    if (!has_accountant(t))
        return;
    str_clear(&t->text);
    status_json_training(&t->state, &t->text);
    if (t->termination_log)
        termination_log_write(t->termination_log, why, str_text(&t->text));
    if (t->setting.tell)
        t->setting.tell(t->setting.tell_context, str_text(&t->text));
    t->logged_us = t->setting.steady_us();
}

/* Steps of a millisecond do not each write the pages anew. */
static void serve(struct telemetry *t, enum field_event event)
{
    int64_t log_us = t->logged_us + (int64_t)TERMINATION_LOG_INTERVAL_MS * 1000;
    if (has_accountant(t) && t->setting.steady_us() >= log_us)
        log_numbers(t, NULL);
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
    run_files_write(t->files, FIELD_STEP, NULL);
    serve(t, FIELD_STEP);
}

void telemetry_eval(struct telemetry *t, const struct run_eval *eval)
{
    run_state_eval(&t->state, eval, t->setting.wall_us());
    telemetry_event(t, &(struct run_moment){.event = RUN_EVAL, .seconds = eval->seconds});
    run_files_write(t->files, FIELD_EVAL, NULL);
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
    run_files_write(t->files, FIELD_SAVE, save->failed ? NULL : save->path);
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
    run_server_add_hung(t->server, health->hung_rank, health->hung_node, health->last_hang);
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
    t->state.account = setting->account;
    if (setting->account)
        t->state.process_wall_us =
            t->state.start_wall_us - (setting->steady_us() - setting->account->begin_us);
    if (run_files_open(&t->files, &t->setting, &t->state, err) < 0) {
        t->setting.lines.style = STYLE_NONE;
        telemetry_close(t);
        return -1;
    }
    open_server(t);
    if ((t->server && setting->gpu_metrics) || setting->watches_hardware)
        open_poller(t);
    open_trainjob(t);
    if (setting->facts.rank == 0 && setting->termination_log)
        t->termination_log = termination_log_open(setting->termination_log);
    log_numbers(t, NULL);
    publish_trainjob(t, false);
    *ret_telemetry = t;
    return 0;
}

void telemetry_failed(struct telemetry *t, int exit_code, const char *why)
{
    t->exit_code = exit_code;
    log_numbers(t, why);
    if (t->server)
        run_server_failed(t->server, &t->state);
}

void telemetry_close(struct telemetry *t)
{
    if (!t)
        return;
    if (t->exit_code == 0 || t->state.steps > 0) /* what failed before has no times to report */
        telemetry_event(t, &(struct run_moment){.event = RUN_END});
    publish_trainjob(t, t->exit_code == 0);
    if (t->exit_code == 0) /* else what went wrong is there */
        log_numbers(t, NULL);
    termination_log_close(t->termination_log);
    trainjob_status_close(t->trainjob);
    gpu_poller_close(t->poller);
    run_server_close(t->server);
    run_files_close(t->files, t->exit_code);
    str_free(&t->text);
    free(t);
}

bool telemetry_bad_hardware(struct telemetry *t, bool last, char ret_sign[GPU_SIGN_BYTES])
{
    enum { LAST_LOOK_MS = 2000 };
    if (!t->poller || !t->setting.watches_hardware)
        return false;
    if (last)
        gpu_poller_look(t->poller, LAST_LOOK_MS);
    return gpu_poller_sign(t->poller, ret_sign);
}

int telemetry_port(const struct telemetry *t)
{
    return t->server ? run_server_port(t->server) : 0;
}

void telemetry_url(const struct telemetry *t, char ret_url[TELEMETRY_URL_BYTES])
{
    ret_url[0] = '\0';
    if (t->server)
        serving_url(t->setting.http_host, telemetry_port(t), ret_url, TELEMETRY_URL_BYTES);
}
