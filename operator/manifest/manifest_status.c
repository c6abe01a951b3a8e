#include "operator/manifest/manifest.h"

#include "base/clock.h"
#include "base/contract.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/job/history.h"
#include "operator/job/history_fields.h"
#include "operator/job/names.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#define MESSAGE_MAX_BYTES (32 << 10)  /* metav1.Condition.message */
#define RANGES_MAX_BYTES  (128 << 10) /* 10000 indices with their commas */

static void set_count(json_t *object, const char *key, int32_t count)
{
    if (count)
        json_object_set_new(object, key, json_integer(count));
}

static void set_time(json_t *object, const char *key, int64_t wall_ms)
{
    char text[32];
    if (!wall_ms)
        return;
    clock_format_rfc3339(wall_ms, text, sizeof text);
    json_object_set_new(object, key, json_string(text));
}

static json_t *conditions(const struct job_status *status)
{
    json_t *list = json_array();
    for (size_t i = 0; i < status->condition_count; i++) {
        const struct condition *condition = &status->conditions[i];
        json_t *item = json_object();
        json_object_set_new(item, "type", json_string(names_condition(condition->type)));
        json_object_set_new(item, "status", json_string(condition->status ? "True" : "False"));
        json_object_set_new(item, "reason", json_string(condition->reason));
        json_object_set_new(item, "message", json_cut_text(condition->message, MESSAGE_MAX_BYTES));
        set_time(item, "lastUpdateTime", condition->update_ms);
        set_time(item, "lastTransitionTime", condition->transition_ms);
        json_array_append_new(list, item);
    }
    return list;
}

/* Keys sorted: the scale subresource hands this text on as it is. */
static json_t *selector(const struct job *job, enum replica_type type)
{
    return json_sprintf("%s=%s,%s=%s,%s=%s", LABEL_JOB_NAME, job->name, LABEL_OPERATOR_NAME,
                        OPERATOR_NAME, LABEL_REPLICA_TYPE, names_replica_label(type));
}

static json_t *replica_statuses(const struct job *job, const struct job_status *status)
{
    json_t *all = json_object();
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_status *replica = &status->replicas[type];
        if (!replica->present)
            continue;
        json_t *item = json_object();
        set_count(item, "active", replica->active);
        set_count(item, "succeeded", replica->succeeded);
        set_count(item, "failed", replica->failed);
        json_object_set_new(item, "selector", selector(job, type));
        json_object_set_new(all, names_replica_type(type), item);
    }
    return all;
}

/* The completed indices as "0-2,5", the form of batch/v1 Job. */
static json_t *completed(const struct history *history, enum replica_type type)
{
    auto_str struct str text;
    str_init(&text, RANGES_MAX_BYTES);
    for (int32_t i = 0; i < history->completed_count[type]; i++) {
        if (!history_is_complete(history, type, i))
            continue;
        str_printf(&text, "%s%" PRId32, text.length ? "," : "", i);
        int32_t last = i;
        while (history_is_complete(history, type, last + 1))
            last++;
        if (last > i)
            str_printf(&text, "-%" PRId32, last);
        i = last;
    }
    return text.length ? json_string(str_text(&text)) : NULL;
}

static json_t *indices_by_type(const struct history *history)
{
    json_t *object = json_object();
    for (int type = 0; type < REPLICA_TYPES; type++) {
        json_t *ranges = completed(history, type);
        if (ranges)
            json_object_set_new(object, names_replica_type(type), ranges);
    }
    return object;
}

static json_t *counts_by_type(const int32_t counts[REPLICA_TYPES])
{
    json_t *object = json_object();
    for (int type = 0; type < REPLICA_TYPES; type++)
        set_count(object, names_replica_type(type), counts[type]);
    return object;
}

static json_t *history_object(const struct history_field *fields, const void *owner);

static json_t *records(const struct history *history)
{
    json_t *list = json_array();
    for (size_t i = 0; i < history->replica_count; i++)
        json_array_append_new(list, history_object(replica_history_fields, &history->replicas[i]));
    return list;
}

/* An empty object or array is left out. */
static void set_unless_empty(json_t *object, const char *key, json_t *value)
{
    if (json_object_size(value) || json_array_size(value))
        json_object_set(object, key, value);
    json_decref(value);
}

static void set_field(json_t *object, const struct history_field *field, const void *owner)
{
    const void *value = (const char *)owner + field->offset;
    switch (field->kind) {
    case HISTORY_PRESENCE: /* the object itself */
        break;
    case HISTORY_FLAG:
        if (*(const bool *)value)
            json_object_set_new(object, field->name, json_true());
        break;
    case HISTORY_COUNT:
        if (*(const int32_t *)value || field->always)
            json_object_set_new(object, field->name, json_integer(*(const int32_t *)value));
        break;
    case HISTORY_TIME:
        set_time(object, field->name, *(const int64_t *)value);
        break;
    case HISTORY_TEXT:
        json_object_set_new(object, field->name, json_string(*(const char *const *)value));
        break;
    case HISTORY_TYPE:
        json_object_set_new(object, field->name,
                            json_string(names_replica_type(*(const enum replica_type *)value)));
        break;
    case HISTORY_COUNTS:
        set_unless_empty(object, field->name, counts_by_type(value));
        break;
    case HISTORY_INDICES:
        set_unless_empty(object, field->name, indices_by_type(owner));
        break;
    case HISTORY_RECORDS:
        set_unless_empty(object, field->name, records(owner));
        break;
    }
}

/* By the rows of history_fields.h. */
static json_t *history_object(const struct history_field *fields, const void *owner)
{
    json_t *object = json_object();
    for (const struct history_field *field = fields; field->member; field++)
        set_field(object, field, owner);
    return object;
}

struct json_t *manifest_status(const struct job *job, const struct job_status *status)
{
    json_t *object = json_object();
    json_object_set_new(object, "conditions", conditions(status));
    json_object_set_new(object, "replicaStatuses", replica_statuses(job, status));
    set_time(object, "startTime", status->start_ms);
    set_time(object, "completionTime", status->completion_ms);
    if (status->history.known)
        json_object_set_new(object, "history", history_object(history_fields, &status->history));
    return object;
}

static bool is_ours(const json_t *condition)
{
    const char *type = json_string_value(json_object_get(condition, "type"));
    for (int i = 0; i < CONDITION_TYPES && type; i++)
        if (strcmp(type, names_condition((enum condition_type)i)) == 0)
            return true;
    return !type;
}

/* Conditions that others keep in the status of `object` stay: behind the first, as the last tells
 * the state. */
static void keep_foreign_conditions(json_t *status, const json_t *object)
{
    json_t *list = json_object_get(status, "conditions");
    const json_t *old = json_object_get(json_object_get(object, "status"), "conditions");
    size_t at = json_array_size(list) > 0 ? 1 : 0;
    for (size_t i = 0; i < json_array_size(old); i++)
        if (!is_ours(json_array_get(old, i)))
            json_array_insert_new(list, at++, json_deep_copy(json_array_get(old, i)));
}

struct json_t *manifest_status_update(const struct json_t *object, const struct job *job,
                                      const struct job_status *status)
{
    const json_t *metadata = json_object_get(object, "metadata");
    json_t *written = manifest_status(job, status);
    keep_foreign_conditions(written, object);
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:O*}, s:o}", "apiVersion", API_GROUP_VERSION,
                     "kind", API_KIND, "metadata", "name", job->name, "namespace", job->namespace_,
                     "uid", job->uid, "resourceVersion",
                     json_object_get(metadata, "resourceVersion"), "status", written);
}
