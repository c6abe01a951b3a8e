#include "operator/reconcile/exits.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/job/event_names.h"

#include <inttypes.h>
#include <string.h>

void exits_add(struct exits *exits, const struct pod *pod, const struct pod_end *end,
               struct arena *arena)
{
    if (exits->count == exits->size) {
        exits->size = exits->size ? 2 * exits->size : 8;
        struct pod_exit *more = arena_array(arena, struct pod_exit, exits->size);
        if (exits->count)
            memcpy(more, exits->items, exits->count * sizeof *more);
        exits->items = more;
    }
    exits->items[exits->count++] = (struct pod_exit){.pod = pod, .end = *end};
}

static bool is_alike(const struct pod_end *a, const struct pod_end *b)
{
    return a->code == b->code && strcmp(a->container, b->container) == 0 &&
           str_equal(a->reason, b->reason);
}

/* As the training operator says it, which has no others than of this container and no reasons. */
static const char *text_of_one(const struct pod_exit *exit, const struct job *job,
                               struct arena *arena)
{
    const struct pod_end *end = &exit->end;
    bool main = strcmp(end->container, API_CONTAINER_NAME) == 0;
    return arena_printf(arena, "Pod: %s.%s%s%s exited with code %" PRId32 "%s%s", job->namespace_,
                        exit->pod->name, main ? "" : ", container ", main ? "" : end->container,
                        end->code, end->reason ? ": " : "", end->reason ? end->reason : "");
}

static const char *text_of_many(const struct pod_end *end, size_t count, const char *names,
                                struct arena *arena)
{
    bool main = strcmp(end->container, API_CONTAINER_NAME) == 0;
    return arena_printf(arena, "%zu pods%s%s exited with code %" PRId32 "%s%s%s: %s", count,
                        main ? "" : ", container ", main ? "" : end->container, end->code,
                        end->reason ? " (" : "", end->reason ? end->reason : "",
                        end->reason ? ")" : "", names);
}

static void tell(struct plan *plan, const char *message)
{
    plan_add(plan, (struct action){.kind = ACTION_EVENT,
                                   .event_type = EVENT_NORMAL,
                                   .reason = REASON_EXITED_WITH_CODE,
                                   .message = message});
}

/* All that ended as the one at `first` did, which comes before them. */
static void tell_alike(struct exits *exits, size_t first, const struct job *job, struct plan *plan)
{
    struct pod_exit *items = exits->items;
    const struct pod_end *end = &items[first].end;
    struct arena *arena = plan->arena;
    struct event_names names = {.count = 0};
    for (size_t i = first; i < exits->count; i++)
        if (is_alike(&items[i].end, end))
            event_names_add(&names, items[i].pod->name, arena);
    for (size_t i = first; i < exits->count; i++) {
        if (!is_alike(&items[i].end, end))
            continue;
        items[i].told = true;
        if (names.count <= EVENTS_ONE_BY_ONE)
            tell(plan, text_of_one(&items[i], job, arena));
    }
    if (names.count > EVENTS_ONE_BY_ONE)
        tell(plan, text_of_many(end, names.count, event_names_text(&names, arena), arena));
}

void exits_tell(struct exits *exits, const struct job *job, struct plan *plan)
{
    for (size_t i = 0; i < exits->count; i++)
        if (!exits->items[i].told)
            tell_alike(exits, i, job, plan);
    exits->count = 0;
}
