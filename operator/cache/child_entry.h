/* A pod, service, PodGroup, autoscaler or Workload in the cache: what reconcile needs of it, in one
 * allocation with its texts. */
#ifndef SHOAL_OPERATOR_CACHE_CHILD_ENTRY_H
#define SHOAL_OPERATOR_CACHE_CHILD_ENTRY_H

#include "base/table.h"
#include "operator/cache/cache.h"
#include "operator/decode/decode_podgroup_hpa.h"
#include "operator/job/workload.h"

struct job_objects;

struct child_entry {
    struct table_entry entry; /* first; its key is "namespace/name" */
    enum cache_kind kind;
    uint32_t seen;                   /* the number of the list that contained it last */
    struct job_objects *job_objects; /* of the job that it is a child of; NULL: of none */
    const char *version;
    union {                     /* of its kind only: memory beyond that member is not allocated */
        struct pod pod;         /* CACHE_PODS */
        struct service service; /* CACHE_SERVICES */
        struct pod_group group; /* CACHE_POD_GROUPS */
        struct autoscaler autoscaler;
        struct workload workload;
    };
};

/* Decodes an object of any kind but CACHE_JOBS. Uses the arena for scratch memory only. Free with
 * free(). */
struct child_entry *child_entry_open(enum cache_kind kind, const struct json *object,
                                     const struct identity *identity, struct arena *arena,
                                     struct lines *problems);

const char *child_entry_uid(const struct child_entry *child);

/* Has the child, which is of this kind, and the texts behind it brought from memory; it will be
 * looked at soon. The children of a job lie anywhere: one after the other they are waited for
 * longer than all else in a pass takes. */
void child_entry_prefetch(const struct child_entry *child, enum cache_kind kind);
#endif
