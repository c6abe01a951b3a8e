#include "operator/cache/cache_internal.h"

#include "base/mem.h"
#include "operator/job/names.h"

#include <string.h>

struct children {
    const struct child_entry **items;
    size_t count;
};

/* How many children are on their way from memory while one is looked at. */
enum { AHEAD = 8 };

/* How many replicas have names that the job wants. */
static int32_t wanted(const struct job *job, enum replica_type type)
{
    const struct replica_spec *replica = &job->replicas[type];
    return replica->present && !job->invalid ? (int32_t)replica->replicas.value : 0;
}

/* Which wanted name it bears, if any. */
static void note_held(const struct child_entry *child, const struct job *job,
                      bool *const held[REPLICA_TYPES])
{
    bool is_pod = child->kind == CACHE_PODS;
    enum replica_type type = is_pod ? child->pod.type : child->service.type;
    int32_t index = is_pod ? child->pod.index : child->service.index;
    if (index >= 0 && index < wanted(job, type) &&
        names_is_child(is_pod ? child->pod.name : child->service.name, job, type, index))
        held[type][index] = true;
}

/* `job_objects` may be NULL. A child that bears a wanted name belongs to it, to another job_objects
 * or to none. */
static struct children collect(const struct cache *cache, enum cache_kind kind,
                               const struct job_objects *job_objects, const struct job *job,
                               struct arena *arena)
{
    /* Two sources: what claims to be the job's, and what bears a name that the job wants. The
     * latter may be another's, and then stands in the way. */
    static const struct child_list none;
    const struct child_list *own = job_objects ? &job_objects->children[kind] : &none;
    size_t most = own->count;
    for (enum replica_type type = 0; type < REPLICA_TYPES; type++)
        most += (size_t)wanted(job, type);
    struct children children = {.items = arena_array(arena, const struct child_entry *, most)};
    bool *held[REPLICA_TYPES]; /* [replicas]: the first source has what bears this name */
    for (int type = 0; type < REPLICA_TYPES; type++)
        held[type] = arena_array(arena, bool, (size_t)wanted(job, type));
    for (size_t i = 0; i < own->count; i++) {
        if (i + AHEAD < own->count)
            child_entry_prefetch(own->items[i + AHEAD], kind);
        children.items[children.count++] = own->items[i];
        note_held(own->items[i], job, held);
    }
    size_t before = strlen(job->namespace_) + 1; /* "namespace/" */
    char *key = arena_alloc(arena, before + strlen(job->name) + NAMES_CHILD_BYTES);
    snprintf(key, before + 1, "%s/", job->namespace_);
    for (enum replica_type type = 0; type < REPLICA_TYPES; type++) {
        for (int32_t i = 0; i < wanted(job, type); i++) {
            if (held[type][i])
                continue;
            names_put_child(key + before, job, type, i);
            const struct child_entry *child = cache_find_child(cache, kind, key);
            if (child && (!job_objects || child->job_objects != job_objects))
                children.items[children.count++] = child;
        }
    }
    return children;
}

void cache_snapshot(const struct cache *cache, const struct cached_job *job, int64_t now_ms,
                    struct arena *arena, struct snapshot *ret_snapshot)
{
    const char *key = arena_printf(arena, "%s/%s", job->job->namespace_, job->job->name);
    const struct job_objects *job_objects = (struct job_objects *)table_find(&cache->jobs, key);
    struct children pods = collect(cache, CACHE_PODS, job_objects, job->job, arena);
    struct children services = collect(cache, CACHE_SERVICES, job_objects, job->job, arena);
    struct pod *pod = arena_array(arena, struct pod, pods.count);
    struct service *service = arena_array(arena, struct service, services.count);
    for (size_t i = 0; i < pods.count; i++)
        pod[i] = pods.items[i]->pod;
    for (size_t i = 0; i < services.count; i++)
        service[i] = services.items[i]->service;
    const struct child_entry *group = cache_find_child(cache, CACHE_POD_GROUPS, key);
    const struct child_entry *autoscaler = cache_find_child(cache, CACHE_AUTOSCALERS, key);
    *ret_snapshot = (struct snapshot){
        .job = job->job,
        .job_bytes = job->bytes,
        .status = job->status,
        .pods = pod,
        .pod_count = pods.count,
        .services = service,
        .service_count = services.count,
        .pod_group = group ? &group->group : NULL,
        .autoscaler = autoscaler ? &autoscaler->autoscaler : NULL,
        .queue = cache_queue_view(cache, job_objects, job->job, arena),
        .now_ms = now_ms,
    };
}
