/* What is not a job in the cache, a pod, a service or what stands beside them: what reconcile asks
 * of it, in one allocation with its texts. */
#ifndef SHOAL_OPERATOR_CACHE_CHILD_ENTRY_H
#define SHOAL_OPERATOR_CACHE_CHILD_ENTRY_H

#include "base/table.h"
#include "operator/cache/cache.h"
#include "operator/decode/decode_podgroup_hpa.h"

#ifdef __cplusplus
extern "C" {
#endif

struct job_objects;

struct child_entry {
    struct table_entry entry; /* first; its key is "namespace/name" */
    enum cache_kind kind;
    uint32_t seen;                    /* the cache's: the list in which it was last seen */
    struct job_objects *job_objects;  /* the cache's: whose child it is; NULL: of no job */
    struct child_entry *next, **link; /* in the job_objects */
    const char *version;
    union {                     /* of its kind only: the memory behind that is not there */
        struct pod pod;         /* CACHE_PODS */
        struct service service; /* CACHE_SERVICES */
        struct pod_group group; /* CACHE_POD_GROUPS */
        struct autoscaler autoscaler;
    };
};

/* Reads an object of this kind, which is not CACHE_JOBS; the arena is only worked in. Freed by
 * free(). */
struct child_entry *child_entry_open(enum cache_kind kind, const struct json_t *object,
                                     const struct identity *identity, struct arena *arena,
                                     struct lines *problems);

const char *child_entry_uid(const struct child_entry *child);

#ifdef __cplusplus
}
#endif
#endif
