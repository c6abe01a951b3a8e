#include "operator/decode/decode_podgroup_hpa.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "operator/decode/decode_resources.h"
#include "operator/decode/decode_template.h"
#include "operator/job/resources.h"

#include <string.h>

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* ---- PodGroup ---- */

struct group_condition {
    const char *type, *status, *message;
};

static const struct json_field condition_fields[] = {
    JSON_TEXT("type", struct group_condition, type),
    JSON_TEXT("status", struct group_condition, status),
    JSON_TEXT("message", struct group_condition, message),
    JSON_END,
};

struct group_document {
    struct pod_group_spec spec;
    struct optional min_member;
    const char *phase;
    struct group_condition *conditions;
    size_t condition_count;
};

static const struct json_field group_spec_fields[] = {
    JSON_OPTIONAL("minMember", struct group_document, min_member, 0, INT32_MAX),
    JSON_CUSTOM("minResources", struct group_document, spec.min_resources, decode_quantities),
    JSON_TEXT("queue", struct group_document, spec.queue),
    JSON_TEXT("priorityClassName", struct group_document, spec.priority_class),
    JSON_OPTIONAL("scheduleTimeoutSeconds", struct group_document, spec.schedule_timeout_s, 0,
                  INT32_MAX),
    JSON_END,
};

static const struct json_field group_status_fields[] = {
    JSON_TEXT("phase", struct group_document, phase),
    JSON_ARRAY_OF("conditions", struct group_document, conditions, condition_count,
                  struct group_condition, condition_fields),
    JSON_END,
};

static const struct json_field group_fields[] = {
    JSON_SAME("spec", group_spec_fields),
    JSON_SAME("status", group_status_fields),
    JSON_END,
};

/* Volcano keeps its conditions: only one with status True holds now. */
static const char *unschedulable(const struct group_document *document)
{
    for (size_t i = 0; i < document->condition_count; i++) {
        const struct group_condition *condition = &document->conditions[i];
        if (strcmp(or_empty(condition->type), "Unschedulable") == 0 &&
            strcmp(or_empty(condition->status), "True") == 0)
            return condition->message;
    }
    return NULL;
}

struct pod_group decode_pod_group(const struct json *object, const struct identity *identity,
                                  struct arena *arena, struct lines *problems)
{
    struct group_document document = {0};
    struct json_reader reader = {.arena = arena, .problems = problems};
    json_read(&reader, object, group_fields, &document);
    struct pod_group group = {
        .name = identity->name,
        .uid = identity->uid,
        .owner_uid = identity->owner_uid,
        .deleting = identity->deleted_ms != 0,
        .spec = document.spec,
        .phase = or_empty(document.phase),
        .message = unschedulable(&document),
    };
    group.spec.min_member = (int32_t)document.min_member.value;
    group.spec.queue = or_empty(document.spec.queue);
    group.spec.priority_class = or_empty(document.spec.priority_class);
    return group;
}

/* ---- HorizontalPodAutoscaler ---- */

struct autoscaler_document {
    struct pairs annotations;
    struct optional min_replicas, max_replicas;
};

static const struct json_field autoscaler_metadata_fields[] = {
    JSON_CUSTOM("annotations", struct autoscaler_document, annotations, decode_pairs),
    JSON_END,
};

static const struct json_field autoscaler_spec_fields[] = {
    JSON_OPTIONAL("minReplicas", struct autoscaler_document, min_replicas, 0, INT32_MAX),
    JSON_OPTIONAL("maxReplicas", struct autoscaler_document, max_replicas, 0, INT32_MAX),
    JSON_END,
};

static const struct json_field autoscaler_fields[] = {
    JSON_SAME("metadata", autoscaler_metadata_fields),
    JSON_SAME("spec", autoscaler_spec_fields),
    JSON_END,
};

struct autoscaler decode_autoscaler(const struct json *object, const struct identity *identity,
                                    struct arena *arena, struct lines *problems)
{
    struct autoscaler_document document = {0};
    struct json_reader reader = {.arena = arena, .problems = problems};
    json_read(&reader, object, autoscaler_fields, &document);
    struct autoscaler autoscaler = {
        .name = identity->name,
        .uid = identity->uid,
        .owner_uid = identity->owner_uid,
        .deleting = identity->deleted_ms != 0,
        .spec = {.min_replicas = (int32_t)document.min_replicas.value,
                 .max_replicas = (int32_t)document.max_replicas.value,
                 .metrics_hash = ""},
    };
    const struct pairs *annotations = &document.annotations;
    for (size_t i = 0; i < annotations->count; i++)
        if (strcmp(annotations->items[i].key, ANNOTATION_METRICS_HASH) == 0)
            autoscaler.spec.metrics_hash = annotations->items[i].value;
    return autoscaler;
}
