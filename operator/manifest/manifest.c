#include "operator/manifest/manifest_internal.h"

#include "base/contract.h"
#include "base/json.h"
#include "base/json_read.h"

#include <string.h>

#define MESSAGE_MAX_BYTES 1024 /* events.k8s.io/v1 Event.note */

static struct json *texts(const struct pairs *pairs)
{
    struct json *object = json_new_object();
    for (size_t i = 0; i < pairs->count; i++)
        json_set(object, pairs->items[i].key, json_new_text(pairs->items[i].value));
    return object;
}

struct json *manifest_object(const char *version, const char *kind, const char *name,
                             const struct job *job, const struct pairs *labels,
                             const struct pairs *annotations)
{
    struct json *owner = json_object_of(
        "apiVersion", json_new_text(API_GROUP_VERSION), "kind", json_new_text(API_KIND), "name",
        json_new_text(job->name), "uid", json_new_text(job->uid), "controller", json_new_bool(true),
        "blockOwnerDeletion", json_new_bool(true), NULL);
    struct json *metadata = json_texts_of("name", name, "namespace", job->namespace_, NULL);
    json_set(metadata, "ownerReferences", json_array_of(owner, NULL));
    if (labels->count)
        json_set(metadata, "labels", texts(labels));
    if (annotations->count)
        json_set(metadata, "annotations", texts(annotations));
    struct json *object = json_texts_of("apiVersion", version, "kind", kind, NULL);
    json_set(object, "metadata", metadata);
    return object;
}

struct json *manifest_event(const struct job *job, const char *name, enum event_type type,
                            const char *reason, const char *message, int64_t now_ms)
{
    struct json *event = json_texts_of("apiVersion", "v1", "kind", "Event", NULL);
    json_set(event, "metadata", json_texts_of("name", name, "namespace", job->namespace_, NULL));
    json_set(event, "involvedObject",
             json_texts_of("apiVersion", API_GROUP_VERSION, "kind", API_KIND, "namespace",
                           job->namespace_, "name", job->name, "uid", job->uid, NULL));
    json_set_text(event, "type", type == EVENT_WARNING ? "Warning" : "Normal");
    json_set_text(event, "reason", reason);
    json_set(event, "message", json_new_text_cut(message, MESSAGE_MAX_BYTES));
    json_set(event, "source", json_texts_of("component", OPERATOR_NAME, NULL));
    json_set_text(event, "reportingComponent", OPERATOR_NAME);
    json_set_text(event, "reportingInstance", "");
    json_set(event, "firstTimestamp", json_new_time(now_ms));
    json_set(event, "lastTimestamp", json_new_time(now_ms));
    json_set_integer(event, "count", 1);
    return event;
}

struct json *manifest_delete(const struct manifest_delete *options)
{
    struct json *object = json_texts_of("apiVersion", "v1", "kind", "DeleteOptions", NULL);
    /* Another pod may have the name by now, or this one a new state: then the server answers 409
     * and deletes nothing. */
    json_set(object, "preconditions",
             json_texts_of("uid", options->uid, "resourceVersion", options->version, NULL));
    /* 0 takes the object away without the kubelet's word: the containers may still run. */
    if (options->at_once)
        json_set(object, "gracePeriodSeconds", json_new_integer(0));
    if (options->background)
        json_set(object, "propagationPolicy", json_new_text("Background"));
    return object;
}
