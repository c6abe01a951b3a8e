#include "operator/decode/decode_status.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "operator/decode/decode_template.h"
#include "operator/decode/decode_training.h"
#include "operator/job/history.h"
#include "operator/job/history_fields.h"
#include "operator/job/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INDEX 100000     /* no invalid range makes us remember more */
#define MAX_COUNT 1000000000 /* nor does an invalid count overflow when two are added */

static const char *const condition_types[] = {
    "", "Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed", "Waiting", NULL};
static const char *const truth_values[] = {"", "True", "False", "Unknown", NULL};

/* A stored status is not refused: what cannot be read counts as absent. */
static void read_time(struct json_reader *reader, const struct json *value, void *wall_ms)
{
    const char *text = json_read_text(reader, value);
    if (text)
        clock_parse_rfc3339(text, wall_ms);
}

static void read_count(struct json_reader *reader, const struct json *value, void *count)
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

/* ---- history: by the rows of history_fields.h ---- */

static void read_type(struct json_reader *reader, const struct json *value, void *field)
{
    const char *text = json_read_text(reader, value);
    for (int type = 0; type < REPLICA_TYPES && text; type++)
        if (strcmp(text, names_replica_type(type)) == 0)
            *(enum replica_type *)field = type;
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
        /* From the last down: the first call makes room for all. */
        for (long i = last; i >= first; i--)
            history_complete(history, type, (int32_t)i, arena);
        text = *end ? end + 1 : end;
    }
}

static void read_indices(struct json_reader *reader, const struct json *value, void *history)
{
    struct completed {
        const char *of[REPLICA_TYPES];
    } completed = {0};
    static const struct json_field fields[] = {
        JSON_TEXT("Master", struct completed, of[REPLICA_MASTER]),
        JSON_TEXT("Worker", struct completed, of[REPLICA_WORKER]),
        JSON_END,
    };
    json_read(reader, value, fields, &completed);
    for (int type = 0; type < REPLICA_TYPES; type++)
        take_completed(completed.of[type], type, history, reader->arena);
}

static void read_counts(struct json_reader *reader, const struct json *value, void *field)
{
    struct counts {
        int32_t of[REPLICA_TYPES];
    };
    static const struct json_field fields[] = {
        JSON_CUSTOM("Master", struct counts, of[REPLICA_MASTER], read_count),
        JSON_CUSTOM("Worker", struct counts, of[REPLICA_WORKER], read_count),
        JSON_END,
    };
    json_read(reader, value, fields, field);
}

static void read_fields(struct json_reader *reader, const struct json *value,
                        const struct history_field *rows, void *out);

/* A record without type or UID is of no use. */
static void read_records(struct json_reader *reader, const struct json *value, void *history)
{
    if (!json_is_array_here(reader, value))
        return;
    for (size_t i = 0; i < json_array_count(value); i++) {
        struct replica_history replica = {.type = REPLICA_TYPES};
        size_t depth = json_enter(reader, "[%zu]", i);
        read_fields(reader, json_at(value, i), replica_history_fields, &replica);
        json_leave(reader, depth);
        if (replica.type < REPLICA_TYPES && replica.uid)
            history_put(history, replica, reader->arena);
    }
}

static void read_nodes(struct json_reader *reader, const struct json *value, void *history)
{
    struct pairs pairs = {0};
    decode_pairs(reader, value, &pairs);
    for (size_t i = 0; i < pairs.count; i++) {
        int64_t since_ms = 0;
        if (clock_parse_rfc3339(pairs.items[i].value, &since_ms) &&
            !history_avoided(history, pairs.items[i].key))
            history_avoid(history, pairs.items[i].key, since_ms, reader->arena);
    }
}

/* How json_read reads a row. */
static struct json_field as_json_field(const struct history_field *row)
{
    struct json_field field = {.name = row->name, .kind = JSON_KIND_CUSTOM, .offset = row->offset};
    switch (row->kind) {
    case HISTORY_PRESENCE: /* not written: the object is there */
        break;
    case HISTORY_FLAG:
        field.kind = JSON_KIND_BOOL;
        break;
    case HISTORY_TEXT:
        field.kind = JSON_KIND_TEXT;
        break;
    case HISTORY_COUNT:
        field.read = read_count;
        break;
    case HISTORY_TIME:
        field.read = read_time;
        break;
    case HISTORY_TYPE:
        field.read = read_type;
        break;
    case HISTORY_COUNTS:
        field.read = read_counts;
        break;
    case HISTORY_INDICES:
        field.read = read_indices;
        field.offset = 0; /* of the history itself */
        break;
    case HISTORY_RECORDS:
        field.read = read_records;
        field.offset = 0;
        break;
    case HISTORY_NODES:
        field.read = read_nodes;
        field.offset = 0;
        break;
    }
    return field;
}

static void read_fields(struct json_reader *reader, const struct json *value,
                        const struct history_field *rows, void *out)
{
    struct json_field fields[HISTORY_FIELDS_MAX] = {JSON_END};
    size_t count = 0;
    for (const struct history_field *row = rows; row->member; row++) {
        assert(count + 1 < array_length(fields));
        if (row->name)
            fields[count++] = as_json_field(row);
    }
    json_read(reader, value, fields, out);
}

static void read_history(struct json_reader *reader, const struct json *value, void *out)
{
    struct history *history = out;
    history->known = json_is_object_here(reader, value);
    if (history->known)
        read_fields(reader, value, history_fields, history);
}

static void read_training(struct json_reader *reader, const struct json *value, void *status)
{
    (void)reader;
    ((struct job_status *)status)->training = decode_training(value);
    ((struct job_status *)status)->goodput = decode_goodput(value);
}

/* ---- the whole ---- */

struct document {
    struct job_status status;
    struct condition_list conditions;
    struct replica_statuses replicas;
};

static const struct json_field status_fields[] = {
    JSON_ARRAY_OF("conditions", struct document, conditions.items, conditions.count,
                  struct condition_document, condition_fields),
    JSON_PART("replicaStatuses", struct document, replicas, replicas_fields),
    JSON_CUSTOM("startTime", struct document, status.start_ms, read_time),
    JSON_CUSTOM("completionTime", struct document, status.completion_ms, read_time),
    JSON_CUSTOM("history", struct document, status.history, read_history),
    JSON_CUSTOM("training", struct document, status, read_training),
    JSON_END,
};

struct job_status decode_status(const struct json *value, struct arena *arena)
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
    return document.status;
}
