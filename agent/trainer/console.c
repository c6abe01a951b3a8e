#include "agent/trainer/console.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPORT_EVERY_US = 200 * 1000, LINE_BYTES = 16 * 1024 };

struct console {
    struct console_setting setting;
    int64_t loop_begin_us, reported_us, step_end_us;
    struct throughput throughput;
    double lost_lr;
    int64_t lost_step; /* the first with a loss that is no number; 0: none */
};

/* ---- pure ---- */

/* "nan" without the sign that it may have, which tells nothing. */
static double plain(double loss)
{
    return isnan(loss) ? (double)NAN : loss;
}

void console_lost_line(int64_t step, double lr, struct str *out)
{
    str_printf(
        out,
        "the loss is no number any more since step %lld (lr %.6g): the training diverged and "
        "the model is of no use; try a smaller learning rate",
        (long long)step, lr);
}

void throughput_add(struct throughput *t, int64_t samples, int64_t now_us)
{
    t->seen++;
    t->samples += samples;
    t->last_us = now_us;
    t->last_samples = t->samples;
    if (t->seen <= CONSOLE_WARM_UP_STEPS) {
        t->first_us = now_us;
        t->first_samples = t->samples;
    } else {
        t->steps++;
    }
}

void throughput_skip(struct throughput *t, int64_t us)
{
    t->first_us += us;
    t->last_us += us;
}

double throughput_per_s(const struct throughput *t)
{
    if (t->steps == 0 || t->last_us <= t->first_us)
        return 0;
    return (double)(t->last_samples - t->first_samples) * 1e6 / (double)(t->last_us - t->first_us);
}

void console_epoch_line(const struct trainer_score *score, struct str *out)
{
    str_printf(out, "Train Epoch: %lld \tLoss: %.6f\n", (long long)score->epoch,
               plain(score->loss_sum / score->samples));
}

void console_test_line(const struct trainer_score *score, struct str *out)
{
    str_printf(out, "Test set: Average loss: %.4f, Accuracy: %.0f/%.0f (%.2f%%)\n\n",
               plain(score->loss_sum / score->samples), score->correct, score->samples,
               100 * score->correct / score->samples);
}

void console_step_line(const struct trainer_step *step, double samples_per_s, struct str *out)
{
    str_printf(out, "Epoch %lld | Step %lld/%lld | Loss: %.4f | lr: %.6g | %.0f samples/s\n",
               (long long)step->position.epoch + 1, (long long)step->position.step,
               (long long)step->steps, plain(step->loss), step->lr, samples_per_s);
}

void console_memory_line(const struct memory_use *use, struct str *out)
{
    const double mib = 1024 * 1024;
    str_printf(out, "Peak memory per rank: %.2f MiB, each kind at its own time (%lld bytes:",
               (double)use->peak_total_bytes / mib, (long long)use->peak_total_bytes);
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        str_printf(out, " %s %lld", memory_kind_name((enum memory_kind)kind),
                   (long long)use->peak_bytes[kind]);
    str_add(out, ")\n");
}

void console_epoch_memory_lines(const struct trainer_score *score, struct str *out)
{
    const int64_t mib = 1024 * 1024;
    str_printf(out,
               "Memory before entering the train : %lld\n"
               "Memory consumed at the end of the train (end-begin): %lld\n"
               "Peak Memory consumed during the train (max-begin): %lld\n"
               "Total Peak Memory consumed during the train (max): %lld\n",
               (long long)(score->memory_begin_bytes / mib),
               (long long)((score->memory_end_bytes - score->memory_begin_bytes) / mib),
               (long long)((score->memory_peak_bytes - score->memory_begin_bytes) / mib),
               (long long)(score->memory_peak_bytes / mib));
}

void console_throughput_line(const struct throughput *t, int world_size, struct str *out)
{
    if (t->steps > 0)
        str_printf(out, "Throughput: %.1f samples/s (%d ranks, %lld steps)\n", throughput_per_s(t),
                   world_size, (long long)t->steps);
    else
        str_printf(out, "Throughput: not known, the first %d steps do not count\n",
                   CONSOLE_WARM_UP_STEPS);
}

/* ---- the listener ---- */

static void print(const struct console *c, struct str *text)
{
    if (c->setting.rank == 0) {
        fputs(str_text(text), stdout);
        fflush(stdout);
    }
    str_free(text);
}

/* A line of the tutorial's. */
static void say(const struct console *c, struct str *text)
{
    if (c->setting.own_lines)
        print(c, text);
    else
        str_free(text);
}

static void report(struct console *c, const struct trainer_step *step, int64_t now_us)
{
    double per_s = throughput_per_s(&c->throughput);
    double samples_left = (double)(step->steps - step->position.step) * (double)step->samples;
    const struct progress_report r = {
        .epoch = step->position.epoch + 1,
        .epochs = step->epochs,
        .step = step->position.step,
        .steps = step->steps,
        .loss = step->loss,
        .samples_per_s = per_s,
        .seconds_left = per_s > 0 ? samples_left / per_s : 0,
        .world_size = c->setting.world_size,
    };
    progress_send(c->setting.progress, &r);
    c->reported_us = now_us;
}

/* Once, at the first step that shows it. */
static void warn_if_lost(struct console *c, const struct trainer_step *step)
{
    if (c->lost_step > 0 || isfinite(step->loss))
        return;
    c->lost_step = step->position.step;
    c->lost_lr = step->lr;
    if (c->setting.rank > 0)
        return;
    auto_str struct str line;
    str_init(&line, LINE_BYTES);
    console_lost_line(c->lost_step, c->lost_lr, &line);
    log_warning("%s", str_text(&line));
}

static void on_step(void *ctx, const struct trainer_step *step)
{
    struct console *c = ctx;
    int64_t now_us = c->setting.now_us();
    throughput_add(&c->throughput, step->samples, now_us);
    warn_if_lost(c, step);
    c->step_end_us = now_us;
    struct str lines;
    str_init(&lines, LINE_BYTES);
    if (c->throughput.seen == 1)
        str_printf(&lines, "First step done %.2f s after the start\n",
                   (double)(now_us - c->setting.start_us) / 1e6);
    if (c->setting.logging_steps > 0 && step->position.step % c->setting.logging_steps == 0)
        console_step_line(step, throughput_per_s(&c->throughput), &lines);
    say(c, &lines);
    bool due = now_us - c->reported_us >= REPORT_EVERY_US || step->position.step == step->steps;
    if (c->setting.rank == 0 && due)
        report(c, step, now_us);
}

/* What took place since the last step was no training. */
static void skip_pause(void *ctx)
{
    struct console *c = ctx;
    int64_t now_us = c->setting.now_us();
    if (c->step_end_us > 0)
        throughput_skip(&c->throughput, now_us - c->step_end_us);
    c->step_end_us = now_us;
}

static void on_epoch(void *ctx, const struct trainer_score *score)
{
    struct str line;
    str_init(&line, LINE_BYTES);
    console_epoch_line(score, &line);
    say(ctx, &line);
    const struct console *c = ctx;
    if (!c->setting.log_memory)
        return;
    struct str memory;
    str_init(&memory, LINE_BYTES);
    console_epoch_memory_lines(score, &memory);
    print(c, &memory);
}

static void on_test(void *ctx, const struct trainer_score *score)
{
    struct str line;
    str_init(&line, LINE_BYTES);
    console_test_line(score, &line);
    say(ctx, &line);
    skip_pause(ctx);
}

static void on_saved(void *ctx, const struct trainer_save *save)
{
    struct str line;
    str_init(&line, LINE_BYTES);
    str_printf(&line, "Checkpoint saved at step %lld: %s\n", (long long)save->step, save->path);
    say(ctx, &line);
    skip_pause(ctx);
}

static void on_not_saved(void *ctx, int64_t step, const char *why)
{
    (void)step;
    const struct console *c = ctx;
    if (c->setting.rank == 0)
        log_error("%s: the training goes on without it", why);
}

static void on_resumed(void *ctx, const char *path, int64_t step)
{
    struct str line;
    str_init(&line, LINE_BYTES);
    str_printf(&line, "Resumed at step %lld from %s\n", (long long)step, path);
    say(ctx, &line);
}

static void on_weights(void *ctx, const char *path, const char *unused)
{
    struct str line;
    str_init(&line, LINE_BYTES);
    str_printf(&line, "Initial weights from %s\n", path);
    print(ctx, &line);
    if (unused[0])
        log_warning("%s", unused);
}

static void on_skipped(void *ctx, const char *why)
{
    (void)ctx;
    log_warning("passed over: %s", why);
}

static void on_differs(void *ctx, const char *what)
{
    const struct console *c = ctx;
    if (c->setting.rank == 0)
        log_warning("not the run that saved the checkpoint: %s", what);
}

static void on_notice(void *ctx, const char *what)
{
    const struct console *c = ctx;
    if (c->setting.rank == 0)
        log_warning("%s", what);
}

/* ---- life cycle ---- */

struct console *console_open(const struct console_setting *setting)
{
    struct console *c = xcalloc(1, sizeof *c);
    c->setting = *setting;
    return c;
}

void console_close(struct console *c)
{
    if (!c)
        return;
    progress_close(c->setting.progress);
    free(c);
}

struct trainer_listener console_listener(struct console *c)
{
    return (struct trainer_listener){
        .ctx = c,
        .step = on_step,
        .epoch = on_epoch,
        .test = on_test,
        .save_goes_on = skip_pause,
        .saved = on_saved,
        .not_saved = on_not_saved,
        .resumed = on_resumed,
        .weights = on_weights,
        .skipped = on_skipped,
        .differs = on_differs,
        .notice = on_notice,
    };
}

void console_begin(struct console *c)
{
    c->loop_begin_us = c->setting.now_us();
}

void console_end(struct console *c, const struct module *module, const struct memory_use *use)
{
    struct str text;
    str_init(&text, 256 * 1024);
    if (c->setting.own_lines) {
        str_printf(&text, "%s elapsed time on training loop %.6gsec\n",
                   c->setting.on_gpu ? "CUDA event" : "CPU",
                   (double)(c->setting.now_us() - c->loop_begin_us) / 1e6);
        module_print(module, true, &text);
        str_add(&text, "\n");
    }
    console_throughput_line(&c->throughput, c->setting.world_size, &text);
    console_memory_line(use, &text);
    if (c->lost_step > 0) {
        str_add(&text, "Warning: ");
        console_lost_line(c->lost_step, c->lost_lr, &text);
        str_add(&text, "\n");
    }
    print(c, &text);
}
