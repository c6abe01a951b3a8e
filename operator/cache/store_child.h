/* What is not a job in the store, a pod, a service or what stands beside them: what reconcile asks
 * of it, in one allocation with its texts. */
#ifndef SHOAL_OPERATOR_CACHE_STORE_CHILD_H
#define SHOAL_OPERATOR_CACHE_STORE_CHILD_H

#include "base/table.h"
#include "operator/cache/store.h"
#include "operator/decode/decode_beside.h"

#ifdef __cplusplus
extern "C" {
#endif

struct family;

struct stored_child {
    struct table_entry entry; /* first; its key is "namespace/name" */
    enum store_kind kind;
    uint32_t seen;                     /* the store's: the list in which it was last seen */
    struct family *family;             /* the store's: whose child it is; NULL: of no job */
    struct stored_child *next, **link; /* in the family */
    const char *version;
    union {                     /* of its kind only: the memory behind that is not there */
        struct pod pod;         /* STORE_PODS */
        struct service service; /* STORE_SERVICES */
        struct pod_group group; /* STORE_POD_GROUPS */
        struct autoscaler autoscaler;
    };
};

/* Reads an object of this kind, which is not STORE_JOBS; the arena is only worked in. Freed by
 * free(). */
struct stored_child *stored_child_open(enum store_kind kind, const struct json_t *object,
                                       const struct identity *identity, struct arena *arena,
                                       struct lines *problems);

const char *stored_child_uid(const struct stored_child *child);

#ifdef __cplusplus
}
#endif
#endif
