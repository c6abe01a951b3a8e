#include "operator/controller.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/apply/executor.h"
#include "operator/board/board.h"
#include "operator/cache/cache.h"
#include "operator/cache/informers.h"
#include "operator/cache/queue.h"
#include "operator/job/condition.h"
#include "operator/other_operator.h"
#include "operator/pass.h"
#include "operator/progress/asker.h"

enum {
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 60 * 1000,
    PARALLEL_MAX = 32, /* requests of one plan */
    LIST_LOOK_MS = 100,
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
    struct asker *asker;     /* NULL: nobody is asked */
    const char *autoscaling; /* version as of the last turn; NULL: none */
    const char *kueue;       /* likewise */
    struct other_operator other;
    bool leading;        /* as of the last turn; not while another operator works */
    bool list_forbidden; /* likewise: children cannot be seen */
    struct active_plan active_plans[URGENT_PLANS_MAX + PATIENT_PLANS_MAX];
    size_t active_plan_count, active_plans_of[QUEUE_LANES], held_bytes;
    int64_t begun_ms; /* wall clock */
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

/* How a job trains is news for its status. */
static void on_news(void *context, const char *key)
{
    on_changed(context, key, false);
}

static void on_detail(void *context, const char *key, const char *text, size_t bytes)
{
    const struct controller *c = context;
    board_detail(c->options.board, key, text, bytes);
}

static void on_another_wrote(void *context, const char *key, const char *manager)
{
    struct controller *c = context;
    other_operator_wrote(&c->other, key, manager, c->options.clocks->steady_ms());
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

static void on_over(void *context, const char *key, const struct executor_outcome *outcome)
{
    struct controller *c = context;
    const struct active_plan *active = find_active_plan(c, key);
    const struct job *job = active->job->job;
    const struct job_status *status = outcome->written ? outcome->written : active->status;
    if (outcome->written)
        on_written(c, key, active->status, outcome->written);
    if (outcome->job_deleted)
        metrics_job_deleted(c->metrics, job->namespace_);
    add_at(c, key, status, outcome->requeue_ms);
    if (outcome->is_of_the_past && job->created_ms < c->begun_ms) /* later ones were never listed */
        informers_list_anew(c->informers);
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
    static const enum cache_kind kinds[EXPECTATION_KINDS] = {
        [EXPECTATION_JOB] = CACHE_JOBS,
        [EXPECTATION_POD] = CACHE_PODS,
        [EXPECTATION_SERVICE] = CACHE_SERVICES,
        [EXPECTATION_POD_GROUP] = CACHE_POD_GROUPS,
        [EXPECTATION_AUTOSCALER] = CACHE_AUTOSCALERS,
        [EXPECTATION_WORKLOAD] = CACHE_WORKLOADS};
    const struct controller *c = context;
    return informers_relist_if_silent(c->informers, kinds[kind], since_ms);
}

/* It is too early for this job. Takes the job. */
static void put_off(struct controller *c, const char *key, struct cached_job *job, int64_t ms)
{
    add_in(c, key, job->status, ms);
    queue_done(c->queue, key);
    cache_release_job(job);
}

static void reconcile_job(struct controller *c, const char *key, enum queue_lane lane)
{
    struct cached_job *job = cache_acquire_job(c->cache, key);
    if (!job) {
        executor_forget(c->executor, key);
        asker_follow(c->asker, key, NULL);
        board_forget(c->options.board, key);
        metrics_forget_job(c->metrics, key);
        queue_forget(c->queue, key);
        queue_done(c->queue, key);
        return;
    }
    auto_arena struct arena *arena = arena_open();
    struct pass_options options = {.reconcile = c->options.reconcile,
                                   .list_forbidden = informers_forbidden(c->informers),
                                   .now_ms = c->options.clocks->wall_ms()};
    options.reconcile.autoscaling = c->autoscaling != NULL;
    if (c->options.kueue)
        options.reconcile.kueue = c->kueue ? KUEUE_SEEN : KUEUE_UNSEEN;
    options.heard = asker_heard(c->asker, key);
    options.quiet = asker_is_quiet(c->asker, key);
    const struct pass pass = pass_over(c->cache, c->executor, key, job, &options, arena);
    if (!pass.plan) {
        put_off(c, key, job, pass.early_ms);
        return;
    }
    c->passes++;
    asker_follow(c->asker, key, &pass.snapshot);
    const struct job_status *status = pass.snapshot.status;
    if (pass.confirmed)
        on_written(c, key, &pass.before_confirmed, status);
    count(c, key, &pass.snapshot);
    if (pass.hold_ms) {
        put_off(c, key, job, pass.hold_ms);
        return;
    }
    /* not of what waits: its events would come again */
    board_told(c->options.board, key, &pass.snapshot, pass.plan);
    if (pass.idle) {
        if (pass.again)
            add_in(c, key, job->status, 0);
        add_at(c, key, job->status, pass.requeue_ms);
        queue_succeeded(c->queue, key);
        cache_release_job(job);
        return;
    }
    struct active_plan *active = &c->active_plans[c->active_plan_count++];
    *active = (struct active_plan){.job = job, .status = status, .key = xstrdup(key), .lane = lane};
    c->active_plans_of[lane]++;
    c->held_bytes += job->bytes;
    executor_start(c->executor, active->key, job->job, job->object, status, pass.plan);
}

/* ---- life cycle ---- */

struct controller *controller_open(struct kube *kube, const struct controller_options *options)
{
    struct controller *c = xcalloc(1, sizeof *c);
    c->options = *options;
    c->begun_ms = options->clocks->wall_ms();
    c->kube = kube;
    const struct cache_options cache = {.default_backoff_limit = options->default_backoff_limit,
                                        .signs = options->signs,
                                        .changed = on_changed,
                                        .another_wrote = on_another_wrote,
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
    const struct asker_options asker = {.http = options->ask_by,
                                        .interval_ms = options->ask_interval_ms,
                                        .timeout_ms = options->ask_timeout_ms,
                                        .clocks = options->clocks,
                                        .news = on_news,
                                        .detail = on_detail,
                                        .context = c};
    c->asker = asker_open(&asker);
    const struct informers_options informers = {.namespace_ = options->namespace_,
                                                .gang = options->reconcile.gang.scheduler,
                                                .watch_nodes = options->watch_nodes,
                                                .kueue = options->kueue,
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
    asker_close(c->asker);
    informers_close(c->informers);
    executor_close(c->executor);
    queue_close(c->queue);
    cache_close(c->cache);
    metrics_close(c->metrics);
    other_operator_close(&c->other);
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

/* Jobs with a queue have waited for Kueue. */
static void follow_kueue(struct controller *c)
{
    const char *version = informers_kueue(c->informers);
    if (version == c->kueue)
        return;
    c->kueue = version;
    if (version)
        executor_use_kueue(c->executor, version);
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
    asker_forget_all(c->asker);
    board_forget_all(c->options.board);
    metrics_forget_all_jobs(c->metrics);
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

/* Nobody is asked for what nobody looks at. */
static void ask_details(struct controller *c)
{
    for (char *key; (key = board_looked_at(c->options.board)); free(key))
        asker_ask_detail(c->asker, key);
}

int64_t controller_run_once(struct controller *c, bool leading)
{
    int64_t delay_ms = informers_tick(c->informers), now_ms = c->options.clocks->steady_ms();
    int64_t aside_ms = other_operator_follow(&c->other, leading, c->cache, c->executor, now_ms);
    follow_autoscaling(c);
    follow_kueue(c);
    follow_leading(c, leading && !aside_ms);
    follow_list_rights(c);
    if (aside_ms)
        return least(delay_ms, aside_ms);
    if (!leading || !(controller_is_ready(c) || c->list_forbidden))
        return delay_ms;
    bool waits = informers_list_still(c->informers);
    for (enum queue_lane lane = QUEUE_URGENT; lane < QUEUE_LANES && !waits; lane++)
        reconcile_due(c, lane, now_ms);
    ask_details(c);
    /* a pass may have found a watch silent */
    delay_ms = least(informers_tick(c->informers), asker_tick(c->asker));
    if (waits)
        return least(delay_ms, LIST_LOOK_MS);
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
    metrics_go_on(c->metrics, c->options.clocks->wall_ms());
    view->ready = controller_is_ready(c);
    view->standing_aside = stand_aside_left_ms(&c->other.aside, c->options.clocks->steady_ms()) > 0;
    view->history_pruned = executor_history_is_pruned(c->executor);
    view->training_pruned = executor_training_is_pruned(c->executor);
    view->jobs = cache_count(c->cache, CACHE_JOBS);
    for (enum condition_type state = 0; state < CONDITION_TYPES; state++)
        view->jobs_in_state[state] = cache_jobs_in_state(c->cache, state);
    view->pods = cache_count(c->cache, CACHE_PODS);
    view->services = cache_count(c->cache, CACHE_SERVICES);
    view->queue_length = queue_length(c->queue, c->options.clocks->steady_ms());
    view->passes = c->passes;
    view->failed_passes = c->failed_passes;
    view->asks = asker_asks(c->asker);
    view->unanswered_asks = asker_unanswered(c->asker);
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
