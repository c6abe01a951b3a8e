#include "operator/decode_pod.h"

#include "base/clock.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/decode_template.h"
#include "operator/names.h"
#include "operator/pod.h"

#include <jansson.h>
#include <string.h>

#define MAX_RESTARTS   1000000 /* of one container, so that no sum overflows */
#define MAX_GRACE_S    INT32_MAX
#define MAX_CONTAINERS 1000

/* ---- metadata ---- */

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

static void read_time(struct json_reader *reader, const struct json_t *value, void *wall_ms)
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
    JSON_CUSTOM("deletionTimestamp", struct metadata, deletion_ms, read_time),
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
        if (!owner->controller || !owner->uid)
            continue;
        identity->owner_uid = owner->uid;
        if (owner->api_version && str_starts_with(owner->api_version, API_GROUP "/") &&
            owner->kind && strcmp(owner->kind, API_KIND) == 0 && owner->name)
            identity->job_name = owner->name;
    }
}

int decode_identity(const struct json_t *object, struct arena *arena, struct identity *ret_identity,
                    struct error *err)
{
    struct metadata metadata = {0};
    struct lines problems;
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems};
    json_read(&reader, object, object_fields, &metadata);
    set_owner(&metadata);
    struct identity *identity = ret_identity;
    *identity = metadata.identity;
    const struct {
        const char *field, **value;
    } required[] = {{"name", &identity->name},
                    {"namespace", &identity->namespace_},
                    {"uid", &identity->uid},
                    {"resourceVersion", &identity->resource_version}};
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

/* When the deletion was asked for. deletionTimestamp is the grace period later. */
static int64_t deleted_ms(const struct metadata *metadata)
{
    if (metadata->deletion_ms == 0)
        return 0;
    int64_t ms = metadata->deletion_ms - metadata->grace_s.value * 1000;
    return ms ? ms : 1;
}

static enum replica_type replica_type(const struct metadata *metadata)
{
    const char *type = label(metadata, LABEL_REPLICA_TYPE);
    return strcmp(type, names_replica_label(REPLICA_MASTER)) == 0 ? REPLICA_MASTER : REPLICA_WORKER;
}

/* -1 also if the type is none of ours: such an object has no place either. */
static int32_t replica_index(const struct metadata *metadata)
{
    const char *type = label(metadata, LABEL_REPLICA_TYPE);
    int64_t index;
    bool known = strcmp(type, names_replica_label(replica_type(metadata))) == 0 &&
                 str_to_i64(label(metadata, LABEL_REPLICA_INDEX), 0, INT32_MAX, &index);
    return known ? (int32_t)index : -1;
}

static int32_t attempt(const struct metadata *metadata)
{
    int64_t number;
    return str_to_i64(label(metadata, LABEL_ATTEMPT), 0, INT32_MAX, &number) ? (int32_t)number : 0;
}

/* ---- a pod's status ---- */

struct container_end {
    bool present;
    struct optional exit_code;
    int64_t finished_ms; /* 0: nobody knows */
};

struct container_status {
    const char *name;
    struct optional restarts;
    struct container_end end;
};

static const struct json_field end_fields[] = {
    JSON_OPTIONAL("exitCode", struct container_end, exit_code, INT32_MIN, INT32_MAX),
    JSON_CUSTOM("finishedAt", struct container_end, finished_ms, read_time),
    JSON_END,
};

static const struct json_field state_fields[] = {
    JSON_OPTIONAL_PART("terminated", struct container_status, end, end.present, end_fields),
    JSON_END,
};

static const struct json_field container_fields[] = {
    JSON_TEXT("name", struct container_status, name),
    JSON_OPTIONAL("restartCount", struct container_status, restarts, 0, MAX_RESTARTS),
    JSON_SAME("state", state_fields),
    JSON_END,
};

struct pod_condition {
    const char *type, *status;
};

static const struct json_field condition_fields[] = {
    JSON_TEXT("type", struct pod_condition, type),
    JSON_TEXT("status", struct pod_condition, status),
    JSON_END,
};

struct container_statuses {
    struct container_status *items;
    size_t count;
};

struct pod_status {
    int phase; /* index into phases */
    const char *reason;
    struct pod_condition *conditions;
    size_t condition_count;
    struct container_statuses containers, init_containers;
};

/* "absent", then in the order of the enum */
static const char *const phases[] = {"",       "Pending", "Running", "Succeeded",
                                     "Failed", "Unknown", NULL};

static const struct json_field status_fields[] = {
    JSON_CHOICE("phase", struct pod_status, phase, phases),
    JSON_TEXT("reason", struct pod_status, reason),
    JSON_ARRAY_OF("conditions", struct pod_status, conditions, condition_count,
                  struct pod_condition, condition_fields),
    JSON_ARRAY_OF("containerStatuses", struct pod_status, containers.items, containers.count,
                  struct container_status, container_fields),
    JSON_ARRAY_OF("initContainerStatuses", struct pod_status, init_containers.items,
                  init_containers.count, struct container_status, container_fields),
    JSON_END,
};

struct pod_document {
    struct metadata metadata;
    struct pod_status status;
};

static const struct json_field pod_fields[] = {
    JSON_PART("metadata", struct pod_document, metadata, metadata_fields),
    JSON_PART("status", struct pod_document, status, status_fields),
    JSON_END,
};

static bool is_any_ended(const struct container_statuses *statuses)
{
    for (size_t i = 0; i < statuses->count; i++)
        if (statuses->items[i].end.present)
            return true;
    return false;
}

/* Reasons of the kubelet and of the controllers that end pods; those of admission ("NodeAffinity",
 * "OutOfcpu", ...) come without any container and need no list. */
static bool is_disruption(const char *reason)
{
    static const char *const reasons[] = {"Evicted",    "Preempting",   "Preempted",
                                          "NodeLost",   "Shutdown",     "NodeShutdown",
                                          "Terminated", "NodeAffinity", "DeletedByPodGC"};
    for (size_t i = 0; i < array_length(reasons); i++)
        if (strcmp(reason, reasons[i]) == 0)
            return true;
    return false;
}

static bool is_disrupted(const struct pod_status *status)
{
    const char *reason = status->reason ? status->reason : "";
    if (is_disruption(reason))
        return true;
    for (size_t i = 0; i < status->condition_count; i++) {
        const struct pod_condition *condition = &status->conditions[i];
        if (condition->type && strcmp(condition->type, "DisruptionTarget") == 0 &&
            condition->status && strcmp(condition->status, "True") == 0)
            return true;
    }
    return status->phase - 1 == POD_FAILED && !is_any_ended(&status->containers) &&
           !is_any_ended(&status->init_containers) && strcmp(reason, "DeadlineExceeded") != 0;
}

static int32_t restart_count(const struct container_statuses *statuses)
{
    int32_t sum = 0;
    for (size_t i = 0; i < statuses->count && i < MAX_CONTAINERS; i++)
        sum += (int32_t)statuses->items[i].restarts.value;
    return sum;
}

/* A container whose end nobody saw has ended by the deletion, if there was one. */
static void set_exit(struct pod *pod, const struct container_statuses *statuses)
{
    for (size_t i = 0; i < statuses->count; i++) {
        const struct container_status *status = &statuses->items[i];
        if (!status->end.present || !status->name || strcmp(status->name, API_CONTAINER_NAME) != 0)
            continue;
        pod->exited = true;
        pod->exit_code = (int32_t)status->end.exit_code.value;
        pod->exited_ms = status->end.finished_ms ? status->end.finished_ms : pod->deleted_ms;
    }
}

/* ---- the whole ---- */

struct pod decode_pod(const struct json_t *object, const struct identity *identity,
                      struct arena *arena, struct lines *problems)
{
    struct pod_document document = {0};
    size_t problems_before = problems->count + problems->dropped;
    struct json_reader reader = {.arena = arena, .problems = problems};
    json_read(&reader, object, pod_fields, &document);
    const struct pod_status *status = &document.status;
    struct pod pod = {
        .name = identity->name,
        .uid = identity->uid,
        .owner_uid = identity->owner_uid,
        .type = replica_type(&document.metadata),
        .index = replica_index(&document.metadata),
        .attempt = attempt(&document.metadata),
        .phase = POD_UNKNOWN,
        .deleted_ms = deleted_ms(&document.metadata),
    };
    if (problems->count + problems->dropped > problems_before)
        return pod;
    pod.phase = status->phase ? (enum pod_phase)(status->phase - 1) : POD_PENDING;
    pod.restart_count =
        restart_count(&status->init_containers) + restart_count(&status->containers);
    pod.disrupted = is_disrupted(status);
    set_exit(&pod, &status->containers);
    return pod;
}

struct service decode_service(const struct json_t *object, const struct identity *identity,
                              struct arena *arena, struct lines *problems)
{
    struct metadata metadata = {0};
    struct json_reader reader = {.arena = arena, .problems = problems};
    json_read(&reader, object, object_fields, &metadata);
    return (struct service){
        .name = identity->name,
        .uid = identity->uid,
        .owner_uid = identity->owner_uid,
        .type = replica_type(&metadata),
        .index = replica_index(&metadata),
        .deleting = metadata.deletion_ms != 0,
    };
}
