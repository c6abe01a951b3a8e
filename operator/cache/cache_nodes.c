#include "operator/cache/cache_internal.h"

#include "base/lines.h"
#include "base/mem.h"

#include <string.h>

/* A sign has come to a node, or has gone. */
struct visit {
    struct cache *cache;
    const char *node;
};

static void report_job_of_pod(void *context, struct table_entry *entry)
{
    const struct visit *visit = context;
    const struct child_entry *child = (struct child_entry *)entry;
    if (child->job_objects && child->pod.node && strcmp(child->pod.node, visit->node) == 0)
        cache_report_change(visit->cache, child->job_objects->key);
}

/* A walk over all pods: signs are rare. */
static void report_jobs_on(struct cache *cache, const char *node)
{
    struct visit visit = {cache, node};
    table_each(&cache->children[CACHE_PODS], report_job_of_pod, &visit);
}

void cache_put_node(struct cache *cache, const struct json *object, struct arena *arena)
{
    struct lines problems;
    const char *name;
    bool was_full = nodes_are_full(cache->nodes);
    lines_init(&problems, arena);
    bool changed = nodes_put(cache->nodes, object, arena, &problems, &name);
    if (problems.count)
        cache_report_unreadable(cache, CACHE_NODES, name, lines_join(&problems));
    if (nodes_are_full(cache->nodes) && !was_full)
        cache_report_unreadable(cache, CACHE_NODES, name,
                                "not taken, like all that follow: too many");
    if (changed)
        report_jobs_on(cache, name);
}

void cache_delete_node(struct cache *cache, const struct json *object, struct arena *arena)
{
    const char *name;
    if (nodes_delete(cache->nodes, object, arena, &name))
        report_jobs_on(cache, name);
}

/* A list may change many nodes: each job looks once. */
void cache_end_nodes(struct cache *cache)
{
    if (nodes_end_list(cache->nodes))
        cache_resync_jobs(cache);
}

void cache_find_bad_nodes(const struct cache *cache, struct snapshot *snapshot, struct arena *arena)
{
    nodes_find_bad(cache->nodes, snapshot, arena);
}
