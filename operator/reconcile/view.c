#include "operator/reconcile/view.h"

#include "base/mem.h"
#include "operator/job/names.h"
#include "operator/reconcile/policy_deadline.h"
#include "operator/reconcile/policy_node_lost.h"
#include "operator/reconcile/policy_recreate_backoff.h"

#include <stdlib.h>
#include <string.h>

static bool ours(const struct snapshot *snapshot, const char *owner_uid)
{
    return strcmp(owner_uid, snapshot->job->uid) == 0;
}

static int compare_replica(const struct child *a, enum replica_type type, int32_t index)
{
    if (a->type != type)
        return a->type < type ? -1 : 1;
    return (a->index > index) - (a->index < index);
}

/* By replica; of one replica the rightful holder first, then by UID so that every pass agrees. */
static int compare(const void *left, const void *right)
{
    const struct child *a = left, *b = right;
    int difference = compare_replica(a, b->type, b->index);
    if (difference != 0)
        return difference;
    if (a->surplus != b->surplus)
        return a->surplus ? 1 : -1;
    return strcmp(a->uid, b->uid);
}

/* As the cache gives them: sorting costs more than the rest of a view. */
static bool are_ordered(const struct children *children)
{
    for (size_t i = 1; i < children->count; i++)
        if (compare(&children->items[i - 1], &children->items[i]) > 0)
            return false;
    return true;
}

/* Names are unique, so at most one child of a replica has the right one; without it the first one
 * holds. */
static void order(struct children *children, const struct job *job)
{
    for (size_t i = 0; i < children->count; i++) {
        struct child *child = &children->items[i];
        /* During sorting "surplus" means the wrong name, so that the right one comes first. After
         * it, everything but the first of a replica. */
        child->surplus = !names_is_child(child->name, job, child->type, child->index);
    }
    if (!are_ordered(children))
        qsort(children->items, children->count, sizeof *children->items, compare);
    for (size_t i = 0; i < children->count; i++) {
        struct child *child = &children->items[i];
        child->surplus = i > 0 && compare_replica(child - 1, child->type, child->index) == 0;
    }
}

/* Whether this moment has come; if not, the view is to be looked at again then. */
static bool has_come(struct view *view, int64_t at_ms, int64_t now_ms)
{
    if (now_ms < at_ms && at_ms < view->recheck_ms)
        view->recheck_ms = at_ms;
    return now_ms >= at_ms;
}

struct view view_open(const struct snapshot *snapshot, struct arena *arena)
{
    struct view view = {.recheck_ms = POLICY_NEVER};
    view.pods.items = arena_array(arena, struct child, snapshot->pod_count);
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct pod *pod = &snapshot->pods[i];
        /* By the owner's UID and not by name or label: a job that was deleted and made again must
         * not take over the pods of the first one. */
        bool foreign = !ours(snapshot, pod->owner_uid);
        view.foreign_pods |= foreign;
        if (foreign || pod->index < 0)
            continue;
        bool lost =
            has_come(&view, policy_force_delete_at_ms(pod, &snapshot->options), snapshot->now_ms);
        bool overdue =
            has_come(&view, policy_overdue_at_ms(pod, &snapshot->options), snapshot->now_ms);
        int64_t backoff_ms = policy_recreate_at_ms(pod, snapshot->status, snapshot->now_ms);
        bool backing_off = !has_come(&view, backoff_ms, snapshot->now_ms);
        view.pods.items[view.pods.count++] = (struct child){.type = pod->type,
                                                            .index = pod->index,
                                                            .name = pod->name,
                                                            .uid = pod->uid,
                                                            .deleting = pod->deleted_ms != 0,
                                                            .lost = lost,
                                                            .overdue = overdue,
                                                            .backing_off = backing_off,
                                                            .pod = pod};
    }
    view.services.items = arena_array(arena, struct child, snapshot->service_count);
    for (size_t i = 0; i < snapshot->service_count; i++) {
        const struct service *service = &snapshot->services[i];
        bool foreign = !ours(snapshot, service->owner_uid);
        view.foreign_services |= foreign;
        if (!foreign && service->index >= 0)
            view.services.items[view.services.count++] =
                (struct child){.type = service->type,
                               .index = service->index,
                               .name = service->name,
                               .uid = service->uid,
                               .deleting = service->deleting};
    }
    order(&view.pods, snapshot->job);
    order(&view.services, snapshot->job);
    return view;
}

const struct child *view_find(const struct children *children, enum replica_type type,
                              int32_t index)
{
    size_t low = 0, high = children->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_replica(&children->items[middle], type, index) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == children->count || compare_replica(&children->items[low], type, index) != 0)
        return NULL;
    return &children->items[low];
}

const struct child *view_next(const struct children *children, enum replica_type type,
                              int32_t index, size_t *at)
{
    int difference = -1;
    while (*at < children->count &&
           (difference = compare_replica(&children->items[*at], type, index)) < 0)
        ++*at;
    return difference == 0 ? &children->items[*at] : NULL;
}

const struct pod *view_foreign_pod(const struct view *view, const struct snapshot *snapshot,
                                   const char *name)
{
    for (size_t i = 0; view->foreign_pods && i < snapshot->pod_count; i++)
        if (!ours(snapshot, snapshot->pods[i].owner_uid) &&
            strcmp(snapshot->pods[i].name, name) == 0)
            return &snapshot->pods[i];
    return NULL;
}

const struct service *view_foreign_service(const struct view *view, const struct snapshot *snapshot,
                                           const char *name)
{
    for (size_t i = 0; view->foreign_services && i < snapshot->service_count; i++)
        if (!ours(snapshot, snapshot->services[i].owner_uid) &&
            strcmp(snapshot->services[i].name, name) == 0)
            return &snapshot->services[i];
    return NULL;
}
