#include "agent/report/report.h"

#include "agent/report/console.h"
#include "agent/report/progress.h"
#include "agent/report/report_internal.h"
#include "agent/report/report_numbers.h"
#include "agent/shard/shard.h"
#include "agent/telemetry/log_lines.h"
#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_EVERY_US = 200 * 1000 };

static double seconds_since(const struct report *r, int64_t us)
{
    return (double)(r->setting.steady_us() - us) / 1e6;
}

/* All since the last time was of this kind. */
static void spend(struct report *r, enum time_kind kind)
{
    time_account_add(&r->account, kind, r->setting.steady_us());
}

/* ---- the beginning ---- */

/* Health comes from another thread. */
static void set_health_to(struct report *r, struct telemetry *telemetry)
{
    pthread_mutex_lock(&r->health_mutex);
    r->health_to = telemetry;
    pthread_mutex_unlock(&r->health_mutex);
}

static void send_ranks(struct report *r, const char *ranks_json)
{
    if (!progress_is_heard(r->progress))
        return;
    auto_str struct str text;
    str_init(&text, PROGRESS_RANKS_MAX_BYTES);
    str_printf(&text, "{\"" PROGRESS_RANKS "\":%s}", ranks_json);
    if (!text.truncated)
        progress_send_text(r->progress, str_text(&text));
}

void report_health(struct report *r, const struct telemetry_health *health)
{
    send_ranks(r, health->ranks_json);
    pthread_mutex_lock(&r->health_mutex);
    if (r->health_to)
        telemetry_health(r->health_to, health);
    pthread_mutex_unlock(&r->health_mutex);
}

/* As of telemetry.h. */
static void send_numbers(void *progress, const char *numbers)
{
    progress_send_text(progress, numbers);
}

/* The first step may be far away. */
static void send_url(struct report *r)
{
    char url[TELEMETRY_URL_BYTES];
    telemetry_url(r->telemetry, url);
    if (r->setting.rank == 0 && url[0])
        progress_send(r->progress,
                      &(struct progress_report){.world_size = r->setting.world_size, .url = url});
}

static int on_began(void *ctx, const struct trainer_facts *f, struct error *err)
{
    struct report *r = ctx;
    auto_arena struct arena *arena = arena_open();
    struct telemetry_setting setting;
    report_telemetry_setting(&r->setting, f, arena, &setting);
    r->predicts_tokens = f->predicts_tokens;
    r->on_gpu = strcmp(f->device, "cpu") != 0;
    r->step_end_us = r->setting.steady_us();
    setting.account = &r->account;
    spend(r, TIME_INITIALIZATION);
    report_print_data(r, f);
    if (progress_is_heard(r->progress)) {
        setting.tell = send_numbers;
        setting.tell_context = r->progress;
    }
    int result = telemetry_open(&r->telemetry, &setting, err);
    set_health_to(r, r->telemetry);
    if (result == 0)
        send_url(r);
    return result;
}

static void on_event(void *ctx, enum run_event event, const char *path, int64_t epoch)
{
    struct report *r = ctx;
    struct run_moment moment = {.event = event, .path = path, .epoch = epoch};
    if (event == RUN_LOAD_BEGIN) {
        spend(r, TIME_INITIALIZATION);
        r->account.going_on = TIME_RESTORE;
    }
    if (event == RUN_LOAD_DONE) {
        spend(r, TIME_RESTORE);
        r->account.going_on = TIME_INITIALIZATION;
    }
    if (event == RUN_MODEL_DONE)
        moment.seconds = seconds_since(r, r->begin_us);
    if (r->telemetry)
        telemetry_event(r->telemetry, &moment);
}

/* ---- steps ---- */

static void send_progress(struct report *r, const struct run_numbers *step, int64_t now_us)
{
    bool is_last = step->step == step->steps;
    if (r->setting.rank > 0 || (now_us - r->progress_us < PROGRESS_EVERY_US && !is_last))
        return;
    double per_s = throughput_per_s(&r->throughput);
    double samples_left = (double)(step->steps - step->step) * (double)step->samples;
    char url[TELEMETRY_URL_BYTES];
    telemetry_url(r->telemetry, url);
    const struct progress_report report = {
        .epoch = step->epochs_done + 1,
        .epochs = step->epochs,
        .step = step->step,
        .steps = step->steps,
        .loss = step->loss,
        .samples_per_s = per_s,
        .seconds_left = per_s > 0 ? samples_left / per_s : 0,
        .world_size = r->setting.world_size,
        .url = url,
    };
    progress_send(r->progress, &report);
    r->progress_us = now_us;
}

static void warn_if_nonfinite(struct report *r, const struct run_numbers *step)
{
    auto_str struct str line;
    str_init(&line, LINE_BYTES);
    nonfinite_watch_step(&r->nonfinite, step, &line);
    if (r->setting.rank == 0 && line.length > 0)
        log_warning("%s", str_text(&line));
}

static void print_step(const struct report *r, const struct run_numbers *step, int64_t now_us)
{
    int64_t every = r->setting.config->value.logging.steps;
    struct str lines;
    str_init(&lines, LINE_BYTES);
    if (r->throughput.seen == 1)
        str_printf(&lines, "First step done %.2f s after the start\n",
                   (double)(now_us - r->setting.start_us) / 1e6);
    if (every > 0 && step->step % every == 0)
        console_step_line(step, throughput_per_s(&r->throughput), &lines);
    report_print_line(r, &lines);
}

static void on_step(void *ctx, const struct run_numbers *step)
{
    struct report *r = ctx;
    int64_t now_us = r->setting.steady_us();
    struct run_numbers numbers = *step;
    numbers.step_s = (double)(now_us - r->step_end_us) / 1e6;
    r->step_end_us = now_us;
    time_account_step(&r->account, step->phase_s[PHASE_DATA], r->done_before > 0, now_us);
    r->account.going_on = step->step == step->steps ? TIME_OTHER : TIME_LOST_WORK;
    r->done_before -= r->done_before > 0;
    telemetry_step(r->telemetry, &numbers);
    throughput_add(&r->throughput, step->samples, now_us);
    warn_if_nonfinite(r, step);
    print_step(r, step, now_us);
    send_progress(r, step, now_us);
}

/* What took place since the last step was no training, and is no part of the next one. */
static void skip_pause(struct report *r)
{
    int64_t now_us = r->setting.steady_us();
    throughput_skip(&r->throughput, now_us - r->step_end_us);
    r->step_end_us = now_us;
}

static void on_epoch(void *ctx, const struct trainer_score *score)
{
    const struct report *r = ctx;
    struct str line, memory;
    str_init(&line, LINE_BYTES);
    console_epoch_line(score, &line);
    report_print_line(r, &line);
    if (!r->setting.config->value.memory.log_memory)
        return;
    str_init(&memory, LINE_BYTES);
    console_epoch_memory_lines(score, &memory);
    report_print(r, &memory);
}

static void on_test_begins(void *ctx)
{
    struct report *r = ctx;
    r->eval_begin_us = r->setting.steady_us();
    r->before_pause = r->account.going_on;
    r->account.going_on = TIME_EVALUATION;
}

static void on_test(void *ctx, const struct trainer_score *score)
{
    struct report *r = ctx;
    spend(r, TIME_EVALUATION);
    r->account.going_on = r->before_pause;
    const struct run_eval eval =
        report_eval(score, r->predicts_tokens, seconds_since(r, r->eval_begin_us));
    telemetry_eval(r->telemetry, &eval);
    struct str line;
    str_init(&line, LINE_BYTES);
    console_test_line(score, &line);
    report_print_line(r, &line);
    skip_pause(r);
}

/* ---- checkpoints ---- */

static void on_save_begins(void *ctx, const struct trainer_save *save)
{
    struct report *r = ctx;
    skip_pause(r);
    r->save_begin_us = r->setting.steady_us();
    r->before_pause = r->account.going_on;
    r->account.going_on = TIME_SAVE;
    const struct run_moment begin = {.event = RUN_SAVE_BEGIN,
                                     .path = save->path,
                                     .at_epoch_end = save->at_epoch_end,
                                     .epoch = save->epoch};
    telemetry_event(r->telemetry, &begin);
}

static void on_save_in_background(void *ctx)
{
    struct report *r = ctx;
    r->stall_s = seconds_since(r, r->save_begin_us);
    spend(r, TIME_SAVE);
    r->account.going_on = r->before_pause;
    skip_pause(r);
}

static void report_save(struct report *r, const struct trainer_save *saved, bool failed)
{
    spend(r, TIME_SAVE);
    r->account.going_on = r->before_pause;
    const struct run_save save = {
        .step = saved->step,
        .path = saved->path,
        .seconds = seconds_since(r, r->save_begin_us),
        .stall_s = r->stall_s + seconds_since(r, r->step_end_us),
        .bytes = saved->bytes,
        .at_epoch_end = saved->at_epoch_end,
        .epoch = saved->epoch,
        .failed = failed,
    };
    telemetry_checkpoint(r->telemetry, &save);
    r->stall_s = 0;
    skip_pause(r);
}

static void on_saved(void *ctx, const struct trainer_save *save)
{
    report_save(ctx, save, false);
    struct str line;
    str_init(&line, LINE_BYTES);
    str_printf(&line, "Checkpoint saved at step %lld: %s\n", (long long)save->step, save->path);
    report_print_line(ctx, &line);
}

static void on_save_failed(void *ctx, int64_t step, const char *why)
{
    const struct report *r = ctx;
    report_save(ctx, &(struct trainer_save){.path = "", .step = step}, true);
    if (r->setting.rank == 0)
        log_error("%s: the training goes on without it", why);
}

/* ---- the end ---- */

void report_begin(struct report *r)
{
    r->loop_begin_us = r->setting.steady_us();
    spend(r, TIME_INITIALIZATION);
    r->account.going_on = TIME_LOST_WORK; /* until the step is completed */
}

void report_end(struct report *r, const struct module *module, const struct memory_use *use)
{
    struct str text;
    str_init(&text, 256 * 1024);
    if (r->own_lines) {
        bool copied = r->setting.config->value.parallel.strategy == NO_SHARD;
        str_printf(&text, "%s elapsed time on training loop ", r->on_gpu ? "CUDA event" : "CPU");
        log_lines_float32(seconds_since(r, r->loop_begin_us) * 1000, 1000, &text);
        str_add(&text, "sec\n");
        module_print(module, copied ? MODULE_COPIED : MODULE_UNITS, &text);
        str_add(&text, "\n");
    }
    console_throughput_line(&r->throughput, r->setting.world_size, &text);
    console_memory_line(use, &text);
    spend(r, TIME_OTHER);
    console_time_line(&r->account, &text);
    nonfinite_watch_end(&r->nonfinite, &text);
    report_print(r, &text);
}

/* ---- life cycle ---- */

struct report *report_open(const struct report_setting *setting)
{
    struct report *r = xcalloc(1, sizeof *r);
    r->setting = *setting;
    r->own_lines = setting->config->value.logging.style == STYLE_NONE;
    r->progress = progress_open(setting->progress_socket);
    r->begin_us = setting->steady_us();
    r->account = time_account_open(setting->start_us);
    time_account_add(&r->account, TIME_INITIALIZATION, setting->meeting_us);
    time_account_add(&r->account, TIME_PEER_WAIT, r->begin_us);
    pthread_mutex_init(&r->health_mutex, NULL);
    return r;
}

bool report_bad_hardware(struct report *r, bool last, char ret_sign[GPU_SIGN_BYTES])
{
    return r->telemetry && telemetry_bad_hardware(r->telemetry, last, ret_sign);
}

void report_failed(struct report *r, int exit_code, const char *why)
{
    time_account_fail(&r->account, r->setting.steady_us());
    if (r->telemetry)
        telemetry_failed(r->telemetry, exit_code, why);
}

void report_close(struct report *r)
{
    if (!r)
        return;
    set_health_to(r, NULL);
    spend(r, TIME_OTHER);
    telemetry_close(r->telemetry);
    pthread_mutex_destroy(&r->health_mutex);
    progress_close(r->progress);
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
        .save_in_background = on_save_in_background,
        .saved = on_saved,
        .save_failed = on_save_failed,
        .resumed = report_on_resumed,
        .began_anew = report_on_began_anew,
        .weights = report_on_weights,
        .skipped = report_on_skipped,
        .differs = report_on_differs,
        .info = report_on_info,
        .notice = report_on_notice,
    };
}
