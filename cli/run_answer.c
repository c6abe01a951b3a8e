#include "cli/run_answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/inbox.h"
#include "cli/job_answer.h"
#include "operator/decode/decode_identity.h"

#define BEGAN_MS "beganMs"

enum { ITEMS_MAX = 4096, COUNT_MAX = 1000000000 };

/* ---- told ---- */

/* What is not so is left out, as an answer of many replicas must be short. */
static struct json *flag(bool value)
{
    return value ? json_new_bool(true) : NULL;
}

static struct json *text_of(const char *text)
{
    return text && *text ? json_new_text(text) : NULL;
}

static struct json *pod_of(const struct pod_facts *pod)
{
    return json_object_of("name", json_new_text(pod->name), "node", text_of(pod->node), "state",
                          json_new_text(pod->state), "type", json_new_integer(pod->type), "index",
                          json_new_integer(pod->index), "reason", text_of(pod->reason), "message",
                          text_of(pod->message), "restarts", json_new_integer(pod->restarts),
                          "created", json_new_time(pod->created_ms), "isStuck", flag(pod->is_stuck),
                          "hasFailed", flag(pod->has_failed), "hasRun", flag(pod->has_run), "log",
                          text_of(pod->log), NULL);
}

/* As an API server has it, for job_facts_read_event. */
static struct json *event_of(const struct local_event *event)
{
    return json_object_of(
        "type", json_new_text(event->type == EVENT_WARNING ? "Warning" : "Normal"), "reason",
        json_new_text(event->reason), "message", json_new_text(event->message), "count",
        json_new_integer(event->count), "lastTimestamp", json_new_time(event->time_ms), NULL);
}

struct json *run_answer_make(const struct run_answer *answer)
{
    struct json *pods = json_new_array(), *events = json_new_array();
    for (size_t i = 0; i < answer->pod_count; i++)
        json_append(pods, pod_of(&answer->pods[i]));
    for (size_t i = 0; i < answer->events->count; i++)
        json_append(events, event_of(&answer->events->items[i]));
    return json_object_of(INBOX_ANSWER, job_answer(answer->job, answer->status), INBOX_PODS, pods,
                          BEGAN_MS, json_new_integer(answer->job->created_ms), "events", events,
                          "page", text_of(answer->page), NULL);
}

/* ---- read ---- */

struct told_pod {
    const char *name, *node, *state, *reason, *message, *log;
    struct optional type, index, restarts;
    int64_t created_ms;
    bool is_stuck, has_failed, has_run;
};

static const struct json_field pod_fields[] = {
    JSON_TEXT("name", struct told_pod, name),
    JSON_TEXT("node", struct told_pod, node),
    JSON_TEXT("state", struct told_pod, state),
    JSON_OPTIONAL("type", struct told_pod, type, 0, REPLICA_TYPES - 1),
    JSON_OPTIONAL("index", struct told_pod, index, 0, INT32_MAX),
    JSON_TEXT("reason", struct told_pod, reason),
    JSON_TEXT("message", struct told_pod, message),
    JSON_OPTIONAL("restarts", struct told_pod, restarts, 0, COUNT_MAX),
    JSON_CUSTOM("created", struct told_pod, created_ms, decode_time),
    JSON_BOOL("isStuck", struct told_pod, is_stuck),
    JSON_BOOL("hasFailed", struct told_pod, has_failed),
    JSON_BOOL("hasRun", struct told_pod, has_run),
    JSON_TEXT("log", struct told_pod, log),
    JSON_END,
};

/* It goes to a terminal. */
static const char *printable(const char *text, struct arena *arena)
{
    char *copy = arena_strdup(arena, text ? text : "");
    utf8_make_printable(copy, strlen(copy));
    return copy;
}

static struct pod_facts read_pod(const struct json *object, struct arena *arena)
{
    struct told_pod told = {0};
    struct lines problems; /* what is odd is left out */
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems};
    json_read(&reader, object, pod_fields, &told);
    return (struct pod_facts){
        .name = printable(told.name, arena),
        .node = printable(told.node, arena),
        .state = printable(told.state, arena),
        .type = (enum replica_type)told.type.value,
        .index = (int32_t)told.index.value,
        .reason = printable(told.reason, arena),
        .message = printable(told.message, arena),
        .restarts = told.restarts.value,
        .created_ms = told.created_ms,
        .is_stuck = told.is_stuck,
        .has_failed = told.has_failed,
        .has_run = told.has_run,
        .log = told.log ? printable(told.log, arena) : NULL,
    };
}

static void read_pods(const struct json *list, struct story *story, struct arena *arena)
{
    const struct json *item;
    if (!json_is_array(list)) {
        story->pods_missing = "Its replicas are not shown: they are too many for one answer.";
        return;
    }
    size_t count = json_array_count(list);
    struct pod_facts *pods = arena_array(arena, struct pod_facts, count + 1);
    json_each_item(item, list) {
        if (story->pod_count < ITEMS_MAX)
            pods[story->pod_count++] = read_pod(item, arena);
    }
    qsort(pods, story->pod_count, sizeof *pods, job_facts_compare_pods);
    story->pods = pods;
}

int64_t run_answer_began_ms(const struct json *answer)
{
    const struct json *value = json_get(answer, BEGAN_MS);
    return json_is_integer(value) ? json_as_integer(value) : 0;
}

void run_answer_read(const struct json *answer, int64_t now_ms, struct arena *arena,
                     struct job_facts *ret_job, struct story *ret_story)
{
    const struct json *list = json_get(answer, "events"), *item;
    const char *page = json_as_text(json_get(answer, "page"));
    *ret_job = job_facts_read(json_get(answer, INBOX_ANSWER), now_ms, arena);
    *ret_story = (struct story){.job = ret_job, .is_local = true};
    if (page)
        ret_story->page = printable(page, arena);
    read_pods(json_get(answer, INBOX_PODS), ret_story, arena);
    struct event_facts *events = arena_array(arena, struct event_facts, json_array_count(list) + 1);
    json_each_item(item, list) {
        if (ret_story->event_count == ITEMS_MAX)
            break;
        events[ret_story->event_count] = job_facts_read_event(item, arena);
        events[ret_story->event_count].order = ret_story->event_count;
        ret_story->event_count++;
    }
    ret_story->events = events;
}
