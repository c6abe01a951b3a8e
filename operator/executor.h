/* Plans carried out on an API server: asks the step machine (steps.h) what may be started, turns it
 * into requests, and reports what came of them. Several jobs' plans at once, one plan a job.
 * Decides nothing that reconcile or steps could have decided. */
#ifndef SHOAL_OPERATOR_EXECUTOR_H
#define SHOAL_OPERATOR_EXECUTOR_H

#include "base/clock.h"
#include "operator/kube.h"
#include "operator/plan.h"
#include "operator/pod.h"

#ifdef __cplusplus
extern "C" {
#endif

struct executor;
struct init_template;

/* What a plan came to. Lives until `over` returns. */
struct executor_outcome {
    const struct error *failure;      /* NULL: all went well */
    const struct job_status *written; /* the status that was stored, or NULL */
    bool job_deleted;
    int64_t requeue_ms; /* wall clock, or 0 */
};

struct executor_options {
    struct pod_options pod;
    const struct init_template *init; /* NULL: workers get no init container */
    size_t parallel_max;              /* requests in flight for one plan */
    const struct clocks *clocks;
    /* The plan of this job is over, and with it our hold on the job. May start another plan. */
    void (*over)(void *context, const char *key, const struct executor_outcome *outcome);
    void *context;
};

/* kube, init, clocks are borrowed and must outlive it. */
struct executor *executor_open(struct kube *kube, const struct executor_options *options);
/* Cancels what is in flight; `over` is not called. NULL-safe. */
void executor_close(struct executor *executor);

/* key: "namespace/name", copied. job and object (as the API has it, with its resourceVersion) must
 * live until `over` was called or the job was dropped; plan and status are copied. `over` may be
 * called before this returns. */
void executor_start(struct executor *executor, const char *key, const struct job *job,
                    const struct json_t *object, const struct job_status *status,
                    const struct plan *plan);
/* Lets the plan of this job go: what is in flight is cancelled, `over` is not called. */
void executor_drop(struct executor *executor, const char *key);
size_t executor_running(const struct executor *executor); /* plans under way */

#ifdef __cplusplus
}
#endif
#endif
