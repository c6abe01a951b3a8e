#include "operator/reconcile/finish.h"

#include "base/contract.h"
#include "operator/job/condition.h"
#include "operator/job/names.h"
#include "operator/reconcile/last_failure.h"
#include "operator/reconcile/observe.h"
#include "operator/reconcile/policy_autoscaler.h"
#include "operator/reconcile/policy_cleanup.h"
#include "operator/reconcile/policy_deadline.h"
#include "operator/reconcile/policy_gang.h"
#include "operator/reconcile/policy_queue.h"
#include "operator/reconcile/policy_training.h"

#include <inttypes.h>

#define REASON_SUCCEEDED API_KIND "Succeeded"
#define REASON_FAILED    API_KIND "Failed"

void finish_delete_podgroup_hpa(struct reconcile_context *ctx)
{
    policy_gang_delete(ctx->snapshot, ctx->plan);
    policy_autoscaler_delete(ctx->snapshot, ctx->plan);
}

static void clean_up(struct reconcile_context *ctx)
{
    finish_delete_podgroup_hpa(ctx);
    policy_queue_finish(ctx);
    policy_cleanup(ctx->job->run_policy.clean_pod_policy,
                   condition_is_true(&ctx->status, CONDITION_SUCCEEDED), &ctx->status.history,
                   &ctx->view, ctx->plan);
    context_requeue(ctx, ctx->view.recheck_ms);
}

static void finish(struct reconcile_context *ctx, enum condition_type type, enum event_type event,
                   const char *reason, const char *message)
{
    context_condition(ctx, type, true, reason, message);
    context_event(ctx, event, reason, message);
    ctx->status.completion_ms = ctx->snapshot->now_ms;
    policy_training_finish(ctx);
    observe_inactive(ctx);
    clean_up(ctx);
    context_requeue(ctx, policy_expiry_ms(ctx->job, &ctx->status));
}

void finish_succeeded(struct reconcile_context *ctx)
{
    const struct job *job = ctx->job;
    const char *message =
        job->replicas[REPLICA_MASTER].present
            ? context_text(ctx, "PyTorchJob %s is successfully completed.", job->name)
            : context_text(ctx, "PyTorchJob %s/%s successfully completed.", job->namespace_,
                           job->name);
    finish(ctx, CONDITION_SUCCEEDED, EVENT_NORMAL, REASON_SUCCEEDED, message);
}

void finish_by_limit(struct reconcile_context *ctx, const struct pod *last_failure)
{
    finish(ctx, CONDITION_FAILED, EVENT_NORMAL, REASON_FAILED,
           context_text(ctx,
                        "Job %s has failed because it has reached the specified backoff limit%s",
                        ctx->job->name,
                        last_failure ? last_failure_of_pod(ctx, last_failure)
                                     : last_failure_remembered(ctx)));
}

void finish_failed(struct reconcile_context *ctx, const struct pod *pod)
{
    const char *type = names_replica_type(pod->type), *last_failure = last_failure_of_pod(ctx, pod);
    if (ctx->job->replicas[pod->type].restart_policy == RESTART_EXIT_CODE)
        finish(ctx, CONDITION_FAILED, EVENT_WARNING, REASON_FAILED,
               context_text(ctx, "job \"%s\" is failing because \"%s\" replica(s) failed.%s",
                            ctx->job->name, type, last_failure));
    else
        finish(ctx, CONDITION_FAILED, EVENT_NORMAL, REASON_FAILED,
               context_text(
                   ctx, "PyTorchJob %s is failed because %" PRId32 " %s replica(s) failed.%s",
                   ctx->job->name, ctx->status.replicas[pod->type].failed, type, last_failure));
}

void finish_by_deadline(struct reconcile_context *ctx)
{
    finish(ctx, CONDITION_FAILED, EVENT_NORMAL, REASON_FAILED,
           context_text(ctx,
                        "Job %s has failed because it was active longer than specified deadline",
                        ctx->job->name));
}

void finish_go_on(struct reconcile_context *ctx)
{
    observe_inactive(ctx);
    int64_t expiry_ms = policy_expiry_ms(ctx->job, &ctx->status);
    if (ctx->snapshot->now_ms >= expiry_ms) {
        plan_add(ctx->plan, (struct action){.kind = ACTION_DELETE_JOB,
                                            .name = ctx->job->name,
                                            .uid = ctx->job->uid});
        return;
    }
    clean_up(ctx);
    context_requeue(ctx, expiry_ms);
}
