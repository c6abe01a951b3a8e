/* The text of /metrics in Prometheus' exposition format 0.0.4. Counters are derived from the
 * statuses that were written, so that each event counts once; they have the training operator's
 * names. One thread tells; any may print. */
#ifndef SHOAL_OPERATOR_METRICS_H
#define SHOAL_OPERATOR_METRICS_H

#include "base/str.h"
#include "operator/job/types.h"

struct metrics; /* counters per namespace, per node that jobs left, and of each job at work */

/* The page has no more series than for that many: all namespaces and nodes beyond share those
 * labelled METRICS_OTHERS; of jobs only the first have any. */
#define METRICS_MAX_NAMESPACES 1000
#define METRICS_MAX_NODES      1000
#define METRICS_MAX_JOBS       1000
#define METRICS_OTHERS         "(others)"
#define METRICS_MAX_WATCHES    12 /* kinds */
/* Of the page: an upper bound. */
#define METRICS_MAX_BYTES (8 << 20)

struct metrics *metrics_open(void);
void metrics_close(struct metrics *metrics);

/* The job is reconciled; status: as it is now, before what is written of it, and after what was
 * written before. Of jobs at work the time has series, which go on while nothing is written; they
 * end with the job, whoever writes that, or if another job has its name. Returns true for the first
 * job that gets no series of its own. */
bool metrics_job_seen(struct metrics *metrics, const char *key, const struct job *job,
                      const struct job_status *status, int64_t now_ms);
/* A status was written over another one. key: "namespace/name". */
void metrics_status_written(struct metrics *metrics, const char *key,
                            const struct job_status *before, const struct job_status *after);
/* Time goes on until now, for the jobs that were seen. */
void metrics_go_on(struct metrics *metrics, int64_t now_ms);
/* The job is no more; all of them: another replica leads. */
void metrics_forget_job(struct metrics *metrics, const char *key);
void metrics_forget_all_jobs(struct metrics *metrics);
void metrics_job_deleted(struct metrics *metrics, const char *namespace_); /* by its TTL */

/* Metrics with one value, X(TYPE, FIELD, KIND, NAME, HELP): FIELD of struct metrics_view has it.
 * The page has them in this order. */
/* clang-format off */
#define METRICS_VALUES(X) \
    X(bool, leading, "gauge", "shoal_operator_leader", "1 if this replica is the leader and reconciles jobs, else 0.") \
    X(bool, ready, "gauge", "shoal_operator_ready", "1 if the cache has synced, else 0.") \
    X(size_t, jobs, "gauge", "shoal_operator_jobs", "PyTorchJobs in the cache.") \
    X(size_t, pods, "gauge", "shoal_operator_pods", "Pods of PyTorchJobs in the cache.") \
    X(size_t, services, "gauge", "shoal_operator_services", "Services of PyTorchJobs in the cache.") \
    X(size_t, queue_length, "gauge", "shoal_operator_queue_length", "Jobs in the reconcile queue.") \
    X(uint64_t, passes, "counter", "shoal_operator_passes_total", "Reconcile passes over jobs.") \
    X(uint64_t, failed_passes, "counter", "shoal_operator_passes_failed_total", \
      "Reconcile passes that failed.") \
    X(uint64_t, requests, "counter", "shoal_operator_api_requests_total", \
      "Requests sent to the API server.") \
    X(uint64_t, failed_requests, "counter", "shoal_operator_api_requests_failed_total", \
      "Requests to the API server that failed.") \
    X(uint64_t, forbidden_requests, "counter", "shoal_operator_api_requests_forbidden_total", \
      "Requests to the API server refused by RBAC or by a quota.") \
    X(uint64_t, asks, "counter", "shoal_operator_progress_requests_total", \
      "Requests to pods of jobs for how their training goes.") \
    X(uint64_t, unanswered_asks, "counter", "shoal_operator_progress_requests_failed_total", \
      "Requests to pods of jobs that no agent answered.") \
    X(bool, standing_aside, "gauge", "shoal_operator_standing_aside", \
      "1 if another operator writes the status of PyTorchJobs, so that this one does nothing, else 0.") \
    X(bool, history_pruned, "gauge", "shoal_operator_history_not_kept", \
      "1 if the API server dropped history from the last status written, else 0: its " \
      "CustomResourceDefinition is not this version's.") \
    X(bool, training_pruned, "gauge", "shoal_operator_training_not_kept", \
      "1 if the API server dropped any of how a training goes, so that no job tells it, else 0: its " \
      "CustomResourceDefinition is not this version's.")
/* clang-format on */

/* What the page shows beside the counters. */
struct metrics_view {
#define METRICS_FIELD(type, field, kind, name, help) type field;
    METRICS_VALUES(METRICS_FIELD)
#undef METRICS_FIELD
    size_t jobs_in_state[CONDITION_TYPES];
    struct {
        const char *kind; /* plural, as in paths */
        bool failing;     /* its objects in the cache are outdated or missing */
    } watches[METRICS_MAX_WATCHES];
    size_t watch_count;
    int64_t resident_bytes; /* -1: not known */
    int64_t start_ms;       /* wall clock, of this process */
};

/* From any thread; who tells waits meanwhile, milliseconds for METRICS_MAX_JOBS. */
void metrics_print(struct metrics *metrics, const struct metrics_view *view, struct str *out);
#endif
