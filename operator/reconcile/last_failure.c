#include "operator/reconcile/last_failure.h"

#include "operator/job/names.h"
#include "operator/reconcile/incident.h"
#include "operator/reconcile/reconcile.h"

#include <inttypes.h>
#include <string.h>

/* How sure it is that a replica failed by itself, of those with a part in one incident. */
enum certainty {
    LOST_A_PEER,
    END_UNKNOWN,
    FAILED_ITSELF,
};

/* A replica that has failed. */
struct suspect {
    const struct replica_history *record;
    const struct pod *pod; /* that failed; NULL: it is gone */
    enum certainty certainty;
};

static const char *text_of(struct reconcile_context *ctx, const char *name,
                           const struct pod_end *end)
{
    if (!end || !end->container)
        return context_text(ctx, RECONCILE_LAST_FAILURE "pod %s)", name);
    return context_text(
        ctx, RECONCILE_LAST_FAILURE "pod %s, container %s, exit code %" PRId32 "%s%s)", name,
        end->container, end->code, end->reason ? ": " : "", end->reason ? end->reason : "");
}

const char *last_failure_of_pod(struct reconcile_context *ctx, const struct pod *pod)
{
    return text_of(ctx, pod->name, &pod->end);
}

/* ---- what is remembered ---- */

/* NULL: it is gone, or may be another's: of a pod that left, the failures may be its
 * predecessor's. */
static const struct pod *find_pod(const struct view *view, const struct replica_history *record)
{
    for (size_t i = 0; !record->left && i < view->pods.count; i++)
        if (strcmp(view->pods.items[i].uid, record->uid) == 0)
            return view->pods.items[i].pod;
    return NULL;
}

static enum certainty certainty_of(const struct pod *pod)
{
    if (!pod || !pod->end.container)
        return END_UNKNOWN;
    return incident_lost_peer(pod) ? LOST_A_PEER : FAILED_ITSELF;
}

/* Returns how many there are. suspects: room for all replicas of the history. */
static size_t find_suspects(const struct reconcile_context *ctx, struct suspect *suspects)
{
    const struct history *history = &ctx->status.history;
    size_t count = 0;
    for (size_t i = 0; i < history->replica_count; i++) {
        const struct replica_history *record = &history->replicas[i];
        if (!record->incidents || record->counted + record->earlier == 0)
            continue;
        const struct pod *pod = find_pod(&ctx->view, record);
        suspects[count++] = (struct suspect){record, pod, certainty_of(pod)};
    }
    return count;
}

/* Above 0: a's failure is rather the last one than b's; 0: nothing tells which. */
static int compare(const struct suspect *a, const struct suspect *b)
{
    if (a->record->incidents != b->record->incidents)
        return a->record->incidents > b->record->incidents ? 1 : -1;
    return (int)a->certainty - (int)b->certainty;
}

/* Whose failure was the last; NULL: nobody's, or it may have been another's. */
static const struct suspect *judge(const struct suspect *suspects, size_t count)
{
    const struct suspect *last = suspects;
    size_t others = 0; /* that may be the last as well */
    for (size_t i = 1; i < count; i++) {
        int order = compare(&suspects[i], last);
        if (order > 0)
            last = &suspects[i];
        others = order > 0 ? 0 : others + (order == 0);
    }
    if (count == 0 || others)
        return NULL;
    /* A replica that was deleted since has failed before that, nobody knows when. */
    return last->record->left && count > 1 ? NULL : last;
}

const char *last_failure_remembered(struct reconcile_context *ctx)
{
    struct suspect *suspects =
        arena_array(ctx->arena, struct suspect, ctx->status.history.replica_count);
    const struct suspect *last = judge(suspects, find_suspects(ctx, suspects));
    if (!last)
        return "";
    if (last->pod)
        return last_failure_of_pod(ctx, last->pod);
    return text_of(ctx, names_child(ctx->arena, ctx->job, last->record->type, last->record->index),
                   NULL);
}
