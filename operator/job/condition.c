#include "operator/job/condition.h"

#include <assert.h>
#include <string.h>

static struct condition *find(struct job_status *status, enum condition_type type)
{
    for (size_t i = 0; i < status->condition_count; i++)
        if (status->conditions[i].type == type)
            return &status->conditions[i];
    return NULL;
}

const struct condition *condition_find(const struct job_status *status, enum condition_type type)
{
    return find((struct job_status *)status, type);
}

bool condition_is_true(const struct job_status *status, enum condition_type type)
{
    const struct condition *condition = condition_find(status, type);
    return condition && condition->status;
}

bool condition_finished(const struct job_status *status)
{
    return condition_is_true(status, CONDITION_SUCCEEDED) ||
           condition_is_true(status, CONDITION_FAILED);
}

const struct condition *condition_last(const struct job_status *status)
{
    return status->condition_count ? &status->conditions[status->condition_count - 1] : NULL;
}

static void remove_type(struct job_status *status, enum condition_type type)
{
    struct condition *gone = find(status, type);
    if (!gone)
        return;
    size_t after = (size_t)(status->conditions + status->condition_count - (gone + 1));
    memmove(gone, gone + 1, after * sizeof *gone);
    status->condition_count--;
}

/* What setting `type` to true does to the others. */
static void displace_others(struct job_status *status, enum condition_type type)
{
    switch (type) {
    case CONDITION_RUNNING:
        remove_type(status, CONDITION_RESTARTING);
        break;
    case CONDITION_RESTARTING:
        remove_type(status, CONDITION_RUNNING);
        break;
    case CONDITION_SUSPENDED:
        remove_type(status, CONDITION_RESTARTING);
        remove_type(status, CONDITION_WAITING);
        break;
    case CONDITION_SUCCEEDED:
    case CONDITION_FAILED: {
        remove_type(status, CONDITION_RESTARTING);
        remove_type(status, CONDITION_WAITING);
        struct condition *running = find(status, CONDITION_RUNNING);
        /* It stays in the list as false, as in the training operator: whoever looks for it finds
         * that it ended. */
        if (running)
            running->status = false;
        break;
    }
    case CONDITION_CREATED:
    case CONDITION_WAITING:
        break;
    }
}

bool condition_set(struct job_status *status, enum condition_type type, bool value,
                   const char *reason, const char *message, int64_t now_ms)
{
    if (condition_finished(status))
        return false;
    const struct condition *old = find(status, type);
    /* Not for another message alone: each write is a request, and makes every watcher read the
     * job. */
    if (old && old->status == value && strcmp(old->reason, reason) == 0)
        return false;
    struct condition condition = {
        .type = type,
        .status = value,
        .reason = reason,
        .message = message,
        .update_ms = now_ms,
        .transition_ms = old && old->status == value ? old->transition_ms : now_ms,
    };
    remove_type(status, type);
    if (value)
        displace_others(status, type);
    assert(status->condition_count < CONDITION_TYPES);
    status->conditions[status->condition_count++] = condition;
    return true;
}

bool condition_wait(struct job_status *status, const char *reason, const char *message,
                    int64_t now_ms)
{
    if (condition_finished(status))
        return false;
    const struct condition *old = find(status, CONDITION_WAITING);
    struct condition condition = {
        .type = CONDITION_WAITING,
        .status = true,
        .reason = reason,
        .message = message,
        .update_ms = now_ms,
        .transition_ms = old ? old->transition_ms : now_ms,
    };
    bool same =
        old && reason && strcmp(old->reason, reason) == 0 && strcmp(old->message, message) == 0;
    if (same)
        condition.update_ms = old->update_ms;
    remove_type(status, CONDITION_WAITING);
    if (!reason)
        return false;
    assert(status->condition_count > 0 && status->condition_count < CONDITION_TYPES);
    /* A job that runs goes on showing Running, which is last; Waiting then stands behind
     * Created. */
    size_t at = condition_is_true(status, CONDITION_RUNNING) ? 1 : status->condition_count;
    memmove(&status->conditions[at + 1], &status->conditions[at],
            (status->condition_count++ - at) * sizeof condition);
    status->conditions[at] = condition;
    return !same;
}
