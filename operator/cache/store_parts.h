/* Inside the store: its tables, for store.c, which feeds them, and store_world.c, which looks. */
#ifndef SHOAL_OPERATOR_CACHE_STORE_PARTS_H
#define SHOAL_OPERATOR_CACHE_STORE_PARTS_H

#include "base/table.h"
#include "operator/cache/store.h"
#include "operator/cache/store_child.h"
#include "operator/cache/store_job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All that goes by one job's key. Exists while it has a job or children. */
struct family {
    struct table_entry entry;
    struct stored_job *job;                            /* NULL: not known (yet) */
    uint32_t seen;                                     /* the job, as in struct stored_child */
    struct stored_child *children[STORE_SERVICES + 1]; /* pods and services */
    char key[];
};

struct store {
    struct store_options options;
    struct table families;
    struct table children[STORE_KINDS];
    size_t job_count, jobs_in_state[CONDITION_TYPES];
    uint32_t list[STORE_KINDS]; /* number of the last one that began */
    bool full[STORE_KINDS];     /* something was not taken since then, and that was told */
};

/* NULL: none of that kind bears this "namespace/name". */
struct stored_child *store_find_child(const struct store *store, enum store_kind kind,
                                      const char *key);

#ifdef __cplusplus
}
#endif
#endif
