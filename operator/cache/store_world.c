#include "operator/cache/store_parts.h"

#include "base/mem.h"
#include "operator/job/names.h"

struct children {
    const struct stored_child **items;
    size_t count;
};

/* `family` may be NULL. A child that bears a wanted name belongs to it, to another family or to
 * none. */
static struct children collect(const struct store *store, enum store_kind kind,
                               const struct family *family, const struct job *job,
                               struct arena *arena)
{
    size_t most = 0;
    const struct stored_child *first = family ? family->children[kind] : NULL;
    for (const struct stored_child *child = first; child; child = child->next)
        most++;
    for (int type = 0; type < REPLICA_TYPES && !job->invalid; type++)
        most += job->replicas[type].present ? (size_t)job->replicas[type].replicas.value : 0;
    struct children children = {.items = arena_array(arena, const struct stored_child *, most)};
    for (const struct stored_child *child = first; child; child = child->next)
        children.items[children.count++] = child;
    for (int type = 0; type < REPLICA_TYPES && !job->invalid; type++) {
        const struct replica_spec *replica = &job->replicas[type];
        for (int32_t i = 0; replica->present && i < replica->replicas.value; i++) {
            const char *name = names_child(arena, job, type, i);
            const char *key = arena_printf(arena, "%s/%s", job->namespace_, name);
            const struct stored_child *child = store_find_child(store, kind, key);
            if (child && (!family || child->family != family))
                children.items[children.count++] = child;
        }
    }
    return children;
}

void store_world(const struct store *store, const struct store_job *job, int64_t now_ms,
                 struct arena *arena, struct world *ret_world)
{
    const char *key = arena_printf(arena, "%s/%s", job->job->namespace_, job->job->name);
    const struct family *family = (struct family *)table_find(&store->families, key);
    struct children pods = collect(store, STORE_PODS, family, job->job, arena);
    struct children services = collect(store, STORE_SERVICES, family, job->job, arena);
    struct pod *pod = arena_array(arena, struct pod, pods.count);
    struct service *service = arena_array(arena, struct service, services.count);
    for (size_t i = 0; i < pods.count; i++)
        pod[i] = pods.items[i]->pod;
    for (size_t i = 0; i < services.count; i++)
        service[i] = services.items[i]->service;
    const struct stored_child *group = store_find_child(store, STORE_POD_GROUPS, key);
    const struct stored_child *autoscaler = store_find_child(store, STORE_AUTOSCALERS, key);
    *ret_world = (struct world){
        .job = job->job,
        .job_bytes = job->bytes,
        .status = job->status,
        .pods = pod,
        .pod_count = pods.count,
        .services = service,
        .service_count = services.count,
        .pod_group = group ? &group->group : NULL,
        .autoscaler = autoscaler ? &autoscaler->autoscaler : NULL,
        .now_ms = now_ms,
    };
}
