#include "operator/apply/executor.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/apply/executor_internal.h"
#include "operator/job/snapshot.h"
#include "operator/manifest/manifest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A name may be taken by an object that is not watched, as it does not bear our labels: nothing
 * will report when it is gone. */
enum { NAME_TAKEN_RETRY_MS = 10 * 1000 };

/* A status that the API server finds invalid: the stored job breaks a rule that was made after it.
 * Trying again is useless until somebody changes the job (which is seen), or that rule. */
enum { INVALID_RETRY_MS = 5 * 60 * 1000 };

static const struct executor_transport kube_transport = {kube_send, kube_cancel, kube_body_bytes};

/* ---- one plan ---- */

/* From here on the plan is under way no more; what it did is still to be seen. */
static void end_run(struct run *run)
{
    struct executor *executor = run->executor;
    table_remove(&executor->runs, &run->entry);
    int64_t patience_ms = run->invalid ? INVALID_RETRY_MS : EXPECT_MAX_MS;
    run->record->expect_until_ms = executor->options.clocks->steady_ms() + patience_ms;
    run->record->relisted = run->invalid; /* no change was made that should be heard of */
}

static void free_run(struct run *run)
{
    inflight_cancel_all(run->executor, &run->inflights);
    steps_close(run->steps);
    free(run->key);
    free(run);
}

/* `over` may start the job's next plan, or forget the job. */
static void finish(struct run *run)
{
    const struct executor_options *options = &run->executor->options;
    int64_t requeue_ms = steps_requeue_ms(run->steps);
    int64_t taken_ms = options->clocks->wall_ms() + NAME_TAKEN_RETRY_MS;
    if (run->taken && (!requeue_ms || requeue_ms > taken_ms))
        requeue_ms = taken_ms;
    if (run->went_well && !run->refused && job_record_clear_refusal(run->record) && !requeue_ms)
        requeue_ms = options->clocks->wall_ms(); /* to report that nothing is in the way any more */
    const struct error *failure = steps_failure(run->steps);
    const struct executor_outcome outcome = {
        .failure = failure,
        .is_new = job_record_set_failure(run->record, failure ? failure->msg : NULL),
        .written = run->written,
        .job_deleted = run->job_deleted,
        .expects_changes = !expectations_is_empty(run->record->expect),
        .requeue_ms = requeue_ms,
    };
    end_run(run);
    options->over(options->context, run->key, &outcome);
    free_run(run);
}

static const char *text_at(const struct json *object, const char *key)
{
    return json_as_text(json_get(json_get(object, "metadata"), key));
}

/* What stands in the way of the job: a create that was refused, or a right that is missing. Not of
 * its status: nobody could read it there. */
static void record_refusal(struct run *run, const struct action *action, const struct error *err)
{
    if (action->kind == ACTION_SET_STATUS)
        return;
    run->went_well |= !err->code;
    bool refused =
        steps_creates(action->kind) ? kube_is_refusal(err->code) : err->code == ERR_FORBIDDEN;
    if (run->refused || !refused)
        return;
    run->refused = true;
    job_record_refuse(run->record, err->msg);
}

/* A CustomResourceDefinition of somebody else's (Kubeflow's) or of an earlier version (Helm
 * replaces neither) prunes what it does not name, and says nothing: without its history no restart
 * would ever count, and half of it would count one incident several times. */
static void check_history_kept(struct run *run, const struct job_status *written,
                               const struct json *answer)
{
    const struct json *status = json_get(answer, "status");
    if (!written->history.known || !json_is_object(status))
        return;
    struct executor *executor = run->executor;
    auto_arena struct arena *arena = arena_open();
    const char *lost = manifest_lost_history(&written->history, json_get(status, "history"), arena);
    bool is_first = job_record_set_history_kept(run->record, written, !lost);
    bool is_news = lost && !executor->history_pruned;
    executor->history_pruned = lost;
    if (!lost)
        return;
    const struct action event = {
        .kind = ACTION_EVENT,
        .event_type = EVENT_WARNING,
        .reason = "HistoryNotKept",
        .message = arena_printf(
            arena,
            "The CustomResourceDefinition pytorchjobs.kubeflow.org is not this version's and does "
            "not keep all of status.history (%s is missing): backoffLimit counts only as long as "
            "one operator runs, and other fields that it does not name are dropped. Apply "
            "deploy/crd (Helm: kubectl apply -f charts/shoal/crds; see docs/install.md)",
            lost)};
    if (is_news)
        log_warning("%s", event.message);
    if (is_first)
        inflight_record_event(run, &event);
}

/* What the view is to show from now on, and what the outcome reports. */
static void record_result(struct run *run, const struct action *action, const struct json *answer,
                          const struct error *err)
{
    struct expectations *expect = run->record->expect;
    const char *before = text_at(run->object, "resourceVersion");
    const char *after = text_at(answer, "resourceVersion");
    if (action->kind == ACTION_SET_STATUS) {
        run->written = action->status;
        run->record->proven = true;
        job_record_drop_unconfirmed(run->record);
        job_record_drop_completed(run->record);
        job_record_drop_conflict(run->record);
        if (!action->as_stored || run->record->stored_invalid) {
            check_history_kept(run, action->status, answer);
            executor_check_training_kept(run, action->status, answer);
        }
        if (before && after && strcmp(before, after) != 0) /* else nothing was changed */
            expectations_newer(expect, before);
    }
    run->job_deleted |= action->kind == ACTION_DELETE_JOB && !err->code;
    if (err->code == ERR_CONFLICT && action->version) /* not gone after all */
        expectations_changed(expect, action);
    else if (err->code != ERR_EXISTS) /* another's, who may hide it */
        expectations_done(expect, action, text_at(answer, "uid"));
}

/* A conflict may be with an earlier try of this write, whose answer was lost. No pass over this
 * very version of the job will do better; but for a status as it is stored, which may break a rule
 * that was made after it where ours does not. */
static void record_unconfirmed(struct run *run, const struct action *action, enum error_code code)
{
    if (code == ERR_CONFLICT || code == ERR_IO || code == ERR_TIMEOUT)
        job_record_add_unconfirmed(run->record, run->status, action->status);
    /* a job that was made later was never listed */
    bool was_listed = run->job->created_ms < run->executor->begun_ms;
    if (code == ERR_CONFLICT && !run->record->proven && was_listed)
        job_record_set_conflict(run->record, text_at(run->object, "resourceVersion"), run->status);
    bool is_first_as_stored =
        code == ERR_INPUT && action->as_stored && !run->record->stored_invalid;
    run->record->stored_invalid |= is_first_as_stored;
    run->invalid = code == ERR_INPUT && !is_first_as_stored;
    if (run->invalid || code == ERR_CONFLICT)
        expectations_newer(run->record->expect, text_at(run->object, "resourceVersion"));
}

static void on_done(void *context, const struct json *answer, const struct error *err);

/* A pod is made from its template, which may have a megabyte. What is in flight goes on. */
static bool may_send(const struct run *run)
{
    const struct executor *executor = run->executor;
    return !run->inflights ||
           executor->options.transport->body_bytes(executor->kube) < EXECUTOR_BODY_BYTES_MAX;
}

static void advance(struct run *run)
{
    const struct action *action;
    while (may_send(run) && (action = steps_next(run->steps))) {
        if (action->kind == ACTION_EVENT) {
            inflight_record_event(run, action);
            continue;
        }
        inflight_send(run, action, on_done);
    }
    if (steps_are_finished(run->steps))
        finish(run);
}

static bool end_step(struct run *run, const struct action *action, bool adopted,
                     const struct error *err)
{
    if (!adopted)
        return steps_done(run->steps, action, err);
    steps_adopted(run->steps, action);
    return true;
}

static void on_answer(struct inflight *inflight, const struct json *answer, const struct error *err)
{
    struct run *run = inflight->run;
    const struct action *action = inflight->action;
    bool adopted = inflight->adoptions && !err->code;
    inflight_free(inflight);
    record_refusal(run, action, err);
    run->taken |= err->code == ERR_EXISTS;
    if (end_step(run, action, adopted, err))
        record_result(run, action, err->code ? NULL : answer, err);
    else if (action->kind == ACTION_SET_STATUS)
        record_unconfirmed(run, action, err->code);
    advance(run);
}

/* Adopted, the object is as good as made: the next pass brings it up to date. */
static void on_adopted(void *context, const struct json *answer, const struct error *err)
{
    struct inflight *inflight = context;
    const struct error exists = inflight->exists;
    if (inflight_adopt(inflight, err, on_adopted))
        return;
    const struct json *ours = err->code ? NULL : inflight_adopted(inflight, answer);
    on_answer(inflight, ours, ours ? err : &exists);
}

static void on_done(void *context, const struct json *answer, const struct error *err)
{
    struct inflight *inflight = context;
    if (!inflight_adopt(inflight, err, on_adopted))
        on_answer(inflight, answer, err);
}

/* ---- what is remembered ---- */

void executor_forget(struct executor *executor, const char *key)
{
    assert(!table_find(&executor->runs, key));
    job_record_forget(&executor->records, key);
}

/* The time to wait is over and something is missing: it may be read anew, once. */
static bool relist_unseen(const struct executor *executor, struct job_record *record,
                          const struct snapshot *snapshot, const char *version)
{
    const struct executor_options *options = &executor->options;
    /* When the plan was over: a watch that has said anything since then is alive, and is not listed
     * again. */
    int64_t since_ms = record->expect_until_ms - EXPECT_MAX_MS;
    enum expectation_view views[EXPECTATION_KINDS];
    bool again = false;
    if (record->relisted || !options->unseen_change)
        return false;
    expectations_view(record->expect, snapshot, version, views);
    for (int kind = 0; kind < EXPECTATION_KINDS; kind++)
        again |=
            views[kind] != VIEW_IS_MET &&
            options->unseen_change(options->context, kind, views[kind] == VIEW_IS_OLD, since_ms);
    record->relisted = again;
    return again;
}

int64_t executor_wait_ms(struct executor *executor, const char *key,
                         const struct snapshot *snapshot, const struct json *object)
{
    struct job_record *record = job_record_find(&executor->records, key, snapshot->job->uid);
    if (!record || !record->expect)
        return 0;
    const char *text = text_at(object, "resourceVersion"), *version = text ? text : "";
    int64_t now_ms = executor->options.clocks->steady_ms();
    bool met = expectations_is_met(record->expect, snapshot, version);
    if (!met && now_ms >= record->expect_until_ms &&
        relist_unseen(executor, record, snapshot, version))
        record->expect_until_ms = now_ms + EXPECT_MAX_MS;
    if (!met && now_ms < record->expect_until_ms)
        return record->expect_until_ms - now_ms;
    expectations_close(record->expect);
    record->expect = NULL;
    return 0;
}

const char *executor_refused(struct executor *executor, const char *key, const char *uid)
{
    const struct job_record *record = job_record_find(&executor->records, key, uid);
    return record ? record->refused : NULL;
}

bool executor_is_proven(const struct executor *executor, const char *key, const char *uid)
{
    const struct job_record *record = job_record_find(&executor->records, key, uid);
    return record && record->proven;
}

bool executor_clear_refusal(struct executor *executor, const char *key, const char *uid)
{
    struct job_record *record = job_record_find(&executor->records, key, uid);
    return record && job_record_clear_refusal(record);
}

const struct job_status *executor_restore_history(struct executor *executor, const char *key,
                                                  const char *uid, const struct job_status *seen)
{
    struct job_record *record = job_record_find(&executor->records, key, uid);
    return record ? job_record_restore_history(record, seen) : seen;
}

void executor_prune_histories(struct executor *executor)
{
    job_record_prune_histories(&executor->records);
    executor->history_pruned = false;
    executor->training_lost[0] = '\0';
}

bool executor_history_is_pruned(const struct executor *executor)
{
    return executor->history_pruned;
}

bool executor_confirm_write(struct executor *executor, const char *key,
                            const struct snapshot *snapshot, struct arena *arena,
                            struct job_status *ret_before)
{
    struct job_record *record = job_record_find(&executor->records, key, snapshot->job->uid);
    return record && job_record_confirm_write(record, snapshot->status, arena, ret_before);
}

bool executor_is_of_the_past(struct executor *executor, const char *key, const char *uid,
                             const struct json *object, const struct job_status *seen)
{
    struct job_record *record = (struct job_record *)table_find(&executor->records, key);
    return record &&
           job_record_judge_conflict(record, uid, text_at(object, "resourceVersion"), seen);
}

/* ---- life cycle ---- */

struct executor *executor_open(struct kube *kube, const struct executor_options *options)
{
    struct executor *executor = xcalloc(1, sizeof *executor);
    executor->kube = kube;
    executor->options = *options;
    if (!options->transport)
        executor->options.transport = &kube_transport;
    executor->begun_ms = options->clocks->wall_ms();
    /* unlike the numbers of an earlier operator: it wrote less than a million events
     * a millisecond */
    executor->event_number = (uint64_t)executor->begun_ms << 20;
    return executor;
}

static void drop_entry(void *context, struct table_entry *entry)
{
    (void)context;
    end_run((struct run *)entry);
    free_run((struct run *)entry);
}

void executor_close(struct executor *executor)
{
    if (!executor)
        return;
    table_each(&executor->runs, drop_entry, NULL);
    job_record_free_all(&executor->records);
    inflight_cancel_all(executor, &executor->events);
    table_free(&executor->runs);
    free(executor);
}

void executor_use_autoscaling(struct executor *executor, const char *version)
{
    executor->autoscaling_version = version;
}

void executor_use_kueue(struct executor *executor, const char *version)
{
    executor->kueue_version = version;
}

void executor_start(struct executor *executor, const char *key, const struct job *job,
                    const struct json *object, const struct job_status *status,
                    const struct plan *plan)
{
    assert(!table_find(&executor->runs, key));
    struct run *run = xcalloc(1, sizeof *run);
    run->key = xstrdup(key);
    run->entry.key = run->key;
    run->executor = executor;
    run->record = job_record_take(&executor->records, key, job->uid);
    expectations_close(run->record->expect);
    run->record->expect = expectations_open();
    run->job = job;
    run->object = object;
    run->status = status;
    run->steps = steps_open(plan, status, executor->options.parallel_max);
    table_add(&executor->runs, &run->entry);
    advance(run);
}

void executor_tell(struct executor *executor, const char *key, const struct job *job,
                   const struct job_status *status, const struct action *event)
{
    const struct plan nothing = {.count = 0};
    auto_free char *own_key = xstrdup(key);
    struct run run = {
        .key = own_key,
        .executor = executor,
        .record = job_record_take(&executor->records, key, job->uid),
        .job = job,
        .status = status,
        .steps = steps_open(&nothing, status, 1),
    };
    inflight_record_event(&run, event);
    steps_close(run.steps);
}

void executor_cancel(struct executor *executor, const char *key)
{
    struct table_entry *entry = table_find(&executor->runs, key);
    if (entry)
        drop_entry(NULL, entry);
}

size_t executor_running(const struct executor *executor)
{
    return executor->runs.count;
}
