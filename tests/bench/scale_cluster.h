/* A simulated cluster for scale_bench.c: an API server with many jobs, their pods and services, and
 * kubelets that run the pods. It is told by requests, as any is, and tells by watch events, each
 * after a latency that is drawn. Time is its own: it goes on by what was waited for, and by the
 * processor time that the operator took. So a busy machine changes nothing but that.
 *
 * It takes all its memory when it is opened, to leave the rest to be counted. No limits are played:
 * any number of requests is answered at the same time. */
#ifndef SHOAL_TESTS_BENCH_SCALE_CLUSTER_H
#define SHOAL_TESTS_BENCH_SCALE_CLUSTER_H

#include "operator/apply/executor.h"
#include "operator/cache/cache.h"

struct kube; /* the API server, in the client's place */

struct kube *scale_open(int jobs, int pods_per_job, uint64_t seed);
void scale_close(struct kube *kube);

extern const struct executor_transport scale_transport;
/* Of the cluster that is open; since 2026. */
extern const struct clocks scale_clocks;

/* A list of all jobs, to an empty cache; their watch events go there, too. */
void scale_list(struct kube *kube, struct cache *cache);

/* What the operator does between these two counts as time. They do not nest. */
void scale_work_begin(struct kube *kube);
int64_t scale_work_end(struct kube *kube); /* nanoseconds of the processor */

/* What is due happens: requests are carried out and answered, watches tell, pods run. Counts as the
 * operator's work what it does of that. */
void scale_happen(struct kube *kube);
/* When the next thing happens; INT64_MAX: nothing will. */
int64_t scale_due_ms(const struct kube *kube);
void scale_wait_until(struct kube *kube, int64_t at_ms);

/* That many pods of different jobs, as far as there are so many, fail with exit code 137 now. */
void scale_fail(struct kube *kube, int pods);
/* Milliseconds from the failure of each to the pod in its place, ascending; their number. */
int scale_replaced(const struct kube *kube, const int32_t **ret_ms);
int scale_pods(const struct kube *kube);         /* that there are, and run */
int64_t scale_requests(const struct kube *kube); /* without events */
int64_t scale_status_writes(const struct kube *kube);
#endif
