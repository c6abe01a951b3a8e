/* The text of /metrics in Prometheus' exposition format 0.0.4. Counters are derived from the
 * statuses that were written, so that each event counts once; they have the training operator's
 * names. Pure. */
#ifndef SHOAL_OPERATOR_METRICS_H
#define SHOAL_OPERATOR_METRICS_H

#include "base/str.h"
#include "operator/job/types.h"

struct metrics; /* counters per namespace */

#define METRICS_MAX_NAMESPACES 1000
#define METRICS_OTHERS         "(others)" /* the label of all namespaces beyond that number */
#define METRICS_MAX_WATCHES    8          /* kinds */
/* Of the page: an upper bound. */
#define METRICS_MAX_BYTES (2 << 20)

struct metrics *metrics_open(void);
void metrics_close(struct metrics *metrics);

/* A status was written over another one. */
void metrics_status_written(struct metrics *metrics, const char *namespace_,
                            const struct job_status *before, const struct job_status *after);
void metrics_job_deleted(struct metrics *metrics, const char *namespace_); /* by its TTL */

/* The current values of the gauges. */
struct metrics_view {
    bool leading, ready;
    bool history_pruned;         /* the API server does not keep all of status.history */
    size_t jobs, pods, services; /* in the cache */
    size_t jobs_in_state[CONDITION_TYPES];
    size_t queue_length; /* due now */
    uint64_t passes, failed_passes, requests, failed_requests, forbidden_requests;
    struct {
        const char *kind; /* plural, as in paths */
        bool failing;     /* its objects in the cache are outdated or missing */
    } watches[METRICS_MAX_WATCHES];
    size_t watch_count;
    int64_t resident_bytes; /* -1: not known */
    int64_t start_ms;       /* wall clock, of this process */
};

void metrics_print(const struct metrics *metrics, const struct metrics_view *view, struct str *out);
#endif
