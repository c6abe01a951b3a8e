/* When the profiler looks: as the configuration plans it. */
#include "agent/comm/agree.h"
#include "agent/trainer/trainer_internal.h"
#include "base/durable.h"
#include "base/log.h"

#include <stdio.h>

static struct profile_plan plan_of(const struct agent_config *c)
{
    return (struct profile_plan){.start_step = c->profiler.start_step,
                                 .warmup_steps = c->profiler.warmup_steps,
                                 .active_steps = c->profiler.active_steps,
                                 .repeat_every = c->profiler.repeat_every};
}

/* Before hours are lost for want of a place; all ranks or none train. */
static int try_dir(struct trainer *t, bool is_mine, struct error *err)
{
    char dir[PATH_MAX];
    int result = 0;
    profile_fixed_dir(t->config->profiler.dir, dir, sizeof dir);
    if (is_mine && durable_try_dir(&file_ops_system, dir, err))
        result = error_wrap(err, "profiler.dir");
    return agree_all(t->world, t->compute, result, err);
}

/* A window that the run does not come to, or is past already. */
static void notify_missed_window(struct trainer *t)
{
    const struct profile_plan p = plan_of(t->config);
    int64_t first = p.start_step + p.warmup_steps + 1, last = first + p.active_steps - 1;
    int64_t steps = data_cursor_steps(&t->cursor);
    char text[192];
    bool is_past = p.repeat_every == 0 && last <= t->cursor.position.step;
    if (!is_past && (steps <= 0 || first <= steps))
        return;
    snprintf(text, sizeof text,
             "there will be no trace: step %lld would be the %s to be traced (profiler.start_step, "
             "warmup_steps), and the run %s with step %lld",
             (long long)(is_past ? last : first), is_past ? "last" : "first",
             is_past ? "begins" : "ends",
             (long long)(is_past ? t->cursor.position.step + 1 : steps));
    t->listener->notice(t->listener->ctx, text);
}

int trainer_open_profiler(struct trainer *t, struct error *err)
{
    const struct agent_config *c = t->config;
    int highest;
    bool several;
    if (!c->profiler.enable)
        return 0;
    if (profile_ranks_check(c->profiler.ranks, &highest, &several, err))
        return -1;
    if (highest >= t->world->size) {
        error_set(err, ERR_CONFIG, "profiler.ranks: there is no rank %d among %d", highest,
                  t->world->size);
        err->shared = true;
        return -1;
    }
    bool is_mine = profile_ranks_have(c->profiler.ranks, t->world->rank);
    if (try_dir(t, is_mine, err))
        return -1;
    notify_missed_window(t);
    if (!is_mine)
        return 0;
    const struct profiler_setting setting = {.rank = t->world->rank,
                                             .world_size = t->world->size,
                                             .memory = c->profiler.memory,
                                             .max_events = PROFILER_MAX_EVENTS};
    t->profiler = profiler_open(&setting);
    t->checkpointer.profiler = t->profiler;
    profiler_add_device(t->profiler, t->device, device_name(t->device));
    if (t->shard_device != t->device)
        profiler_add_device(t->profiler, t->shard_device, "optimizer's host");
    if (t->host)
        profiler_add_device(t->profiler, t->host, "activations' host");
    return 0;
}

/* A trace that cannot be written costs the trace, not the run. */
static void write_trace(struct trainer *t)
{
    const struct agent_config *c = t->config;
    char path[PATH_MAX];
    struct error err;
    bool gzip = profile_is_gzip(c->profiler.file, c->profiler.gzip);
    int rank = t->world->rank;
    enum rank_phase before = activity_enter(t->env.activity, RANK_TRACE);
    profile_path(c->profiler.dir, c->profiler.file, gzip, rank, t->cursor.position.step, path,
                 sizeof path);
    if (profiler_write(t->profiler, path, gzip, &err))
        log_warning("rank %d: no trace of step %lld: %s", rank, (long long)t->cursor.position.step,
                    err.msg);
    else
        log_info("rank %d: traced up to step %lld: %s", rank, (long long)t->cursor.position.step,
                 path);
    activity_enter(t->env.activity, before);
}

void trainer_profile_begin_step(struct trainer *t)
{
    if (!t->profiler)
        return;
    const struct profile_plan plan = plan_of(t->config);
    int64_t step = t->cursor.position.step + 1;
    enum profile_part part = profile_plan_part(&plan, step, &t->profile_is_last);
    /* The warm-up's events are thrown away: a tracer's own start would be seen as the steps'
     * time. */
    if (part == PROFILE_ACTIVE && t->profile_part == PROFILE_WARMUP)
        profiler_discard(t->profiler);
    if (part != PROFILE_OFF && !profiler_is_recording(t->profiler))
        profiler_begin(t->profiler);
    t->profile_part = part;
    profiler_begin_step(t->profiler, step);
}

void trainer_profile_end_step(struct trainer *t, bool was_one)
{
    if (!t->profiler)
        return;
    profiler_end_step(t->profiler, was_one);
    if (!was_one || t->profile_part != PROFILE_ACTIVE || !t->profile_is_last)
        return;
    write_trace(t);
    t->profile_part = PROFILE_OFF;
}

void trainer_close_profiler(struct trainer *t)
{
    if (t->profiler && t->profile_part == PROFILE_ACTIVE && profiler_is_recording(t->profiler))
        write_trace(t);
    profiler_close(t->profiler);
}
