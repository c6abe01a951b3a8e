/* The operator's caches: jobs, and our labelled pods and services, decoded and trimmed, found by
 * key and by job. Fed by watches; a list that begins marks everything old and one that ends drops
 * what was not put again, so that a relist swaps atomically. Objects are refreshed only if their
 * resourceVersion differs. Knows no requests and decides nothing. */
#ifndef SHOAL_OPERATOR_STORE_H
#define SHOAL_OPERATOR_STORE_H

#include "base/error.h"
#include "operator/reconcile.h"

#ifdef __cplusplus
extern "C" {
#endif

struct arena;
struct json_t;
struct store;

/* A job as it was last seen. Counted: whoever works on one over time holds a reference, so that a
 * newer version does not pull it away. */
struct store_job {
    const struct job *job;           /* defaulted, or with `invalid` set */
    const struct job_status *status; /* as the API has it */
    const struct json_t *object;     /* the whole object: its resourceVersion, its template */
};

struct store_options {
    int64_t default_backoff_limit;
    /* A job's world has changed: reconcile it. key: "namespace/name", valid until it returns. */
    void (*changed)(void *context, const char *key);
    /* An object that cannot be read: said with its key, and skipped. */
    void (*trouble)(void *context, const char *message);
    void *context;
};

enum store_kind { STORE_JOBS, STORE_PODS, STORE_SERVICES };

struct store *store_open(const struct store_options *options);
void store_close(struct store *store);

void store_begin_list(struct store *store, enum store_kind kind);
void store_put(struct store *store, enum store_kind kind, const struct json_t *object);
void store_gone(struct store *store, enum store_kind kind, const struct json_t *object);
void store_end_list(struct store *store, enum store_kind kind);

/* NULL: there is no such job. Release it. */
struct store_job *store_take_job(struct store *store, const char *key);
void store_release_job(struct store_job *job);

/* What reconcile is to see of this job: pods and services carrying its labels, or bearing a name it
 * wants. Arrays live in the arena; what they point to lives until the store is fed again. */
void store_world(const struct store *store, const struct store_job *job, int64_t now_ms,
                 struct arena *arena, struct world *ret_world);

size_t store_count(const struct store *store, enum store_kind kind);

#ifdef __cplusplus
}
#endif
#endif
