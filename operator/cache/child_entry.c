#include "operator/cache/child_entry.h"

#include "base/mem.h"
#include "operator/decode/decode_pod.h"
#include "operator/decode/decode_workload.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* One allocation a child: there may be hundreds of thousands, and each separate text would cost a
 * header and a partly filled block of malloc. */
#define TEXTS_MAX 16

/* Of a pod or service, about; and of x86-64 and most of arm64. */
enum { TEXTS_BYTES = 192, CACHE_LINE_BYTES = 64 };

/* Where a child keeps its texts; all but the name, which lies in the key. */
struct texts {
    const char **at[TEXTS_MAX];
    size_t count;
};

static void add(struct texts *texts, const char **at)
{
    assert(texts->count < TEXTS_MAX);
    if (*at)
        texts->at[texts->count++] = at;
}

static struct texts texts_of(struct child_entry *child)
{
    struct texts texts = {.count = 0};
    add(&texts, &child->version);
    switch (child->kind) {
    case CACHE_PODS:
        add(&texts, &child->pod.uid);
        add(&texts, &child->pod.owner_uid);
        add(&texts, &child->pod.waiting_reason);
        add(&texts, &child->pod.waiting_message);
        add(&texts, &child->pod.end.container);
        add(&texts, &child->pod.end.reason);
        add(&texts, &child->pod.address);
        add(&texts, &child->pod.last_line);
        add(&texts, &child->pod.end.hardware);
        add(&texts, &child->pod.node);
        add(&texts, &child->pod.avoids);
        break;
    case CACHE_POD_GROUPS:
        add(&texts, &child->group.uid);
        add(&texts, &child->group.owner_uid);
        add(&texts, &child->group.phase);
        add(&texts, &child->group.message);
        add(&texts, &child->group.spec.queue);
        add(&texts, &child->group.spec.priority_class);
        break;
    case CACHE_AUTOSCALERS:
        add(&texts, &child->autoscaler.uid);
        add(&texts, &child->autoscaler.owner_uid);
        add(&texts, &child->autoscaler.spec.metrics_hash);
        break;
    case CACHE_WORKLOADS:
        add(&texts, &child->workload.uid);
        add(&texts, &child->workload.owner_uid);
        add(&texts, &child->workload.spec.queue);
        add(&texts, &child->workload.spec.pods_hash);
        add(&texts, &child->workload.spec.priority.class_name);
        add(&texts, &child->workload.cluster_queue);
        add(&texts, &child->workload.eviction_reason);
        add(&texts, &child->workload.message);
        add(&texts, &child->workload.conditions);
        for (int type = 0; type < REPLICA_TYPES; type++) {
            add(&texts, &child->workload.assigned[type].flavors);
            add(&texts, &child->workload.assigned[type].updates);
        }
        break;
    default:
        add(&texts, &child->service.uid);
        add(&texts, &child->service.owner_uid);
    }
    return texts;
}

static const char **name_of(struct child_entry *child)
{
    switch (child->kind) {
    case CACHE_PODS:
        return &child->pod.name;
    case CACHE_POD_GROUPS:
        return &child->group.name;
    case CACHE_AUTOSCALERS:
        return &child->autoscaler.name;
    case CACHE_WORKLOADS:
        return &child->workload.name;
    default:
        return &child->service.name;
    }
}

static struct quantities quantities_of(const struct child_entry *child)
{
    if (child->kind == CACHE_POD_GROUPS)
        return child->group.spec.min_resources;
    return (struct quantities){.count = 0};
}

static size_t room(const char *text)
{
    return strlen(text) + 1;
}

static char *append(char **at, const char *text)
{
    size_t bytes = room(text);
    char *copy = memcpy(*at, text, bytes);
    *at += bytes;
    return copy;
}

static size_t bytes_behind(struct child_entry *read, const struct identity *identity)
{
    size_t bytes = room(identity->namespace_) + room(identity->name);
    struct texts texts = texts_of(read);
    for (size_t i = 0; i < texts.count; i++)
        bytes += room(*texts.at[i]);
    struct quantities quantities = quantities_of(read);
    for (size_t i = 0; i < quantities.count; i++)
        bytes += sizeof *quantities.items + room(quantities.items[i].resource);
    return bytes;
}

/* How much of a struct child_entry one of this kind has. */
static size_t bytes_of(enum cache_kind kind)
{
    size_t bytes = offsetof(struct child_entry, pod);
    switch (kind) {
    case CACHE_PODS:
        return bytes + sizeof(struct pod);
    case CACHE_POD_GROUPS:
        return bytes + sizeof(struct pod_group);
    case CACHE_AUTOSCALERS:
        return bytes + sizeof(struct autoscaler);
    case CACHE_WORKLOADS:
        return bytes + sizeof(struct workload);
    default:
        return bytes + sizeof(struct service);
    }
}

/* A copy of `read`, which points into an arena, with its quantities and texts behind it. */
static struct child_entry *copy(struct child_entry *read, const struct identity *identity)
{
    size_t bytes = bytes_of(read->kind);
    struct child_entry *child = xmalloc(bytes + bytes_behind(read, identity));
    memcpy(child, read, bytes);
    struct quantities quantities = quantities_of(read);
    struct quantity *items = (struct quantity *)((char *)child + bytes);
    char *at = (char *)(items + quantities.count);
    for (size_t i = 0; i < quantities.count; i++)
        items[i] =
            (struct quantity){append(&at, quantities.items[i].resource), quantities.items[i].milli};
    if (quantities.count)
        child->group.spec.min_resources.items = items;
    child->entry.key = append(&at, identity->namespace_);
    /* The key "NAMESPACE/NAME" is both texts in a row: the first one's zero becomes the slash, and
     * the name is the key's end. */
    at[-1] = '/';
    *name_of(child) = append(&at, identity->name);
    struct texts texts = texts_of(child);
    for (size_t i = 0; i < texts.count; i++)
        *texts.at[i] = append(&at, *texts.at[i]);
    if (child->kind == CACHE_PODS)
        child->pod.version = child->version;
    if (child->kind == CACHE_WORKLOADS)
        child->workload.version = child->version;
    return child;
}

struct child_entry *child_entry_open(enum cache_kind kind, const struct json *object,
                                     const struct identity *identity, struct arena *arena,
                                     struct lines *problems)
{
    struct child_entry read = {.kind = kind, .version = identity->resource_version};
    switch (kind) {
    case CACHE_PODS:
        read.pod = decode_pod(object, identity, arena, problems);
        break;
    case CACHE_POD_GROUPS:
        read.group = decode_pod_group(object, identity, arena, problems);
        break;
    case CACHE_AUTOSCALERS:
        read.autoscaler = decode_autoscaler(object, identity, arena, problems);
        break;
    case CACHE_WORKLOADS:
        read.workload = decode_workload(object, identity, arena, problems);
        break;
    default:
        read.service = decode_service(identity);
    }
    return copy(&read, identity);
}

const char *child_entry_uid(const struct child_entry *child)
{
    switch (child->kind) {
    case CACHE_PODS:
        return child->pod.uid;
    case CACHE_POD_GROUPS:
        return child->group.uid;
    case CACHE_AUTOSCALERS:
        return child->autoscaler.uid;
    case CACHE_WORKLOADS:
        return child->workload.uid;
    default:
        return child->service.uid;
    }
}

void child_entry_prefetch(const struct child_entry *child, enum cache_kind kind)
{
    size_t bytes = bytes_of(kind) + TEXTS_BYTES;
    for (size_t at = 0; at < bytes; at += CACHE_LINE_BYTES)
        __builtin_prefetch((const char *)child + at);
}
