#include "operator/decode/decode_node.h"

#include "base/json_read.h"
#include "base/mem.h"
#include "operator/decode/decode_template.h"

static const struct json_field metadata_fields[] = {
    JSON_TEXT("name", struct node, name),
    JSON_END,
};

static const struct json_field taint_fields[] = {
    JSON_TEXT("key", struct taint, key),
    JSON_TEXT("value", struct taint, value),
    JSON_TEXT("effect", struct taint, effect),
    JSON_END,
};

static const struct json_field spec_fields[] = {
    JSON_BOOL("unschedulable", struct node, unschedulable),
    JSON_ARRAY_OF("taints", struct node, taints, taint_count, struct taint, taint_fields),
    JSON_END,
};

static const struct json_field condition_fields[] = {
    JSON_TEXT("type", struct node_condition, type),
    JSON_TEXT("status", struct node_condition, status),
    JSON_TEXT("reason", struct node_condition, reason),
    JSON_TEXT("message", struct node_condition, message),
    JSON_END,
};

static const struct json_field status_fields[] = {
    JSON_ARRAY_OF("conditions", struct node, conditions, condition_count, struct node_condition,
                  condition_fields),
    JSON_CUSTOM("capacity", struct node, capacity, decode_pairs),
    JSON_END,
};

static const struct json_field node_fields[] = {
    JSON_SAME("metadata", metadata_fields),
    JSON_SAME("spec", spec_fields),
    JSON_SAME("status", status_fields),
    JSON_END,
};

static void complete(const char **text)
{
    *text = *text ? *text : "";
}

struct node decode_node(const struct json *object, struct arena *arena, struct lines *problems)
{
    struct node node = {0};
    struct json_reader reader = {.arena = arena, .problems = problems};
    json_read(&reader, object, node_fields, &node);
    complete(&node.name);
    for (size_t i = 0; i < node.taint_count; i++) {
        complete(&node.taints[i].key);
        complete(&node.taints[i].value);
        complete(&node.taints[i].effect);
    }
    for (size_t i = 0; i < node.condition_count; i++) {
        complete(&node.conditions[i].type);
        complete(&node.conditions[i].status);
        complete(&node.conditions[i].reason);
        complete(&node.conditions[i].message);
    }
    return node;
}
