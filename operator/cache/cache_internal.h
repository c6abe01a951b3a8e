/* Private to the cache: its tables, which cache.c and cache_nodes.c fill and cache_snapshot.c
 * reads. */
#ifndef SHOAL_OPERATOR_CACHE_CACHE_INTERNAL_H
#define SHOAL_OPERATOR_CACHE_CACHE_INTERNAL_H

#include "base/table.h"
#include "operator/cache/cache.h"
#include "operator/cache/child_list.h"
#include "operator/cache/job_entry.h"
#include "operator/cache/nodes.h"
#include "operator/cache/queue_objects.h"

/* The job of a key and its children. Exists while there is a job or a child. */
struct job_objects {
    struct table_entry entry;
    struct job_entry *job;                          /* NULL: unknown (yet) */
    uint32_t seen;                                  /* of the job, as in struct child_entry */
    struct child_list children[CACHE_SERVICES + 1]; /* pods and services */
    struct child_list workloads;
    char key[];
};

struct cache {
    struct cache_options options;
    struct table jobs;
    struct table children[CACHE_WORKLOADS + 1]; /* of nodes empty, which are no job's */
    struct nodes *nodes;
    struct queue_objects *queue_objects;
    size_t job_count, jobs_in_state[CONDITION_TYPES];
    uint32_t list[CACHE_KINDS]; /* number of the last list that began */
    bool full[CACHE_KINDS];     /* an object was rejected since then, with a warning */
};

/* The object of that kind and "namespace/name"; NULL: none. */
struct child_entry *cache_find_child(const struct cache *cache, enum cache_kind kind,
                                     const char *key);

/* To who opened the cache. */
void cache_report_change(struct cache *cache, const char *key);
void cache_report_unreadable(struct cache *cache, enum cache_kind kind, const char *key,
                             const char *what);

/* The parts of cache_put, cache_delete and cache_end_list for nodes. */
void cache_put_node(struct cache *cache, const struct json *object, struct arena *arena);
void cache_delete_node(struct cache *cache, const struct json *object, struct arena *arena);
void cache_end_nodes(struct cache *cache);

/* Whether it is a kind of queue_objects.h; and the parts of cache_put, cache_delete and
 * cache_end_list for those. */
bool cache_is_queue_object(enum cache_kind kind);
void cache_put_queue_object(struct cache *cache, enum cache_kind kind, const struct json *object,
                            struct arena *arena);
void cache_delete_queue_object(struct cache *cache, enum cache_kind kind, const struct json *object,
                               struct arena *arena);
void cache_end_queue_objects(struct cache *cache, enum cache_kind kind);

/* What Kueue says of a job. job_objects may be NULL. */
struct queue_view cache_queue_view(const struct cache *cache, const struct job_objects *job_objects,
                                   const struct job *job, struct arena *arena);
#endif
