#include "operator/decode/decode_status.h"

#include "base/clock.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "operator/job/history.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INDEX 100000     /* no spoilt range makes us remember more */
#define MAX_COUNT 1000000000 /* nor does a spoilt count overflow when two are added */

static const char *const condition_types[] = {
    "", "Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed", "Waiting", NULL};
static const char *const truth_values[] = {"", "True", "False", "Unknown", NULL};
static const char *const replica_types[] = {"", "Master", "Worker", NULL};

static void read_time(struct json_reader *reader, const struct json_t *value, void *wall_ms)
{
    const char *text = json_read_text(reader, value);
    if (text)
        clock_parse_rfc3339(text, wall_ms);
}

static void read_count(struct json_reader *reader, const struct json_t *value, void *count)
{
    int64_t wide;
    if (json_read_integer(reader, value, 0, MAX_COUNT, &wide))
        *(int32_t *)count = (int32_t)wide;
}

/* ---- conditions ---- */

struct condition_document {
    int type;  /* index into condition_types */
    int truth; /* index into truth_values */
    struct condition condition;
};

static const struct json_field condition_fields[] = {
    JSON_CHOICE("type", struct condition_document, type, condition_types),
    JSON_CHOICE("status", struct condition_document, truth, truth_values),
    JSON_TEXT("reason", struct condition_document, condition.reason),
    JSON_TEXT("message", struct condition_document, condition.message),
    JSON_CUSTOM("lastUpdateTime", struct condition_document, condition.update_ms, read_time),
    JSON_CUSTOM("lastTransitionTime", struct condition_document, condition.transition_ms,
                read_time),
    JSON_END,
};

struct condition_list {
    struct condition_document *items;
    size_t count;
};

/* One condition a type: the last of several wins and keeps its place. */
static void take_conditions(const struct condition_list *list, struct job_status *status)
{
    unsigned seen = 0;
    for (size_t i = list->count; i-- > 0;) {
        const struct condition_document *document = &list->items[i];
        unsigned bit = 1u << document->type;
        if (document->type == 0 || seen & bit)
            continue;
        seen |= bit;
        memmove(status->conditions + 1, status->conditions,
                status->condition_count++ * sizeof *status->conditions);
        struct condition *condition = &status->conditions[0];
        *condition = document->condition;
        condition->type = document->type - 1;
        condition->status = document->truth == 1;
        condition->reason = condition->reason ? condition->reason : "";
        condition->message = condition->message ? condition->message : "";
    }
}

/* ---- replicaStatuses ---- */

static const struct json_field replica_fields[] = {
    JSON_CUSTOM("active", struct replica_status, active, read_count),
    JSON_CUSTOM("succeeded", struct replica_status, succeeded, read_count),
    JSON_CUSTOM("failed", struct replica_status, failed, read_count),
    JSON_END,
};

struct replica_statuses {
    struct replica_status of[REPLICA_TYPES];
};

static const struct json_field replicas_fields[] = {
    JSON_OPTIONAL_PART("Master", struct replica_statuses, of[REPLICA_MASTER],
                       of[REPLICA_MASTER].present, replica_fields),
    JSON_OPTIONAL_PART("Worker", struct replica_statuses, of[REPLICA_WORKER],
                       of[REPLICA_WORKER].present, replica_fields),
    JSON_END,
};

/* ---- history ---- */

struct replica_document {
    int type; /* index into replica_types */
    struct replica_history replica;
};

static const struct json_field record_fields[] = {
    JSON_CHOICE("type", struct replica_document, type, replica_types),
    JSON_CUSTOM("index", struct replica_document, replica.index, read_count),
    JSON_TEXT("uid", struct replica_document, replica.uid),
    JSON_CUSTOM("counted", struct replica_document, replica.counted, read_count),
    JSON_CUSTOM("earlier", struct replica_document, replica.earlier, read_count),
    JSON_CUSTOM("incidents", struct replica_document, replica.incidents, read_count),
    JSON_BOOL("left", struct replica_document, replica.left),
    JSON_END,
};

struct history_document {
    struct history history;
    struct replica_document *records;
    size_t record_count;
    const char *completed[REPLICA_TYPES];
};

static const struct json_field completed_fields[] = {
    JSON_TEXT("Master", struct history_document, completed[REPLICA_MASTER]),
    JSON_TEXT("Worker", struct history_document, completed[REPLICA_WORKER]),
    JSON_END,
};

static const struct json_field formed_fields[] = {
    JSON_CUSTOM("Master", struct history_document, history.formed[REPLICA_MASTER], read_count),
    JSON_CUSTOM("Worker", struct history_document, history.formed[REPLICA_WORKER], read_count),
    JSON_END,
};

static const struct json_field history_fields[] = {
    JSON_CUSTOM("failures", struct history_document, history.failures, read_count),
    JSON_CUSTOM("restarts", struct history_document, history.restarts, read_count),
    JSON_CUSTOM("attempt", struct history_document, history.attempt, read_count),
    JSON_CUSTOM("incidents", struct history_document, history.incidents, read_count),
    JSON_CUSTOM("incidentTime", struct history_document, history.incident_ms, read_time),
    JSON_CUSTOM("unexplained", struct history_document, history.unexplained, read_count),
    JSON_ARRAY_OF("replicas", struct history_document, records, record_count,
                  struct replica_document, record_fields),
    JSON_SAME("completed", completed_fields),
    JSON_SAME("formed", formed_fields),
    JSON_END,
};

static void take_records(const struct history_document *document, struct history *history,
                         struct arena *arena)
{
    for (size_t i = 0; i < document->record_count; i++) {
        const struct replica_document *record = &document->records[i];
        struct replica_history replica = record->replica;
        replica.type = (enum replica_type)(record->type - 1);
        if (record->type && replica.uid)
            history_put(history, replica, arena);
    }
}

/* "0-2,5" */
static void take_completed(const char *text, enum replica_type type, struct history *history,
                           struct arena *arena)
{
    while (text && *text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (end == text || first < 0 || last > MAX_INDEX || (*end && *end != ','))
            return;
        for (long i = last; i >= first; i--)
            history_complete(history, type, (int32_t)i, arena);
        text = *end ? end + 1 : end;
    }
}

/* ---- the whole ---- */

struct document {
    struct job_status status;
    struct condition_list conditions;
    struct replica_statuses replicas;
    struct history_document history;
};

static const struct json_field status_fields[] = {
    JSON_ARRAY_OF("conditions", struct document, conditions.items, conditions.count,
                  struct condition_document, condition_fields),
    JSON_PART("replicaStatuses", struct document, replicas, replicas_fields),
    JSON_CUSTOM("startTime", struct document, status.start_ms, read_time),
    JSON_CUSTOM("completionTime", struct document, status.completion_ms, read_time),
    JSON_OPTIONAL_PART("history", struct document, history, history.history.known, history_fields),
    JSON_END,
};

struct job_status decode_status(const struct json_t *value, struct arena *arena)
{
    struct document document = {0};
    struct lines problems;
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems};
    if (!json_is_object(value))
        return document.status;
    json_read(&reader, value, status_fields, &document);
    take_conditions(&document.conditions, &document.status);
    memcpy(document.status.replicas, document.replicas.of, sizeof document.status.replicas);
    struct history *history = &document.status.history;
    *history = document.history.history;
    take_records(&document.history, history, arena);
    for (int type = 0; type < REPLICA_TYPES; type++)
        take_completed(document.history.completed[type], type, history, arena);
    return document.status;
}
