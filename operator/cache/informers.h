/* The informers: one list and watch for each kind of object that the operator reads. Those are
 * jobs, pods and services; PodGroups with a gang scheduler; and HorizontalPodAutoscalers in the
 * newest version that the API server serves, unless the operator may not list them; and nodes, on
 * request, without which all else goes on. On request also Kueue's Workloads and what they refer
 * to, in the newest version that is served; jobs without a queue go on without them, at the latest
 * half a minute after they began to fail. Informers feed the cache and log failures; a failure of
 * the whole API server is logged once, not once a kind. */
#ifndef SHOAL_OPERATOR_CACHE_INFORMERS_H
#define SHOAL_OPERATOR_CACHE_INFORMERS_H

#include "base/clock.h"
#include "operator/cache/cache.h"
#include "operator/kube/kube.h"

struct informers;

struct informers_options {
    const char *namespace_; /* whose jobs; NULL: all */
    enum gang_scheduler gang;
    bool watch_nodes;
    bool kueue;
    uint64_t seed; /* of all jitter */
    const struct clocks *clocks;
};

/* kube, cache, clocks and options' texts are borrowed and must outlive it. */
struct informers *informers_open(struct kube *kube, struct cache *cache,
                                 const struct informers_options *options);
void informers_close(struct informers *informers); /* NULL-safe; cancels what is in flight */

/* Sends what is due and feeds what was received, without waiting. Returns in how many milliseconds
 * to call again even if nothing is received; INT64_MAX: only when something is. */
int64_t informers_tick(struct informers *informers);

/* The caller changed objects of this kind at since_ms (steady clock), and the cache does not show
 * it. If the watch has received nothing at all since then, it is ended and the kind is listed
 * again, which is logged. Returns whether the kind is being listed. */
bool informers_relist_if_silent(struct informers *informers, enum cache_kind kind,
                                int64_t since_ms);

/* The cache shows objects of this kind as they are no more, and their watch lives: an event was
 * lost, or is late. The kind is listed again, which is logged, but no sooner than ANEW_EVERY_MS
 * after the last time. Returns whether the kind is being listed. */
#define ANEW_EVERY_MS (10 * 60 * 1000)
bool informers_relist_outdated(struct informers *informers, enum cache_kind kind);

/* What was listed was of the past, as a write that met a newer status shows: each kind is listed
 * again, but no sooner than ANEW_EVERY_MS after the last time. */
void informers_list_anew(struct informers *informers);
/* Whether one of these lists is under way: decide nothing meanwhile. A kind whose list fails is not
 * waited for, nor any longer than ANEW_MAX_MS. */
#define ANEW_MAX_MS (60 * 1000)
bool informers_list_still(const struct informers *informers);

/* Whether the cache may show objects of this kind as they were before this object, of any kind, was
 * written (watch_is_behind). */
bool informers_are_behind(const struct informers *informers, enum cache_kind kind,
                          const struct json *object);
/* Whether the watch of this kind is down, or begins anew with a list: it tells nothing just now. */
bool informers_are_away(const struct informers *informers, enum cache_kind kind);

/* Whether each informer has completed its first list, but for those that jobs go on without. */
bool informers_have_synced(const struct informers *informers);

/* The plural of a kind that is watched, and whether its watch fails just now; NULL: the kind is not
 * watched. */
const char *informers_watched(const struct informers *informers, enum cache_kind kind,
                              bool *ret_failing);

/* The version of Kueue's objects that is watched, "v1beta2" or "v1beta1"; NULL: the API server
 * serves none (yet), or the operator may not list them. */
const char *informers_kueue(const struct informers *informers);

/* Why the operator cannot see the children of jobs: the API server keeps refusing to list pods,
 * services or PodGroups (403). A text for people. NULL: it can, or jobs are not
 * listed yet either. */
const char *informers_forbidden(const struct informers *informers);

/* The version of HorizontalPodAutoscalers that is watched; NULL: the API server serves none, or the
 * operator may not list them. Final once the informers have synced. */
const char *informers_autoscaling(const struct informers *informers);
#endif
