/* What stands beside the pods: the objects of gang schedulers and autoscalers. */
#include "operator/manifest/manifest.h"

#include "base/contract.h"
#include "operator/job/resources.h"

#include <inttypes.h>
#include <jansson.h>

static const struct pairs no_pairs = {.count = 0};

/* One that bears the job's name, with the labels by which ours are watched. */
static json_t *podgroup_or_hpa(const struct resource *resource, const struct job *job,
                               const struct pairs *annotations)
{
    struct pair items[] = {{LABEL_OPERATOR_NAME, OPERATOR_NAME}, {LABEL_JOB_NAME, job->name}};
    const struct pairs labels = {.items = items, .count = 2};
    return manifest_object(resource->api_version, resource->kind, job->name, job, &labels,
                           annotations);
}

static json_t *quantities(const struct quantities *all)
{
    json_t *object = json_object();
    for (size_t i = 0; i < all->count; i++) {
        int64_t milli = all->items[i].milli;
        json_object_set_new(object, all->items[i].resource,
                            milli % 1000 ? json_sprintf("%" PRId64 "m", milli)
                                         : json_sprintf("%" PRId64, milli / 1000));
    }
    return object;
}

struct json_t *manifest_pod_group(const struct job *job, const struct pod_group_spec *group,
                                  enum gang_scheduler gang)
{
    bool volcano = gang == GANG_VOLCANO;
    json_t *object = podgroup_or_hpa(resource_pod_group(gang), job, &no_pairs);
    if (json_object_size(job->annotations))
        json_object_set_new(json_object_get(object, "metadata"), "annotations",
                            json_deep_copy(job->annotations));
    json_t *spec = json_pack("{s:i}", "minMember", (int)group->min_member);
    if (group->min_resources.count)
        json_object_set_new(spec, "minResources", quantities(&group->min_resources));
    if (volcano && *group->queue)
        json_object_set_new(spec, "queue", json_string(group->queue));
    if (volcano && *group->priority_class)
        json_object_set_new(spec, "priorityClassName", json_string(group->priority_class));
    if (!volcano && group->schedule_timeout_s.set)
        json_object_set_new(spec, "scheduleTimeoutSeconds",
                            json_integer(group->schedule_timeout_s.value));
    json_object_set_new(object, "spec", spec);
    return object;
}

struct json_t *manifest_autoscaler(const struct job *job, const struct autoscaler_spec *autoscaler,
                                   const char *version)
{
    struct pair hash = {ANNOTATION_METRICS_HASH, autoscaler->metrics_hash};
    const struct pairs annotations = {.items = &hash, .count = 1};
    json_t *object = podgroup_or_hpa(resource_autoscaler(version), job, &annotations);
    json_t *spec =
        json_pack("{s:{s:s, s:s, s:s}, s:i, s:i}", "scaleTargetRef", "apiVersion",
                  API_GROUP_VERSION, "kind", API_KIND, "name", job->name, "minReplicas",
                  (int)autoscaler->min_replicas, "maxReplicas", (int)autoscaler->max_replicas);
    if (json_array_size(job->elastic.metrics))
        json_object_set_new(spec, "metrics", json_deep_copy(job->elastic.metrics));
    json_object_set_new(object, "spec", spec);
    return object;
}
