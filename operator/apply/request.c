#include "operator/apply/request.h"

#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/job/names.h"
#include "operator/job/resources.h"
#include "operator/kube/kube.h"
#include "operator/manifest/init_template.h"
#include "operator/manifest/manifest.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A name of at most 63 bytes, a dot and 16 digits. */
#define EVENT_NAME_BYTES 128

static const struct resource *pod_groups(const struct request_source *source)
{
    assert(source->pod->gang.scheduler != GANG_NONE);
    return resource_pod_group(source->pod->gang.scheduler);
}

static const struct resource *autoscalers(const struct request_source *source)
{
    assert(source->autoscaling_version);
    return resource_autoscaler(source->autoscaling_version);
}

static const struct resource *workloads(const struct request_source *source)
{
    assert(source->kueue_version);
    return resource_workload(source->kueue_version);
}

/* Names are those of validated jobs and of objects that the API server took: they fit. */
static void set_path(struct request *request, const struct resource *resource,
                     const struct request_source *source, const char *name, const char *subresource)
{
    bool fits = kube_path(request->path, sizeof request->path, resource->group, resource->version,
                          resource->plural, source->job->namespace_, name, subresource);
    assert(fits);
    (void)fits;
}

static struct request with_query(struct request request, const char *query)
{
    size_t length = strlen(request.path), bytes = strlen(query) + 1;
    assert(length + bytes <= sizeof request.path);
    memcpy(request.path + length, query, bytes);
    return request;
}

/* The object is partly as somebody wrote it: a server that can (from 1.25 on) refuses a field that
 * it does not know, by its name, and does not drop it. Older ones do not know the query. */
static struct request strictly(struct request request)
{
    return with_query(request, "?fieldValidation=Strict");
}

static struct request create_object(const struct resource *resource,
                                    const struct request_source *source, struct json *object)
{
    struct request request = {.method = "POST", .body = object};
    set_path(&request, resource, source, NULL, NULL);
    return request;
}

static struct request remove_object(const struct resource *resource,
                                    const struct request_source *source,
                                    const struct action *action)
{
    /* The UID is a precondition (metav1.Preconditions): a pod that was made meanwhile under the
     * same name survives. Some name the resourceVersion as well, as they trust what was seen of
     * the pod: that it is lost, or that it has not ended. */
    const struct manifest_delete options = {
        .uid = action->uid,
        .version = action->version,
        .at_once = action->kind == ACTION_FORCE_DELETE_POD,
        .background = action->kind == ACTION_DELETE_JOB,
    };
    struct request request = {.method = "DELETE", .body = manifest_delete(&options)};
    set_path(&request, resource, source, action->name, NULL);
    return request;
}

/* Puts the whole spec in place: a merge would keep entries of maps that are no longer wanted.
 * Others may have added to the metadata, which are left alone. Fails unless the object is the one
 * that is meant. Takes `object`. */
static struct request update_pod_group(const struct request_source *source,
                                       const struct action *action, struct json *object)
{
    struct json *test =
        json_texts_of("op", "test", "path", "/metadata/uid", "value", action->uid, NULL);
    struct json *replace = json_texts_of("op", "replace", "path", "/spec", NULL);
    json_set(replace, "value", json_take(object, "spec"));
    struct json *patch = json_array_of(test, replace, NULL);
    json_free(object);
    struct request request = {
        .method = "PATCH", .body = patch, .content_type = "application/json-patch+json"};
    set_path(&request, pod_groups(source), source, action->name, NULL);
    return request;
}

/* Merges what is ours into it: our annotation among those of others, and of the spec what the job
 * says (`behavior` it does not). No maps of ours shrink; a list is replaced whole, and one that is
 * no longer wanted goes with null, for the API server's own. A UID cannot be changed: another
 * object of that name refuses this. Takes `object`. */
static struct request update_autoscaler(const struct request_source *source,
                                        const struct action *action, struct json *object)
{
    struct json *metadata = json_texts_of("uid", action->uid, NULL),
                *spec = json_take(object, "spec");
    json_set(metadata, "annotations", json_take(json_get(object, "metadata"), "annotations"));
    struct json *patch = json_object_of("metadata", metadata, "spec", spec, NULL);
    if (!json_get(spec, "metrics"))
        json_set(spec, "metrics", json_new_null());
    json_free(object);
    struct request request = {
        .method = "PATCH", .body = patch, .content_type = "application/merge-patch+json"};
    set_path(&request, autoscalers(source), source, action->name, NULL);
    return request;
}

/* PUT with the resourceVersion that was reconciled: a status is a conclusion from the whole job, so
 * any change in between refuses it (409). A merge would mix two conclusions. */
static struct request set_status(const struct request_source *source, const struct action *action)
{
    struct request request = {
        .method = "PUT",
        .body = action->as_stored && !source->stored_invalid
                    ? manifest_status_as_stored(source->object, source->job)
                    : manifest_status_update(source->object, source->job, action->status),
    };
    set_path(&request, &resource_job, source, source->job->name, "status");
    /* A proxy that wrote another User-Agent would make our writes look like another operator's. */
    return with_query(request, "?fieldManager=" FIELD_MANAGER);
}

static struct request create_event(const struct request_source *source, const struct action *action)
{
    char name[EVENT_NAME_BYTES];
    /* client-go's form of an event's name: that of the object, a dot, and a number that does not
     * come again. */
    snprintf(name, sizeof name, "%s.%016" PRIx64, source->job->name, source->event_number);
    return create_object(&resource_event, source,
                         manifest_event(source->job, name, action->event_type, action->reason,
                                        action->message, source->now_ms));
}

/* The ranks of a job that is admitted in part are fewer. */
static void admit(struct job *job, const struct placement *placement)
{
    for (int type = 0; type < REPLICA_TYPES; type++)
        job->replicas[type].replicas.value = placement->replicas[type];
}

static struct request create_pod(const struct request_source *source, const struct action *action)
{
    auto_arena struct arena *arena = arena_open();
    struct job job = *source->job;
    if (action->placement)
        admit(&job, action->placement);
    struct pod_spec *pod =
        pod_build(&job, source->history, action->type, action->index, source->pod, arena);
    pod->placed = action->placement ? action->placement->fields : NULL;
    struct json *init =
        pod->wait_for && source->init ? init_template_expand(source->init, pod->wait_for) : NULL;
    struct request request =
        strictly(create_object(&resource_pod, source, manifest_pod(&job, pod, init)));
    json_free(init);
    return request;
}

static struct request create_service(const struct request_source *source,
                                     const struct action *action)
{
    auto_arena struct arena *arena = arena_open();
    return create_object(&resource_service, source,
                         manifest_service(source->job, pod_build_service(source->job, action->type,
                                                                         action->index, arena)));
}

static struct request create_workload(const struct request_source *source,
                                      const struct action *action)
{
    struct json *object =
        manifest_workload(source->job, action->name, action->workload, source->kueue_version);
    return create_object(workloads(source), source, object);
}

static struct request patch_workload(const struct request_source *source,
                                     const struct action *action, struct json *patch,
                                     const char *subresource)
{
    struct request request = {
        .method = "PATCH", .body = patch, .content_type = "application/merge-patch+json"};
    set_path(&request, workloads(source), source, action->name, subresource);
    return request;
}

static struct request update_workload(const struct request_source *source,
                                      const struct action *action)
{
    return patch_workload(source, action,
                          manifest_workload_update(action->workload, action->uid, action->version,
                                                   source->kueue_version),
                          NULL);
}

static struct request set_workload_status(const struct request_source *source,
                                          const struct action *action)
{
    return patch_workload(source, action,
                          manifest_workload_status(action->workload_status, action->uid,
                                                   action->version, source->kueue_version,
                                                   source->now_ms),
                          "status");
}

static struct json *pod_group(const struct request_source *source, const struct action *action)
{
    return manifest_pod_group(source->job, action->pod_group, source->pod->gang.scheduler);
}

static struct json *autoscaler(const struct request_source *source, const struct action *action)
{
    return manifest_autoscaler(source->job, action->autoscaler, source->autoscaling_version);
}

/* ---- taking over what exists ---- */

/* The labels of what the action makes. */
static struct json *labels_of(const struct request_source *source, const struct action *action)
{
    struct json *object = action->kind == ACTION_CREATE_POD_GROUP ? pod_group(source, action)
                                                                  : autoscaler(source, action);
    struct json *labels = json_take(json_get(object, "metadata"), "labels");
    json_free(object);
    return labels;
}

/* One step of a JSON Patch (RFC 6902), a request that looks before it writes. Takes `value`. */
static struct json *patch_step(const char *op, const char *path, struct json *value)
{
    struct json *step = json_texts_of("op", op, "path", path, NULL);
    json_set(step, "value", value);
    return step;
}

/* The test of the owner is the first step: nothing is written on what is another's. */
static struct json *adoption(const struct request_source *source)
{
    return json_array_of(
        patch_step("test", "/metadata/ownerReferences/0/uid", json_new_text(source->job->uid)),
        NULL);
}

static struct request adopt(const struct action *action, const struct request_source *source,
                            struct json *patch)
{
    bool is_group = action->kind == ACTION_CREATE_POD_GROUP;
    struct request request = {
        .method = "PATCH", .content_type = "application/json-patch+json", .body = patch};
    set_path(&request, is_group ? pod_groups(source) : autoscalers(source), source, action->name,
             NULL);
    return request;
}

/* A value of null is that there is none. */
struct request request_adopt(const struct action *action, const struct request_source *source)
{
    static const char labels[] = "/metadata/labels";
    struct json *patch = adoption(source);
    json_append(patch, patch_step("test", labels, json_new_null()));
    json_append(patch, patch_step("add", labels, labels_of(source, action)));
    return adopt(action, source, patch);
}

struct request request_adopt_labelled(const struct action *action,
                                      const struct request_source *source)
{
    struct json *patch = adoption(source), *labels = labels_of(source, action), *label;
    json_each_member(label, labels) {
        /* In a path (RFC 6901) a slash within a name is ~1. Ours have one each. */
        const char *key = json_key(label), *name = strchr(key, '/') + 1;
        auto_free char *path =
            xasprintf("/metadata/labels/%.*s~1%s", (int)(name - key - 1), key, name);
        json_append(patch, patch_step("add", path, json_clone(label)));
    }
    json_free(labels);
    return adopt(action, source, patch);
}

struct request request_find(const struct action *action, const struct request_source *source)
{
    bool is_pod = action->kind == ACTION_CREATE_POD;
    char query[REQUEST_PATH_BYTES];
    struct request request = {.method = "GET"};
    set_path(&request, is_pod ? &resource_pod : &resource_service, source, NULL, NULL);
    snprintf(query, sizeof query, "?fieldSelector=metadata.name%%3D%s", action->name);
    return with_query(request, query);
}

static bool is_text(const struct json *object, const char *key, const char *text)
{
    const char *value = json_as_text(json_get(object, key));
    return value && strcmp(value, text) == 0;
}

static bool is_controlled_by(const struct json *metadata, const struct job *job)
{
    const struct json *owner;
    json_each_item(owner, json_get(metadata, "ownerReferences")) {
        if (is_text(owner, "uid", job->uid) && json_is_true(json_get(owner, "controller")))
            return true;
    }
    return false;
}

static bool is_number(const struct json *labels, const char *key, int32_t wanted)
{
    const char *text = json_as_text(json_get(labels, key));
    int64_t number = 0; /* as if it said so */
    return (!text || str_to_i64(text, 0, INT32_MAX, &number)) && number == wanted;
}

const struct json *request_found(const struct json *answer, const struct action *action,
                                 const struct job *job)
{
    const struct json *object;
    json_each_item(object, json_get(answer, "items")) {
        const struct json *metadata = json_get(object, "metadata");
        const struct json *labels = json_get(metadata, "labels");
        if (is_text(metadata, "name", action->name) && is_controlled_by(metadata, job) &&
            is_text(labels, LABEL_OPERATOR_NAME, OPERATOR_NAME) &&
            is_text(labels, LABEL_REPLICA_TYPE, names_replica_label(action->type)) &&
            json_get(labels, LABEL_REPLICA_INDEX) &&
            is_number(labels, LABEL_REPLICA_INDEX, action->index) &&
            (action->kind != ACTION_CREATE_POD ||
             is_number(labels, LABEL_ATTEMPT, action->attempt)))
            return object;
    }
    return NULL;
}

struct request request_build(const struct action *action, const struct request_source *source)
{
    switch (action->kind) {
    case ACTION_SET_STATUS:
        return set_status(source, action);
    case ACTION_EVENT:
        return create_event(source, action);
    case ACTION_DELETE_POD:
    case ACTION_FORCE_DELETE_POD:
        return remove_object(&resource_pod, source, action);
    case ACTION_DELETE_SERVICE:
        return remove_object(&resource_service, source, action);
    case ACTION_DELETE_POD_GROUP:
        return remove_object(pod_groups(source), source, action);
    case ACTION_DELETE_AUTOSCALER:
        return remove_object(autoscalers(source), source, action);
    case ACTION_DELETE_WORKLOAD:
        return remove_object(workloads(source), source, action);
    case ACTION_CREATE_WORKLOAD:
        return create_workload(source, action);
    case ACTION_UPDATE_WORKLOAD:
        return update_workload(source, action);
    case ACTION_SET_WORKLOAD_STATUS:
        return set_workload_status(source, action);
    case ACTION_CREATE_POD_GROUP:
        return create_object(pod_groups(source), source, pod_group(source, action));
    case ACTION_UPDATE_POD_GROUP:
        return update_pod_group(source, action, pod_group(source, action));
    case ACTION_CREATE_SERVICE:
        return create_service(source, action);
    case ACTION_CREATE_POD:
        return create_pod(source, action);
    case ACTION_CREATE_AUTOSCALER:
        return strictly(create_object(autoscalers(source), source, autoscaler(source, action)));
    case ACTION_UPDATE_AUTOSCALER:
        return strictly(update_autoscaler(source, action, autoscaler(source, action)));
    case ACTION_DELETE_JOB:
        return remove_object(&resource_job, source, action);
    case ACTION_REQUEUE:
        break;
    }
    assert(!"this action makes no request");
    return (struct request){.method = NULL};
}
