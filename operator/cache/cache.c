#include "operator/cache/cache.h"

#include "base/json.h"
#include "base/lines.h"
#include "base/mem.h"
#include "operator/cache/cache_internal.h"
#include "operator/job/names.h"

#include <stdlib.h>
#include <string.h>

/* An object that was fed. Works in the arena. */
struct reading {
    enum cache_kind kind;
    const struct json *object;
    struct arena *arena;
    struct lines problems;
    struct identity identity;
    const char *key;
};

static const char *const kind_names[] = {"PyTorchJob",
                                         "pod",
                                         "service",
                                         "PodGroup",
                                         "autoscaler",
                                         "node",
                                         "Workload",
                                         "ResourceFlavor",
                                         "WorkloadPriorityClass",
                                         "PriorityClass"};

/* Of no job_objects: its key is the job's. */
static bool is_podgroup_or_hpa(enum cache_kind kind)
{
    return kind == CACHE_POD_GROUPS || kind == CACHE_AUTOSCALERS;
}

/* ---- callbacks ---- */

void cache_report_unreadable(struct cache *cache, enum cache_kind kind, const char *key,
                             const char *what)
{
    auto_free char *message = xasprintf("%s %s: %s", kind_names[kind], key, what);
    cache->options.warn(cache->options.context, message);
}

static struct job_objects *find_job(const struct cache *cache, const char *key)
{
    struct job_objects *job_objects = (struct job_objects *)table_find(&cache->jobs, key);
    return job_objects && job_objects->job ? job_objects : NULL;
}

void cache_report_change(struct cache *cache, const char *key)
{
    const struct job_objects *job_objects = find_job(cache, key);
    bool finished = job_objects && (job_objects->job->state == CONDITION_SUCCEEDED ||
                                    job_objects->job->state == CONDITION_FAILED);
    cache->options.changed(cache->options.context, key, finished);
}

/* The job_objects whose job may want a child of this name for itself; NULL: none. */
static struct job_objects *job_objects_by_child_name(const struct cache *cache,
                                                     const char *child_key)
{
    size_t bytes = names_child_job(child_key);
    auto_free char *key = strndup(child_key, bytes);
    return bytes && key ? (struct job_objects *)table_find(&cache->jobs, key) : NULL;
}

static void report_child_change(struct cache *cache, const struct child_entry *child)
{
    if (is_podgroup_or_hpa(child->kind) && find_job(cache, child->entry.key))
        cache_report_change(cache, child->entry.key);
    if (child->job_objects)
        cache_report_change(cache, child->job_objects->key);
    const struct job_objects *other = job_objects_by_child_name(cache, child->entry.key);
    if (other && other != child->job_objects && other->job)
        cache_report_change(cache, other->key);
}

/* ---- jobs ---- */

/* Pods may be listed before their job, and outlive it: an entry exists while there is a job or a
 * child. */
static struct job_objects *open_job_objects(struct cache *cache, const char *key)
{
    struct job_objects *job_objects = (struct job_objects *)table_find(&cache->jobs, key);
    if (job_objects)
        return job_objects;
    size_t bytes = strlen(key) + 1;
    job_objects = xcalloc(1, sizeof *job_objects + bytes);
    memcpy(job_objects->key, key, bytes);
    job_objects->entry.key = job_objects->key;
    table_add(&cache->jobs, &job_objects->entry);
    return job_objects;
}

static void free_if_empty(struct cache *cache, struct job_objects *job_objects)
{
    if (!job_objects || job_objects->job || job_objects->children[CACHE_PODS].count ||
        job_objects->children[CACHE_SERVICES].count || job_objects->workloads.count)
        return;
    table_remove(&cache->jobs, &job_objects->entry);
    free(job_objects);
}

/* ---- children ---- */

static struct child_list *list_of(struct job_objects *job_objects, enum cache_kind kind)
{
    return kind == CACHE_WORKLOADS ? &job_objects->workloads : &job_objects->children[kind];
}

static void add_child(struct child_entry *child, struct job_objects *job_objects)
{
    child->job_objects = job_objects;
    child_list_add(list_of(job_objects, child->kind), child);
}

/* Out of the tables, but not freed. */
static void unlink_child(struct cache *cache, struct child_entry *child)
{
    table_remove(&cache->children[child->kind], &child->entry);
    if (!child->job_objects)
        return;
    child_list_remove(list_of(child->job_objects, child->kind), child);
    free_if_empty(cache, take(child->job_objects));
}

static void remove_child(struct cache *cache, struct child_entry *child)
{
    report_child_change(cache, child);
    unlink_child(cache, child);
    free(child);
}

struct child_entry *cache_find_child(const struct cache *cache, enum cache_kind kind,
                                     const char *key)
{
    return (struct child_entry *)table_find(&cache->children[kind], key);
}

static struct job_objects *job_objects_of(struct cache *cache, const struct reading *reading)
{
    const struct identity *identity = &reading->identity;
    if (!*identity->job_name || is_podgroup_or_hpa(reading->kind))
        return NULL;
    return open_job_objects(
        cache, arena_printf(reading->arena, "%s/%s", identity->namespace_, identity->job_name));
}

/* One more of this kind is not taken; the first one is logged. */
static bool is_full(struct cache *cache, enum cache_kind kind, const char *key)
{
    if (cache_count(cache, kind) < cache->options.max_objects)
        return false;
    if (!cache->full[kind])
        cache_report_unreadable(cache, kind, key,
                                "not taken, like all that follow: too many; watch fewer namespaces "
                                "(--namespace)");
    cache->full[kind] = true;
    return true;
}

static void put_child(struct cache *cache, struct reading *reading)
{
    const struct identity *identity = &reading->identity;
    struct child_entry *old = cache_find_child(cache, reading->kind, reading->key);
    if (reading->kind == CACHE_WORKLOADS &&
        !*identity->job_name) { /* of a Job, a RayCluster, ... */
        if (old)
            remove_child(cache, old);
        return;
    }
    /* A list brings everything that is known already. An equal resourceVersion means an equal
     * object, so decoding it again and waking its job are spared. */
    if (old && strcmp(old->version, identity->resource_version) == 0) {
        old->seen = cache->list[reading->kind];
        return;
    }
    if (!old && is_full(cache, reading->kind, reading->key))
        return;
    struct child_entry *child = child_entry_open(reading->kind, reading->object, identity,
                                                 reading->arena, &reading->problems);
    if (reading->problems.count)
        cache_report_unreadable(cache, reading->kind, reading->key, lines_join(&reading->problems));
    child->seen = cache->list[reading->kind];
    struct job_objects *job_objects = job_objects_of(cache, reading);
    /* Its owner or label was changed: the job that loses it must look as well. */
    if (old && old->job_objects != job_objects && old->job_objects)
        cache_report_change(cache, old->job_objects->key);
    /* The new one goes in before the old one goes out: between the two the job's entry would be
     * empty, and freed. */
    if (job_objects)
        add_child(child, job_objects);
    if (old) {
        unlink_child(cache, old);
        free(old);
    }
    table_add(&cache->children[child->kind], &child->entry);
    report_child_change(cache, child);
}

/* ---- jobs ---- */

static void count_job(struct cache *cache, const struct job_entry *job)
{
    cache->job_count++;
    cache->jobs_in_state[job->state]++;
}

static void uncount_job(struct cache *cache, const struct job_entry *job)
{
    cache->job_count--;
    cache->jobs_in_state[job->state]--;
}

static void remove_job(struct cache *cache, struct job_objects *job_objects)
{
    cache_report_change(cache, job_objects->key);
    uncount_job(cache, job_objects->job);
    job_entry_close(take(job_objects->job));
    free_if_empty(cache, job_objects);
}

static void put_job(struct cache *cache, const struct reading *reading)
{
    if (!find_job(cache, reading->key) && is_full(cache, CACHE_JOBS, reading->key))
        return;
    struct job_objects *job_objects = open_job_objects(cache, reading->key);
    job_objects->seen = cache->list[CACHE_JOBS];
    if (job_objects->job &&
        strcmp(job_objects->job->version, reading->identity.resource_version) == 0)
        return;
    const char *other = job_entry_other_writer(job_objects->job, reading->object);
    if (job_objects->job)
        uncount_job(cache, job_objects->job);
    job_objects->job = job_entry_open(reading->object, &reading->identity, job_objects->job);
    count_job(cache, job_objects->job);
    if (other && cache->options.another_wrote)
        cache->options.another_wrote(cache->options.context, reading->key, other);
    cache_report_change(cache, reading->key);
}

/* ---- feeding ---- */

struct cache *cache_open(const struct cache_options *options)
{
    struct cache *cache = xcalloc(1, sizeof *cache);
    cache->options = *options;
    if (!options->max_objects)
        cache->options.max_objects = CACHE_MAX_OBJECTS;
    cache->nodes = nodes_open(&options->signs, cache->options.max_objects);
    cache->queue_objects = queue_objects_open();
    return cache;
}

static void free_child(void *context, struct table_entry *entry)
{
    (void)context;
    free(entry);
}

static void free_job_objects(void *context, struct table_entry *entry)
{
    (void)context;
    struct job_objects *job_objects = (struct job_objects *)entry;
    job_entry_close(job_objects->job);
    for (int kind = CACHE_PODS; kind <= CACHE_SERVICES; kind++)
        free(job_objects->children[kind].items);
    free(job_objects->workloads.items);
    free(job_objects);
}

void cache_close(struct cache *cache)
{
    if (!cache)
        return;
    for (int kind = CACHE_PODS; kind <= CACHE_WORKLOADS; kind++) {
        table_each(&cache->children[kind], free_child, NULL);
        table_free(&cache->children[kind]);
    }
    table_each(&cache->jobs, free_job_objects, NULL);
    table_free(&cache->jobs);
    nodes_close(cache->nodes);
    queue_objects_close(cache->queue_objects);
    free(cache);
}

void cache_begin_list(struct cache *cache, enum cache_kind kind)
{
    if (kind == CACHE_NODES)
        nodes_begin_list(cache->nodes);
    if (cache_is_queue_object(kind))
        queue_objects_begin_list(cache->queue_objects, kind);
    /* Mark and sweep: what a list names gets its number, and the list's end drops what bears an
     * older one. So deletions that no watch has seen are found. */
    cache->list[kind]++;
    cache->full[kind] = false;
}

/* Forgets what bears this name; `uid` NULL: whatever it is. */
static void delete_object(struct cache *cache, enum cache_kind kind, const char *key,
                          const char *uid)
{
    if (kind == CACHE_JOBS) {
        struct job_objects *job_objects = find_job(cache, key);
        if (job_objects && (!uid || strcmp(job_objects->job->uid, uid) == 0))
            remove_job(cache, job_objects);
        return;
    }
    struct child_entry *child = cache_find_child(cache, kind, key);
    if (child && (!uid || strcmp(child_entry_uid(child), uid) == 0))
        remove_child(cache, child);
}

/* Reads who it is. False: it cannot be read, which is logged; what is known under that name is not
 * what is there any more. */
static bool identify(struct cache *cache, struct reading *reading)
{
    struct error err;
    struct identity *identity = &reading->identity;
    lines_init(&reading->problems, reading->arena);
    bool readable =
        decode_identity(reading->object, reading->arena, &reading->problems, identity, &err) == 0;
    reading->key = arena_printf(reading->arena, "%s/%s", identity->namespace_, identity->name);
    if (!readable) {
        cache_report_unreadable(cache, reading->kind, reading->key, err.msg);
        delete_object(cache, reading->kind, reading->key, NULL);
    }
    return readable;
}

void cache_put(struct cache *cache, enum cache_kind kind, const struct json *object)
{
    auto_arena struct arena *arena = arena_open();
    if (kind == CACHE_NODES) {
        cache_put_node(cache, object, arena);
        return;
    }
    if (cache_is_queue_object(kind)) {
        cache_put_queue_object(cache, kind, object, arena);
        return;
    }
    struct reading reading = {.kind = kind, .object = object, .arena = arena};
    if (!identify(cache, &reading))
        return;
    if (kind == CACHE_JOBS)
        put_job(cache, &reading);
    else
        put_child(cache, &reading);
}

/* What is gone is the object of that UID, not another that has taken its name since. */
void cache_delete(struct cache *cache, enum cache_kind kind, const struct json *object)
{
    auto_arena struct arena *arena = arena_open();
    if (kind == CACHE_NODES) {
        cache_delete_node(cache, object, arena);
        return;
    }
    if (cache_is_queue_object(kind)) {
        cache_delete_queue_object(cache, kind, object, arena);
        return;
    }
    struct reading reading = {.kind = kind, .object = object, .arena = arena};
    if (identify(cache, &reading))
        delete_object(cache, kind, reading.key, reading.identity.uid);
}

static void drop_unseen_child(void *context, struct table_entry *entry)
{
    struct cache *cache = context;
    struct child_entry *child = (struct child_entry *)entry;
    if (child->seen != cache->list[child->kind])
        remove_child(cache, child);
}

static void drop_unseen_job(void *context, struct table_entry *entry)
{
    struct cache *cache = context;
    struct job_objects *job_objects = (struct job_objects *)entry;
    if (job_objects->job && job_objects->seen != cache->list[CACHE_JOBS])
        remove_job(cache, job_objects);
}

void cache_end_list(struct cache *cache, enum cache_kind kind)
{
    if (kind == CACHE_JOBS)
        table_each(&cache->jobs, drop_unseen_job, cache);
    else if (kind == CACHE_NODES)
        cache_end_nodes(cache);
    else if (cache_is_queue_object(kind))
        cache_end_queue_objects(cache, kind);
    else
        table_each(&cache->children[kind], drop_unseen_child, cache);
}

/* ---- looking ---- */

struct cached_job *cache_acquire_job(struct cache *cache, const char *key)
{
    struct job_objects *job_objects = find_job(cache, key);
    return job_objects ? job_entry_acquire(job_objects->job, cache->options.default_backoff_limit)
                       : NULL;
}

void cache_release_job(struct cached_job *job)
{
    job_entry_release(job);
}

static void resync_job(void *context, struct table_entry *entry)
{
    const struct job_objects *job_objects = (struct job_objects *)entry;
    if (job_objects->job)
        cache_report_change(context, job_objects->key);
}

void cache_resync_jobs(struct cache *cache)
{
    table_each(&cache->jobs, resync_job, cache);
}

size_t cache_count(const struct cache *cache, enum cache_kind kind)
{
    if (kind == CACHE_NODES)
        return nodes_count(cache->nodes);
    if (cache_is_queue_object(kind))
        return queue_objects_count(cache->queue_objects, kind);
    return kind == CACHE_JOBS ? cache->job_count : cache->children[kind].count;
}

size_t cache_jobs_in_state(const struct cache *cache, enum condition_type state)
{
    return cache->jobs_in_state[state];
}
