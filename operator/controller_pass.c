#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/board/board.h"
#include "operator/controller_internal.h"
#include "operator/job/condition.h"
#include "operator/pass.h"

enum { PARALLEL_MAX = 32 /* requests of one plan */ };

/* What a job becomes is reported with its events (executor.c), but for what has none. */
static void log_new_conditions(const char *key, const struct job_status *before,
                               const struct job_status *after)
{
    for (size_t i = 0; i < after->condition_count; i++) {
        const struct condition *condition = &after->conditions[i];
        bool is_quiet =
            condition->type == CONDITION_CREATED || condition->type == CONDITION_RUNNING;
        if (is_quiet && condition->status && !condition_is_true(before, condition->type))
            log_info("%s: %s: %s", key, condition->reason, condition->message);
    }
}

/* Of a status that was written. */
static void on_written(struct controller *c, const char *key, const struct job_status *before,
                       const struct job_status *after)
{
    log_new_conditions(key, before, after);
    metrics_status_written(c->metrics, key, before, after);
}

/* Before what its status becomes is counted. */
static void count(struct controller *c, const char *key, const struct snapshot *snapshot)
{
    if (metrics_job_seen(c->metrics, key, snapshot->job, snapshot->status, snapshot->now_ms))
        log_warning("more than %d jobs are at work: /metrics does not tell of the others how their "
                    "time is spent",
                    METRICS_MAX_JOBS);
}

/* ---- the end of a plan ---- */

static void on_over(void *context, const char *key, const struct executor_outcome *outcome)
{
    struct controller *c = context;
    const struct active_plan *active = active_plans_find(&c->active, key);
    const struct job *job = active->job->job;
    const struct job_status *status = outcome->written ? outcome->written : active->status;
    if (outcome->written)
        on_written(c, key, active->status, outcome->written);
    if (outcome->job_deleted)
        metrics_job_deleted(c->metrics, job->namespace_);
    controller_due_at(c, key, status, outcome->requeue_ms);
    if (outcome->expects_changes)
        controller_due_in(c, key, status, EXPECT_MAX_MS);
    if (outcome->failure) {
        c->failed_passes++;
        int64_t now_ms = c->options.clocks->steady_ms();
        int64_t again_ms = queue_failed(c->queue, key, now_ms);
        log_write(outcome->is_new ? LOG_WARNING : LOG_DEBUG, "%s: %s (retry in %" PRId64 " ms)",
                  key, outcome->failure->msg, clock_until_ms(again_ms, now_ms));
    } else {
        queue_succeeded(c->queue, key);
    }
    active_plans_remove(&c->active, key);
}

static bool on_unseen_change(void *context, enum expectation_kind kind, bool is_old,
                             int64_t since_ms)
{
    static const enum cache_kind kinds[EXPECTATION_KINDS] = {
        [EXPECTATION_JOB] = CACHE_JOBS,
        [EXPECTATION_POD] = CACHE_PODS,
        [EXPECTATION_SERVICE] = CACHE_SERVICES,
        [EXPECTATION_POD_GROUP] = CACHE_POD_GROUPS,
        [EXPECTATION_AUTOSCALER] = CACHE_AUTOSCALERS,
        [EXPECTATION_WORKLOAD] = CACHE_WORKLOADS};
    const struct controller *c = context;
    return informers_relist_if_silent(c->informers, kinds[kind], since_ms) ||
           (is_old && informers_relist_outdated(c->informers, kinds[kind]));
}

void controller_pass_open(struct controller *c)
{
    const struct executor_options executor = {.pod = c->options.pod,
                                              .init = c->options.init,
                                              .parallel_max = PARALLEL_MAX,
                                              .clocks = c->options.clocks,
                                              .over = on_over,
                                              .unseen_change = on_unseen_change,
                                              .context = c};
    c->executor = executor_open(c->kube, &executor);
}

void controller_pass_drop_all(struct controller *c)
{
    while (c->active.count > 0) {
        const char *key = c->active.plans[0].key;
        executor_cancel(c->executor, key);
        queue_done(c->queue, key);
        active_plans_remove(&c->active, key);
    }
}

/* ---- one pass ---- */

/* The job of a popped key is no more. */
static void forget(struct controller *c, const char *key)
{
    executor_forget(c->executor, key);
    asker_follow(c->asker, key, NULL);
    board_forget(c->options.board, key);
    metrics_forget_job(c->metrics, key);
    queue_forget(c->queue, key);
    queue_done(c->queue, key);
}

/* It is too early for this job. Takes the job. */
static void put_off(struct controller *c, const char *key, struct cached_job *job, int64_t ms)
{
    controller_due_in(c, key, job->status, ms);
    queue_done(c->queue, key);
    cache_release_job(job);
}

/* There is nothing to ask of anybody. Takes the job. */
static void rest(struct controller *c, const char *key, struct cached_job *job,
                 const struct pass *pass)
{
    if (pass->again)
        controller_due_in(c, key, job->status, 0);
    controller_due_at(c, key, job->status, pass->requeue_ms);
    queue_succeeded(c->queue, key);
    cache_release_job(job);
}

/* What a pass goes by, beside the cache and the executor. */
static struct pass_options options_of(const struct controller *c, const char *key,
                                      const struct cached_job *job)
{
    struct pass_options options = {.reconcile = c->options.reconcile,
                                   .list_forbidden = informers_forbidden(c->informers),
                                   .heard = asker_heard(c->asker, key),
                                   .quiet = asker_is_quiet(c->asker, key),
                                   .pods_behind =
                                       informers_are_behind(c->informers, CACHE_PODS, job->object),
                                   .pods_away = informers_are_away(c->informers, CACHE_PODS),
                                   .now_ms = c->options.clocks->wall_ms()};
    options.reconcile.autoscaling = c->autoscaling != NULL;
    if (c->options.kueue)
        options.reconcile.kueue = c->kueue ? KUEUE_SEEN : KUEUE_UNSEEN;
    return options;
}

void controller_pass_over(struct controller *c, const char *key, enum queue_lane lane)
{
    struct cached_job *job = cache_acquire_job(c->cache, key);
    if (!job) {
        if (executor_is_of_the_past(c->executor, key, NULL, NULL, NULL))
            informers_list_anew(c->informers);
        forget(c, key);
        return;
    }
    auto_arena struct arena *arena = arena_open();
    const struct pass_options options = options_of(c, key, job);
    const struct pass pass = pass_over(c->cache, c->executor, key, job, &options, arena);
    if (pass.confirmed)
        on_written(c, key, &pass.before_confirmed, pass.snapshot.status);
    if (pass.is_of_the_past)
        informers_list_anew(c->informers);
    if (!pass.plan) {
        put_off(c, key, job, pass.early_ms);
        return;
    }
    c->passes++;
    asker_follow(c->asker, key, &pass.snapshot);
    const struct job_status *status = pass.snapshot.status;
    count(c, key, &pass.snapshot);
    if (pass.hold_ms) {
        put_off(c, key, job, pass.hold_ms);
        return;
    }
    /* not of what waits: its events would come again */
    board_told(c->options.board, key, &pass.snapshot, pass.plan);
    if (pass.idle) {
        rest(c, key, job, &pass);
        return;
    }
    const struct active_plan *active =
        active_plans_add(&c->active, key, lane, job, status, pass.plan);
    executor_start(c->executor, active->key, job->job, job->object, status, pass.plan);
}

void controller_pass_ask_details(struct controller *c)
{
    for (char *key; (key = board_looked_at(c->options.board)); free(key))
        asker_ask_detail(c->asker, key);
}
