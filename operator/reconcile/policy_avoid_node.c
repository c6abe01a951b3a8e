#include "operator/reconcile/policy_avoid_node.h"

#include "base/str.h"
#include "operator/job/history.h"
#include "operator/reconcile/children.h"
#include "operator/reconcile/incident.h"
#include "operator/reconcile/restart.h"

#include <inttypes.h>
#include <string.h>

/* What is wrong with the pod's node, as its agent says; NULL: nothing that is new. */
static const char *complaint(const struct history *history, const struct pod *pod)
{
    struct replica_history replica = history_replica(history, pod);
    return restart_failures(pod) > replica.counted ? pod->end.hardware : NULL;
}

static void avoid(struct reconcile_context *ctx, const struct pod *pod, const char *why)
{
    int64_t now_ms = ctx->snapshot->now_ms, lasts_ms = ctx->snapshot->options.avoid_node_ms;
    history_avoid(&ctx->status.history, pod->node, now_ms, ctx->arena);
    context_event(ctx, EVENT_WARNING, "NodeAvoided",
                  context_text(ctx,
                               "Node %s is avoided for %" PRId64
                               " s, and pod %s is made again elsewhere: %s",
                               pod->node, lasts_ms / 1000, pod->name, why));
}

/* What one fault does to many pods is seen within moments, and is one leave. */
static void count_leave(struct history *history, int64_t now_ms)
{
    if (history->hardware_ms && now_ms - history->hardware_ms < AVOID_NODE_LEAVE_MS)
        return;
    history->hardware_leaves++;
    history->hardware_ms = now_ms;
}

static bool stands_for_its_replica(const struct reconcile_context *ctx, const struct child *child)
{
    const struct history *history = &ctx->status.history;
    return children_desired(ctx->job, child) && !child->deleting &&
           !history_is_complete(history, child->type, child->index) &&
           !restart_succeeded(child->pod);
}

/* ---- by the word of others ---- */

static const struct bad_node *bad_node_of(const struct reconcile_context *ctx,
                                          const struct pod *pod)
{
    for (size_t i = 0; i < ctx->snapshot->bad_node_count && pod->node; i++)
        if (strcmp(ctx->snapshot->bad_nodes[i].name, pod->node) == 0)
            return &ctx->snapshot->bad_nodes[i];
    return NULL;
}

/* Whether the job may leave one more node now. Nodes that it left within a moment count once: what
 * befell them was one thing. Those that it avoids are all it remembers, and enough. */
static bool may_leave(const struct history *history, int64_t now_ms)
{
    int leaves = 0;
    int64_t first_ms, after_ms = INT64_MIN;
    do {
        first_ms = INT64_MAX;
        for (size_t i = 0; i < history->avoided_count; i++)
            if (history->avoided[i].since_ms >= after_ms && history->avoided[i].since_ms < first_ms)
                first_ms = history->avoided[i].since_ms;
        if (first_ms != INT64_MAX) {
            after_ms = first_ms + AVOID_NODE_LEAVE_MS;
            leaves++;
        }
    } while (first_ms != INT64_MAX);
    return history->avoided_count < HISTORY_NODES_MAX &&
           (leaves < AVOID_NODE_LEAVES_UNCOUNTED || now_ms < after_ms);
}

/* Whether the pod is on a node and is to stay there. */
static bool is_settled(const struct reconcile_context *ctx, const struct child *child)
{
    const struct history *history = &ctx->status.history;
    return children_desired(ctx->job, child) && child->pod->node && !child->deleting &&
           !history_is_complete(history, child->type, child->index) &&
           !policy_leaves_node(history, child->pod);
}

/* Replicas that will want a node: their pods wait for one, go, or are not there yet. */
static int64_t replicas_on_their_way(const struct reconcile_context *ctx)
{
    int64_t count = 0;
    for (enum replica_type type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &ctx->job->replicas[type];
        for (int32_t i = 0; replica->present && i < replica->replicas.value; i++)
            count += !history_is_complete(&ctx->status.history, type, i);
    }
    for (size_t i = 0; i < ctx->view.pods.count; i++)
        count -= is_settled(ctx, &ctx->view.pods.items[i]);
    return count;
}

/* A pod that was told to avoid its node, and is there, can be nowhere else. */
static bool was_told_of_node(const struct pod *pod)
{
    return pod->avoids && str_is_listed(pod->avoids, pod->node);
}

static void heed_signs(struct reconcile_context *ctx)
{
    const struct history *history = &ctx->status.history;
    int64_t now_ms = ctx->snapshot->now_ms;
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        const struct child *child = &ctx->view.pods.items[i];
        const struct bad_node *bad = bad_node_of(ctx, child->pod);
        if (!bad || !stands_for_its_replica(ctx, child) || was_told_of_node(child->pod) ||
            history_avoided(history, bad->name))
            continue;
        if (may_leave(history, now_ms) && (int64_t)bad->spares > replicas_on_their_way(ctx))
            avoid(ctx, child->pod, bad->sign);
        else
            context_requeue(ctx, now_ms + AVOID_NODE_LEAVE_MS);
    }
}

/* ---- by all ---- */

static void heed_complaints(struct reconcile_context *ctx)
{
    struct history *history = &ctx->status.history;
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        const struct child *child = &ctx->view.pods.items[i];
        const char *why = complaint(history, child->pod);
        if (why && child->pod->node && stands_for_its_replica(ctx, child) &&
            !history_avoided(history, child->pod->node)) {
            count_leave(history, ctx->snapshot->now_ms);
            avoid(ctx, child->pod, why);
        }
    }
}

void policy_avoid_nodes(struct reconcile_context *ctx)
{
    struct history *history = &ctx->status.history;
    int64_t lasts_ms = ctx->snapshot->options.avoid_node_ms;
    history_stop_avoiding(history, ctx->snapshot->now_ms - lasts_ms);
    if (lasts_ms > 0) {
        heed_complaints(ctx);
        heed_signs(ctx);
    }
    for (size_t i = 0; i < history->avoided_count; i++)
        context_requeue(ctx, history->avoided[i].since_ms + lasts_ms);
    ctx->avoided = history_avoided_names(history, ctx->arena);
}

bool policy_leaves_node(const struct history *history, const struct pod *pod)
{
    /* Not by the time at which it was made: another clock than ours dates pods. */
    return pod->node && history_avoided(history, pod->node) && pod->phase != POD_SUCCEEDED &&
           !was_told_of_node(pod);
}

bool policy_explains_end(const struct history *history, const struct pod *pod)
{
    bool is_hardware = pod->end.hardware && history->hardware_leaves <= AVOID_NODE_LEAVES_UNCOUNTED;
    return policy_leaves_node(history, pod) && (is_hardware || incident_lost_peer(pod));
}

void policy_forgive_hardware(struct history *history)
{
    history->hardware_leaves = 0;
    history->hardware_ms = 0;
}

bool policy_waits_for_others(const struct pod *pod, const char *avoided)
{
    return pod->phase == POD_PENDING && !pod->node && !str_equal(pod->avoids, avoided);
}
