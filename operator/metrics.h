/* What /metrics says, as text of Prometheus' exposition format 0.0.4. Counts what happens to jobs
 * from the statuses that were written, so each thing once; the training operator's names where it
 * has them. Pure. */
#ifndef SHOAL_OPERATOR_METRICS_H
#define SHOAL_OPERATOR_METRICS_H

#include "base/str.h"
#include "operator/job/types.h"

struct metrics; /* counters per namespace */

#define METRICS_MAX_NAMESPACES 1000
#define METRICS_OTHERS         "(others)" /* stands for all namespaces that came after those */
#define METRICS_MAX_WATCHES    8          /* kinds */
/* Of the page: more than all it can hold. */
#define METRICS_MAX_BYTES (2 << 20)

struct metrics *metrics_open(void);
void metrics_close(struct metrics *metrics);

/* A status was written in place of another. */
void metrics_status_written(struct metrics *metrics, const char *namespace_,
                            const struct job_status *before, const struct job_status *after);
void metrics_job_deleted(struct metrics *metrics, const char *namespace_); /* by its TTL */

/* How things stand, for the gauges. */
struct metrics_view {
    bool leading, ready;
    bool history_pruned;         /* the API server does not keep all of status.history */
    size_t jobs, pods, services; /* seen */
    size_t jobs_in_state[CONDITION_TYPES];
    size_t queue_length; /* due now */
    uint64_t passes, failed_passes, requests, failed_requests, forbidden_requests;
    struct {
        const char *kind; /* plural, as in paths */
        bool failing;     /* what is known of it grows old, or is not known yet */
    } watches[METRICS_MAX_WATCHES];
    size_t watch_count;
    int64_t resident_bytes; /* -1: not known */
    int64_t start_ms;       /* wall clock, of this process */
};

void metrics_print(const struct metrics *metrics, const struct metrics_view *view, struct str *out);
#endif
