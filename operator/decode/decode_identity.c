#include "operator/decode/decode_identity.h"

#include "base/clock.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/decode/decode_template.h"
#include "operator/job/names.h"
#include "operator/job/resources.h"

#include <string.h>

#define MAX_GRACE_S INT32_MAX

struct owner {
    const char *api_version, *kind, *name, *uid;
    bool controller;
};

static const struct json_field owner_fields[] = {
    JSON_TEXT("apiVersion", struct owner, api_version),
    JSON_TEXT("kind", struct owner, kind),
    JSON_TEXT("name", struct owner, name),
    JSON_TEXT("uid", struct owner, uid),
    JSON_BOOL("controller", struct owner, controller),
    JSON_END,
};

struct metadata {
    struct identity identity;
    struct owner *owners;
    size_t owner_count;
    struct pairs labels;
    int64_t deletion_ms;     /* by when it shall be gone; 0: it is not being deleted */
    struct optional grace_s; /* asked for with the deletion */
};

void decode_time(struct json_reader *reader, const struct json *value, void *wall_ms)
{
    const char *text = json_read_text(reader, value);
    if (text && !clock_parse_rfc3339(text, wall_ms))
        json_problem(reader, "must be a time such as 2026-01-31T12:00:00Z, not \"%.40s\"", text);
}

static const struct json_field metadata_fields[] = {
    JSON_TEXT("name", struct metadata, identity.name),
    JSON_TEXT("namespace", struct metadata, identity.namespace_),
    JSON_TEXT("uid", struct metadata, identity.uid),
    JSON_TEXT("resourceVersion", struct metadata, identity.resource_version),
    JSON_ARRAY_OF("ownerReferences", struct metadata, owners, owner_count, struct owner,
                  owner_fields),
    JSON_CUSTOM("labels", struct metadata, labels, decode_pairs),
    JSON_CUSTOM("creationTimestamp", struct metadata, identity.created_ms, decode_time),
    JSON_CUSTOM("deletionTimestamp", struct metadata, deletion_ms, decode_time),
    JSON_OPTIONAL("deletionGracePeriodSeconds", struct metadata, grace_s, 0, MAX_GRACE_S),
    JSON_END,
};

static const struct json_field object_fields[] = {
    JSON_SAME("metadata", metadata_fields),
    JSON_END,
};

static const char *label(const struct metadata *metadata, const char *key)
{
    for (size_t i = 0; i < metadata->labels.count; i++)
        if (strcmp(metadata->labels.items[i].key, key) == 0)
            return metadata->labels.items[i].value;
    return "";
}

static void set_owner(struct metadata *metadata)
{
    struct identity *identity = &metadata->identity;
    identity->owner_uid = "";
    identity->job_name = label(metadata, LABEL_JOB_NAME);
    for (size_t i = 0; i < metadata->owner_count; i++) {
        const struct owner *owner = &metadata->owners[i];
        /* An object has one controller at most; other owners only keep it from garbage
         * collection. */
        if (!owner->controller || !owner->uid)
            continue;
        identity->owner_uid = owner->uid;
        if (owner->api_version && str_starts_with(owner->api_version, API_GROUP "/") &&
            owner->kind && strcmp(owner->kind, API_KIND) == 0 && owner->name)
            identity->job_name = owner->name;
    }
}

/* deletionTimestamp is when it must be gone: the grace period after it was asked for. */
static void set_deletion(const struct metadata *metadata, struct identity *identity)
{
    if (metadata->deletion_ms == 0)
        return;
    identity->grace_ms = metadata->grace_s.value * 1000;
    int64_t deleted_ms = metadata->deletion_ms - identity->grace_ms;
    identity->deleted_ms = deleted_ms ? deleted_ms : 1;
}

static void set_replica(const struct metadata *metadata, struct identity *identity)
{
    const char *type = label(metadata, LABEL_REPLICA_TYPE);
    bool master = strcmp(type, names_replica_label(REPLICA_MASTER)) == 0;
    bool worker = strcmp(type, names_replica_label(REPLICA_WORKER)) == 0;
    int64_t index, attempt;
    identity->type = master ? REPLICA_MASTER : REPLICA_WORKER;
    identity->index = -1;
    if ((master || worker) &&
        str_to_i64(label(metadata, LABEL_REPLICA_INDEX), 0, INT32_MAX, &index))
        identity->index = (int32_t)index;
    if (str_to_i64(label(metadata, LABEL_ATTEMPT), 0, INT32_MAX, &attempt))
        identity->attempt = (int32_t)attempt;
}

int decode_identity(const struct json *object, struct arena *arena, struct lines *problems,
                    struct identity *ret_identity, struct error *err)
{
    struct metadata metadata = {0};
    struct json_reader reader = {.arena = arena, .problems = problems};
    json_read(&reader, object, object_fields, &metadata);
    set_owner(&metadata);
    set_replica(&metadata, &metadata.identity);
    set_deletion(&metadata, &metadata.identity);
    struct identity *identity = ret_identity;
    *identity = metadata.identity;
    const struct {
        const char *field, **value;
    } required[] = {{"name", &identity->name},
                    {"namespace", &identity->namespace_},
                    {"uid", &identity->uid},
                    {"resourceVersion", &identity->resource_version}};
    /* From the last to the first, so that the message names the first one that is missing. All get
     * a text that can be used. */
    const char *missing = NULL;
    for (size_t i = array_length(required); i-- > 0;) {
        if (*required[i].value && **required[i].value)
            continue;
        *required[i].value = "";
        missing = required[i].field;
    }
    return missing ? error_set(err, ERR_INPUT, "metadata.%s: Required value: must be text", missing)
                   : 0;
}
