#include "operator/decode/decode_spec.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/decode/decode_resources.h"
#include "operator/decode/decode_template.h"
#include "operator/job/names.h"
#include "operator/job/resources.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* By the enums in types.h; they end with NULL. */
static const char *const restart_policies[] = {
    [RESTART_UNSET] = "",      [RESTART_ALWAYS] = "Always",      [RESTART_ON_FAILURE] = "OnFailure",
    [RESTART_NEVER] = "Never", [RESTART_EXIT_CODE] = "ExitCode", NULL};
static const char *const clean_pod_policies[] = {[CLEAN_UNSET] = "",
                                                 [CLEAN_NONE] = "None",
                                                 [CLEAN_RUNNING] = "Running",
                                                 [CLEAN_ALL] = "All",
                                                 NULL};
static const char *const restart_scopes[] = {
    [SCOPE_UNSET] = "", [SCOPE_REPLICA] = "Replica", [SCOPE_JOB] = "Job", NULL};

/* ---- runPolicy ---- */

static void read_min_resources(struct json_reader *reader, const struct json *value, void *policy)
{
    struct scheduling_policy *scheduling = policy;
    decode_quantities(reader, value, &scheduling->min_resources);
    scheduling->has_min_resources = true;
}

static const struct json_field scheduling_fields[] = {
    JSON_OPTIONAL("minAvailable", struct scheduling_policy, min_available, 1, INT32_MAX),
    JSON_TEXT("queue", struct scheduling_policy, queue),
    JSON_CUSTOM_SAME("minResources", read_min_resources),
    JSON_TEXT("priorityClass", struct scheduling_policy, priority_class),
    JSON_OPTIONAL("scheduleTimeoutSeconds", struct scheduling_policy, schedule_timeout_s, 0,
                  INT32_MAX),
    JSON_END,
};

static void read_scheduling(struct json_reader *reader, const struct json *value, void *policy)
{
    if (!json_is_object_here(reader, value))
        return;
    json_read(reader, value, scheduling_fields, policy);
    json_note_unused(reader);
}

static const struct json_field run_policy_fields[] = {
    JSON_CHOICE("cleanPodPolicy", struct run_policy, clean_pod_policy, clean_pod_policies),
    JSON_OPTIONAL("ttlSecondsAfterFinished", struct run_policy, ttl_seconds_after_finished, 0,
                  INT32_MAX),
    JSON_OPTIONAL("activeDeadlineSeconds", struct run_policy, active_deadline_seconds, 0,
                  INT64_MAX),
    JSON_OPTIONAL("backoffLimit", struct run_policy, backoff_limit, -1, INT32_MAX),
    JSON_CHOICE("restartScope", struct run_policy, restart_scope, restart_scopes),
    JSON_BOOL("suspend", struct run_policy, suspend),
    JSON_TEXT("managedBy", struct run_policy, managed_by),
    JSON_CUSTOM("schedulingPolicy", struct run_policy, scheduling, read_scheduling),
    JSON_END,
};

/* ---- elasticPolicy ---- */

static const struct json_field conf_fields[] = {
    JSON_TEXT("key", struct pair, key),
    JSON_TEXT("value", struct pair, value),
    JSON_END,
};

/* FNV-1a, 64 bits (RFC 9923): tells apart what differs by accident, not by intent. */
static const char *hash(const char *text, struct arena *arena)
{
    uint64_t h = 0xcbf29ce484222325;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3;
    return arena_printf(arena, "%016" PRIx64, h);
}

static void read_metrics(struct json_reader *reader, const struct json *value, void *policy)
{
    struct elastic_policy *elastic = policy;
    if (!json_is_array_here(reader, value))
        return;
    /* Sorted, as the hash must not change when somebody writes the same keys in another order. */
    auto_free char *text = json_print(value, JSON_SORTED);
    elastic->metrics = value;
    elastic->metrics_hash = hash(text, reader->arena);
    json_note_unused(reader);
}

static const struct json_field elastic_fields[] = {
    JSON_OPTIONAL("minReplicas", struct elastic_policy, min_replicas, 1, INT32_MAX),
    JSON_OPTIONAL("maxReplicas", struct elastic_policy, max_replicas, 1, INT32_MAX),
    JSON_TEXT("rdzvBackend", struct elastic_policy, rdzv_backend),
    JSON_OPTIONAL("rdzvPort", struct elastic_policy, rdzv_port, 1, 65535),
    JSON_TEXT("rdzvHost", struct elastic_policy, rdzv_host),
    JSON_TEXT("rdzvId", struct elastic_policy, rdzv_id),
    JSON_ARRAY_OF("rdzvConf", struct elastic_policy, rdzv_conf.items, rdzv_conf.count, struct pair,
                  conf_fields),
    JSON_BOOL("standalone", struct elastic_policy, standalone),
    JSON_OPTIONAL("nProcPerNode", struct elastic_policy, nproc_per_node, 1, INT32_MAX),
    JSON_OPTIONAL("maxRestarts", struct elastic_policy, max_restarts, 0, INT32_MAX),
    JSON_OPTIONAL("shrinkAfterSeconds", struct elastic_policy, shrink_after_s, 0, 1000000),
    JSON_CUSTOM_SAME("metrics", read_metrics),
    JSON_END,
};

/* ---- pytorchReplicaSpecs ---- */

static const struct json_field replica_fields[] = {
    JSON_OPTIONAL("replicas", struct replica_spec, replicas, INT32_MIN, INT32_MAX),
    JSON_CHOICE("restartPolicy", struct replica_spec, restart_policy, restart_policies),
    JSON_CUSTOM("template", struct replica_spec, template_, decode_template),
    JSON_END,
};

static void read_replica_specs(struct json_reader *reader, const struct json *value, void *specs)
{
    struct replica_spec *out = specs;
    if (!json_is_object_here(reader, value))
        return;
    struct json *spec;
    json_each_member(spec, value) {
        const char *key = json_key(spec);
        /* the path is [Worker], as the field's own messages have it, not .Worker */
        size_t depth = json_enter(reader, "[%s]", key);
        int type = 0;
        while (type < REPLICA_TYPES && strcmp(key, names_replica_type(type)) != 0)
            type++;
        if (type == REPLICA_TYPES) {
            json_problem(reader,
                         "Unsupported value: \"%.40s\": supported values: \"Master\", \"Worker\"",
                         key);
        } else if (!json_is_null(spec) && json_is_object_here(reader, spec)) {
            out[type].present = true;
            json_read(reader, spec, replica_fields, &out[type]);
        }
        json_leave(reader, depth);
    }
}

/* ---- the object ---- */

struct document {
    struct job job;
    struct optional backoff_limit; /* spec.backoffLimit, where some documents have it */
};

/* A field of runPolicy; of a stored job the API server has dropped it. */
static void read_misplaced(struct json_reader *reader, const struct json *value, void *document)
{
    (void)value, (void)document;
    if (reader->misspelt_fails)
        json_problem(reader, "unknown field; it belongs in spec.runPolicy");
}

static const struct json_field spec_fields[] = {
    JSON_PART("runPolicy", struct document, job.run_policy, run_policy_fields),
    JSON_OPTIONAL("backoffLimit", struct document, backoff_limit, -1, INT32_MAX),
    JSON_OPTIONAL_PART("elasticPolicy", struct document, job.elastic, job.elastic.present,
                       elastic_fields),
    JSON_TEXT("nprocPerNode", struct document, job.nproc_per_node),
    JSON_CUSTOM("pytorchReplicaSpecs", struct document, job.replicas, read_replica_specs),
    JSON_CUSTOM_SAME("cleanPodPolicy", read_misplaced),
    JSON_CUSTOM_SAME("ttlSecondsAfterFinished", read_misplaced),
    JSON_CUSTOM_SAME("activeDeadlineSeconds", read_misplaced),
    JSON_CUSTOM_SAME("restartScope", read_misplaced),
    JSON_CUSTOM_SAME("suspend", read_misplaced),
    JSON_CUSTOM_SAME("managedBy", read_misplaced),
    JSON_CUSTOM_SAME("schedulingPolicy", read_misplaced),
    JSON_END,
};

static void read_created(struct json_reader *reader, const struct json *value, void *created_ms)
{
    const char *text = json_read_text(reader, value);
    if (text && !clock_parse_rfc3339(text, created_ms))
        json_problem(reader, "must be a time such as 2026-01-31T12:00:00Z, not \"%.40s\"", text);
}

static void read_deleted(struct json_reader *reader, const struct json *value, void *deleting)
{
    *(bool *)deleting = json_read_text(reader, value) != NULL;
}

static void carry(struct json_reader *reader, const struct json *value, void *field)
{
    (void)reader;
    *(const struct json **)field = value;
}

/* A text that is there and not empty. */
static const char *label(const struct json *labels, const char *key)
{
    const char *text = json_as_text(json_get(labels, key));
    return text && *text ? text : NULL;
}

/* Kueue's labels; a limit that is no number is none, as Kueue's own webhook refuses it. */
static void read_labels(struct json_reader *reader, const struct json *labels, void *queue)
{
    (void)reader;
    struct queue_wish *wish = queue;
    const char *limit = label(labels, LABEL_QUEUE_MAX_EXECUTION);
    wish->name = label(labels, LABEL_QUEUE);
    wish->priority_class = label(labels, LABEL_QUEUE_PRIORITY);
    wish->prebuilt = label(labels, LABEL_QUEUE_PREBUILT) != NULL;
    if (limit && !str_to_i64(limit, 1, INT32_MAX, &wish->max_execution_s))
        wish->max_execution_s = 0;
}

static const struct json_field metadata_fields[] = {
    JSON_TEXT("name", struct document, job.name),
    JSON_TEXT("namespace", struct document, job.namespace_),
    JSON_TEXT("uid", struct document, job.uid),
    JSON_CUSTOM("creationTimestamp", struct document, job.created_ms, read_created),
    JSON_CUSTOM("deletionTimestamp", struct document, job.deleting, read_deleted),
    JSON_CUSTOM("annotations", struct document, job.annotations, carry),
    JSON_KNOWN("deletionGracePeriodSeconds"),
    JSON_KNOWN("finalizers"),
    JSON_KNOWN("generateName"),
    JSON_KNOWN("generation"),
    JSON_CUSTOM("labels", struct document, job.queue, read_labels),
    JSON_KNOWN("managedFields"),
    JSON_KNOWN("ownerReferences"),
    JSON_KNOWN("resourceVersion"),
    JSON_KNOWN("selfLink"),
    JSON_END,
};

static const struct json_field document_fields[] = {
    JSON_KNOWN("apiVersion"),       JSON_KNOWN("kind"),
    JSON_KNOWN("status"),           JSON_SAME("metadata", metadata_fields),
    JSON_SAME("spec", spec_fields), JSON_END,
};

/* Sorted, as for the metrics. */
static const char *templates_hash(const struct job *job, struct arena *arena)
{
    const char *all = "";
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct json *raw = job->replicas[type].template_.raw;
        auto_free char *text = raw ? json_print(raw, JSON_SORTED) : NULL;
        all = arena_printf(arena, "%s%s%s", all, *all ? "-" : "", hash(text ? text : "", arena));
    }
    return all;
}

void decode_spec(struct json_reader *reader, const struct json *object, struct job *job)
{
    struct document document = {.job = {.name = "", .namespace_ = "default", .uid = ""}};
    json_read(reader, object, document_fields, &document);
    *job = document.job;
    if (!job->run_policy.backoff_limit.set)
        job->run_policy.backoff_limit = document.backoff_limit;
    job->queue.prebuilt |= label(job->annotations, LABEL_QUEUE_PREBUILT) != NULL;
    if (job->queue.name)
        job->queue.templates_hash = templates_hash(job, reader->arena);
    /* typed clients write a text that is not set as "", and leave one out that is empty */
    if (job->nproc_per_node && !*job->nproc_per_node)
        job->nproc_per_node = NULL;
    for (size_t i = 0; i < job->elastic.rdzv_conf.count; i++)
        if (!job->elastic.rdzv_conf.items[i].value)
            job->elastic.rdzv_conf.items[i].value = "";
    /* a text of the wrong type was read as NULL */
    job->name = job->name ? job->name : "";
    job->namespace_ = job->namespace_ ? job->namespace_ : "default";
    job->uid = job->uid ? job->uid : "";
}
