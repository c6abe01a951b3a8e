#include "operator/plan.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/names.h"

#include <inttypes.h>
#include <string.h>

struct plan *plan_open(struct arena *arena)
{
    struct plan *plan = arena_new(arena, struct plan);
    plan->arena = arena;
    return plan;
}

void plan_add(struct plan *plan, struct action action)
{
    if (plan->count == plan->size) {
        plan->size = plan->size ? 2 * plan->size : 16;
        struct action *more = arena_array(plan->arena, struct action, plan->size);
        if (plan->count)
            memcpy(more, plan->actions, plan->count * sizeof *more);
        plan->actions = more;
    }
    size_t at = plan->count++;
    for (; at > 0 && plan->actions[at - 1].kind > action.kind; at--)
        plan->actions[at] = plan->actions[at - 1];
    plan->actions[at] = action;
}

static void print_replica(const struct job_status *status, enum replica_type type, struct str *out)
{
    const struct replica_status *replica = &status->replicas[type];
    if (replica->present)
        str_printf(out, " %s=%" PRId32 "/%" PRId32 "/%" PRId32, names_replica_type(type),
                   replica->active, replica->succeeded, replica->failed);
}

static void print_history(const struct history *history, struct str *out)
{
    if (history->failures)
        str_printf(out, " failures=%" PRId32, history->failures);
    if (history->attempt)
        str_printf(out, " attempt=%" PRId32, history->attempt);
    for (size_t i = 0; i < history->replica_count; i++) {
        const struct replica_history *replica = &history->replicas[i];
        str_printf(out, " %s-%" PRId32 ":%s:%" PRId32 "+%" PRId32,
                   names_replica_label(replica->type), replica->index, replica->uid,
                   replica->counted, replica->earlier);
    }
    for (int type = 0; type < REPLICA_TYPES; type++)
        for (int32_t i = 0; i < history->completed_count[type]; i++)
            if (history->completed[type][i])
                str_printf(out, " done:%s-%" PRId32, names_replica_label(type), i);
}

static void print_status(const struct job_status *status, struct str *out)
{
    str_add(out, "status");
    for (size_t i = 0; i < status->condition_count; i++) {
        const struct condition *condition = &status->conditions[i];
        str_printf(out, " %s=%s", names_condition(condition->type), condition->status ? "T" : "F");
        if (i + 1 == status->condition_count)
            str_printf(out, "(%s: %s)", condition->reason, condition->message);
    }
    for (int type = 0; type < REPLICA_TYPES; type++)
        print_replica(status, type, out);
    if (status->start_ms)
        str_printf(out, " start=%" PRId64, status->start_ms);
    if (status->completion_ms)
        str_printf(out, " completion=%" PRId64, status->completion_ms);
    print_history(&status->history, out);
    str_add(out, "\n");
}

static void print_action(const struct action *action, struct str *out)
{
    switch (action->kind) {
    case ACTION_SET_STATUS:
        print_status(action->status, out);
        break;
    case ACTION_EVENT:
        str_printf(out, "event %s %s: %s\n",
                   action->event_type == EVENT_NORMAL ? "Normal" : "Warning", action->reason,
                   action->message);
        break;
    case ACTION_DELETE_POD:
        str_printf(out, "delete pod %s %s\n", action->name, action->uid);
        break;
    case ACTION_DELETE_SERVICE:
        str_printf(out, "delete service %s %s\n", action->name, action->uid);
        break;
    case ACTION_CREATE_SERVICE:
        str_printf(out, "create service %s\n", action->name);
        break;
    case ACTION_CREATE_POD:
        str_printf(out, "create pod %s attempt %" PRId32 "\n", action->name, action->attempt);
        break;
    case ACTION_DELETE_JOB:
        str_printf(out, "delete job %s %s\n", action->name, action->uid);
        break;
    case ACTION_REQUEUE:
        str_printf(out, "requeue %" PRId64 "\n", action->at_ms);
        break;
    }
}

void plan_print(const struct plan *plan, struct str *out)
{
    for (size_t i = 0; i < plan->count; i++)
        print_action(&plan->actions[i], out);
}
