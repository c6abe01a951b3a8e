#include "operator/job/job_status.h"

#include "base/mem.h"
#include "operator/job/condition.h"
#include "operator/job/history.h"

#include <string.h>

struct job_status job_status_copy(const struct job_status *status, struct arena *arena)
{
    struct job_status copy = *status;
    for (size_t i = 0; i < copy.condition_count; i++) {
        copy.conditions[i].reason = arena_strdup(arena, status->conditions[i].reason);
        copy.conditions[i].message = arena_strdup(arena, status->conditions[i].message);
    }
    copy.history = history_copy(&status->history, arena);
    return copy;
}

static bool condition_equal(const struct condition *x, const struct condition *y)
{
    return x->type == y->type && x->status == y->status && x->update_ms == y->update_ms &&
           x->transition_ms == y->transition_ms && strcmp(x->reason, y->reason) == 0 &&
           strcmp(x->message, y->message) == 0;
}

static bool conditions_equal(const struct job_status *a, const struct job_status *b)
{
    if (a->condition_count != b->condition_count)
        return false;
    for (size_t i = 0; i < a->condition_count; i++)
        if (!condition_equal(&a->conditions[i], &b->conditions[i]))
            return false;
    return true;
}

static bool replicas_equal(const struct job_status *a, const struct job_status *b)
{
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_status *x = &a->replicas[type], *y = &b->replicas[type];
        if (x->present != y->present || x->active != y->active || x->succeeded != y->succeeded ||
            x->failed != y->failed)
            return false;
    }
    return true;
}

bool job_status_equal(const struct job_status *a, const struct job_status *b)
{
    return a->start_ms == b->start_ms && a->completion_ms == b->completion_ms &&
           conditions_equal(a, b) && replicas_equal(a, b) &&
           history_equal(&a->history, &b->history) && training_equal(&a->training, &b->training) &&
           goodput_equal(&a->goodput, &b->goodput);
}

/* Running may begin, and so end Restarting; the others stay as they are. */
static bool condition_may_wait(const struct job_status *before, const struct job_status *after,
                               enum condition_type type)
{
    const struct condition *was = condition_find(before, type), *is = condition_find(after, type);
    if (type == CONDITION_RUNNING && condition_is_true(after, CONDITION_RUNNING))
        return true;
    if (type == CONDITION_RESTARTING && !is)
        return true;
    return was && is ? condition_equal(was, is) : was == is;
}

bool job_status_may_wait(const struct job_status *before, const struct job_status *after)
{
    for (int type = 0; type < CONDITION_TYPES; type++)
        if (!condition_may_wait(before, after, type))
            return false;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_status *x = &before->replicas[type], *y = &after->replicas[type];
        if (x->present != y->present || x->succeeded > y->succeeded || x->failed != y->failed)
            return false;
    }
    return before->start_ms == after->start_ms && before->completion_ms == after->completion_ms &&
           history_only_completes(&before->history, &after->history);
}

bool job_status_starts_over(const struct job_status *before, const struct job_status *after)
{
    return before->history.attempt != after->history.attempt ||
           condition_is_true(before, CONDITION_SUSPENDED) !=
               condition_is_true(after, CONDITION_SUSPENDED);
}
