/* Carries plans out on an API server. steps.h decides which action may start, request.h makes the
 * HTTP request of it, and the executor reports the outcome. It runs the plans of several jobs at
 * once, one plan per job. It decides nothing that reconcile or steps could decide.
 *
 * For each job the executor remembers how many events it has created (event_budget.h), and which of
 * its changes the cache does not show yet (expect.h). It sends each event once and does not wait
 * for it. Events over the budget, or beyond EXECUTOR_EVENTS_MAX in flight, are dropped. */
#ifndef SHOAL_OPERATOR_APPLY_EXECUTOR_H
#define SHOAL_OPERATOR_APPLY_EXECUTOR_H

#include "base/clock.h"
#include "operator/apply/expectations.h"
#include "operator/kube/kube.h"
#include "operator/manifest/pod.h"
#include "operator/reconcile/plan.h"

struct arena;
struct executor;
struct init_template;
struct snapshot;

#define EXECUTOR_EVENTS_MAX 64 /* in flight, of all jobs */

/* The outcome of a plan. Lives until `over` returns. */
struct executor_outcome {
    const struct error *failure; /* NULL: no action failed */
    bool is_new;                 /* the job's last plan did not fail in the same way */
    /* The status that the API server accepted, or NULL. If it pruned any of the training, its
     * goodput is as it was: the next one accounts for the same time again. */
    const struct job_status *written;
    bool job_deleted;
    bool expects_changes; /* the cache does not show all changes yet: reconcile after EXPECT_MAX_MS
                             at the latest */
    int64_t requeue_ms;   /* wall clock, or 0. Also set if a name was taken */
};

/* While the bodies of all requests take this much memory, a plan has one request in
 * flight at most. */
#define EXECUTOR_BODY_BYTES_MAX ((size_t)4 << 20)

/* Sends requests: the functions of kube.h, or those of a test. */
struct executor_transport {
    struct kube_request *(*send)(struct kube *kube, const struct kube_call *call, int64_t now_ms);
    void (*cancel)(struct kube *kube, struct kube_request *request);
    size_t (*body_bytes)(const struct kube *kube);
};

struct executor_options {
    const struct executor_transport *transport; /* NULL: kube.h */
    struct pod_options pod;
    const struct init_template *init; /* NULL: workers get no init container */
    size_t parallel_max;              /* requests in flight for one plan, without events */
    const struct clocks *clocks;
    /* The plan of this job is over, and the executor does not use the job any more. The callback
     * may start another plan. */
    void (*over)(void *context, const char *key, const struct executor_outcome *outcome);
    /* The plan was over at since_ms (steady clock), and EXPECT_MAX_MS later the cache still does
     * not show its changes to objects of this kind, or what it found changed. is_old: the cache
     * shows what is so no more, which nobody can have undone. Returns whether the caller lists them
     * again: the executor then waits once more. NULL: the caller never does. */
    bool (*unseen_change)(void *context, enum expectation_kind kind, bool is_old, int64_t since_ms);
    void *context;
};

/* kube and what options point to are borrowed and must outlive it. */
struct executor *executor_open(struct kube *kube, const struct executor_options *options);
/* Cancels all requests; does not call `over`. NULL-safe. */
void executor_close(struct executor *executor);

/* Sets the API version of HorizontalPodAutoscalers, "v2" or "v2beta2", borrowed. Plans that were
 * started before must contain none. */
void executor_use_autoscaling(struct executor *executor, const char *version);
/* The same of Kueue's group, "v1beta2" or "v1beta1". */
void executor_use_kueue(struct executor *executor, const char *version);

/* Starts a plan, which is copied. key: "namespace/name", copied. object: the job as the API server
 * sent it, with its resourceVersion. It, job and status must live until `over` is called or the
 * plan is cancelled. `over` may be called before this function returns. */
void executor_start(struct executor *executor, const char *key, const struct job *job,
                    const struct json *object, const struct job_status *status,
                    const struct plan *plan);
/* Logs an event of the job and creates it, beside any plan. Arguments as above, for this call. */
void executor_tell(struct executor *executor, const char *key, const struct job *job,
                   const struct job_status *status, const struct action *event);
/* Cancels the plan of this job; `over` is not called. */
void executor_cancel(struct executor *executor, const char *key);
size_t executor_running(const struct executor *executor); /* plans in progress */

/* How many milliseconds the caller must wait before it reconciles this snapshot: the snapshot does
 * not show all changes of the last plan yet. 0: reconcile now. Ask again whenever the cache has
 * changed. */
int64_t executor_wait_ms(struct executor *executor, const char *key,
                         const struct snapshot *snapshot, const struct json *object);
/* The API server's message for the last refused create of the job's last plan (a taken name, say);
 * or for any action that lacked a permission. NULL: nothing was refused. Lives until the job's next
 * plan or executor_forget. */
const char *executor_refused(struct executor *executor, const char *key, const char *uid);
/* A reconcile pass wants to create nothing, so the refusal does not matter any more. Returns
 * whether there was one: reconcile the job again to remove it from the status. */
bool executor_clear_refusal(struct executor *executor, const char *key, const char *uid);
/* The status to reconcile with. It is `seen`, with the history that was written last if the API
 * server pruned it (the CustomResourceDefinition is of another version). Lives until the next call
 * for the job or executor_forget. */
const struct job_status *executor_restore_history(struct executor *executor, const char *key,
                                                  const char *uid, const struct job_status *seen);
/* Another operator leads and writes statuses: the histories remembered here are outdated, and no
 * job is proven. */
void executor_prune_histories(struct executor *executor);
/* Whether a status of this job was written: see struct snapshot. */
bool executor_is_proven(const struct executor *executor, const char *key, const char *uid);
/* Whether the API server pruned the history of the last status that was written. */
bool executor_history_is_pruned(const struct executor *executor);
/* Whether it pruned anything of a status.training that was written, and has not kept that since. */
bool executor_training_is_pruned(const struct executor *executor);
/* Whether a pass may write of the training, or of the job's time. While some of it is pruned each
 * pass would find the same news: they may a few minutes after it was lost last, until it is lost
 * again. A pass that has no news, or whose write fails, takes no other job's turn. */
bool executor_may_tell_training(const struct executor *executor);
/* Call it with each snapshot before reconciling. Returns true, once, if a status write whose answer
 * was lost turns out to have succeeded: `over` reported it as failed. *ret_before is the status
 * before that write, in `arena`. executor_restore_history then knows its history. */
bool executor_confirm_write(struct executor *executor, const char *key,
                            const struct snapshot *snapshot, struct arena *arena,
                            struct job_status *ret_before);
/* Pods may not be known as they were when the status was written (are_behind): in how many
 * milliseconds to ask again. 0: they are known, or their watch had PODS_AWAITED_MS to tell of them,
 * so that nothing has happened to them since. Time while it is away does not count. */
#define PODS_AWAITED_MS 2000
int64_t executor_await_pods_ms(struct executor *executor, const char *key, const char *uid,
                               bool are_behind, bool is_away);
/* Whether what was listed is of the past, and other kinds with it: the first status write of a job
 * that is older than the executor met another version. What is seen now is another job (uid NULL:
 * none), or its status was written since: maybe as we tried to, for the operator before us decided
 * the same. Where only somebody edited the job meanwhile, the status is as it was. True once. Call
 * it behind executor_confirm_write, with the status that executor_restore_history returned then. */
bool executor_is_of_the_past(struct executor *executor, const char *key, const char *uid,
                             const struct json *object, const struct job_status *seen);
/* Whether the caller may hold this plan back: how many milliseconds, 0: not at all, or no more.
 * That is a plan which writes a status that may wait (job_status_may_wait), and does nothing else
 * but tell of containers that ended.
 * Call it with each plan: one that may not wait ends the hold. */
int64_t executor_hold_ms(struct executor *executor, const char *key, const char *uid,
                         const struct job_status *before, const struct plan *plan);
/* The history of the last such status over `seen`, if it completes replicas and was not written
 * yet; NULL: there is none. Its pods may be gone by the next pass. `seen` may also be a status of
 * ours that was late (executor_confirm_write). Lives until executor_hold_ms, or until a status of
 * the job is written. */
const struct history *executor_unwritten(struct executor *executor, const char *key,
                                         const char *uid, const struct job_status *seen);
/* The job was deleted and has no plan in progress. */
void executor_forget(struct executor *executor, const char *key);
#endif
