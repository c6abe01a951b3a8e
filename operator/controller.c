#include "operator/controller.h"

#include <stdlib.h>

#include "base/mem.h"
#include "operator/board/board.h"
#include "operator/controller_internal.h"

enum { LIST_LOOK_MS = 100 };

struct controller *controller_open(struct kube *kube, const struct controller_options *options)
{
    struct controller *c = xcalloc(1, sizeof *c);
    c->options = *options;
    c->kube = kube;
    c->metrics = metrics_open();
    controller_due_restart(c);
    controller_pass_open(c);
    controller_heard_open(c);
    return c;
}

void controller_close(struct controller *c)
{
    if (!c)
        return;
    controller_pass_drop_all(c);
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
    controller_pass_drop_all(c);
    asker_forget_all(c->asker);
    board_forget_all(c->options.board);
    metrics_forget_all_jobs(c->metrics);
    executor_prune_histories(c->executor);
    controller_due_restart(c);
}

int64_t controller_run_once(struct controller *c, bool leading)
{
    int64_t delay_ms = informers_tick(c->informers), now_ms = c->options.clocks->steady_ms();
    int64_t aside_ms = other_operator_follow(&c->other, leading, c->cache, c->executor, now_ms);
    controller_heard_versions(c);
    follow_leading(c, leading && !aside_ms);
    controller_heard_rights(c);
    if (aside_ms)
        return least(delay_ms, aside_ms);
    if (!leading || !(controller_is_ready(c) || c->list_forbidden))
        return delay_ms;
    controller_due_run(c, now_ms);
    controller_pass_ask_details(c);
    /* a pass may have found a watch silent */
    delay_ms = least(informers_tick(c->informers), asker_tick(c->asker, c->active.telling));
    bool waits = informers_list_still(c->informers);
    return least(delay_ms, waits ? LIST_LOOK_MS : controller_due_next_ms(c, now_ms));
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

struct metrics *controller_metrics(const struct controller *c)
{
    return c->metrics;
}
