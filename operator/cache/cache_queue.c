#include "operator/cache/cache_internal.h"

#include "base/lines.h"
#include "base/mem.h"
#include "operator/decode/decode_placement.h"

#include <string.h>

/* ---- what Workloads refer to ---- */

bool cache_is_queue_object(enum cache_kind kind)
{
    return kind >= CACHE_FLAVORS;
}

void cache_put_queue_object(struct cache *cache, enum cache_kind kind, const struct json *object,
                            struct arena *arena)
{
    struct lines problems;
    lines_init(&problems, arena);
    const char *name;
    bool changed = queue_objects_put(cache->queue_objects, kind, object, arena, &problems, &name);
    if (problems.count)
        cache_report_unreadable(cache, kind, name, lines_join(&problems));
    if (changed)
        cache_resync_jobs(cache);
}

void cache_delete_queue_object(struct cache *cache, enum cache_kind kind, const struct json *object,
                               struct arena *arena)
{
    if (queue_objects_delete(cache->queue_objects, kind, object, arena))
        cache_resync_jobs(cache);
}

void cache_end_queue_objects(struct cache *cache, enum cache_kind kind)
{
    if (queue_objects_end_list(cache->queue_objects, kind))
        cache_resync_jobs(cache);
}

/* ---- what an admission gives to the pods ---- */

static size_t count_names(const char *names)
{
    size_t count = *names ? 1 : 0;
    for (; *names; names++)
        count += *names == ',';
    return count;
}

static void place(const struct cache *cache, const struct job *job, enum replica_type type,
                  struct arena *arena, struct queue_view *view)
{
    char *rest = arena_strdup(arena, view->workload->assigned[type].flavors), *name;
    const struct flavor **flavors = arena_array(arena, const struct flavor *, count_names(rest));
    size_t count = 0;
    while ((name = strsep(&rest, ","))) {
        const struct flavor *flavor = queue_objects_flavor(cache->queue_objects, name);
        if (flavor)
            flavors[count++] = flavor;
        else if (*name && !view->obstacle)
            view->obstacle = arena_printf(
                arena, "ResourceFlavor \"%s\" of the admission is not known (yet)", name);
    }
    view->fields[type] = decode_placement(view->workload, type, job->replicas[type].template_.raw,
                                          flavors, count, arena, &view->obstacle);
}

/* ---- looking ---- */

/* By the owner's UID: a Workload of an earlier job of this name is nothing to this one. */
static void find_workloads(const struct job_objects *job_objects, const struct job *job,
                           struct queue_view *view)
{
    for (size_t i = 0; job_objects && i < job_objects->workloads.count; i++) {
        const struct child_entry *child = job_objects->workloads.items[i];
        if (strcmp(child->workload.owner_uid, job->uid) != 0)
            continue;
        if (*child->workload.spec.pods_hash)
            view->workload = &child->workload;
        else
            view->other = child->workload.name;
    }
}

struct queue_view cache_queue_view(const struct cache *cache, const struct job_objects *job_objects,
                                   const struct job *job, struct arena *arena)
{
    struct queue_view view = {.priority = {.class_name = ""}};
    find_workloads(job_objects, job, &view);
    if (!job->queue.name || job->invalid)
        return view;
    view.priority = workload_priority_class(job);
    view.priority_unknown = !queue_objects_priority(cache->queue_objects, &view.priority);
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (view.workload && view.workload->admitted && job->replicas[type].present)
            place(cache, job, type, arena, &view);
    return view;
}
