/* The job's Workload for Kueue (kueue.x-k8s.io, API reference), and what we write of its status. */
#include "operator/manifest/manifest_internal.h"

#include "base/clock.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/job/names.h"
#include "operator/job/resources.h"

#include <string.h>

/* Kueue's own limit of a condition's message. */
#define MESSAGE_MAX_BYTES 1024
/* Of an eviction behind "DeactivatedDueTo". */
#define REASON_EXECUTION_TIME "MaximumExecutionTimeExceeded"

/* ---- the pod sets ---- */

enum topology_kind { TOPOLOGY_TEXT, TOPOLOGY_NUMBER, TOPOLOGY_BOOL };

/* The annotations of a template behind ANNOTATION_TOPOLOGY, and the fields that they fill. */
static const struct topology_row {
    const char *annotation;
    const char *field;
    enum topology_kind kind;
} topology_rows[] = {
    {"required-topology", "required", TOPOLOGY_TEXT},
    {"preferred-topology", "preferred", TOPOLOGY_TEXT},
    {"unconstrained-topology", "unconstrained", TOPOLOGY_BOOL},
    {"slice-required-topology", "podSetSliceRequiredTopology", TOPOLOGY_TEXT},
    {"slice-size", "podSetSliceSize", TOPOLOGY_NUMBER},
    {"group-name", "podSetGroupName", TOPOLOGY_TEXT},
};

/* What does not fit goes as text: the API server then refuses it by its name. */
static struct json *topology_value(const char *text, enum topology_kind kind)
{
    int64_t number;
    if (kind == TOPOLOGY_NUMBER && str_to_i64(text, INT32_MIN, INT32_MAX, &number))
        return json_new_integer(number);
    if (kind == TOPOLOGY_BOOL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
        return json_new_bool(*text == 't');
    return json_new_text(text);
}

static const char *annotation(const struct pod_template *template_, const char *name)
{
    const struct pairs *all = &template_->annotations;
    size_t prefix = strlen(ANNOTATION_TOPOLOGY);
    for (size_t i = 0; i < all->count; i++)
        if (strncmp(all->items[i].key, ANNOTATION_TOPOLOGY, prefix) == 0 &&
            strcmp(all->items[i].key + prefix, name) == 0)
            return all->items[i].value;
    return NULL;
}

/* The pods have ranks by their index. Kueue may place pods that ask for nothing, too, and then
 * wants to know the ranks. But Kueue 0.13.0 and older, which have v1beta1 alone, take any request
 * for one of a topology, and admit it to no flavor without one. NULL: none. */
static struct json *topology_request(const struct pod_template *template_, const char *version)
{
    struct json *request = json_new_object();
    for (size_t i = 0; i < array_length(topology_rows); i++) {
        const char *text = annotation(template_, topology_rows[i].annotation);
        if (text)
            json_set(request, topology_rows[i].field, topology_value(text, topology_rows[i].kind));
    }
    if (strcmp(version, "v1beta1") == 0 && json_object_count(request) == 0) {
        json_free(request);
        return NULL;
    }
    json_set_text(request, "podIndexLabel", LABEL_REPLICA_INDEX);
    return request;
}

/* Kueue takes labels and annotations of a template's metadata, and refuses the rest. */
static struct json *template_of(const struct pod_template *template_)
{
    const struct json *metadata = json_get(template_->raw, "metadata");
    struct json *kept =
        json_object_of("labels", json_clone(json_get(metadata, "labels")), "annotations",
                       json_clone(json_get(metadata, "annotations")), NULL);
    return json_object_of("metadata", kept, "spec", json_clone(json_get(template_->raw, "spec")),
                          NULL);
}

static struct json *pod_sets(const struct job *job, const struct workload_spec *spec,
                             const char *version)
{
    struct json *sets = json_new_array();
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct pod_template *template_ = &job->replicas[type].template_;
        if (!job->replicas[type].present)
            continue;
        struct json *set =
            json_object_of("name", json_new_text(names_replica_label(type)), "count",
                           json_new_integer(spec->counts[type]), "template", template_of(template_),
                           "topologyRequest", topology_request(template_, version), NULL);
        if (type == REPLICA_WORKER && spec->min_workers)
            json_set_integer(set, "minCount", spec->min_workers);
        json_append(sets, set);
    }
    return sets;
}

/* ---- the object ---- */

/* v1beta1 and v1beta2 say it in other words. */
static void set_priority(struct json *spec, const struct workload_priority *priority,
                         const char *version)
{
    static const struct {
        const char *group, *kind, *source;
    } of[] = {
        [PRIORITY_WORKLOAD_CLASS] = {"kueue.x-k8s.io", "WorkloadPriorityClass",
                                     "kueue.x-k8s.io/workloadpriorityclass"},
        [PRIORITY_POD_CLASS] = {"scheduling.k8s.io", "PriorityClass",
                                "scheduling.k8s.io/priorityclass"},
    };
    enum priority_source source = priority->source;
    json_set_integer(spec, "priority", priority->value);
    if (source == PRIORITY_NONE)
        return;
    if (strcmp(version, "v1beta1") == 0) {
        json_set_text(spec, "priorityClassName", priority->class_name);
        json_set_text(spec, "priorityClassSource", of[source].source);
    } else {
        json_set(spec, "priorityClassRef",
                 json_texts_of("group", of[source].group, "kind", of[source].kind, "name",
                               priority->class_name, NULL));
    }
}

struct json *manifest_workload(const struct job *job, const char *name,
                               const struct workload_spec *spec, const char *version)
{
    const struct resource *resource = resource_workload(version);
    struct pair label_items[] = {{LABEL_OPERATOR_NAME, OPERATOR_NAME},
                                 {LABEL_JOB_NAME, job->name},
                                 {LABEL_WORKLOAD_JOB_UID, job->uid}};
    struct pair hash = {ANNOTATION_PODS_HASH, spec->pods_hash};
    const struct pairs labels = {.items = label_items, .count = array_length(label_items)};
    const struct pairs annotations = {.items = &hash, .count = 1};
    struct json *object =
        manifest_object(resource->api_version, resource->kind, name, job, &labels, &annotations);
    struct json *body = json_object_of("queueName", json_new_text(spec->queue), "podSets",
                                       pod_sets(job, spec, version), NULL);
    set_priority(body, &spec->priority, version);
    if (spec->max_execution_s)
        json_set_integer(body, "maximumExecutionTimeSeconds", spec->max_execution_s);
    json_set(object, "spec", body);
    return object;
}

/* A merge patch of the very object. */
static struct json *patch_of(const char *uid, const char *version)
{
    return json_object_of("metadata", json_texts_of("uid", uid, "resourceVersion", version, NULL),
                          NULL);
}

struct json *manifest_workload_update(const struct workload_spec *spec, const char *uid,
                                      const char *resource_version, const char *version)
{
    struct json *patch = patch_of(uid, resource_version);
    struct json *body = json_object_of("queueName", json_new_text(spec->queue), NULL);
    set_priority(body, &spec->priority, version);
    if (spec->priority.source == PRIORITY_NONE && strcmp(version, "v1beta1") == 0) {
        json_set(body, "priorityClassName", json_new_null());
        json_set(body, "priorityClassSource", json_new_null());
    } else if (spec->priority.source == PRIORITY_NONE) {
        json_set(body, "priorityClassRef", json_new_null());
    }
    json_set(patch, "spec", body);
    return patch;
}

/* ---- the status ---- */

static struct json *find_condition(struct json *conditions, const char *type)
{
    for (size_t i = 0; i < json_array_count(conditions); i++) {
        const char *text = json_as_text(json_get(json_at(conditions, i), "type"));
        if (text && strcmp(text, type) == 0)
            return json_at(conditions, i);
    }
    return NULL;
}

/* As metav1.Condition: the time is that of the last change of `status`. */
static void set_condition(struct json *conditions, const char *type, bool value, const char *reason,
                          const char *message, int64_t now_ms)
{
    const char *status = value ? "True" : "False";
    struct json *condition = find_condition(conditions, type);
    if (!condition) {
        json_append(conditions, json_texts_of("type", type, NULL));
        condition = find_condition(conditions, type);
    }
    const char *was = json_as_text(json_get(condition, "status"));
    if (!was || strcmp(was, status) != 0)
        json_set(condition, "lastTransitionTime", json_new_time(now_ms));
    json_set_text(condition, "status", status);
    json_set_text(condition, "reason", reason);
    json_set(condition, "message", json_new_text_cut(message, MESSAGE_MAX_BYTES));
}

static void set_ready(struct json *conditions, enum pods_ready ready, int64_t now_ms)
{
    static const struct {
        bool value;
        const char *reason, *message;
    } rows[] = {
        [READY_WAIT_FOR_START] = {false, "WaitForStart", "Not all pods run or have succeeded"},
        [READY_WAIT_FOR_RECOVERY] = {false, "WaitForRecovery",
                                     "A pod that ran is gone or has failed"},
        [READY_STARTED] = {true, "Started", "All pods run or have succeeded"},
        [READY_RECOVERED] = {true, "Recovered", "All pods run again or have succeeded"},
    };
    if (ready != READY_ABSENT)
        set_condition(conditions, "PodsReady", rows[ready].value, rows[ready].reason,
                      rows[ready].message, now_ms);
}

/* How long the admission lasted that ends now; 0 without one. */
static int64_t execution_s(struct json *conditions, int64_t now_ms)
{
    const struct json *admitted = find_condition(conditions, "Admitted");
    const char *is = json_as_text(json_get(admitted, "status")),
               *since = json_as_text(json_get(admitted, "lastTransitionTime"));
    int64_t since_ms;
    bool lasts = is && strcmp(is, "True") == 0 && since && clock_parse_rfc3339(since, &since_ms);
    return lasts && since_ms < now_ms ? (now_ms - since_ms) / 1000 : 0;
}

/* maximumExecutionTimeSeconds counts all admissions: a limit is not put off by an eviction. When it
 * is reached, Kueue takes its own value away (reconcileMaxExecutionTime), so that who activates the
 * Workload again has the whole time. Ours, of another field manager, would stay. */
static void set_past_execution(struct json *body, const struct workload_status *status,
                               struct json *conditions, const char *version, int64_t now_ms)
{
    bool old = strcmp(version, "v1beta1") == 0; /* Kueue's own spelling */
    const char *field =
        old ? "accumulatedPastExexcutionTimeSeconds" : "accumulatedPastExecutionTimeSeconds";
    int64_t sum = status->past_execution_s + execution_s(conditions, now_ms);
    if (strstr(status->eviction_reason, REASON_EXECUTION_TIME))
        json_set(body, field, json_new_null());
    else if (sum > status->past_execution_s)
        json_set_integer(body, field, sum < INT32_MAX ? sum : INT32_MAX);
}

static void set_released(struct json *conditions, const struct workload_status *status,
                         int64_t now_ms)
{
    const char *reason = *status->eviction_reason ? status->eviction_reason : "Evicted";
    set_condition(conditions, "Requeued", status->requeues, reason, status->message, now_ms);
    set_condition(conditions, "QuotaReserved", false, "Pending", status->message, now_ms);
    if (!find_condition(conditions, "Admitted"))
        return;
    set_condition(conditions, "Admitted", false, "NoReservation", "The workload has no reservation",
                  now_ms);
}

static struct json *reclaimable_pods(const struct workload_status *status)
{
    struct json *pods = json_new_array();
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (status->reclaimable[type])
            json_append(pods,
                        json_object_of("name", json_new_text(names_replica_label(type)), "count",
                                       json_new_integer(status->reclaimable[type]), NULL));
    return pods;
}

struct json *manifest_workload_status(const struct workload_status *status, const char *uid,
                                      const char *resource_version, const char *version,
                                      int64_t now_ms)
{
    struct json *patch = patch_of(uid, resource_version), *body = json_new_object();
    struct json *conditions =
        *status->conditions ? json_parse_text(status->conditions, JSON_STRICT, NULL) : NULL;
    conditions = conditions ? conditions : json_new_array();
    if (status->releases) {
        set_past_execution(body, status, conditions, version, now_ms);
        set_released(conditions, status, now_ms);
        json_set(body, "admission", json_new_null());
    }
    set_ready(conditions, status->pods_ready, now_ms);
    if (status->finished_reason)
        set_condition(conditions, "Finished", true, status->finished_reason,
                      status->finished_message, now_ms);
    if (status->reclaims)
        json_set(body, "reclaimablePods", reclaimable_pods(status));
    json_set(body, "conditions", conditions);
    json_set(patch, "status", body);
    return patch;
}
