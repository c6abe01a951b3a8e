#include "operator/cache/store.h"

#include "base/lines.h"
#include "base/mem.h"
#include "operator/cache/store_parts.h"
#include "operator/job/names.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* An object that was fed. Works in the arena. */
struct reading {
    enum store_kind kind;
    const json_t *object;
    struct arena *arena;
    struct lines problems;
    struct identity identity;
    const char *key;
};

static const char *const kind_names[] = {"PyTorchJob", "pod", "service", "PodGroup", "autoscaler"};

/* Of no family: its key is the job's. */
static bool is_beside(enum store_kind kind)
{
    return kind > STORE_SERVICES;
}

/* ---- what is told ---- */

static void tell_trouble(struct store *store, enum store_kind kind, const char *key,
                         const char *what)
{
    auto_free char *message = xasprintf("%s %s: %s", kind_names[kind], key, what);
    store->options.trouble(store->options.context, message);
}

static struct family *find_job(const struct store *store, const char *key)
{
    struct family *family = (struct family *)table_find(&store->families, key);
    return family && family->job ? family : NULL;
}

static void tell_changed(struct store *store, const char *key)
{
    const struct family *family = find_job(store, key);
    bool finished = family && (family->job->state == CONDITION_SUCCEEDED ||
                               family->job->state == CONDITION_FAILED);
    store->options.changed(store->options.context, key, finished);
}

/* The family whose job may want a child of this name for itself; NULL: none. */
static struct family *family_by_child_name(const struct store *store, const char *child_key)
{
    size_t bytes = names_child_job(child_key);
    auto_free char *key = strndup(child_key, bytes);
    return bytes && key ? (struct family *)table_find(&store->families, key) : NULL;
}

static void tell_child_changed(struct store *store, const struct stored_child *child)
{
    if (is_beside(child->kind) && find_job(store, child->entry.key))
        tell_changed(store, child->entry.key);
    if (child->family)
        tell_changed(store, child->family->key);
    const struct family *other = family_by_child_name(store, child->entry.key);
    if (other && other != child->family && other->job)
        tell_changed(store, other->key);
}

/* ---- families ---- */

static struct family *make_family(struct store *store, const char *key)
{
    struct family *family = (struct family *)table_find(&store->families, key);
    if (family)
        return family;
    size_t bytes = strlen(key) + 1;
    family = xcalloc(1, sizeof *family + bytes);
    memcpy(family->key, key, bytes);
    family->entry.key = family->key;
    table_add(&store->families, &family->entry);
    return family;
}

static void drop_family_if_empty(struct store *store, struct family *family)
{
    if (!family || family->job || family->children[STORE_PODS] || family->children[STORE_SERVICES])
        return;
    table_remove(&store->families, &family->entry);
    free(family);
}

/* ---- children ---- */

static void join_family(struct stored_child *child, struct family *family)
{
    struct stored_child **first = &family->children[child->kind];
    child->family = family;
    child->next = *first;
    child->link = first;
    if (child->next)
        child->next->link = &child->next;
    *first = child;
}

/* Out of the tables, but not freed. */
static void unlink_child(struct store *store, struct stored_child *child)
{
    table_remove(&store->children[child->kind], &child->entry);
    if (!child->family)
        return;
    *child->link = child->next;
    if (child->next)
        child->next->link = child->link;
    drop_family_if_empty(store, take(child->family));
}

static void remove_child(struct store *store, struct stored_child *child)
{
    tell_child_changed(store, child);
    unlink_child(store, child);
    free(child);
}

struct stored_child *store_find_child(const struct store *store, enum store_kind kind,
                                      const char *key)
{
    return (struct stored_child *)table_find(&store->children[kind], key);
}

static struct family *family_of(struct store *store, const struct reading *reading)
{
    const struct identity *identity = &reading->identity;
    if (!*identity->job_name || is_beside(reading->kind))
        return NULL;
    return make_family(
        store, arena_printf(reading->arena, "%s/%s", identity->namespace_, identity->job_name));
}

/* One more of this kind is not taken; the first one is told. */
static bool is_full(struct store *store, enum store_kind kind, const char *key)
{
    if (store_count(store, kind) < store->options.max_objects)
        return false;
    if (!store->full[kind])
        tell_trouble(store, kind, key,
                     "not taken, like all that follow: too many; watch fewer namespaces "
                     "(--namespace)");
    store->full[kind] = true;
    return true;
}

static void put_child(struct store *store, struct reading *reading)
{
    const struct identity *identity = &reading->identity;
    struct stored_child *old = store_find_child(store, reading->kind, reading->key);
    if (old && strcmp(old->version, identity->resource_version) == 0) {
        old->seen = store->list[reading->kind];
        return;
    }
    if (!old && is_full(store, reading->kind, reading->key))
        return;
    struct stored_child *child = stored_child_open(reading->kind, reading->object, identity,
                                                   reading->arena, &reading->problems);
    if (reading->problems.count)
        tell_trouble(store, reading->kind, reading->key, lines_join(&reading->problems));
    child->seen = store->list[reading->kind];
    struct family *family = family_of(store, reading);
    if (old && old->family != family && old->family)
        tell_changed(store, old->family->key);
    if (family)
        join_family(child, family);
    if (old) {
        unlink_child(store, old);
        free(old);
    }
    table_add(&store->children[child->kind], &child->entry);
    tell_child_changed(store, child);
}

/* ---- jobs ---- */

/* Takes the job out of the counts, too. */
static void close_job(struct store *store, struct stored_job *job)
{
    store->job_count--;
    store->jobs_in_state[job->state]--;
    stored_job_close(job);
}

static void remove_job(struct store *store, struct family *family)
{
    tell_changed(store, family->key);
    close_job(store, take(family->job));
    drop_family_if_empty(store, family);
}

static void put_job(struct store *store, const struct reading *reading)
{
    if (!find_job(store, reading->key) && is_full(store, STORE_JOBS, reading->key))
        return;
    struct family *family = make_family(store, reading->key);
    family->seen = store->list[STORE_JOBS];
    if (family->job && strcmp(family->job->version, reading->identity.resource_version) == 0)
        return;
    if (family->job)
        close_job(store, family->job);
    family->job = stored_job_open(reading->object, &reading->identity);
    store->job_count++;
    store->jobs_in_state[family->job->state]++;
    tell_changed(store, reading->key);
}

/* ---- feeding ---- */

struct store *store_open(const struct store_options *options)
{
    struct store *store = xcalloc(1, sizeof *store);
    store->options = *options;
    if (!options->max_objects)
        store->options.max_objects = STORE_MAX_OBJECTS;
    return store;
}

static void free_child(void *context, struct table_entry *entry)
{
    (void)context;
    free(entry);
}

static void free_family(void *context, struct table_entry *entry)
{
    (void)context;
    struct family *family = (struct family *)entry;
    stored_job_close(family->job);
    free(family);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (int kind = STORE_PODS; kind < STORE_KINDS; kind++) {
        table_each(&store->children[kind], free_child, NULL);
        table_free(&store->children[kind]);
    }
    table_each(&store->families, free_family, NULL);
    table_free(&store->families);
    free(store);
}

void store_begin_list(struct store *store, enum store_kind kind)
{
    store->list[kind]++;
    store->full[kind] = false;
}

/* Forgets what bears this name; `uid` NULL: whatever it is. */
static void forget(struct store *store, enum store_kind kind, const char *key, const char *uid)
{
    if (kind == STORE_JOBS) {
        struct family *family = find_job(store, key);
        if (family && (!uid || strcmp(family->job->uid, uid) == 0))
            remove_job(store, family);
        return;
    }
    struct stored_child *child = store_find_child(store, kind, key);
    if (child && (!uid || strcmp(stored_child_uid(child), uid) == 0))
        remove_child(store, child);
}

/* Reads who it is. False: it cannot be read, which is told; what is known under that name is not
 * what is there any more. */
static bool identify(struct store *store, struct reading *reading)
{
    struct error err;
    struct identity *identity = &reading->identity;
    lines_init(&reading->problems, reading->arena);
    bool readable =
        decode_identity(reading->object, reading->arena, &reading->problems, identity, &err) == 0;
    reading->key = arena_printf(reading->arena, "%s/%s", identity->namespace_, identity->name);
    if (!readable) {
        tell_trouble(store, reading->kind, reading->key, err.msg);
        forget(store, reading->kind, reading->key, NULL);
    }
    return readable;
}

void store_put(struct store *store, enum store_kind kind, const struct json_t *object)
{
    auto_arena struct arena *arena = arena_open();
    struct reading reading = {.kind = kind, .object = object, .arena = arena};
    if (!identify(store, &reading))
        return;
    if (kind == STORE_JOBS)
        put_job(store, &reading);
    else
        put_child(store, &reading);
}

/* What is gone is the object of that UID, not another that has taken its name since. */
void store_gone(struct store *store, enum store_kind kind, const struct json_t *object)
{
    auto_arena struct arena *arena = arena_open();
    struct reading reading = {.kind = kind, .object = object, .arena = arena};
    if (identify(store, &reading))
        forget(store, kind, reading.key, reading.identity.uid);
}

static void drop_unseen_child(void *context, struct table_entry *entry)
{
    struct store *store = context;
    struct stored_child *child = (struct stored_child *)entry;
    if (child->seen != store->list[child->kind])
        remove_child(store, child);
}

static void drop_unseen_job(void *context, struct table_entry *entry)
{
    struct store *store = context;
    struct family *family = (struct family *)entry;
    if (family->job && family->seen != store->list[STORE_JOBS])
        remove_job(store, family);
}

void store_end_list(struct store *store, enum store_kind kind)
{
    if (kind == STORE_JOBS)
        table_each(&store->families, drop_unseen_job, store);
    else
        table_each(&store->children[kind], drop_unseen_child, store);
}

/* ---- looking ---- */

struct store_job *store_take_job(struct store *store, const char *key)
{
    struct family *family = find_job(store, key);
    return family ? stored_job_take(family->job, store->options.default_backoff_limit) : NULL;
}

void store_release_job(struct store_job *job)
{
    stored_job_release(job);
}

static void mark_job(void *context, struct table_entry *entry)
{
    const struct family *family = (struct family *)entry;
    if (family->job)
        tell_changed(context, family->key);
}

void store_mark_jobs(struct store *store)
{
    table_each(&store->families, mark_job, store);
}

size_t store_count(const struct store *store, enum store_kind kind)
{
    return kind == STORE_JOBS ? store->job_count : store->children[kind].count;
}

size_t store_jobs_in_state(const struct store *store, enum condition_type state)
{
    return store->jobs_in_state[state];
}
