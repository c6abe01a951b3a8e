#include "agent/reporter.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

struct reporter {
    struct reporter_parts parts;
    const struct trainer *trainer; /* NULL: not yet */
    int64_t last_us;               /* when the last step, evaluation or save ended */
    int64_t opened_us;
    bool told_built, resumed;
    bool at_epoch_end; /* the last step was its epoch's last */
};

static double since(struct reporter *r, int64_t *from_us)
{
    int64_t now_us = r->parts.now_us();
    double seconds = (double)(now_us - *from_us) / 1e6;
    *from_us = now_us;
    return seconds;
}

static void tell(struct reporter *r, enum run_event event, const char *path)
{
    const struct run_moment moment = {
        .event = event, .path = path, .at_epoch_end = r->at_epoch_end};
    telemetry_tell(r->parts.telemetry, &moment);
}

/* Once, when all of it is there: before the first thing that is done with it. */
static void tell_built(struct reporter *r)
{
    if (r->told_built)
        return;
    r->told_built = true;
    const struct run_moment done = {.event = RUN_MODEL_DONE, .seconds = since(r, &r->opened_us)};
    telemetry_tell(r->parts.telemetry, &done);
    tell(r, RUN_WRAPPED, NULL);
    tell(r, RUN_OPTIMIZER_DONE, NULL);
}

/* ---- what the trainer tells ---- */

static double epochs_done(const struct trainer_step *s)
{
    /* as far as it is known how many steps an epoch has */
    double fraction = s->steps > 0 ? (double)s->position.step / (double)s->steps : 0;
    double done = fraction * (double)s->epochs, whole = (double)s->position.epoch;
    return s->position.epoch_samples > 0 && done > whole && done < whole + 1 ? done : whole;
}

static void on_step(void *ctx, const struct trainer_step *s)
{
    struct reporter *r = ctx;
    const struct comm_stats *stats = &r->parts.world->stats;
    struct run_numbers n = {
        .step = s->position.step,
        .steps = s->steps,
        .epoch = epochs_done(s),
        .loss = s->loss,
        .grad_norm = s->grad_norm,
        .lr = s->lr,
        .next_lr = s->next_lr,
        .samples = s->samples,
        .tokens = s->tokens,
        .step_s = since(r, &r->last_us),
        .nonfinite_steps = s->nonfinite_steps,
        .skipped_steps = s->skipped_steps,
        .collectives = {[RUN_ALL_GATHER] = stats->all_gathers,
                        [RUN_REDUCE_SCATTER] = stats->reduce_scatters,
                        [RUN_ALL_REDUCE] = stats->all_reduces,
                        [RUN_BROADCAST] = stats->broadcasts},
        .collective_bytes = stats->bytes_sent,
    };
    memcpy(n.phase_s, s->phase_s, sizeof n.phase_s);
    if (r->trainer)
        trainer_memory_use(r->trainer, &n.memory);
    r->at_epoch_end = s->position.epoch_samples == 0;
    telemetry_step(r->parts.telemetry, &n);
    if (r->parts.console.step)
        r->parts.console.step(r->parts.console.ctx, s);
}

static void on_epoch(void *ctx, const struct trainer_score *score)
{
    struct reporter *r = ctx;
    r->at_epoch_end = true;
    if (r->parts.console.epoch)
        r->parts.console.epoch(r->parts.console.ctx, score);
}

static void on_test(void *ctx, const struct trainer_score *score)
{
    struct reporter *r = ctx;
    const struct run_eval eval = {
        .step = score->step,
        .loss = score->samples > 0 ? score->loss : (double)NAN,
        .perplexity = r->parts.is_language ? exp(score->loss) : (double)NAN,
        .accuracy = score->samples > 0 ? score->correct / score->samples : (double)NAN,
        .seconds = since(r, &r->last_us),
    };
    telemetry_eval(r->parts.telemetry, &eval);
    if (r->parts.console.test)
        r->parts.console.test(r->parts.console.ctx, score);
}

/* The trainer tells of a save when it has ended: what a thread of its own did meanwhile is not in
 * the time. */
static void on_saved(void *ctx, const char *path, int64_t step)
{
    struct reporter *r = ctx;
    struct run_save save = {.step = step, .path = path, .at_epoch_end = r->at_epoch_end};
    save.seconds = save.held_up_s = since(r, &r->last_us);
    tell(r, RUN_SAVE_BEGIN, path);
    telemetry_checkpoint(r->parts.telemetry, &save);
    if (r->parts.console.saved)
        r->parts.console.saved(r->parts.console.ctx, path, step);
}

static void on_not_saved(void *ctx, int64_t step, const char *why)
{
    struct reporter *r = ctx;
    struct run_save save = {.step = step, .path = "", .failed = true};
    save.seconds = save.held_up_s = since(r, &r->last_us);
    telemetry_checkpoint(r->parts.telemetry, &save);
    if (r->parts.console.not_saved)
        r->parts.console.not_saved(r->parts.console.ctx, step, why);
}

static void on_resumed(void *ctx, const char *path, int64_t step)
{
    struct reporter *r = ctx;
    tell_built(r);
    r->resumed = true;
    tell(r, RUN_LOAD_BEGIN, path);
    tell(r, RUN_LOAD_MODEL_DONE, path);
    tell(r, RUN_LOAD_OPTIMIZER_DONE, path);
    tell(r, RUN_LOAD_DONE, path);
    if (r->parts.console.resumed)
        r->parts.console.resumed(r->parts.console.ctx, path, step);
}

static void on_weights(void *ctx, const char *path, const char *unused)
{
    struct reporter *r = ctx;
    if (r->parts.console.weights)
        r->parts.console.weights(r->parts.console.ctx, path, unused);
}

/* why: "PATH: reason; PATH: reason". */
static void on_skipped(void *ctx, const char *why)
{
    struct reporter *r = ctx;
    char path[PATH_BYTES];
    tell_built(r);
    for (const char *at = why; at; at = strstr(at, "; "), at = at ? at + 2 : NULL) {
        const char *end = strstr(at, ": ");
        snprintf(path, sizeof path, "%.*s", (int)(end ? end - at : 0), at);
        if (path[0] && !strchr(path, ' '))
            tell(r, RUN_INCOMPLETE, path);
    }
    if (r->parts.console.skipped)
        r->parts.console.skipped(r->parts.console.ctx, why);
}

static void on_differs(void *ctx, const char *what)
{
    struct reporter *r = ctx;
    if (r->parts.console.differs)
        r->parts.console.differs(r->parts.console.ctx, what);
}

static bool stop_asked(void *ctx)
{
    struct reporter *r = ctx;
    return r->parts.console.stop_asked && r->parts.console.stop_asked(r->parts.console.ctx);
}

/* ---- life cycle ---- */

struct reporter *reporter_open(const struct reporter_parts *parts)
{
    struct reporter *r = xcalloc(1, sizeof *r);
    r->parts = *parts;
    r->opened_us = r->last_us = parts->now_us();
    tell(r, RUN_MODEL_BEGIN, NULL);
    return r;
}

void reporter_close(struct reporter *r)
{
    if (!r)
        return;
    telemetry_close(r->parts.telemetry);
    free(r);
}

struct trainer_listener reporter_listener(struct reporter *r)
{
    return (struct trainer_listener){
        .ctx = r,
        .step = on_step,
        .epoch = on_epoch,
        .test = on_test,
        .saved = on_saved,
        .not_saved = on_not_saved,
        .resumed = on_resumed,
        .weights = on_weights,
        .skipped = on_skipped,
        .differs = on_differs,
        .stop_asked = stop_asked,
    };
}

void reporter_begin(struct reporter *r, const struct trainer *trainer)
{
    tell_built(r);
    if (!r->resumed)
        tell(r, RUN_NO_CHECKPOINT, NULL);
    r->trainer = trainer;
    r->last_us = r->parts.now_us();
}
