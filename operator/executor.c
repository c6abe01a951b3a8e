#include "operator/executor.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/table.h"
#include "operator/job_memory.h"
#include "operator/reconcile.h"
#include "operator/request.h"
#include "operator/steps.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A name may be taken by an object that is not watched, as it does not bear our labels: nothing
 * will tell when it is gone. */
enum { TAKEN_AGAIN_MS = 10 * 1000 };

/* A status that the API server finds invalid: the stored job breaks a rule that was made after it.
 * Trying again is useless until somebody changes the job (which is seen), or that rule. */
enum { INVALID_AGAIN_MS = 5 * 60 * 1000 };

/* A plan under way. */
struct run {
    struct table_entry entry;
    char *key;
    struct executor *executor;
    struct job_memory *memory;
    const struct job *job;
    const struct json_t *object;
    struct steps *steps;
    struct flight *flights;
    const struct job_status *written;
    bool job_deleted;
    bool taken;     /* a name that was to be created was */
    bool went_well; /* something was done */
    bool refused;   /* something was not: memory has the text */
    bool invalid;   /* the status was found to be */
};

/* A request in flight. */
struct flight {
    struct executor *executor;
    struct run *run;             /* NULL: an event, which outlives its plan */
    const struct action *action; /* of the run's steps */
    struct kube_request *request;
    struct flight *next, **link; /* in the list of its run, or of the executor's events */
};

struct executor {
    struct kube *kube;
    struct executor_options options;
    const char *autoscaling_version; /* NULL: none is known yet */
    struct table runs, memories;
    struct flight *events;
    size_t event_count;
    uint64_t event_number;
    bool told_mute; /* that events may not be created */
};

static const struct executor_transport kube_transport = {kube_send, kube_cancel};

/* ---- requests ---- */

static void list_add(struct flight **list, struct flight *flight)
{
    flight->next = *list;
    flight->link = list;
    if (*list)
        (*list)->link = &flight->next;
    *list = flight;
}

static void list_remove(struct flight *flight)
{
    *flight->link = flight->next;
    if (flight->next)
        flight->next->link = flight->link;
}

static void cancel_all(struct executor *executor, struct flight **list)
{
    while (*list) {
        struct flight *flight = *list;
        executor->options.transport->cancel(executor->kube, flight->request);
        list_remove(flight);
        free(flight);
    }
}

static void send_request(struct run *run, const struct action *action, struct flight *flight,
                         void (*done)(void *context, const struct json_t *answer,
                                      const struct error *err))
{
    struct executor *executor = run->executor;
    int64_t now_ms = executor->options.clocks->wall_ms();
    const struct request_source source = {
        .job = run->job,
        .object = run->object,
        .history = steps_history(run->steps),
        .pod = &executor->options.pod,
        .init = executor->options.init,
        .autoscaling_version = executor->autoscaling_version,
        .event_number = executor->event_number++,
        .now_ms = now_ms,
    };
    struct request request = request_build(action, &source);
    const struct kube_call call = {
        .method = request.method,
        .path = request.path,
        .body = request.body,
        .content_type = request.content_type,
        .once = action->kind == ACTION_EVENT,
        .exact = action->kind == ACTION_CREATE_POD_GROUP, /* no pod goes into another's */
        .done = done,
        .context = flight,
    };
    flight->request = executor->options.transport->send(executor->kube, &call, now_ms);
    json_decref(request.body);
}

/* ---- events ---- */

static void on_event_done(void *context, const struct json_t *answer, const struct error *err)
{
    (void)answer;
    struct flight *flight = context;
    struct executor *executor = flight->executor;
    bool is_news = err->code == ERR_FORBIDDEN && !executor->told_mute;
    if (err->code)
        log_write(is_news ? LOG_WARNING : LOG_DEBUG, "an event is lost: %s%s", err->msg,
                  is_news ? " (further ones are not told of)" : "");
    executor->told_mute |= is_news;
    executor->event_count--;
    list_remove(flight);
    free(flight);
}

/* Single creates and deletes that went well are what a big job has many of. */
static bool is_routine(const struct action *event)
{
    return event->event_type == EVENT_NORMAL && str_starts_with(event->reason, "Successful");
}

static void tell(struct run *run, const struct action *event)
{
    struct executor *executor = run->executor;
    bool is_failure = str_starts_with(event->reason, "Failed");
    if (!is_failure && !is_routine(event))
        log_info("%s: %s: %s", run->key, event->reason, event->message);
    if (is_failure && !event_budget_is_news(&run->memory->budget, event->message))
        return;
    if (executor->event_count == EXECUTOR_EVENTS_MAX ||
        !event_budget_take(&run->memory->budget, is_routine(event),
                           executor->options.clocks->steady_ms())) {
        log_debug("%s: an event is not sent: %s: %s", run->key, event->reason, event->message);
        return;
    }
    struct flight *flight = xcalloc(1, sizeof *flight);
    flight->executor = executor;
    executor->event_count++;
    list_add(&executor->events, flight);
    send_request(run, event, flight, on_event_done);
}

/* ---- one plan ---- */

/* From here on the plan is under way no more; what it did is still to be seen. */
static void end_run(struct run *run)
{
    struct executor *executor = run->executor;
    table_remove(&executor->runs, &run->entry);
    int64_t patience_ms = run->invalid ? INVALID_AGAIN_MS : EXPECT_MAX_MS;
    run->memory->expect_until_ms = executor->options.clocks->steady_ms() + patience_ms;
    run->memory->suspected = run->invalid; /* no change was made that should be heard of */
}

static void free_run(struct run *run)
{
    cancel_all(run->executor, &run->flights);
    steps_close(run->steps);
    free(run->key);
    free(run);
}

/* `over` may start the job's next plan, or forget the job. */
static void finish(struct run *run)
{
    const struct executor_options *options = &run->executor->options;
    int64_t requeue_ms = steps_requeue_ms(run->steps);
    int64_t taken_ms = options->clocks->wall_ms() + TAKEN_AGAIN_MS;
    if (run->taken && (!requeue_ms || requeue_ms > taken_ms))
        requeue_ms = taken_ms;
    if (run->went_well && !run->refused && job_memory_forgive(run->memory) && !requeue_ms)
        requeue_ms = options->clocks->wall_ms(); /* to tell that nothing is in the way any more */
    const struct error *failure = steps_failure(run->steps);
    const struct executor_outcome outcome = {
        .failure = failure,
        .is_news = job_memory_fail(run->memory, failure ? failure->msg : NULL),
        .written = run->written,
        .job_deleted = run->job_deleted,
        .awaits = !expect_is_empty(run->memory->expect),
        .requeue_ms = requeue_ms,
    };
    end_run(run);
    options->over(options->context, run->key, &outcome);
    free_run(run);
}

static const char *text_at(const struct json_t *object, const char *key)
{
    return json_string_value(json_object_get(json_object_get(object, "metadata"), key));
}

/* What stands in the way of the job: a create that was refused, or a right that is missing. Not of
 * its status: nobody could read it there. */
static void note_refusal(struct run *run, const struct action *action, const struct error *err)
{
    if (action->kind == ACTION_SET_STATUS)
        return;
    run->went_well |= !err->code;
    bool refused =
        steps_creates(action->kind) ? kube_is_refusal(err->code) : err->code == ERR_FORBIDDEN;
    if (run->refused || !refused)
        return;
    run->refused = true;
    job_memory_refuse(run->memory, err->msg);
}

/* What the view is to show from now on, and what the outcome tells. */
static void note(struct run *run, const struct action *action, const struct json_t *answer,
                 const struct error *err)
{
    struct expect *expect = run->memory->expect;
    const char *before = text_at(run->object, "resourceVersion");
    const char *after = text_at(answer, "resourceVersion");
    if (action->kind == ACTION_SET_STATUS) {
        run->written = action->status;
        if (before && after && strcmp(before, after) != 0) /* else nothing was changed */
            expect_newer(expect, before);
    }
    run->job_deleted |= action->kind == ACTION_DELETE_JOB && !err->code;
    bool is_changed = err->code == ERR_CONFLICT && action->kind == ACTION_FORCE_DELETE_POD;
    if (err->code != ERR_EXISTS && !is_changed) /* another's, who may hide it; not gone after all */
        expect_done(expect, action, text_at(answer, "uid"));
}

/* No pass over this very version of the job will do better. */
static void note_unwritten(struct run *run, enum error_code code)
{
    run->invalid = code == ERR_INPUT;
    if (run->invalid || code == ERR_CONFLICT)
        expect_newer(run->memory->expect, text_at(run->object, "resourceVersion"));
}

static void on_done(void *context, const struct json_t *answer, const struct error *err);

static void advance(struct run *run)
{
    const struct action *action;
    while ((action = steps_next(run->steps))) {
        if (action->kind == ACTION_EVENT) {
            tell(run, action);
            continue;
        }
        struct flight *flight = xcalloc(1, sizeof *flight);
        flight->executor = run->executor;
        flight->run = run;
        flight->action = action;
        list_add(&run->flights, flight);
        send_request(run, action, flight, on_done);
    }
    if (steps_over(run->steps))
        finish(run);
}

static void on_done(void *context, const struct json_t *answer, const struct error *err)
{
    struct flight *flight = context;
    struct run *run = flight->run;
    const struct action *action = flight->action;
    list_remove(flight);
    free(flight);
    note_refusal(run, action, err);
    run->taken |= err->code == ERR_EXISTS;
    if (steps_done(run->steps, action, err))
        note(run, action, err->code ? NULL : answer, err);
    else if (action->kind == ACTION_SET_STATUS)
        note_unwritten(run, err->code);
    advance(run);
}

/* ---- what is remembered ---- */

void executor_forget(struct executor *executor, const char *key)
{
    assert(!table_find(&executor->runs, key));
    job_memory_forget(&executor->memories, key);
}

/* The time to wait is over and something is missing: it may be read anew, once. */
static bool suspect(const struct executor *executor, struct job_memory *memory,
                    const struct world *world, const char *version)
{
    const struct executor_options *options = &executor->options;
    int64_t since_ms = memory->expect_until_ms - EXPECT_MAX_MS;
    bool missing[EXPECT_KINDS], again = false;
    if (memory->suspected || !options->unseen)
        return false;
    expect_missing(memory->expect, world, version, missing);
    for (int kind = 0; kind < EXPECT_KINDS; kind++)
        again |= missing[kind] && options->unseen(options->context, kind, since_ms);
    memory->suspected = again;
    return again;
}

int64_t executor_early_ms(struct executor *executor, const char *key, const struct world *world,
                          const struct json_t *object)
{
    struct job_memory *memory = job_memory_find(&executor->memories, key, world->job->uid);
    if (!memory || !memory->expect)
        return 0;
    const char *text = text_at(object, "resourceVersion"), *version = text ? text : "";
    int64_t now_ms = executor->options.clocks->steady_ms();
    bool met = expect_is_met(memory->expect, world, version);
    if (!met && now_ms >= memory->expect_until_ms && suspect(executor, memory, world, version))
        memory->expect_until_ms = now_ms + EXPECT_MAX_MS;
    if (!met && now_ms < memory->expect_until_ms)
        return memory->expect_until_ms - now_ms;
    expect_close(memory->expect);
    memory->expect = NULL;
    return 0;
}

const char *executor_refused(struct executor *executor, const char *key, const char *uid)
{
    const struct job_memory *memory = job_memory_find(&executor->memories, key, uid);
    return memory ? memory->refused : NULL;
}

bool executor_forgive(struct executor *executor, const char *key, const char *uid)
{
    struct job_memory *memory = job_memory_find(&executor->memories, key, uid);
    return memory && job_memory_forgive(memory);
}

/* ---- life cycle ---- */

struct executor *executor_open(struct kube *kube, const struct executor_options *options)
{
    struct executor *executor = xcalloc(1, sizeof *executor);
    executor->kube = kube;
    executor->options = *options;
    if (!options->transport)
        executor->options.transport = &kube_transport;
    /* unlike the numbers of an earlier operator: it told less than a million events a millisecond
     */
    executor->event_number = (uint64_t)options->clocks->wall_ms() << 20;
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
    job_memory_free_all(&executor->memories);
    cancel_all(executor, &executor->events);
    table_free(&executor->runs);
    free(executor);
}

void executor_use_autoscaling(struct executor *executor, const char *version)
{
    executor->autoscaling_version = version;
}

void executor_start(struct executor *executor, const char *key, const struct job *job,
                    const struct json_t *object, const struct job_status *status,
                    const struct plan *plan)
{
    assert(!table_find(&executor->runs, key));
    struct run *run = xcalloc(1, sizeof *run);
    run->key = xstrdup(key);
    run->entry.key = run->key;
    run->executor = executor;
    run->memory = job_memory_take(&executor->memories, key, job->uid);
    expect_close(run->memory->expect);
    run->memory->expect = expect_open();
    run->job = job;
    run->object = object;
    run->steps = steps_open(plan, status, executor->options.parallel_max);
    table_add(&executor->runs, &run->entry);
    advance(run);
}

void executor_drop(struct executor *executor, const char *key)
{
    struct table_entry *entry = table_find(&executor->runs, key);
    if (entry)
        drop_entry(NULL, entry);
}

size_t executor_running(const struct executor *executor)
{
    return executor->runs.count;
}
