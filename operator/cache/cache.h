/* The operator's caches: jobs, our labelled pods and services, found by key and by job, and the
 * PodGroups and autoscalers that bear a job's name, whoever owns them. Fed by watches; a list that
 * begins marks everything old and one that ends drops what was not put again, so that a relist
 * swaps atomically. Objects are refreshed only if their resourceVersion differs. Knows no requests
 * and decides nothing.
 *
 * Frugal: a pod or service is one allocation of what reconcile asks of it (some 300 bytes); a job
 * that nobody works on is its JSON text, and of a large one that is suspended or finished what pods
 * alone need is not kept: before it makes pods again, a newer version of it comes.
 *
 * At most CACHE_MAX_OBJECTS of a kind: further ones are not taken, which is told once a list.
 *
 * What cannot be read: an object without name, namespace, uid or resourceVersion is told and
 * skipped; if a known one bore its name, that one is forgotten, so that nobody acts on what is no
 * longer so. A job whose spec is wrong is a job with `invalid` set; a pod whose status makes no
 * sense is there with phase Unknown (decode_pod.h). */
#ifndef SHOAL_OPERATOR_CACHE_CACHE_H
#define SHOAL_OPERATOR_CACHE_CACHE_H

#include "base/error.h"
#include "operator/job/snapshot.h"

#ifdef __cplusplus
extern "C" {
#endif

struct arena;
struct json_t;
struct cache;

#define CACHE_MAX_OBJECTS 200000 /* of each kind; pods take some 80 MB then */

/* A job as it was last seen. Counted: whoever works on one over time holds a reference, so that a
 * newer version does not pull it away. */
struct cached_job {
    const struct job *job;           /* defaulted, or with `invalid` set */
    const struct job_status *status; /* as the API has it */
    /* The object: its resourceVersion, its template; without managedFields and without kubectl's
     * last-applied-configuration. */
    const struct json_t *object;
    size_t bytes; /* of the object as text; decoded it takes some times as much */
};

struct cache_options {
    int64_t default_backoff_limit;
    size_t max_objects; /* of each kind; 0: CACHE_MAX_OBJECTS */
    /* Something of a job has changed: reconcile it. key: "namespace/name", valid until it returns.
     * There may be no such job (any more); finished: there is (or was until now), and it has ended.
     * Must not call the cache. */
    void (*changed)(void *context, const char *key, bool finished);
    /* An object that cannot be read: said with its key, and skipped. */
    void (*warn)(void *context, const char *message);
    void *context;
};

enum cache_kind { CACHE_JOBS, CACHE_PODS, CACHE_SERVICES, CACHE_POD_GROUPS, CACHE_AUTOSCALERS };
#define CACHE_KINDS 5

struct cache *cache_open(const struct cache_options *options);
void cache_close(struct cache *cache); /* NULL-safe; jobs that are taken stay until released */

/* A list that begins before the last one ended takes its place. */
void cache_begin_list(struct cache *cache, enum cache_kind kind);
void cache_put(struct cache *cache, enum cache_kind kind, const struct json_t *object);
void cache_delete(struct cache *cache, enum cache_kind kind, const struct json_t *object);
void cache_end_list(struct cache *cache, enum cache_kind kind);

/* The job as it is now, to be released by whoever takes it; NULL: there is no such job. */
struct cached_job *cache_acquire_job(struct cache *cache, const char *key);
void cache_release_job(struct cached_job *job); /* NULL-safe */

/* What reconcile is to see of this job: pods and services that it controls, or that carry its label
 * and have no other PyTorchJob as their controller, or that bear a name it wants; the PodGroup and
 * the autoscaler of its name. Options are left to the caller. Takes time by the number of these,
 * not by that of all. Arrays live in the arena; what they point to lives until the cache is fed
 * again. */
void cache_snapshot(const struct cache *cache, const struct cached_job *job, int64_t now_ms,
                    struct arena *arena, struct snapshot *ret_snapshot);

/* Tells that every job has changed: what all of them depend on has. */
void cache_resync_jobs(struct cache *cache);

size_t cache_count(const struct cache *cache, enum cache_kind kind);
/* Jobs by their last condition; one without any counts as Created. */
size_t cache_jobs_in_state(const struct cache *cache, enum condition_type state);

#ifdef __cplusplus
}
#endif
#endif
