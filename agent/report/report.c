#include "agent/report/report.h"

#include "agent/report/console.h"
#include "agent/report/progress.h"
#include "agent/report/report_numbers.h"
#include "agent/shard/shard.h"
#include "agent/telemetry/log_lines.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_EVERY_US = 200 * 1000, LINE_BYTES = 16 * 1024 };

struct report {
    struct report_setting setting;
    bool own_lines; /* the tutorial's; false: telemetry prints its own */
    struct progress *progress;
    struct telemetry *telemetry;  /* NULL before the run has begun */
    pthread_mutex_t health_mutex; /* guards the next */
    struct telemetry *health_to;  /* the telemetry, while it is open */
    bool predicts_tokens, on_gpu;
    int64_t begin_us; /* when the trainer was about to be opened */
    int64_t loop_begin_us, progress_us;
    int64_t step_end_us; /* of the last step, or of the pause behind it */
    int64_t eval_begin_us, save_begin_us;
    double stall_s; /* by the save that goes on beside the training */
    struct throughput throughput;
    double first_nonfinite_lr;
    int64_t first_nonfinite_step; /* the first with a loss that is no number; 0: none */
};

static double seconds_since(const struct report *r, int64_t us)
{
    return (double)(r->setting.steady_us() - us) / 1e6;
}

/* ---- lines ---- */

/* Of rank 0. Frees the text. */
static void print(const struct report *r, struct str *text)
{
    if (r->setting.rank == 0)
        log_print(stdout, str_text(text));
    str_free(text);
}

/* A line of the tutorial's. Frees the text. */
static void print_line(const struct report *r, struct str *text)
{
    if (r->own_lines)
        print(r, text);
    else
        str_free(text);
}

/* ---- the beginning ---- */

static void print_data(const struct report *r, const struct trainer_facts *f)
{
    struct str line;
    if (!f->files)
        return;
    str_init(&line, LINE_BYTES);
    str_printf(&line, "Training data: %s, read as %s\n", f->files, f->format);
    print(r, &line);
}

/* Health comes from another thread. */
static void set_health_to(struct report *r, struct telemetry *telemetry)
{
    pthread_mutex_lock(&r->health_mutex);
    r->health_to = telemetry;
    pthread_mutex_unlock(&r->health_mutex);
}

void report_health(struct report *r, const struct telemetry_health *health)
{
    pthread_mutex_lock(&r->health_mutex);
    if (r->health_to)
        telemetry_health(r->health_to, health);
    pthread_mutex_unlock(&r->health_mutex);
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
    print_data(r, f);
    int result = telemetry_open(&r->telemetry, &setting, err);
    set_health_to(r, r->telemetry);
    return result;
}

static void on_event(void *ctx, enum run_event event, const char *path, int64_t epoch)
{
    struct report *r = ctx;
    struct run_moment moment = {.event = event, .path = path, .epoch = epoch};
    if (event == RUN_MODEL_DONE)
        moment.seconds = seconds_since(r, r->begin_us);
    if (r->telemetry)
        telemetry_event(r->telemetry, &moment);
}

/* Lines of other styles, which are other programs', have no word for a restart within the run. */
static void on_resumed(void *ctx, const char *path, int64_t step, int64_t lost)
{
    const struct report *r = ctx;
    struct str line;
    str_init(&line, LINE_BYTES);
    str_printf(&line, "Resumed at step %lld from %s", (long long)step, path);
    if (lost >= 0)
        str_printf(&line, " (%lld step%s lost)", (long long)lost, lost == 1 ? "" : "s");
    str_add(&line, "\n");
    if (lost >= 0)
        print(r, &line);
    else
        print_line(r, &line);
}

static void on_began_anew(void *ctx, const char *dir)
{
    const struct report *r = ctx;
    int64_t style = r->setting.config->value.logging.style;
    struct str line;
    if (style == STYLE_ADT || style == STYLE_T5) /* have their own */
        return;
    str_init(&line, LINE_BYTES);
    str_printf(&line, "No checkpoint in %s yet: training starts from the beginning\n", dir);
    print(r, &line);
}

static void on_weights(void *ctx, const char *path, const char *warnings)
{
    struct str line;
    str_init(&line, LINE_BYTES);
    if (path)
        str_printf(&line, "Initial weights from %s\n", path);
    else
        str_printf(&line, "Initial weights: random\n");
    print(ctx, &line);
    if (warnings[0])
        log_warning("%s", warnings);
}

static void on_skipped(void *ctx, const char *why)
{
    (void)ctx;
    log_warning("passed over: %s", why);
}

static void on_differs(void *ctx, const char *what)
{
    const struct report *r = ctx;
    if (r->setting.rank == 0)
        log_warning("the checkpoint's run was another than this one: %s", what);
}

static void on_notice(void *ctx, const char *what)
{
    const struct report *r = ctx;
    if (r->setting.rank == 0)
        log_warning("%s", what);
}

/* ---- steps ---- */

static void send_progress(struct report *r, const struct run_numbers *step, int64_t now_us)
{
    bool is_last = step->step == step->steps;
    if (r->setting.rank > 0 || (now_us - r->progress_us < PROGRESS_EVERY_US && !is_last))
        return;
    double per_s = throughput_per_s(&r->throughput);
    double samples_left = (double)(step->steps - step->step) * (double)step->samples;
    const struct progress_report report = {
        .epoch = step->epochs_done + 1,
        .epochs = step->epochs,
        .step = step->step,
        .steps = step->steps,
        .loss = step->loss,
        .samples_per_s = per_s,
        .seconds_left = per_s > 0 ? samples_left / per_s : 0,
        .world_size = r->setting.world_size,
    };
    progress_send(r->progress, &report);
    r->progress_us = now_us;
}

/* Once, at the first step that shows it. */
static void warn_if_nonfinite(struct report *r, const struct run_numbers *step)
{
    if (r->first_nonfinite_step > 0 || step->is_empty || isfinite(step->loss))
        return;
    r->first_nonfinite_step = step->step;
    r->first_nonfinite_lr = step->lr;
    if (r->setting.rank > 0)
        return;
    auto_str struct str line;
    str_init(&line, LINE_BYTES);
    console_nonfinite_line(r->first_nonfinite_step, r->first_nonfinite_lr, &line);
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
    print_line(r, &lines);
}

static void on_step(void *ctx, const struct run_numbers *step)
{
    struct report *r = ctx;
    int64_t now_us = r->setting.steady_us();
    struct run_numbers numbers = *step;
    numbers.step_s = (double)(now_us - r->step_end_us) / 1e6;
    r->step_end_us = now_us;
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
    print_line(r, &line);
    if (!r->setting.config->value.memory.log_memory)
        return;
    str_init(&memory, LINE_BYTES);
    console_epoch_memory_lines(score, &memory);
    print(r, &memory);
}

static void on_test_begins(void *ctx)
{
    struct report *r = ctx;
    r->eval_begin_us = r->setting.steady_us();
}

static void on_test(void *ctx, const struct trainer_score *score)
{
    struct report *r = ctx;
    const struct run_eval eval =
        report_eval(score, r->predicts_tokens, seconds_since(r, r->eval_begin_us));
    telemetry_eval(r->telemetry, &eval);
    struct str line;
    str_init(&line, LINE_BYTES);
    console_test_line(score, &line);
    print_line(r, &line);
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
    telemetry_event(r->telemetry, &begin);
}

static void on_save_in_background(void *ctx)
{
    struct report *r = ctx;
    r->stall_s = seconds_since(r, r->save_begin_us);
    skip_pause(r);
}

static void report_save(struct report *r, const struct trainer_save *saved, bool failed)
{
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
    print_line(ctx, &line);
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
    if (r->first_nonfinite_step > 0) {
        str_add(&text, "Warning: ");
        console_nonfinite_line(r->first_nonfinite_step, r->first_nonfinite_lr, &text);
        str_add(&text, "\n");
    }
    print(r, &text);
}

/* ---- life cycle ---- */

struct report *report_open(const struct report_setting *setting)
{
    struct report *r = xcalloc(1, sizeof *r);
    r->setting = *setting;
    r->own_lines = setting->config->value.logging.style == STYLE_NONE;
    r->progress = progress_open(setting->progress_socket);
    r->begin_us = setting->steady_us();
    pthread_mutex_init(&r->health_mutex, NULL);
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
    set_health_to(r, NULL);
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
        .resumed = on_resumed,
        .began_anew = on_began_anew,
        .weights = on_weights,
        .skipped = on_skipped,
        .differs = on_differs,
        .notice = on_notice,
    };
}
