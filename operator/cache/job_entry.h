/* A job in the cache: the JSON text of its object, a tenth of its size when decoded, and packed. It
 * is decoded while somebody has acquired it. */
#ifndef SHOAL_OPERATOR_CACHE_JOB_ENTRY_H
#define SHOAL_OPERATOR_CACHE_JOB_ENTRY_H

#include "operator/cache/cache.h"

struct identity;
struct decoded_job;
struct packed;

struct job_entry {
    struct decoded_job *decoded; /* while it is acquired; owned by those who acquired it */
    struct packed *text;         /* the object, without the fields that nobody reads */
    size_t bytes;                /* of the object, with the fields that only pods need */
    const char *version, *uid;
    char *writers;             /* decode_status_writers; NULL: they were not seen */
    enum condition_type state; /* its last condition; Created if it has none yet */
};

/* old: the version before, which is closed, or NULL. */
struct job_entry *job_entry_open(const struct json *object, const struct identity *identity,
                                 struct job_entry *old);
void job_entry_close(struct job_entry *entry); /* NULL-safe; an acquired job lives on */

/* The field manager of another operator that has just written the status of the object, which the
 * entry (NULL: none) is the version before of; a text of the object's. NULL: it did not, or the
 * object came without managedFields. */
const char *job_entry_other_writer(const struct job_entry *entry, const struct json *object);

/* All who acquire a version share one decoded job, which is reference-counted. */
struct cached_job *job_entry_acquire(struct job_entry *entry, int64_t default_backoff_limit);
void job_entry_release(struct cached_job *job); /* NULL-safe */
#endif
