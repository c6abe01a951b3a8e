#include "operator/manifest/manifest.h"

#include "base/clock.h"
#include "base/contract.h"
#include "base/json_read.h"

#include <jansson.h>
#include <string.h>

#define MESSAGE_MAX_BYTES 1024 /* events.k8s.io/v1 Event.note */

static json_t *texts(const struct pairs *pairs)
{
    json_t *object = json_object();
    for (size_t i = 0; i < pairs->count; i++)
        json_object_set_new(object, pairs->items[i].key, json_string(pairs->items[i].value));
    return object;
}

struct json_t *manifest_object(const char *version, const char *kind, const char *name,
                               const struct job *job, const struct pairs *labels,
                               const struct pairs *annotations)
{
    json_t *object =
        json_pack("{s:s, s:s, s:{s:s, s:s, s:[{s:s, s:s, s:s, s:s, s:b, s:b}]}}", "apiVersion",
                  version, "kind", kind, "metadata", "name", name, "namespace", job->namespace_,
                  "ownerReferences", "apiVersion", API_GROUP_VERSION, "kind", API_KIND, "name",
                  job->name, "uid", job->uid, "controller", 1, "blockOwnerDeletion", 1);
    json_t *metadata = json_object_get(object, "metadata");
    if (labels->count)
        json_object_set_new(metadata, "labels", texts(labels));
    if (annotations->count)
        json_object_set_new(metadata, "annotations", texts(annotations));
    return object;
}

struct json_t *manifest_event(const struct job *job, const char *name, enum event_type type,
                              const char *reason, const char *message, int64_t now_ms)
{
    char now[32];
    clock_format_rfc3339(now_ms, now, sizeof now);
    return json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:s, s:s}, s:s, s:s, s:o, s:{s:s}, s:s, "
        "s:s, s:s, s:s, s:i}",
        "apiVersion", "v1", "kind", "Event", "metadata", "name", name, "namespace", job->namespace_,
        "involvedObject", "apiVersion", API_GROUP_VERSION, "kind", API_KIND, "namespace",
        job->namespace_, "name", job->name, "uid", job->uid, "type",
        type == EVENT_WARNING ? "Warning" : "Normal", "reason", reason, "message",
        json_cut_text(message, MESSAGE_MAX_BYTES), "source", "component", OPERATOR_NAME,
        "reportingComponent", OPERATOR_NAME, "reportingInstance", "", "firstTimestamp", now,
        "lastTimestamp", now, "count", 1);
}

struct json_t *manifest_delete(const struct manifest_delete *options)
{
    json_t *object = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "DeleteOptions",
                               "preconditions", "uid", options->uid);
    if (options->version)
        json_object_set_new(json_object_get(object, "preconditions"), "resourceVersion",
                            json_string(options->version));
    if (options->at_once)
        json_object_set_new(object, "gracePeriodSeconds", json_integer(0));
    if (options->background)
        json_object_set_new(object, "propagationPolicy", json_string("Background"));
    return object;
}
