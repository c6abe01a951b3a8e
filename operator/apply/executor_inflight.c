#include "operator/apply/executor_internal.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/apply/request.h"

#include <stdlib.h>
#include <string.h>

/* How often it is logged that no events may be created: for good, or in one namespace that goes. */
enum { EVENTS_FORBIDDEN_LOG_MS = 3600 * 1000 };

static void list_add(struct inflight **list, struct inflight *inflight)
{
    inflight->next = *list;
    inflight->link = list;
    if (*list)
        (*list)->link = &inflight->next;
    *list = inflight;
}

static void list_remove(struct inflight *inflight)
{
    *inflight->link = inflight->next;
    if (inflight->next)
        inflight->next->link = inflight->link;
}

void inflight_free(struct inflight *inflight)
{
    list_remove(inflight);
    free(inflight);
}

void inflight_cancel_all(struct executor *executor, struct inflight **list)
{
    while (*list) {
        executor->options.transport->cancel(executor->kube, (*list)->request);
        inflight_free(*list);
    }
}

static void send_request(struct run *run, const struct action *action, struct inflight *inflight,
                         struct request (*build)(const struct action *action,
                                                 const struct request_source *source),
                         void (*done)(void *context, const struct json *answer,
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
        .kueue_version = executor->kueue_version,
        .stored_invalid = run->record->stored_invalid,
        .event_number = executor->event_number++,
        .now_ms = now_ms,
    };
    struct request request = build(action, &source);
    const struct kube_call call = {
        .method = request.method,
        .path = request.path,
        .body = request.body,
        .content_type = request.content_type,
        /* An event is not tried again: it must not hold back what the job needs, and the next
         * failure brings the next event. */
        .once = action->kind == ACTION_EVENT,
        /* no pod goes into another's */
        .exact = (action->kind == ACTION_CREATE_POD_GROUP && !inflight->adoptions) ||
                 action->kind == ACTION_CREATE_WORKLOAD,
        .done = done,
        .context = inflight,
    };
    inflight->request = executor->options.transport->send(executor->kube, &call, now_ms);
    json_free(request.body);
}

/* In the list before it is sent: the transport may call back as soon as it has the request. */
void inflight_send(struct run *run, const struct action *action,
                   void (*done)(void *context, const struct json *answer, const struct error *err))
{
    struct inflight *inflight = xcalloc(1, sizeof *inflight);
    inflight->executor = run->executor;
    inflight->run = run;
    inflight->action = action;
    list_add(&run->inflights, inflight);
    send_request(run, action, inflight, request_build, done);
}

/* How what exists already may be found to be the job's, in order. */
struct adoption {
    enum error_code after; /* of the request before it; ERR_NONE: there is no further one */
    struct request (*build)(const struct action *action, const struct request_source *source);
};

static const struct adoption *adoptions_of(enum action_kind kind)
{
    static const struct adoption label[] = {
        {ERR_EXISTS, request_adopt}, {ERR_INPUT, request_adopt_labelled}, {ERR_NONE, NULL}};
    static const struct adoption look[] = {{ERR_EXISTS, request_find}, {ERR_NONE, NULL}};
    static const struct adoption none[] = {{ERR_NONE, NULL}};
    if (kind == ACTION_CREATE_POD || kind == ACTION_CREATE_SERVICE)
        return look;
    return kind == ACTION_CREATE_POD_GROUP || kind == ACTION_CREATE_AUTOSCALER ? label : none;
}

bool inflight_adopt(struct inflight *inflight, const struct error *err,
                    void (*done)(void *context, const struct json *answer, const struct error *err))
{
    const struct adoption *next = &adoptions_of(inflight->action->kind)[inflight->adoptions];
    if (!err->code || err->code != next->after)
        return false;
    if (inflight->adoptions++ == 0)
        inflight->exists = *err;
    send_request(inflight->run, inflight->action, inflight, next->build, done);
    return true;
}

const struct json *inflight_adopted(const struct inflight *inflight, const struct json *answer)
{
    const struct action *action = inflight->action;
    bool is_list = adoptions_of(action->kind)->build == request_find;
    return is_list ? request_found(answer, action, inflight->run->job) : answer;
}

/* ---- events ---- */

static void on_event_done(void *context, const struct json *answer, const struct error *err)
{
    (void)answer;
    struct inflight *inflight = context;
    struct executor *executor = inflight->executor;
    int64_t now_ms = executor->options.clocks->steady_ms(),
            logged_ms = executor->events_forbidden_logged_ms;
    bool is_new =
        err->code == ERR_FORBIDDEN && (!logged_ms || now_ms - logged_ms >= EVENTS_FORBIDDEN_LOG_MS);
    if (err->code)
        log_write(is_new ? LOG_WARNING : LOG_DEBUG, "cannot record an event: %s%s", err->msg,
                  is_new ? " (logged once an hour)" : "");
    if (is_new)
        executor->events_forbidden_logged_ms = now_ms;
    executor->event_count--;
    inflight_free(inflight);
}

/* Single creates and deletes that went well. */
static bool is_routine(const struct action *event)
{
    return event->event_type == EVENT_NORMAL && str_starts_with(event->reason, "Successful");
}

/* The plan's own failure is logged when it is over. */
static bool is_failure(const struct action *event)
{
    return str_starts_with(event->reason, "Failed");
}

static bool is_disruption(const struct action *event)
{
    return strcmp(event->reason, REASON_POD_DISRUPTED) == 0;
}

/* What each try would report anew, as long as it fails or the next pod ends like the last. */
static bool is_repeated(const struct action *event)
{
    return is_failure(event) || is_disruption(event);
}

/* Which of the story of a training it is, of which a run that hangs and recovers all day has no
 * end; -1: none. */
static int story_of(const struct action *event)
{
    static const char *const reasons[EVENT_BUDGET_STORIES] = {
        REASON_TRAINING_STARTED,
        REASON_CHECKPOINT_SAVED,
        REASON_TRAINING_RECOVERED,
        REASON_RANK_HUNG,
    };
    for (int i = 0; i < EVENT_BUDGET_STORIES; i++)
        if (strcmp(event->reason, reasons[i]) == 0)
            return i;
    return -1;
}

/* What a big or long job has many of: it stops first. */
static bool is_one_of_many(const struct action *event)
{
    return is_routine(event) || is_disruption(event) || story_of(event) >= 0;
}

void inflight_record_event(struct run *run, const struct action *event)
{
    struct executor *executor = run->executor;
    struct event_budget *budget = &run->record->budget;
    int64_t steady_ms = executor->options.clocks->steady_ms();
    if (is_repeated(event) && !event_budget_is_new(budget, event->message, steady_ms))
        return;
    if (!is_failure(event) && !is_routine(event))
        log_info("%s: %s: %s", run->key, event->reason, event->message);
    int story = story_of(event);
    if (story >= 0 && !event_budget_is_due(budget, story, steady_ms))
        return;
    if (executor->event_count == EXECUTOR_EVENTS_MAX ||
        !event_budget_take(budget, is_one_of_many(event), steady_ms)) {
        log_debug("%s: event dropped, over the budget: %s: %s", run->key, event->reason,
                  event->message);
        return;
    }
    struct inflight *inflight = xcalloc(1, sizeof *inflight);
    inflight->executor = executor;
    executor->event_count++;
    /* Events belong to the executor and not to the plan: a plan is over without them. */
    list_add(&executor->events, inflight);
    send_request(run, event, inflight, request_build, on_event_done);
}
