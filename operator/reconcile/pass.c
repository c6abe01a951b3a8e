#include "operator/reconcile/pass.h"

#include "operator/job/condition.h"
#include "operator/job/history.h"
#include "operator/job/job_status.h"
#include "operator/reconcile/policy_deadline.h"

struct pass pass_open(const struct world *world, struct arena *arena)
{
    struct pass pass = {
        .world = world,
        .job = world->job,
        .arena = arena,
        .plan = plan_open(arena),
        .view = view_open(world, arena),
        .status = *world->status,
        .requeue_ms = POLICY_NEVER,
    };
    pass.status.history = history_copy(&world->status->history, arena);
    return pass;
}

void pass_event(struct pass *pass, enum event_type type, const char *reason, const char *message)
{
    plan_add(pass->plan,
             (struct action){
                 .kind = ACTION_EVENT, .event_type = type, .reason = reason, .message = message});
}

bool pass_condition(struct pass *pass, enum condition_type type, bool value, const char *reason,
                    const char *message)
{
    return condition_set(&pass->status, type, value, reason, message, pass->world->now_ms);
}

void pass_requeue(struct pass *pass, int64_t at_ms)
{
    if (at_ms < pass->requeue_ms)
        pass->requeue_ms = at_ms;
}

void pass_publish(struct pass *pass)
{
    if (!job_status_equal(pass->world->status, &pass->status)) {
        struct job_status *status = arena_new(pass->arena, struct job_status);
        *status = pass->status;
        plan_add(pass->plan, (struct action){.kind = ACTION_SET_STATUS, .status = status});
    }
    if (pass->requeue_ms != POLICY_NEVER)
        plan_add(pass->plan, (struct action){.kind = ACTION_REQUEUE, .at_ms = pass->requeue_ms});
}
