#include "operator/other_operator.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "operator/reconcile/plan.h"

static void forget(struct other_operator *other)
{
    free(take(other->key));
    free(take(other->manager));
    other->told = false;
}

void other_operator_close(struct other_operator *other)
{
    forget(other);
}

void other_operator_wrote(struct other_operator *other, const char *key, const char *manager,
                          int64_t now_ms)
{
    if (!stand_aside_begin(&other->aside, now_ms))
        return;
    forget(other);
    other->key = xstrdup(key);
    other->manager = xstrdup(manager);
}

static void tell(struct other_operator *other, struct cache *cache, struct executor *executor)
{
    other->told = true;
    auto_free char *message = xasprintf(
        "Another operator (field manager \"%s\") writes the status of PyTorchJobs. shoal-operator "
        "does nothing until it has been silent for %" PRId64 " s. Stop one of the two "
        "(docs/migrate.md)",
        other->manager, other->aside.pause_ms / 1000);
    const struct action event = {.kind = ACTION_EVENT,
                                 .event_type = EVENT_WARNING,
                                 .reason = "AnotherOperator",
                                 .message = message};
    log_warning("%s", message);
    struct cached_job *job = cache_acquire_job(cache, other->key);
    if (job)
        executor_tell(executor, other->key, job->job, job->status, &event);
    cache_release_job(job);
}

int64_t other_operator_follow(struct other_operator *other, bool leading, struct cache *cache,
                              struct executor *executor, int64_t now_ms)
{
    int64_t left_ms = stand_aside_left_ms(&other->aside, now_ms);
    if (left_ms && leading && !other->told)
        tell(other, cache, executor);
    if (!left_ms && other->told)
        log_info("the other operator (field manager \"%s\") has been silent for %" PRId64
                 " s: working again",
                 other->manager, other->aside.pause_ms / 1000);
    if (!left_ms)
        forget(other);
    return left_ms;
}
