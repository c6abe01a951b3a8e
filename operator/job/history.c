#include "operator/job/history.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

static bool before(const struct replica_history *a, enum replica_type type, int32_t index)
{
    return a->type != type ? a->type < type : a->index < index;
}

/* Where the record of (type, index) is or belongs. */
static size_t find_index(const struct history *history, enum replica_type type, int32_t index)
{
    size_t low = 0, high = history->replica_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (before(&history->replicas[middle], type, index))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct history *history, size_t at, enum replica_type type, int32_t index)
{
    return at < history->replica_count && history->replicas[at].type == type &&
           history->replicas[at].index == index;
}

const struct replica_history *history_find(const struct history *history, enum replica_type type,
                                           int32_t index)
{
    size_t at = find_index(history, type, index);
    return is_at(history, at, type, index) ? &history->replicas[at] : NULL;
}

void history_put(struct history *history, struct replica_history replica, struct arena *arena)
{
    size_t at = find_index(history, replica.type, replica.index);
    if (is_at(history, at, replica.type, replica.index)) {
        history->replicas[at] = replica;
        return;
    }
    struct replica_history *more =
        arena_array(arena, struct replica_history, history->replica_count + 1);
    if (history->replica_count) {
        memcpy(more, history->replicas, at * sizeof *more);
        memcpy(more + at + 1, history->replicas + at, (history->replica_count - at) * sizeof *more);
    }
    more[at] = replica;
    history->replicas = more;
    history->replica_count++;
}

struct replica_history history_replica(const struct history *history, const struct pod *pod)
{
    struct replica_history replica = {.type = pod->type, .index = pod->index, .uid = pod->uid};
    const struct replica_history *old = history_find(history, pod->type, pod->index);
    if (old && strcmp(old->uid, pod->uid) == 0)
        return *old;
    /* A new pod's restartCounts begin at 0 again: what its predecessors had is kept beside them. */
    if (old) {
        replica.earlier = old->earlier + old->counted;
        replica.incidents = old->incidents;
    }
    return replica;
}

bool history_is_complete(const struct history *history, enum replica_type type, int32_t index)
{
    return index < history->completed_count[type] && history->completed[type][index];
}

void history_complete(struct history *history, enum replica_type type, int32_t index,
                      struct arena *arena)
{
    assert(index >= 0);
    if (index >= history->completed_count[type]) {
        bool *more = arena_array(arena, bool, index + 1);
        if (history->completed_count[type])
            memcpy(more, history->completed[type],
                   (size_t)history->completed_count[type] * sizeof *more);
        history->completed[type] = more;
        history->completed_count[type] = index + 1;
    }
    history->completed[type][index] = true;
}

bool history_only_completes(const struct history *before, const struct history *after)
{
    struct history rest = *after;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        for (int32_t i = 0; i < before->completed_count[type]; i++)
            if (before->completed[type][i] && !history_is_complete(after, type, i))
                return false;
        rest.completed[type] = before->completed[type];
        rest.completed_count[type] = before->completed_count[type];
    }
    return history_equal(before, &rest);
}

void history_trim(struct history *history, enum replica_type type, int32_t replicas)
{
    if (history->completed_count[type] > replicas)
        history->completed_count[type] = replicas;
    if (history->formed[type] > replicas)
        history->formed[type] = replicas;
}

int64_t history_all_restarts(const struct history *history)
{
    return (int64_t)history->restarts + history->rank_restarts;
}

void history_start_over(struct history *history)
{
    for (int type = 0; type < REPLICA_TYPES; type++)
        history->completed_count[type] = history->formed[type] = 0;
    history->incident_ms = 0;
    history->incidents_without_cause = 0;
    history->preempted = 0;
}

void history_next_attempt(struct history *history)
{
    history->attempt++;
    history_start_over(history);
}

/* ---- nodes that the job avoids ---- */

const struct avoided_node *history_avoided(const struct history *history, const char *node)
{
    for (size_t i = 0; i < history->avoided_count; i++)
        if (strcmp(history->avoided[i].name, node) == 0)
            return &history->avoided[i];
    return NULL;
}

static void forget_oldest(struct history *history)
{
    size_t oldest = 0;
    for (size_t i = 1; i < history->avoided_count; i++)
        if (history->avoided[i].since_ms < history->avoided[oldest].since_ms)
            oldest = i;
    history->avoided_count--;
    memmove(&history->avoided[oldest], &history->avoided[oldest + 1],
            (history->avoided_count - oldest) * sizeof *history->avoided);
}

void history_avoid(struct history *history, const char *node, int64_t since_ms, struct arena *arena)
{
    assert(!history_avoided(history, node));
    struct avoided_node *more = arena_array(arena, struct avoided_node, history->avoided_count + 1);
    size_t at = 0;
    while (at < history->avoided_count && strcmp(history->avoided[at].name, node) < 0)
        at++;
    if (history->avoided_count) {
        memcpy(more, history->avoided, at * sizeof *more);
        memcpy(more + at + 1, history->avoided + at, (history->avoided_count - at) * sizeof *more);
    }
    more[at] = (struct avoided_node){node, since_ms};
    history->avoided = more;
    history->avoided_count++;
    if (history->avoided_count > HISTORY_NODES_MAX)
        forget_oldest(history);
}

void history_stop_avoiding(struct history *history, int64_t since_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < history->avoided_count; i++)
        if (history->avoided[i].since_ms > since_ms)
            history->avoided[kept++] = history->avoided[i];
    history->avoided_count = kept;
}

const char *history_avoided_names(const struct history *history, struct arena *arena)
{
    const char *names = NULL;
    for (size_t i = 0; i < history->avoided_count; i++)
        names = names ? arena_printf(arena, "%s,%s", names, history->avoided[i].name)
                      : history->avoided[i].name;
    return names;
}
