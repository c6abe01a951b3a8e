#include "operator/controller.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/executor.h"
#include "operator/queue.h"
#include "operator/store.h"
#include "operator/watcher.h"

enum {
    WATCHES = 3, /* one for each enum store_kind */
    PAGE = 500,
    WATCH_TIMEOUT_S = 290,
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 60 * 1000,
    PARALLEL_MAX = 32,            /* requests of one plan */
    PLANS_MAX = 64,               /* under way at once */
    TROUBLE_EVERY_MS = 60 * 1000, /* how often a watch that goes on failing is told about */
};

/* One kind of object that is watched. */
struct channel {
    struct controller *controller;
    enum store_kind kind;
    const char *what; /* for people */
    struct watcher *watcher;
    int64_t told_ms; /* when its failing was last told about; 0: it is well */
};

/* A plan under way holds its job. */
struct hold {
    struct store_job *job;
    char *key;
};

struct controller {
    struct controller_options options;
    struct kube *kube;
    struct store *store;
    struct queue *queue;
    struct executor *executor;
    struct metrics *metrics;
    struct channel channels[WATCHES];
    struct hold holds[PLANS_MAX];
    size_t hold_count;
    uint64_t passes, failed_passes;
};

/* ---- what is heard ---- */

static void on_changed(void *context, const char *key)
{
    struct controller *c = context;
    queue_add(c->queue, key, c->options.clocks->steady_ms());
}

static void on_trouble(void *context, const char *message)
{
    (void)context;
    log_warning("%s", message);
}

static void on_begin_list(void *context)
{
    const struct channel *channel = context;
    store_begin_list(channel->controller->store, channel->kind);
}

static void on_put(void *context, const struct json_t *object)
{
    const struct channel *channel = context;
    store_put(channel->controller->store, channel->kind, object);
}

static void on_gone(void *context, const struct json_t *object)
{
    const struct channel *channel = context;
    store_gone(channel->controller->store, channel->kind, object);
}

static void on_end_list(void *context)
{
    const struct channel *channel = context;
    store_end_list(channel->controller->store, channel->kind);
}

/* Says that a watch fails, once and then from time to time, and that it is well again. */
static void tell_health(struct channel *channel, int64_t now_ms)
{
    const struct error *err = NULL;
    const struct watch *machine = watcher_machine(channel->watcher);
    if (!watch_failing_since(machine, &err)) {
        if (channel->told_ms)
            log_info("watching %s again", channel->what);
        channel->told_ms = 0;
        return;
    }
    if (channel->told_ms && now_ms - channel->told_ms < TROUBLE_EVERY_MS)
        return;
    channel->told_ms = now_ms;
    bool no_crd = channel->kind == STORE_JOBS && err->code == ERR_NOT_FOUND;
    log_warning("cannot watch %s: %s%s", channel->what, err->msg,
                no_crd ? "; is the CustomResourceDefinition pytorchjobs.kubeflow.org installed? "
                         "(kubectl apply -k deploy/)"
                       : "");
}

/* ---- one pass over one job ---- */

static void forget_hold(struct controller *c, const char *key)
{
    for (size_t i = 0; i < c->hold_count; i++) {
        if (strcmp(c->holds[i].key, key) != 0)
            continue;
        store_release_job(c->holds[i].job);
        free(c->holds[i].key);
        c->holds[i] = c->holds[--c->hold_count];
        return;
    }
}

static const struct hold *find_hold(const struct controller *c, const char *key)
{
    for (size_t i = 0; i < c->hold_count; i++)
        if (!strcmp(c->holds[i].key, key))
            return &c->holds[i];
    return NULL;
}

/* A pass at this wall clock time, 0: none. */
static void add_at(struct controller *c, const char *key, int64_t wall_ms)
{
    const struct clocks *clocks = c->options.clocks;
    if (wall_ms)
        queue_add(c->queue, key, clocks->steady_ms() + wall_ms - clocks->wall_ms());
}

static void on_over(void *context, const char *key, const struct executor_outcome *outcome)
{
    struct controller *c = context;
    const struct store_job *held = find_hold(c, key)->job;
    if (outcome->written)
        metrics_status_written(c->metrics, held->job->namespace_, held->status, outcome->written);
    if (outcome->job_deleted)
        metrics_job_deleted(c->metrics, held->job->namespace_);
    add_at(c, key, outcome->requeue_ms);
    if (outcome->failure) {
        c->failed_passes++;
        int64_t again_ms = queue_failed(c->queue, key, c->options.clocks->steady_ms());
        log_warning("%s: %s (again in %" PRId64 " ms)", key, outcome->failure->msg,
                    again_ms - c->options.clocks->steady_ms());
    } else {
        queue_succeeded(c->queue, key);
    }
    forget_hold(c, key);
}

/* When a plan does nothing but ask for another pass, no request is made. */
static bool only_requeues(const struct plan *plan, int64_t *ret_at_ms)
{
    *ret_at_ms = 0;
    if (plan->count == 1 && plan->actions[0].kind == ACTION_REQUEUE)
        *ret_at_ms = plan->actions[0].at_ms;
    return plan->count == 0 || *ret_at_ms;
}

static void pass(struct controller *c, const char *key)
{
    struct store_job *job = store_take_job(c->store, key);
    if (!job) {
        executor_forget(c->executor, key);
        queue_forget(c->queue, key);
        queue_done(c->queue, key);
        return;
    }
    auto_arena struct arena *arena = arena_open();
    struct world world;
    /* Statuses hold whole seconds (manifest.h), so passes live in whole seconds. */
    int64_t now_ms = c->options.clocks->wall_ms() / 1000 * 1000;
    store_world(c->store, job, now_ms, arena, &world);
    world.options = c->options.reconcile;
    int64_t early_ms = executor_early_ms(c->executor, key, &world, job->object);
    if (early_ms) {
        queue_add(c->queue, key, c->options.clocks->steady_ms() + early_ms);
        queue_done(c->queue, key);
        store_release_job(job);
        return;
    }
    c->passes++;
    const struct plan *plan = reconcile(&world, arena);
    int64_t at_ms;
    if (only_requeues(plan, &at_ms)) {
        add_at(c, key, at_ms);
        queue_succeeded(c->queue, key);
        store_release_job(job);
        return;
    }
    struct hold *hold = &c->holds[c->hold_count++];
    *hold = (struct hold){.job = job, .key = xstrdup(key)};
    executor_start(c->executor, hold->key, job->job, job->object, job->status, plan);
}

/* ---- life cycle ---- */

static struct watcher *open_watcher(struct channel *channel, const char *path, const char *selector)
{
    struct controller *c = channel->controller;
    const struct watch_options options = {
        .path = path,
        .selector = selector,
        .page = PAGE,
        .timeout_s = WATCH_TIMEOUT_S,
        .backoff_first_ms = BACKOFF_FIRST_MS,
        .backoff_max_ms = BACKOFF_MAX_MS / 2,
        .seed = c->options.seed + channel->kind,
        .begin_list = on_begin_list,
        .put = on_put,
        .gone = on_gone,
        .end_list = on_end_list,
        .trouble = on_trouble,
        .context = channel,
    };
    return watcher_open(c->kube, &options, c->options.clocks);
}

static void open_channels(struct controller *c)
{
    static const struct {
        enum store_kind kind;
        const char *what, *group, *version, *plural, *selector;
    } rows[WATCHES] = {
        {STORE_JOBS, "PyTorchJobs", API_GROUP, API_VERSION, "pytorchjobs", ""},
        {STORE_PODS, "pods", "", "v1", "pods", LABEL_OPERATOR_NAME "=" OPERATOR_NAME},
        {STORE_SERVICES, "services", "", "v1", "services", LABEL_OPERATOR_NAME "=" OPERATOR_NAME},
    };
    for (size_t i = 0; i < WATCHES; i++) {
        char path[512];
        bool fits = kube_path(path, sizeof path, rows[i].group, rows[i].version, rows[i].plural,
                              c->options.namespace_, NULL, NULL);
        assert(fits);
        c->channels[i] =
            (struct channel){.controller = c, .kind = rows[i].kind, .what = rows[i].what};
        c->channels[i].watcher = open_watcher(&c->channels[i], path, rows[i].selector);
    }
}

struct controller *controller_open(struct kube *kube, const struct controller_options *options)
{
    struct controller *c = xcalloc(1, sizeof *c);
    c->options = *options;
    c->kube = kube;
    const struct store_options store = {.default_backoff_limit = options->default_backoff_limit,
                                        .changed = on_changed,
                                        .trouble = on_trouble,
                                        .context = c};
    c->store = store_open(&store);
    c->queue = queue_open(BACKOFF_FIRST_MS, BACKOFF_MAX_MS);
    const struct executor_options executor = {.pod = options->pod,
                                              .init = options->init,
                                              .parallel_max = PARALLEL_MAX,
                                              .clocks = options->clocks,
                                              .over = on_over,
                                              .context = c};
    c->executor = executor_open(kube, &executor);
    c->metrics = metrics_open();
    open_channels(c);
    return c;
}

/* Plans under way are left where they are: the next pass, ours or another replica's, sees. */
static void drop_plans(struct controller *c)
{
    while (c->hold_count > 0) {
        const char *key = c->holds[0].key;
        executor_drop(c->executor, key);
        queue_done(c->queue, key);
        queue_add(c->queue, key, c->options.clocks->steady_ms());
        forget_hold(c, key);
    }
}

void controller_close(struct controller *c)
{
    if (!c)
        return;
    drop_plans(c);
    for (size_t i = 0; i < WATCHES; i++)
        watcher_close(c->channels[i].watcher);
    executor_close(c->executor);
    queue_close(c->queue);
    store_close(c->store);
    metrics_close(c->metrics);
    free(c);
}

/* ---- the turn ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t controller_turn(struct controller *c, bool leading)
{
    int64_t delay_ms = INT64_MAX, now_ms = c->options.clocks->steady_ms();
    for (size_t i = 0; i < WATCHES; i++) {
        delay_ms = least(delay_ms, watcher_tick(c->channels[i].watcher));
        tell_health(&c->channels[i], now_ms);
    }
    if (!leading)
        drop_plans(c);
    if (!leading || !controller_is_ready(c))
        return delay_ms;
    const char *key;
    while (c->hold_count < PLANS_MAX && (key = queue_pop(c->queue, now_ms)))
        pass(c, key);
    if (c->hold_count == PLANS_MAX)
        return delay_ms; /* the end of a plan comes first */
    int64_t due_ms = queue_due(c->queue);
    return least(delay_ms, due_ms == INT64_MAX ? INT64_MAX : due_ms > now_ms ? due_ms - now_ms : 0);
}

bool controller_is_ready(const struct controller *c)
{
    for (size_t i = 0; i < WATCHES; i++)
        if (!watch_is_synced(watcher_machine(c->channels[i].watcher)))
            return false;
    return true;
}

void controller_view(const struct controller *c, struct metrics_view *view)
{
    view->ready = controller_is_ready(c);
    view->jobs = store_count(c->store, STORE_JOBS);
    view->pods = store_count(c->store, STORE_PODS);
    view->services = store_count(c->store, STORE_SERVICES);
    view->queue_length = queue_length(c->queue);
    view->passes = c->passes;
    view->failed_passes = c->failed_passes;
    view->requests = kube_requests_sent(c->kube);
}

const struct metrics *controller_metrics(const struct controller *c)
{
    return c->metrics;
}
