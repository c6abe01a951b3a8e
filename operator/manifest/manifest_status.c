#include "operator/manifest/manifest_internal.h"

#include "base/contract.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/job/history.h"
#include "operator/job/history_fields.h"
#include "operator/job/names.h"

#include <inttypes.h>
#include <string.h>

#define MESSAGE_MAX_BYTES (32 << 10)  /* metav1.Condition.message */
#define RANGES_MAX_BYTES  (128 << 10) /* 10000 indices with their commas */

static void set_count(struct json *object, const char *key, int32_t count)
{
    if (count)
        json_set(object, key, json_new_integer(count));
}

/* Other operators' conditions may have none, and Kubernetes 1.20 takes no empty text. */
static void set_words(struct json *item, const char *key, const char *text)
{
    if (text && text[0])
        json_set(item, key, json_new_text_cut(text, MESSAGE_MAX_BYTES));
}

static struct json *conditions(const struct job_status *status)
{
    struct json *list = json_new_array();
    for (size_t i = 0; i < status->condition_count; i++) {
        const struct condition *condition = &status->conditions[i];
        struct json *item = json_new_object();
        json_set(item, "type", json_new_text(names_condition(condition->type)));
        json_set(item, "status", json_new_text(condition->status ? "True" : "False"));
        set_words(item, "reason", condition->reason);
        set_words(item, "message", condition->message);
        json_set(item, "lastUpdateTime", json_new_time(condition->update_ms));
        json_set(item, "lastTransitionTime", json_new_time(condition->transition_ms));
        json_append(list, item);
    }
    return list;
}

/* Keys sorted: the scale subresource hands this text on as it is. */
static struct json *selector(const struct job *job, enum replica_type type)
{
    return json_new_textf("%s=%s,%s=%s,%s=%s", LABEL_JOB_NAME, job->name, LABEL_OPERATOR_NAME,
                          OPERATOR_NAME, LABEL_REPLICA_TYPE, names_replica_label(type));
}

static struct json *replica_statuses(const struct job *job, const struct job_status *status)
{
    struct json *all = json_new_object();
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_status *replica = &status->replicas[type];
        if (!replica->present)
            continue;
        struct json *item = json_new_object();
        set_count(item, "active", replica->active);
        set_count(item, "succeeded", replica->succeeded);
        set_count(item, "failed", replica->failed);
        json_set(item, "selector", selector(job, type));
        json_set(all, names_replica_type(type), item);
    }
    return all;
}

/* The completed indices as "0-2,5", the form of batch/v1 Job. */
static struct json *completed(const struct history *history, enum replica_type type)
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
    return text.length ? json_new_text(str_text(&text)) : NULL;
}

static struct json *indices_by_type(const struct history *history)
{
    struct json *object = json_new_object();
    for (int type = 0; type < REPLICA_TYPES; type++) {
        struct json *ranges = completed(history, type);
        if (ranges)
            json_set(object, names_replica_type(type), ranges);
    }
    return object;
}

static struct json *counts_by_type(const int32_t counts[REPLICA_TYPES])
{
    struct json *object = json_new_object();
    for (int type = 0; type < REPLICA_TYPES; type++)
        set_count(object, names_replica_type(type), counts[type]);
    return object;
}

static struct json *history_object(const struct history_field *fields, const void *owner);

static struct json *records(const struct history *history)
{
    struct json *list = json_new_array();
    for (size_t i = 0; i < history->replica_count; i++)
        json_append(list, history_object(replica_history_fields, &history->replicas[i]));
    return list;
}

static struct json *nodes(const struct history *history)
{
    struct json *object = json_new_object();
    for (size_t i = 0; i < history->avoided_count; i++)
        json_set(object, history->avoided[i].name, json_new_time(history->avoided[i].since_ms));
    return object;
}

/* An empty object or array is left out. Takes the value. */
static void set_unless_empty(struct json *object, const char *key, struct json *value)
{
    if (json_object_count(value) || json_array_count(value))
        json_set(object, key, value);
    else
        json_free(value);
}

static void set_field(struct json *object, const struct history_field *field, const void *owner)
{
    const void *value = (const char *)owner + field->offset;
    switch (field->kind) {
    case HISTORY_PRESENCE: /* the object itself */
        break;
    case HISTORY_FLAG:
        if (*(const bool *)value)
            json_set(object, field->name, json_new_bool(true));
        break;
    case HISTORY_COUNT:
        if (*(const int32_t *)value || field->always)
            json_set(object, field->name, json_new_integer(*(const int32_t *)value));
        break;
    case HISTORY_TIME:
        json_set(object, field->name, json_new_time(*(const int64_t *)value));
        break;
    case HISTORY_TEXT:
        json_set(object, field->name, json_new_text(*(const char *const *)value));
        break;
    case HISTORY_TYPE:
        json_set(object, field->name,
                 json_new_text(names_replica_type(*(const enum replica_type *)value)));
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
    case HISTORY_NODES:
        set_unless_empty(object, field->name, nodes(owner));
        break;
    }
}

/* By the rows of history_fields.h. */
static struct json *history_object(const struct history_field *fields, const void *owner)
{
    struct json *object = json_new_object();
    for (const struct history_field *field = fields; field->member; field++)
        set_field(object, field, owner);
    return object;
}

struct json *manifest_status(const struct job *job, const struct job_status *status)
{
    struct json *object = json_new_object();
    json_set(object, "conditions", conditions(status));
    json_set(object, "replicaStatuses", replica_statuses(job, status));
    json_set(object, "startTime", json_new_time(status->start_ms));
    json_set(object, "completionTime", json_new_time(status->completion_ms));
    if (status->history.known) {
        /* for a column of `kubectl get pytorchjobs -o wide`, which reads one field */
        json_set_integer(object, "restarts", history_all_restarts(&status->history));
        json_set(object, "history", history_object(history_fields, &status->history));
    }
    json_set(object, "training", manifest_training(status));
    return object;
}

/* ---- what of it was dropped ---- */

bool manifest_is_whole(const struct json *written, const struct json *answer)
{
    return answer && json_object_count(answer) >= json_object_count(written) &&
           json_array_count(answer) >= json_array_count(written);
}

static const struct history_field *lost_field(const struct history_field *fields,
                                              const struct json *written, const struct json *answer)
{
    for (const struct history_field *field = fields; field->member; field++)
        if (field->name && json_get(written, field->name) &&
            !manifest_is_whole(json_get(written, field->name), json_get(answer, field->name)))
            return field;
    return NULL;
}

static const struct history_field *lost_of_records(const struct json *written,
                                                   const struct json *answer)
{
    const struct history_field *lost = NULL;
    for (size_t i = 0; i < json_array_count(written) && !lost; i++)
        lost = lost_field(replica_history_fields, json_at(written, i), json_at(answer, i));
    return lost;
}

const char *manifest_lost_history(const struct history *history, const struct json *answer,
                                  struct arena *arena)
{
    struct json *written = history_object(history_fields, history);
    const struct history_field *lost = lost_field(history_fields, written, answer);
    const char *path = lost ? lost->name : NULL;
    for (const struct history_field *field = history_fields; field->member && !path; field++) {
        if (field->kind != HISTORY_RECORDS)
            continue;
        lost = lost_of_records(json_get(written, field->name), json_get(answer, field->name));
        path = lost ? arena_printf(arena, "%s.%s", field->name, lost->name) : NULL;
    }
    json_free(written);
    return answer ? path : "history";
}

static bool is_ours(const struct json *condition)
{
    const char *type = json_as_text(json_get(condition, "type"));
    for (int i = 0; i < CONDITION_TYPES && type; i++)
        if (strcmp(type, names_condition((enum condition_type)i)) == 0)
            return true;
    return !type;
}

/* Conditions that others keep in the status of `object` stay: behind the first, as the last shows
 * the state. */
static void keep_foreign_conditions(struct json *status, const struct json *object)
{
    struct json *ours = json_get(status, "conditions"), *all = json_new_array();
    const struct json *old = json_get(json_get(object, "status"), "conditions"), *condition;
    json_append(all, json_take_at(ours, 0));
    json_each_item(condition, old) {
        if (!is_ours(condition))
            json_append(all, json_clone(condition));
    }
    while (json_array_count(ours) > 0)
        json_append(all, json_take_at(ours, 0));
    json_set(status, "conditions", all);
}

/* Takes over status. */
static struct json *put_over(const struct json *object, const struct job *job, struct json *status)
{
    const struct json *metadata = json_get(object, "metadata");
    struct json *update = json_texts_of("apiVersion", API_GROUP_VERSION, "kind", API_KIND, NULL);
    json_set(update, "metadata",
             /* A PUT of the status subresource replaces all of the status and ignores the rest. So
              * it needs no spec, and the resourceVersion makes it a compare-and-swap. */
             json_texts_of("name", job->name, "namespace", job->namespace_, "uid", job->uid,
                           "resourceVersion", json_as_text(json_get(metadata, "resourceVersion")),
                           NULL));
    json_set(update, "status", status);
    return update;
}

struct json *manifest_status_update(const struct json *object, const struct job *job,
                                    const struct job_status *status)
{
    struct json *written = manifest_status(job, status);
    keep_foreign_conditions(written, object);
    return put_over(object, job, written);
}

struct json *manifest_status_as_stored(const struct json *object, const struct job *job)
{
    const struct json *stored = json_get(object, "status");
    return put_over(object, job, stored ? json_clone(stored) : json_new_object());
}
