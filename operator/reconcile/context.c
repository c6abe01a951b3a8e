#include "operator/reconcile/context.h"

#include "operator/job/condition.h"
#include "operator/job/history.h"
#include "operator/job/job_status.h"
#include "operator/reconcile/policy_deadline.h"

struct reconcile_context context_open(const struct snapshot *snapshot, struct arena *arena)
{
    struct reconcile_context ctx = {
        .snapshot = snapshot,
        .job = snapshot->job,
        .arena = arena,
        .plan = plan_open(arena),
        .view = view_open(snapshot, arena),
        .status = *snapshot->status,
        .told = snapshot->training,
        .requeue_ms = POLICY_NEVER,
    };
    /* The pass works on a copy. What it changed shows at the end by comparing it with the cache's
     * status. */
    ctx.status.history = history_copy(&snapshot->status->history, arena);
    return ctx;
}

void context_event(struct reconcile_context *ctx, enum event_type type, const char *reason,
                   const char *message)
{
    plan_add(ctx->plan,
             (struct action){
                 .kind = ACTION_EVENT, .event_type = type, .reason = reason, .message = message});
}

bool context_condition(struct reconcile_context *ctx, enum condition_type type, bool value,
                       const char *reason, const char *message)
{
    return condition_set(&ctx->status, type, value, reason, message, ctx->snapshot->now_ms);
}

void context_requeue(struct reconcile_context *ctx, int64_t at_ms)
{
    if (at_ms < ctx->requeue_ms)
        ctx->requeue_ms = at_ms;
}

void context_publish(struct reconcile_context *ctx)
{
    /* A write that changes nothing would still cost a request for each pass. But it is refused if
     * the job is of the past, and then so is all that is planned for it: pods that were deleted
     * since would be made again. */
    bool differs = !job_status_equal(ctx->snapshot->status, &ctx->status);
    if (differs || (ctx->snapshot->unproven && plan_acts(ctx->plan))) {
        struct job_status *status = arena_new(ctx->arena, struct job_status);
        *status = ctx->status;
        plan_add(
            ctx->plan,
            (struct action){.kind = ACTION_SET_STATUS, .status = status, .as_stored = !differs});
    }
    if (ctx->requeue_ms != POLICY_NEVER)
        plan_add(ctx->plan, (struct action){.kind = ACTION_REQUEUE, .at_ms = ctx->requeue_ms});
}
