/* What stands beside the pods: the objects of gang schedulers and autoscalers. */
#include "operator/manifest/manifest_internal.h"

#include "base/contract.h"
#include "base/json.h"
#include "operator/job/resources.h"

#include <inttypes.h>

static const struct pairs no_pairs = {.count = 0};

/* One that bears the job's name, with the labels by which ours are watched. */
static struct json *podgroup_or_hpa(const struct resource *resource, const struct job *job,
                                    const struct pairs *annotations)
{
    struct pair items[] = {{LABEL_OPERATOR_NAME, OPERATOR_NAME}, {LABEL_JOB_NAME, job->name}};
    const struct pairs labels = {.items = items, .count = 2};
    return manifest_object(resource->api_version, resource->kind, job->name, job, &labels,
                           annotations);
}

static struct json *quantities(const struct quantities *all)
{
    struct json *object = json_new_object();
    for (size_t i = 0; i < all->count; i++) {
        int64_t milli = all->items[i].milli;
        json_set(object, all->items[i].resource,
                 milli % 1000 ? json_new_textf("%" PRId64 "m", milli)
                              : json_new_textf("%" PRId64, milli / 1000));
    }
    return object;
}

struct json *manifest_pod_group(const struct job *job, const struct pod_group_spec *group,
                                enum gang_scheduler gang)
{
    bool volcano = gang == GANG_VOLCANO;
    struct json *object = podgroup_or_hpa(resource_pod_group(gang), job, &no_pairs);
    if (json_object_count(job->annotations))
        json_set(json_get(object, "metadata"), "annotations", json_clone(job->annotations));
    struct json *spec = json_object_of("minMember", json_new_integer(group->min_member), NULL);
    if (group->min_resources.count)
        json_set(spec, "minResources", quantities(&group->min_resources));
    if (volcano && *group->queue)
        json_set(spec, "queue", json_new_text(group->queue));
    if (volcano && *group->priority_class)
        json_set(spec, "priorityClassName", json_new_text(group->priority_class));
    if (!volcano && group->schedule_timeout_s.set)
        json_set(spec, "scheduleTimeoutSeconds", json_new_integer(group->schedule_timeout_s.value));
    json_set(object, "spec", spec);
    return object;
}

struct json *manifest_autoscaler(const struct job *job, const struct autoscaler_spec *autoscaler,
                                 const char *version)
{
    struct pair hash = {ANNOTATION_METRICS_HASH, autoscaler->metrics_hash};
    const struct pairs annotations = {.items = &hash, .count = 1};
    struct json *object = podgroup_or_hpa(resource_autoscaler(version), job, &annotations);
    struct json *spec = json_object_of(
        "scaleTargetRef",
        json_texts_of("apiVersion", API_GROUP_VERSION, "kind", API_KIND, "name", job->name, NULL),
        "minReplicas", json_new_integer(autoscaler->min_replicas), "maxReplicas",
        json_new_integer(autoscaler->max_replicas), NULL);
    if (json_array_count(job->elastic.metrics))
        json_set(spec, "metrics", json_clone(job->elastic.metrics));
    json_set(object, "spec", spec);
    return object;
}
