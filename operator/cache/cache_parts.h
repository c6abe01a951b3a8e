/* Inside the cache: its tables, for cache.c, which feeds them, and cache_snapshot.c,
 * which looks. */
#ifndef SHOAL_OPERATOR_CACHE_CACHE_PARTS_H
#define SHOAL_OPERATOR_CACHE_CACHE_PARTS_H

#include "base/table.h"
#include "operator/cache/cache.h"
#include "operator/cache/child_entry.h"
#include "operator/cache/job_entry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All that goes by one job's key. Exists while it has a job or children. */
struct job_objects {
    struct table_entry entry;
    struct job_entry *job;                            /* NULL: not known (yet) */
    uint32_t seen;                                    /* the job, as in struct child_entry */
    struct child_entry *children[CACHE_SERVICES + 1]; /* pods and services */
    char key[];
};

struct cache {
    struct cache_options options;
    struct table jobs;
    struct table children[CACHE_KINDS];
    size_t job_count, jobs_in_state[CONDITION_TYPES];
    uint32_t list[CACHE_KINDS]; /* number of the last one that began */
    bool full[CACHE_KINDS];     /* something was not taken since then, and that was told */
};

/* NULL: none of that kind bears this "namespace/name". */
struct child_entry *cache_find_child(const struct cache *cache, enum cache_kind kind,
                                     const char *key);

#ifdef __cplusplus
}
#endif
#endif
