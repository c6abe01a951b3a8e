/* Private to the cache: its tables, which cache.c and cache_nodes.c fill and cache_snapshot.c
 * reads. */
#ifndef SHOAL_OPERATOR_CACHE_CACHE_INTERNAL_H
#define SHOAL_OPERATOR_CACHE_CACHE_INTERNAL_H

#include "base/table.h"
#include "operator/cache/cache.h"
#include "operator/cache/child_entry.h"
#include "operator/cache/job_entry.h"
#include "operator/cache/nodes.h"

/* The job of a key and its children. Exists while there is a job or a child. */
struct job_objects {
    struct table_entry entry;
    struct job_entry *job;                            /* NULL: unknown (yet) */
    uint32_t seen;                                    /* of the job, as in struct child_entry */
    struct child_entry *children[CACHE_SERVICES + 1]; /* pods and services */
    char key[];
};

struct cache {
    struct cache_options options;
    struct table jobs;
    struct table children[CACHE_NODES]; /* but for nodes, which are no job's */
    struct nodes *nodes;
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
#endif
