#include "base/log.h"
#include "operator/board/board.h"
#include "operator/controller_internal.h"

static void on_changed(void *context, const char *key, bool finished)
{
    struct controller *c = context;
    if (c->leading)
        controller_due_now(c, key, finished);
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

void controller_heard_open(struct controller *c)
{
    const struct controller_options *options = &c->options;
    const struct cache_options cache = {.default_backoff_limit = options->default_backoff_limit,
                                        .signs = options->signs,
                                        .changed = on_changed,
                                        .another_wrote = on_another_wrote,
                                        .warn = on_warn,
                                        .context = c};
    c->cache = cache_open(&cache);
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
    c->informers = informers_open(c->kube, c->cache, &informers);
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

void controller_heard_versions(struct controller *c)
{
    follow_autoscaling(c);
    follow_kueue(c);
}

void controller_heard_rights(struct controller *c)
{
    bool list_forbidden = informers_forbidden(c->informers) != NULL;
    if (list_forbidden != c->list_forbidden)
        cache_resync_jobs(c->cache);
    c->list_forbidden = list_forbidden;
}
