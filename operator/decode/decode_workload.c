#include "operator/decode/decode_workload.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/decode/decode_template.h"
#include "operator/job/names.h"
#include "operator/job/resources.h"

#include <string.h>

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static bool is(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

/* For field tables: the value as JSON text. */
static void carry_text(struct json_reader *reader, const struct json *value, void *text)
{
    auto_free char *printed = json_print(value, JSON_COMPACT);
    *(const char **)text = arena_strdup(reader->arena, printed);
}

/* ---- the Workload ---- */

struct seen_condition {
    const char *type, *status, *reason, *message;
};

static const struct json_field condition_fields[] = {
    JSON_TEXT("type", struct seen_condition, type),
    JSON_TEXT("status", struct seen_condition, status),
    JSON_TEXT("reason", struct seen_condition, reason),
    JSON_TEXT("message", struct seen_condition, message),
    JSON_END,
};

/* A pod set: of the spec, of its assignment, or of its reclaimable pods. */
struct pod_set {
    const char *name;
    struct optional count, min_count;
    bool has_request; /* a topology request that asks for something */
    struct pairs flavors;
    bool has_topology;
};

/* Whether a topology request says where the pods shall be, and not only how they are counted. */
static void read_request(struct json_reader *reader, const struct json *value, void *has_request)
{
    static const char *const asks[] = {"required", "preferred", "unconstrained"};
    (void)reader;
    for (size_t i = 0; i < array_length(asks); i++)
        *(bool *)has_request |= json_get(value, asks[i]) != NULL;
}

static void read_presence(struct json_reader *reader, const struct json *value, void *there)
{
    (void)reader;
    *(bool *)there = json_is_object(value);
}

static const struct json_field pod_set_fields[] = {
    JSON_TEXT("name", struct pod_set, name),
    JSON_OPTIONAL("count", struct pod_set, count, 0, INT32_MAX),
    JSON_OPTIONAL("minCount", struct pod_set, min_count, 0, INT32_MAX),
    JSON_CUSTOM("topologyRequest", struct pod_set, has_request, read_request),
    JSON_CUSTOM("flavors", struct pod_set, flavors, decode_pairs),
    JSON_CUSTOM("topologyAssignment", struct pod_set, has_topology, read_presence),
    JSON_END,
};

struct class_reference {
    const char *kind, *name;
};

static const struct json_field class_fields[] = {
    JSON_TEXT("kind", struct class_reference, kind),
    JSON_TEXT("name", struct class_reference, name),
    JSON_END,
};

struct workload_document {
    struct pairs annotations;
    const char *queue, *class_name, *class_source; /* the last two in v1beta1 */
    const char *cluster_queue;
    struct class_reference class_; /* v1beta2 */
    struct optional priority, max_execution_s, past_execution_s;
    bool active;
    struct pod_set *asked, *assigned, *reclaimable;
    size_t asked_count, assigned_count, reclaimable_count;
    struct seen_condition *conditions;
    size_t condition_count;
    const struct json *checks;
};

static void carry(struct json_reader *reader, const struct json *value, void *field)
{
    (void)reader;
    *(const struct json **)field = value;
}

static const struct json_field workload_metadata_fields[] = {
    JSON_CUSTOM("annotations", struct workload_document, annotations, decode_pairs),
    JSON_END,
};

static const struct json_field workload_spec_fields[] = {
    JSON_TEXT("queueName", struct workload_document, queue),
    JSON_TEXT("priorityClassName", struct workload_document, class_name),
    JSON_TEXT("priorityClassSource", struct workload_document, class_source),
    JSON_PART("priorityClassRef", struct workload_document, class_, class_fields),
    JSON_OPTIONAL("priority", struct workload_document, priority, INT32_MIN, INT32_MAX),
    JSON_OPTIONAL("maximumExecutionTimeSeconds", struct workload_document, max_execution_s, 0,
                  INT32_MAX),
    JSON_BOOL("active", struct workload_document, active),
    JSON_ARRAY_OF("podSets", struct workload_document, asked, asked_count, struct pod_set,
                  pod_set_fields),
    JSON_END,
};

static const struct json_field admission_fields[] = {
    JSON_TEXT("clusterQueue", struct workload_document, cluster_queue),
    JSON_ARRAY_OF("podSetAssignments", struct workload_document, assigned, assigned_count,
                  struct pod_set, pod_set_fields),
    JSON_END,
};

static const struct json_field workload_status_fields[] = {
    JSON_ARRAY_OF("conditions", struct workload_document, conditions, condition_count,
                  struct seen_condition, condition_fields),
    JSON_SAME("admission", admission_fields),
    JSON_ARRAY_OF("reclaimablePods", struct workload_document, reclaimable, reclaimable_count,
                  struct pod_set, pod_set_fields),
    JSON_CUSTOM("admissionChecks", struct workload_document, checks, carry),
    JSON_OPTIONAL("accumulatedPastExecutionTimeSeconds", struct workload_document, past_execution_s,
                  0, INT32_MAX),
    JSON_OPTIONAL("accumulatedPastExexcutionTimeSeconds", struct workload_document,
                  past_execution_s, 0, INT32_MAX), /* v1beta1 */
    JSON_END,
};

static const struct json_field workload_fields[] = {
    JSON_SAME("metadata", workload_metadata_fields),
    JSON_SAME("spec", workload_spec_fields),
    JSON_SAME("status", workload_status_fields),
    JSON_END,
};

/* Of this replica type; NULL: none. */
static const struct pod_set *find(const struct pod_set *sets, size_t count, enum replica_type type)
{
    for (size_t i = 0; i < count; i++)
        if (is(sets[i].name, names_replica_label(type)))
            return &sets[i];
    return NULL;
}

static const struct seen_condition *condition(const struct workload_document *document,
                                              const char *type)
{
    for (size_t i = 0; i < document->condition_count; i++)
        if (is(document->conditions[i].type, type))
            return &document->conditions[i];
    return NULL;
}

static bool is_true(const struct workload_document *document, const char *type)
{
    const struct seen_condition *seen = condition(document, type);
    return seen && is(seen->status, "True");
}

static enum pods_ready pods_ready(const struct workload_document *document)
{
    const struct seen_condition *seen = condition(document, "PodsReady");
    if (!seen)
        return READY_ABSENT;
    if (is(seen->status, "True"))
        return is(seen->reason, "Recovered") ? READY_RECOVERED : READY_STARTED;
    return is(seen->reason, "WaitForRecovery") ? READY_WAIT_FOR_RECOVERY : READY_WAIT_FOR_START;
}

/* Each once, with commas between. */
static const char *flavor_names(const struct pod_set *set, struct arena *arena)
{
    const char *names = "";
    for (size_t i = 0; i < set->flavors.count; i++) {
        const char *name = set->flavors.items[i].value;
        bool known = false;
        for (size_t k = 0; k < i; k++)
            known |= strcmp(set->flavors.items[k].value, name) == 0;
        if (!known)
            names = arena_printf(arena, "%s%s%s", names, *names ? "," : "", name);
    }
    return names;
}

/* What the admission checks add to the pods of this type, each with the name of its check. */
static const char *updates_of(const struct json *checks, enum replica_type type,
                              struct arena *arena)
{
    struct json *all = json_new_array();
    for (size_t i = 0; i < json_array_count(checks); i++) {
        const struct json *updates = json_get(json_at(checks, i), "podSetUpdates");
        for (size_t k = 0; k < json_array_count(updates); k++) {
            const struct json *update = json_at(updates, k);
            if (!is(json_as_text(json_get(update, "name")), names_replica_label(type)))
                continue;
            struct json *copy = json_clone(update);
            json_set(copy, "name", json_clone(json_get(json_at(checks, i), "name")));
            json_append(all, copy);
        }
    }
    auto_free char *text = json_array_count(all) ? json_print(all, JSON_COMPACT) : NULL;
    json_free(all);
    return text ? arena_strdup(arena, text) : "";
}

static struct pod_set_assignment assignment(const struct workload_document *document,
                                            enum replica_type type, struct arena *arena)
{
    const struct pod_set *set = find(document->assigned, document->assigned_count, type);
    const struct pod_set *asked = find(document->asked, document->asked_count, type);
    struct pod_set_assignment assigned = {.flavors = "", .updates = ""};
    if (!set)
        return assigned;
    assigned.count = set->count;
    assigned.flavors = flavor_names(set, arena);
    assigned.updates = updates_of(document->checks, type, arena);
    assigned.topology = set->has_topology;
    assigned.topology_implied = set->has_topology && !(asked && asked->has_request);
    return assigned;
}

static struct workload_priority priority(const struct workload_document *document)
{
    struct workload_priority of = {.source = PRIORITY_NONE, .class_name = ""};
    const char *name = document->class_.name ? document->class_.name : document->class_name;
    bool of_kueue = is(document->class_.kind, "WorkloadPriorityClass") ||
                    is(document->class_source, "kueue.x-k8s.io/workloadpriorityclass");
    of.value = (int32_t)document->priority.value;
    if (!name || !*name)
        return of;
    of.class_name = name;
    of.source = of_kueue ? PRIORITY_WORKLOAD_CLASS : PRIORITY_POD_CLASS;
    return of;
}

static struct workload_spec spec_of(const struct workload_document *document)
{
    struct workload_spec spec = {.queue = or_empty(document->queue),
                                 .pods_hash = "",
                                 .priority = priority(document),
                                 .max_execution_s = (int32_t)document->max_execution_s.value};
    for (size_t i = 0; i < document->annotations.count; i++)
        if (is(document->annotations.items[i].key, ANNOTATION_PODS_HASH))
            spec.pods_hash = document->annotations.items[i].value;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct pod_set *set = find(document->asked, document->asked_count, type);
        if (set)
            spec.counts[type] = set->count.set ? (int32_t)set->count.value : 1;
        if (set && type == REPLICA_WORKER)
            spec.min_workers = (int32_t)set->min_count.value;
    }
    return spec;
}

/* Eviction is the news while there is quota to release; then the reservation is. */
static void set_state(struct workload *workload, const struct workload_document *document)
{
    const struct seen_condition *evicted = condition(document, "Evicted"),
                                *reserved = condition(document, "QuotaReserved");
    workload->quota_reserved = is_true(document, "QuotaReserved");
    workload->admitted = is_true(document, "Admitted");
    workload->evicted = is_true(document, "Evicted");
    workload->finished = is_true(document, "Finished");
    workload->pods_ready = pods_ready(document);
    workload->eviction_reason = workload->evicted ? or_empty(evicted->reason) : "";
    workload->message = workload->evicted && workload->quota_reserved ? or_empty(evicted->message)
                        : reserved && !workload->quota_reserved       ? or_empty(reserved->message)
                                                                      : "";
}

struct workload decode_workload(const struct json *object, const struct identity *identity,
                                struct arena *arena, struct lines *problems)
{
    struct workload_document document = {.active = true};
    struct json_reader reader = {.arena = arena, .problems = problems};
    json_read(&reader, object, workload_fields, &document);
    const struct json *raw = json_get(json_get(object, "status"), "conditions");
    auto_free char *conditions = raw ? json_print(raw, JSON_COMPACT) : NULL;
    struct workload workload = {
        .name = identity->name,
        .uid = identity->uid,
        .version = identity->resource_version,
        .owner_uid = identity->owner_uid,
        .deleting = identity->deleted_ms != 0,
        .spec = spec_of(&document),
        .active = document.active,
        .cluster_queue = or_empty(document.cluster_queue),
        .past_execution_s = (int32_t)document.past_execution_s.value,
        .conditions = conditions ? arena_strdup(arena, conditions) : "",
    };
    set_state(&workload, &document);
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct pod_set *set = find(document.reclaimable, document.reclaimable_count, type);
        workload.reclaimable[type] = set ? (int32_t)set->count.value : 0;
        workload.assigned[type] = assignment(&document, type, arena);
    }
    return workload;
}

/* ---- what it refers to ---- */

static const struct json_field flavor_metadata_fields[] = {
    JSON_TEXT("name", struct flavor, name),
    JSON_END,
};

static const struct json_field flavor_spec_fields[] = {
    JSON_CUSTOM("nodeLabels", struct flavor, node_labels, carry_text),
    JSON_CUSTOM("tolerations", struct flavor, tolerations, carry_text),
    JSON_END,
};

static const struct json_field flavor_fields[] = {
    JSON_SAME("metadata", flavor_metadata_fields),
    JSON_SAME("spec", flavor_spec_fields),
    JSON_END,
};

struct flavor decode_flavor(const struct json *object, struct arena *arena, struct lines *problems)
{
    struct flavor flavor = {.name = NULL};
    struct json_reader reader = {.arena = arena, .problems = problems};
    json_read(&reader, object, flavor_fields, &flavor);
    flavor.name = or_empty(flavor.name);
    flavor.node_labels = or_empty(flavor.node_labels);
    flavor.tolerations = or_empty(flavor.tolerations);
    return flavor;
}

struct class_document {
    const char *name;
    struct optional value;
    bool is_default;
};

static const struct json_field priority_metadata_fields[] = {
    JSON_TEXT("name", struct class_document, name),
    JSON_END,
};

static const struct json_field priority_fields[] = {
    JSON_SAME("metadata", priority_metadata_fields),
    JSON_OPTIONAL("value", struct class_document, value, INT32_MIN, INT32_MAX),
    JSON_BOOL("globalDefault", struct class_document, is_default),
    JSON_END,
};

struct priority_class decode_priority_class(const struct json *object, struct arena *arena,
                                            struct lines *problems)
{
    struct class_document document = {.name = NULL};
    struct json_reader reader = {.arena = arena, .problems = problems};
    json_read(&reader, object, priority_fields, &document);
    return (struct priority_class){or_empty(document.name), (int32_t)document.value.value,
                                   document.is_default};
}
