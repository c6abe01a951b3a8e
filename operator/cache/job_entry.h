/* A job in the cache: kept as the text of its object, which is a tenth of it decoded, and decoded
 * while somebody works on it. */
#ifndef SHOAL_OPERATOR_CACHE_JOB_ENTRY_H
#define SHOAL_OPERATOR_CACHE_JOB_ENTRY_H

#include "operator/cache/cache.h"

#ifdef __cplusplus
extern "C" {
#endif

struct identity;
struct decoded_job;

struct job_entry {
    struct decoded_job *decoded; /* while it is taken; its takers own it */
    char *text;                  /* the object, trimmed */
    size_t bytes;                /* of the object before that which only pods need was left out */
    const char *version, *uid;
    enum condition_type state; /* its last condition; Created if it has none yet */
};

struct job_entry *job_entry_open(const struct json_t *object, const struct identity *identity);
void job_entry_close(struct job_entry *entry); /* NULL-safe; what is taken stays */

/* Counted: all who take it at the same time share one. */
struct cached_job *job_entry_acquire(struct job_entry *entry, int64_t default_backoff_limit);
void job_entry_release(struct cached_job *job); /* NULL-safe */

#ifdef __cplusplus
}
#endif
#endif
