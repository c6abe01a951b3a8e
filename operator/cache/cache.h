/* The operator's cache: jobs, the pods and services with our labels, the PodGroups and autoscalers
 * that have a job's name, whoever owns them, the Workloads of jobs with what these refer to, and
 * nodes. Informers feed it. A list replaces a kind
 * atomically: cache_begin_list marks all its objects stale, and cache_end_list deletes those that
 * the list did not contain. An object whose resourceVersion did not change is not decoded again.
 * The cache sends no requests and decides nothing.
 *
 * Memory: a pod or service is one allocation of what reconcile needs (some 300 bytes). A job that
 * nobody has acquired is its JSON text. Of a large job that is suspended or finished, the fields
 * that only pods need are dropped: a newer version arrives before it creates pods again.
 *
 * A Workload is kept without its templates, and only if a PyTorchJob owns it.
 *
 * A node is what node.h makes of it. When its sign of bad hardware comes or goes, the jobs with
 * pods there have changed.
 *
 * The cache takes CACHE_MAX_OBJECTS of a kind at most, and warns once per list about the rest.
 *
 * Malformed objects: one without name, namespace, uid or resourceVersion is skipped with a warning;
 * if the cache had an object of its name, it is deleted, as it is outdated. A job with an invalid
 * spec has `invalid` set. A pod with a malformed status is in phase Unknown (decode_pod.h). */
#ifndef SHOAL_OPERATOR_CACHE_CACHE_H
#define SHOAL_OPERATOR_CACHE_CACHE_H

#include "base/error.h"
#include "operator/job/node.h"
#include "operator/job/snapshot.h"

struct arena;
struct json;
struct cache;

#define CACHE_MAX_OBJECTS 200000 /* of each kind; that many pods take some 80 MB */

/* A job as the API server sent it last. Reference-counted: a newer version does not free it while
 * it is acquired. */
struct cached_job {
    const struct job *job;           /* defaulted, or with `invalid` set */
    const struct job_status *status; /* from the API server */
    /* The whole object, without managedFields and without kubectl's annotation
     * last-applied-configuration. */
    const struct json *object;
    size_t bytes; /* of the object as text; decoded it takes several times as much */
};

struct cache_options {
    int64_t default_backoff_limit;
    size_t max_objects; /* of each kind; 0: CACHE_MAX_OBJECTS */
    /* What shows that a node's hardware is bad; texts NULL: nothing. */
    struct node_signs signs;
    /* A job or one of its children has changed: reconcile the job. key: "namespace/name", valid
     * until the callback returns. The job may not exist (any more). finished: it exists, or did
     * until now, and has finished. The callback must not call the cache. */
    void (*changed)(void *context, const char *key, bool finished);
    /* Another operator has just written the status of a job; manager: its field manager. As for
     * `changed`. NULL: nobody asks. */
    void (*another_wrote)(void *context, const char *key, const char *manager);
    /* An object was skipped, or a field of it ignored; the message names it. */
    void (*warn)(void *context, const char *message);
    void *context;
};

enum cache_kind {
    CACHE_JOBS,
    CACHE_PODS,
    CACHE_SERVICES,
    CACHE_POD_GROUPS,
    CACHE_AUTOSCALERS,
    CACHE_NODES,
    CACHE_WORKLOADS,
    CACHE_FLAVORS, /* the last three have no namespace: queue_objects.h */
    CACHE_WORKLOAD_PRIORITIES,
    CACHE_PRIORITIES,
};
#define CACHE_KINDS 10

struct cache *cache_open(const struct cache_options *options);
void cache_close(struct cache *cache); /* NULL-safe; acquired jobs live until they are released */

/* A list that begins before the last one ended replaces it. */
void cache_begin_list(struct cache *cache, enum cache_kind kind);
void cache_put(struct cache *cache, enum cache_kind kind, const struct json *object);
void cache_delete(struct cache *cache, enum cache_kind kind, const struct json *object);
void cache_end_list(struct cache *cache, enum cache_kind kind);

/* The job's latest version, which the caller must release; NULL: there is no such job. */
struct cached_job *cache_acquire_job(struct cache *cache, const char *key);
void cache_release_job(struct cached_job *job); /* NULL-safe */

/* The snapshot for reconciling this job: pods and services that it controls, or that have its label
 * and no other PyTorchJob as controller, or that have a name it wants; the PodGroup and the
 * autoscaler of its name; what Kueue says of it. Pods and services come in the order of their
 * replicas, as in a plan, and then those that another has. The caller sets the options. Costs time
 * by the number of these objects. The arrays live in the arena; what they point to lives until the
 * cache is fed again. */
void cache_snapshot(const struct cache *cache, const struct cached_job *job, int64_t now_ms,
                    struct arena *arena, struct snapshot *ret_snapshot);

/* Sets snapshot->bad_nodes, by its pods and by its status, which may be newer than the cache's. */
void cache_find_bad_nodes(const struct cache *cache, struct snapshot *snapshot,
                          struct arena *arena);

/* Reports every job as changed, as something that all of them depend on has. */
void cache_resync_jobs(struct cache *cache);

size_t cache_count(const struct cache *cache, enum cache_kind kind);
/* Counts jobs by their last condition; one without conditions counts as Created. */
size_t cache_jobs_in_state(const struct cache *cache, enum condition_type state);
#endif
