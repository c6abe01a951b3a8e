/* Plans carried out on an API server: asks the step machine (steps.h) what may be started, turns it
 * into requests (request.h), and reports what came of them. Several jobs' plans at once, one plan a
 * job. Decides nothing that reconcile or steps could have decided.
 *
 * Of each job it remembers how many events were told about it (event_budget.h), and what was done
 * that the caches have not shown yet (expect.h). Events are sent once and not waited for; what is
 * over budget, or more than EXECUTOR_EVENTS_MAX in flight, is lost. */
#ifndef SHOAL_OPERATOR_APPLY_EXECUTOR_H
#define SHOAL_OPERATOR_APPLY_EXECUTOR_H

#include "base/clock.h"
#include "operator/apply/expect.h"
#include "operator/kube/kube.h"
#include "operator/manifest/pod.h"
#include "operator/reconcile/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct arena;
struct executor;
struct init_template;
struct snapshot;

#define EXECUTOR_EVENTS_MAX 64 /* in flight, of all jobs */

/* What a plan came to. Lives until `over` returns. */
struct executor_outcome {
    const struct error *failure;      /* NULL: all went well */
    bool is_new;                      /* it is not how the job's last plan failed, too */
    const struct job_status *written; /* the status that was stored, or NULL */
    bool job_deleted;
    bool expects_changes; /* what was done is to be seen: if nothing is heard, look after
                             EXPECT_MAX_MS */
    int64_t requeue_ms;   /* wall clock, or 0; also to see whether a name that was taken is free */
};

/* While the bodies of all requests take so much, a plan sends no more than one at a time. */
#define EXECUTOR_BODY_BYTES_MAX ((size_t)4 << 20)

/* How requests go out: kube's own functions, or a test's. */
struct executor_transport {
    struct kube_request *(*send)(struct kube *kube, const struct kube_call *call, int64_t now_ms);
    void (*cancel)(struct kube *kube, struct kube_request *request);
    size_t (*body_bytes)(const struct kube *kube);
};

struct executor_options {
    const struct executor_transport *transport; /* NULL: kube's own */
    struct pod_options pod;
    const struct init_template *init; /* NULL: workers get no init container */
    size_t parallel_max;              /* requests in flight for one plan, events apart */
    const struct clocks *clocks;
    /* The plan of this job is over, and with it our hold on the job. May start another plan. */
    void (*over)(void *context, const char *key, const struct executor_outcome *outcome);
    /* What a plan that was over at since_ms (steady clock) did to objects of this kind is still not
     * in the view, EXPECT_MAX_MS later. Returns whether they are being read anew, which the next
     * pass then waits for as long again; NULL: they are not. */
    bool (*unseen_change)(void *context, enum expect_kind kind, int64_t since_ms);
    void *context;
};

/* kube and what options point to are borrowed and must outlive it. */
struct executor *executor_open(struct kube *kube, const struct executor_options *options);
/* Cancels what is in flight; `over` is not called. NULL-safe. */
void executor_close(struct executor *executor);

/* The version of autoscalers from now on, "v2" or "v2beta2", borrowed. Before it plans must hold
 * none. */
void executor_use_autoscaling(struct executor *executor, const char *version);

/* key: "namespace/name", copied. job, object (as the API has it, with its resourceVersion) and
 * status must live until `over` was called or the job was dropped; the plan is copied. `over` may
 * be called before this returns. */
void executor_start(struct executor *executor, const char *key, const struct job *job,
                    const struct json_t *object, const struct job_status *status,
                    const struct plan *plan);
/* Lets the plan of this job go: what is in flight is cancelled, `over` is not called. */
void executor_drop(struct executor *executor, const char *key);
size_t executor_running(const struct executor *executor); /* plans under way */

/* For how many milliseconds a pass over this view would be too early, as the view does not yet show
 * what the last plan did; 0: pass. Another look is worth it whenever the view has changed. */
int64_t executor_wait_ms(struct executor *executor, const char *key,
                         const struct snapshot *snapshot, const struct json_t *object);
/* How the API server refused a create (taken names included) or, for want of a right, any other
 * part of the job's last plan, in its words; NULL: it did not. Lives until the job's next plan, or
 * executor_forget. */
const char *executor_refused(struct executor *executor, const char *key, const char *uid);
/* A pass has found nothing to create: what was refused is not wanted any more. Returns whether
 * anything was, so that another pass is due. */
bool executor_clear_refusal(struct executor *executor, const char *key, const char *uid);
/* The status to go by: as seen, and with the history that was written where the API server does not
 * keep all of it (another CustomResourceDefinition than this version's prunes it). Lives until the
 * next call for the job, or executor_forget. */
const struct job_status *executor_restore_history(struct executor *executor, const char *key,
                                                  const char *uid, const struct job_status *seen);
/* Another operator leads and writes: what this one remembers of histories is old from now on. */
void executor_drop_histories(struct executor *executor);
/* Whether the history of the last status that was written was not kept whole. */
bool executor_history_is_pruned(const struct executor *executor);
/* Whether the view shows that a status write was done of which `over` told no more than that it
 * failed, as its answer was lost; once. *ret_before: what it changed, in `arena`. What that write
 * counted is there to be recalled then. */
bool executor_confirm_write(struct executor *executor, const char *key,
                            const struct snapshot *snapshot, struct arena *arena,
                            struct job_status *ret_before);
/* The job is gone, and has no plan under way. */
void executor_forget(struct executor *executor, const char *key);

#ifdef __cplusplus
}
#endif
#endif
