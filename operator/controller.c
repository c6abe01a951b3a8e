#include "operator/controller.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/apply/executor.h"
#include "operator/cache/cache.h"
#include "operator/cache/informers.h"
#include "operator/cache/queue.h"
#include "operator/job/condition.h"
#include "operator/reconcile/reconcile.h"

enum {
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 60 * 1000,
    PARALLEL_MAX = 32,        /* requests of one plan */
    PASSES_PER_RUN_MAX = 100, /* of each lane; then what is heard meanwhile has its turn */
};

/* Plans under way at once. Jobs that are finished are patient: after a start, or a change of
 * operators, many of them may want a request each. */
enum { URGENT_PLANS_MAX = 56, PATIENT_PLANS_MAX = 8 };
static const size_t plans_max[QUEUE_LANES] = {
    [QUEUE_URGENT] = URGENT_PLANS_MAX, [QUEUE_PATIENT] = PATIENT_PLANS_MAX};

/* While the jobs of plans under way take so much as text, no further plan is begun. */
#define HELD_BYTES_MAX ((size_t)4 << 20)

/* A plan under way holds its job. */
struct active_plan {
    struct cached_job *job;
    const struct job_status *status; /* before the plan */
    char *key;
    enum queue_lane lane; /* that it came from */
};

struct controller {
    struct controller_options options;
    struct kube *kube;
    struct cache *cache;
    struct queue *queue;
    struct executor *executor;
    struct metrics *metrics;
    struct informers *informers;
    const char *autoscaling; /* version as of the last turn; NULL: none */
    bool leading;            /* as of the last turn */
    bool list_forbidden;     /* likewise: children cannot be seen */
    struct active_plan active_plans[URGENT_PLANS_MAX + PATIENT_PLANS_MAX];
    size_t active_plan_count, active_plans_of[QUEUE_LANES], held_bytes;
    uint64_t passes, failed_passes;
};

/* ---- what is heard ---- */

static enum queue_lane lane_of(bool finished)
{
    return finished ? QUEUE_PATIENT : QUEUE_URGENT;
}

static void on_changed(void *context, const char *key, bool finished)
{
    struct controller *c = context;
    if (c->leading)
        queue_add(c->queue, key, lane_of(finished), c->options.clocks->steady_ms());
}

static void on_warn(void *context, const char *message)
{
    (void)context;
    log_warning("%s", message);
}

/* ---- one pass over one job ---- */

static void forget_active_plan(struct controller *c, const char *key)
{
    for (size_t i = 0; i < c->active_plan_count; i++) {
        if (strcmp(c->active_plans[i].key, key) != 0)
            continue;
        c->held_bytes -= c->active_plans[i].job->bytes;
        cache_release_job(c->active_plans[i].job);
        free(c->active_plans[i].key);
        c->active_plans_of[c->active_plans[i].lane]--;
        c->active_plans[i] = c->active_plans[--c->active_plan_count];
        return;
    }
}

static const struct active_plan *find_active_plan(const struct controller *c, const char *key)
{
    for (size_t i = 0; i < c->active_plan_count; i++)
        if (!strcmp(c->active_plans[i].key, key))
            return &c->active_plans[i];
    return NULL;
}

/* A pass over a job of this status in so many milliseconds. */
static void add_in(struct controller *c, const char *key, const struct job_status *status,
                   int64_t delay_ms)
{
    queue_add(c->queue, key, lane_of(condition_finished(status)),
              c->options.clocks->steady_ms() + delay_ms);
}

/* The same at this wall clock time, 0: none. */
static void add_at(struct controller *c, const char *key, const struct job_status *status,
                   int64_t wall_ms)
{
    if (wall_ms)
        add_in(c, key, status, wall_ms - c->options.clocks->wall_ms());
}

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
static void on_written(struct controller *c, const char *key, const struct job *job,
                       const struct job_status *before, const struct job_status *after)
{
    log_new_conditions(key, before, after);
    metrics_status_written(c->metrics, job->namespace_, before, after);
}

static void on_over(void *context, const char *key, const struct executor_outcome *outcome)
{
    struct controller *c = context;
    const struct active_plan *active = find_active_plan(c, key);
    const struct job *job = active->job->job;
    const struct job_status *status = outcome->written ? outcome->written : active->status;
    if (outcome->written)
        on_written(c, key, job, active->status, outcome->written);
    if (outcome->job_deleted)
        metrics_job_deleted(c->metrics, job->namespace_);
    add_at(c, key, status, outcome->requeue_ms);
    if (outcome->expects_changes)
        add_in(c, key, status, EXPECT_MAX_MS);
    if (outcome->failure) {
        c->failed_passes++;
        int64_t now_ms = c->options.clocks->steady_ms();
        int64_t again_ms = queue_failed(c->queue, key, now_ms);
        log_write(outcome->is_new ? LOG_WARNING : LOG_DEBUG, "%s: %s (retry in %" PRId64 " ms)",
                  key, outcome->failure->msg, clock_until_ms(again_ms, now_ms));
    } else {
        queue_succeeded(c->queue, key);
    }
    forget_active_plan(c, key);
}

static bool on_unseen_change(void *context, enum expectation_kind kind, int64_t since_ms)
{
    static const enum cache_kind kinds[EXPECTATION_KINDS] = {[EXPECTATION_JOB] = CACHE_JOBS,
                                                             [EXPECTATION_POD] = CACHE_PODS,
                                                             [EXPECTATION_SERVICE] = CACHE_SERVICES,
                                                             [EXPECTATION_POD_GROUP] =
                                                                 CACHE_POD_GROUPS};
    const struct controller *c = context;
    return informers_relist_if_silent(c->informers, kinds[kind], since_ms);
}

/* When a plan does nothing but ask for another pass, no request is made. */
static bool only_requeues(const struct plan *plan, int64_t *ret_at_ms)
{
    *ret_at_ms = 0;
    if (plan->count == 1 && plan->actions[0].kind == ACTION_REQUEUE)
        *ret_at_ms = plan->actions[0].at_ms;
    return plan->count == 0 || *ret_at_ms;
}

static void reconcile_job(struct controller *c, const char *key, enum queue_lane lane)
{
    struct cached_job *job = cache_acquire_job(c->cache, key);
    if (!job) {
        executor_forget(c->executor, key);
        queue_forget(c->queue, key);
        queue_done(c->queue, key);
        return;
    }
    auto_arena struct arena *arena = arena_open();
    struct snapshot snapshot;
    /* Statuses hold whole seconds (manifest.h), so passes live in whole seconds. */
    int64_t now_ms = c->options.clocks->wall_ms() / 1000 * 1000;
    cache_snapshot(c->cache, job, now_ms, arena, &snapshot);
    snapshot.options = c->options.reconcile;
    snapshot.options.autoscaling = c->autoscaling != NULL;
    snapshot.list_forbidden = informers_forbidden(c->informers);
    snapshot.refused = executor_refused(c->executor, key, job->job->uid);
    snapshot.status = executor_restore_history(c->executor, key, job->job->uid, job->status);
    int64_t early_ms = executor_wait_ms(c->executor, key, &snapshot, job->object);
    if (early_ms) {
        add_in(c, key, job->status, early_ms);
        queue_done(c->queue, key);
        cache_release_job(job);
        return;
    }
    c->passes++;
    struct job_status before;
    if (executor_confirm_write(c->executor, key, &snapshot, arena, &before)) {
        snapshot.status = executor_restore_history(c->executor, key, job->job->uid, job->status);
        on_written(c, key, job->job, &before, snapshot.status);
    }
    const struct plan *plan = reconcile(&snapshot, arena);
    int64_t at_ms;
    if (only_requeues(plan, &at_ms)) {
        if (executor_clear_refusal(c->executor, key, job->job->uid))
            add_in(c, key, job->status, 0);
        add_at(c, key, job->status, at_ms);
        queue_succeeded(c->queue, key);
        cache_release_job(job);
        return;
    }
    struct active_plan *active = &c->active_plans[c->active_plan_count++];
    *active = (struct active_plan){
        .job = job, .status = snapshot.status, .key = xstrdup(key), .lane = lane};
    c->active_plans_of[lane]++;
    c->held_bytes += job->bytes;
    executor_start(c->executor, active->key, job->job, job->object, snapshot.status, plan);
}

/* ---- life cycle ---- */

struct controller *controller_open(struct kube *kube, const struct controller_options *options)
{
    struct controller *c = xcalloc(1, sizeof *c);
    c->options = *options;
    c->kube = kube;
    const struct cache_options cache = {.default_backoff_limit = options->default_backoff_limit,
                                        .changed = on_changed,
                                        .warn = on_warn,
                                        .context = c};
    c->cache = cache_open(&cache);
    c->queue = queue_open(BACKOFF_FIRST_MS, BACKOFF_MAX_MS);
    const struct executor_options executor = {.pod = options->pod,
                                              .init = options->init,
                                              .parallel_max = PARALLEL_MAX,
                                              .clocks = options->clocks,
                                              .over = on_over,
                                              .unseen_change = on_unseen_change,
                                              .context = c};
    c->executor = executor_open(kube, &executor);
    c->metrics = metrics_open();
    const struct informers_options informers = {.namespace_ = options->namespace_,
                                                .gang = options->reconcile.gang.scheduler,
                                                .seed = options->seed,
                                                .clocks = options->clocks};
    c->informers = informers_open(kube, c->cache, &informers);
    return c;
}

/* Plans under way are left where they are: the next pass, ours or another replica's, sees. */
static void drop_plans(struct controller *c)
{
    while (c->active_plan_count > 0) {
        const char *key = c->active_plans[0].key;
        executor_cancel(c->executor, key);
        queue_done(c->queue, key);
        forget_active_plan(c, key);
    }
}

void controller_close(struct controller *c)
{
    if (!c)
        return;
    drop_plans(c);
    informers_close(c->informers);
    executor_close(c->executor);
    queue_close(c->queue);
    cache_close(c->cache);
    metrics_close(c->metrics);
    free(c);
}

/* ---- the turn ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Jobs have waited for their autoscalers if we could not look at them before. */
static void follow_autoscaling(struct controller *c)
{
    const char *version = informers_autoscaling(c->informers);
    if (version == c->autoscaling)
        return;
    c->autoscaling = version;
    if (version) /* else plans under way may still hold autoscalers */
        executor_use_autoscaling(c->executor, version);
    cache_resync_jobs(c->cache);
}

/* Jobs get a condition that their children cannot be seen, and go on when they can. */
static void follow_list_rights(struct controller *c)
{
    bool list_forbidden = informers_forbidden(c->informers) != NULL;
    if (list_forbidden != c->list_forbidden)
        cache_resync_jobs(c->cache);
    c->list_forbidden = list_forbidden;
}

/* Who does not lead has no work waiting; who begins to lead looks at every job. */
static void follow_leading(struct controller *c, bool leading)
{
    if (leading == c->leading)
        return;
    c->leading = leading;
    if (leading) {
        cache_resync_jobs(c->cache);
        return;
    }
    drop_plans(c);
    executor_prune_histories(c->executor);
    queue_close(c->queue);
    c->queue = queue_open(BACKOFF_FIRST_MS, BACKOFF_MAX_MS);
}

static bool has_room(const struct controller *c, enum queue_lane lane)
{
    return c->active_plans_of[lane] < plans_max[lane] && c->held_bytes < HELD_BYTES_MAX;
}

static void reconcile_due(struct controller *c, enum queue_lane lane, int64_t now_ms)
{
    const char *key;
    for (int i = 0;
         i < PASSES_PER_RUN_MAX && has_room(c, lane) && (key = queue_pop(c->queue, lane, now_ms));
         i++)
        reconcile_job(c, key, lane);
}

int64_t controller_run_once(struct controller *c, bool leading)
{
    int64_t delay_ms = informers_tick(c->informers), now_ms = c->options.clocks->steady_ms();
    follow_autoscaling(c);
    follow_leading(c, leading);
    follow_list_rights(c);
    if (!leading || !(controller_is_ready(c) || c->list_forbidden))
        return delay_ms;
    for (enum queue_lane lane = QUEUE_URGENT; lane < QUEUE_LANES; lane++)
        reconcile_due(c, lane, now_ms);
    delay_ms = informers_tick(c->informers); /* a pass may have found a watch silent */
    for (enum queue_lane lane = QUEUE_URGENT; lane < QUEUE_LANES; lane++)
        if (has_room(c, lane)) /* else the end of a plan comes first */
            delay_ms = least(delay_ms, clock_until_ms(queue_due(c->queue, lane), now_ms));
    return delay_ms;
}

bool controller_is_ready(const struct controller *c)
{
    return informers_have_synced(c->informers);
}

_Static_assert(CACHE_KINDS <= METRICS_MAX_WATCHES, "a page has room for all watches");

void controller_view(const struct controller *c, struct metrics_view *view)
{
    view->ready = controller_is_ready(c);
    view->history_pruned = executor_history_is_pruned(c->executor);
    view->jobs = cache_count(c->cache, CACHE_JOBS);
    for (enum condition_type state = 0; state < CONDITION_TYPES; state++)
        view->jobs_in_state[state] = cache_jobs_in_state(c->cache, state);
    view->pods = cache_count(c->cache, CACHE_PODS);
    view->services = cache_count(c->cache, CACHE_SERVICES);
    view->queue_length = queue_length(c->queue, c->options.clocks->steady_ms());
    view->passes = c->passes;
    view->failed_passes = c->failed_passes;
    view->requests = kube_requests_sent(c->kube);
    view->failed_requests = kube_requests_failed(c->kube);
    view->forbidden_requests = kube_requests_forbidden(c->kube);
    view->watch_count = 0;
    for (enum cache_kind kind = 0; kind < CACHE_KINDS; kind++) {
        bool failing = false;
        const char *name = informers_watched(c->informers, kind, &failing);
        if (!name)
            continue;
        view->watches[view->watch_count].kind = name;
        view->watches[view->watch_count++].failing = failing;
    }
}

const struct metrics *controller_metrics(const struct controller *c)
{
    return c->metrics;
}
