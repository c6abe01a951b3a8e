#include "operator/pass.h"

#include "base/mem.h"
#include "operator/progress/ask_target.h"
#include "operator/reconcile/reconcile.h"

/* When a plan does nothing but ask for another pass, no request is made. */
static bool only_requeues(const struct plan *plan, int64_t *ret_at_ms)
{
    *ret_at_ms = 0;
    if (plan->count == 1 && plan->actions[0].kind == ACTION_REQUEUE)
        *ret_at_ms = plan->actions[0].at_ms;
    return plan->count == 0 || *ret_at_ms;
}

struct pass pass_over(const struct cache *cache, struct executor *executor, const char *key,
                      const struct cached_job *job, const struct pass_options *options,
                      struct arena *arena)
{
    struct pass pass = {.plan = NULL};
    struct snapshot *snapshot = &pass.snapshot;
    const char *uid = job->job->uid;
    /* Statuses hold whole seconds (manifest.h), so passes live in whole seconds. */
    cache_snapshot(cache, job, options->now_ms / 1000 * 1000, arena, snapshot);
    snapshot->options = options->reconcile;
    snapshot->list_forbidden = options->list_forbidden;
    snapshot->unproven = !executor_is_proven(executor, key, uid);
    snapshot->refused = executor_refused(executor, key, uid);
    snapshot->status = executor_restore_history(executor, key, uid, job->status);
    pass.early_ms = executor_wait_ms(executor, key, snapshot, job->object);
    if (pass.early_ms)
        return pass;
    pass.confirmed = executor_confirm_write(executor, key, snapshot, arena, &pass.before_confirmed);
    if (pass.confirmed)
        snapshot->status = executor_restore_history(executor, key, uid, job->status);
    pass.is_of_the_past =
        executor_is_of_the_past(executor, key, uid, job->object, snapshot->status);
    if (pass.is_of_the_past)
        return pass;
    /* What the operator before us wrote goes by pods that the watch may be about to show. An edit
     * by anybody looks the same, and waits as long. */
    bool is_others =
        snapshot->unproven && snapshot->status->condition_count > 0 && !snapshot->list_forbidden;
    pass.early_ms = executor_await_pods_ms(executor, key, uid, is_others && options->pods_behind,
                                           options->pods_away);
    if (pass.early_ms)
        return pass;
    snapshot->unwritten = executor_unwritten(executor, key, uid, snapshot->status);
    cache_find_bad_nodes(cache, snapshot, arena);
    struct training *newest = arena_new(arena, struct training);
    snapshot->unaccounted = !executor_may_tell_training(executor);
    if (!snapshot->unaccounted && ask_target_newest(snapshot, options->heard, newest))
        snapshot->training = newest;
    snapshot->quiet = options->quiet;
    pass.plan = reconcile(snapshot, arena);
    pass.hold_ms = executor_hold_ms(executor, key, uid, snapshot->status, pass.plan);
    pass.idle = only_requeues(pass.plan, &pass.requeue_ms);
    pass.again = pass.idle && executor_clear_refusal(executor, key, uid);
    return pass;
}
