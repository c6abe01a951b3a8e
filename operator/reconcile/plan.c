#include "operator/reconcile/plan.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/job/history_fields.h"
#include "operator/job/names.h"

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
    /* Insertion keeps the order of the kinds, which is the order of execution, and is stable. */
    size_t at = plan->count++;
    for (; at > 0 && plan->actions[at - 1].kind > action.kind; at--)
        plan->actions[at] = plan->actions[at - 1];
    plan->actions[at] = action;
}

bool plan_acts(const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        enum action_kind kind = plan->actions[i].kind;
        if (kind != ACTION_SET_STATUS && kind != ACTION_EVENT && kind != ACTION_REQUEUE)
            return true;
    }
    return false;
}

static void print_replica(const struct job_status *status, enum replica_type type, struct str *out)
{
    const struct replica_status *replica = &status->replicas[type];
    if (replica->present)
        str_printf(out, " %s=%" PRId32 "/%" PRId32 "/%" PRId32, names_replica_type(type),
                   replica->active, replica->succeeded, replica->failed);
}

static void print_training(const struct training *training, struct str *out)
{
    char progress[TRAINING_TEXT_BYTES], left[TRAINING_TEXT_BYTES];
    training_progress_text(training, progress);
    training_left_text(training, left);
    if (training->known)
        str_printf(out, " step=%s%s%s", progress, *left ? " left=" : "", left);
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
    history_print(&status->history, out);
    print_training(&status->training, out);
    str_add(out, "\n");
}

static void print_pod_group(const struct pod_group_spec *group, struct str *out)
{
    str_printf(out, " min=%" PRId32, group->min_member);
    for (size_t i = 0; i < group->min_resources.count; i++)
        str_printf(out, " %s=%" PRId64 "m", group->min_resources.items[i].resource,
                   group->min_resources.items[i].milli);
    if (*group->queue)
        str_printf(out, " queue=%s", group->queue);
    if (*group->priority_class)
        str_printf(out, " priority=%s", group->priority_class);
    if (group->schedule_timeout_s.set)
        str_printf(out, " timeout=%" PRId64, group->schedule_timeout_s.value);
    str_add(out, "\n");
}

static void print_workload(const struct workload_spec *workload, struct str *out)
{
    str_printf(out, " queue=%s", workload->queue);
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (workload->counts[type])
            str_printf(out, " %s=%" PRId32, names_replica_label(type), workload->counts[type]);
    if (workload->min_workers)
        str_printf(out, " min=%" PRId32, workload->min_workers);
    if (workload->priority.source != PRIORITY_NONE || workload->priority.value)
        str_printf(out, " priority=%s:%" PRId32, workload->priority.class_name,
                   workload->priority.value);
    if (workload->max_execution_s)
        str_printf(out, " seconds=%" PRId32, workload->max_execution_s);
    str_add(out, "\n");
}

static void print_workload_status(const struct workload_status *status, struct str *out)
{
    static const char *const ready[] = {"", " ready=WaitForStart", " ready=WaitForRecovery",
                                        " ready=Started", " ready=Recovered"};
    if (status->releases)
        str_printf(out, " released=%s requeued=%c", status->eviction_reason,
                   status->requeues ? 'T' : 'F');
    str_add(out, ready[status->pods_ready]);
    for (int type = 0; type < REPLICA_TYPES && status->reclaims; type++)
        str_printf(out, " reclaimed-%s=%" PRId32, names_replica_label(type),
                   status->reclaimable[type]);
    if (status->finished_reason)
        str_printf(out, " finished=%s: %s", status->finished_reason, status->finished_message);
    str_add(out, "\n");
}

static const char *verb(enum action_kind kind)
{
    static const char *const verbs[] = {
        [ACTION_SET_STATUS] = "status",
        [ACTION_EVENT] = "event",
        [ACTION_DELETE_POD] = "delete pod",
        [ACTION_FORCE_DELETE_POD] = "force delete pod",
        [ACTION_DELETE_SERVICE] = "delete service",
        [ACTION_DELETE_POD_GROUP] = "delete podgroup",
        [ACTION_DELETE_AUTOSCALER] = "delete autoscaler",
        [ACTION_DELETE_WORKLOAD] = "delete workload",
        [ACTION_CREATE_WORKLOAD] = "create workload",
        [ACTION_UPDATE_WORKLOAD] = "update workload",
        [ACTION_SET_WORKLOAD_STATUS] = "tell workload",
        [ACTION_CREATE_POD_GROUP] = "create podgroup",
        [ACTION_UPDATE_POD_GROUP] = "update podgroup",
        [ACTION_CREATE_SERVICE] = "create service",
        [ACTION_CREATE_POD] = "create pod",
        [ACTION_CREATE_AUTOSCALER] = "create autoscaler",
        [ACTION_UPDATE_AUTOSCALER] = "update autoscaler",
        [ACTION_DELETE_JOB] = "delete job",
        [ACTION_REQUEUE] = "requeue",
    };
    return verbs[kind];
}

static void print_action(const struct action *action, struct str *out)
{
    switch (action->kind) {
    case ACTION_SET_STATUS:
        print_status(action->status, out);
        break;
    case ACTION_EVENT:
        str_printf(out, "%s %s %s: %s\n", verb(action->kind),
                   action->event_type == EVENT_NORMAL ? "Normal" : "Warning", action->reason,
                   action->message);
        break;
    case ACTION_DELETE_POD:
    case ACTION_FORCE_DELETE_POD:
    case ACTION_DELETE_SERVICE:
    case ACTION_DELETE_POD_GROUP:
    case ACTION_DELETE_AUTOSCALER:
    case ACTION_DELETE_WORKLOAD:
    case ACTION_DELETE_JOB:
        str_printf(out, "%s %s %s\n", verb(action->kind), action->name, action->uid);
        break;
    case ACTION_CREATE_WORKLOAD:
    case ACTION_UPDATE_WORKLOAD:
        str_printf(out, "%s %s", verb(action->kind), action->name);
        print_workload(action->workload, out);
        break;
    case ACTION_SET_WORKLOAD_STATUS:
        str_printf(out, "%s %s", verb(action->kind), action->name);
        print_workload_status(action->workload_status, out);
        break;
    case ACTION_CREATE_POD_GROUP:
    case ACTION_UPDATE_POD_GROUP:
        str_printf(out, "%s %s", verb(action->kind), action->name);
        print_pod_group(action->pod_group, out);
        break;
    case ACTION_CREATE_AUTOSCALER:
    case ACTION_UPDATE_AUTOSCALER:
        str_printf(out, "%s %s %" PRId32 "-%" PRId32 " by %s\n", verb(action->kind), action->name,
                   action->autoscaler->min_replicas, action->autoscaler->max_replicas,
                   action->autoscaler->metrics_hash);
        break;
    case ACTION_CREATE_SERVICE:
        str_printf(out, "%s %s\n", verb(action->kind), action->name);
        break;
    case ACTION_CREATE_POD:
        str_printf(out, "%s %s attempt %" PRId32 "%s%s\n", verb(action->kind), action->name,
                   action->attempt, action->placement ? " with " : "",
                   action->placement ? action->placement->fields : "");
        break;
    case ACTION_REQUEUE:
        str_printf(out, "%s %" PRId64 "\n", verb(action->kind), action->at_ms);
        break;
    }
}

void plan_print(const struct plan *plan, struct str *out)
{
    for (size_t i = 0; i < plan->count; i++)
        print_action(&plan->actions[i], out);
}
