/* A job in the store: kept as the text of its object, which is a tenth of it decoded, and decoded
 * while somebody works on it. */
#ifndef SHOAL_OPERATOR_CACHE_STORE_JOB_H
#define SHOAL_OPERATOR_CACHE_STORE_JOB_H

#include "operator/cache/store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct identity;
struct decoded_job;

struct stored_job {
    struct decoded_job *decoded; /* while it is taken; its takers own it */
    char *text;                  /* the object, trimmed */
    size_t bytes;                /* of the object before that which only pods need was left out */
    const char *version, *uid;
    enum condition_type state; /* its last condition; Created if it has none yet */
};

struct stored_job *stored_job_open(const struct json_t *object, const struct identity *identity);
void stored_job_close(struct stored_job *stored); /* NULL-safe; what is taken stays */

/* Counted: all who take it at the same time share one. */
struct store_job *stored_job_take(struct stored_job *stored, int64_t default_backoff_limit);
void stored_job_release(struct store_job *job); /* NULL-safe */

#ifdef __cplusplus
}
#endif
#endif
