#include "cli/job_answer.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/contract.h"
#include "base/json.h"
#include "operator/job/names.h"
#include "operator/manifest/manifest.h"

static struct json *container_of(const struct container *container)
{
    struct json *requests = json_new_object();
    for (size_t i = 0; i < container->requests.count; i++)
        json_set(requests, container->requests.items[i].resource,
                 json_new_textf("%" PRId64 "m", container->requests.items[i].milli));
    return json_object_of("name", json_new_text(container->name), "image",
                          json_new_text(container->image ? container->image : "none"), "resources",
                          json_object_of("requests", requests, NULL), NULL);
}

static struct json *replica_of(const struct replica_spec *replica)
{
    struct json *containers = json_new_array();
    for (size_t i = 0; i < replica->template_.container_count; i++)
        json_append(containers, container_of(&replica->template_.containers[i]));
    struct json *spec = json_object_of("containers", containers, NULL);
    return json_object_of("replicas", json_new_integer(replica->replicas.value), "template",
                          json_object_of("spec", spec, NULL), NULL);
}

struct json *job_answer(const struct job *job, const struct job_status *status)
{
    char created[32];
    struct json *replicas = json_new_object();
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (job->replicas[type].present)
            json_set(replicas, names_replica_type(type), replica_of(&job->replicas[type]));
    clock_format_rfc3339(job->created_ms, created, sizeof created);
    struct json *metadata = json_texts_of("name", job->name, "namespace", job->namespace_, "uid",
                                          job->uid, "creationTimestamp", created, NULL);
    struct json *policy =
        json_object_of("backoffLimit", json_new_integer(job->run_policy.backoff_limit.value), NULL);
    struct json *spec = json_object_of("runPolicy", policy, "pytorchReplicaSpecs", replicas, NULL);
    return json_object_of("apiVersion", json_new_text(API_GROUP_VERSION), "kind",
                          json_new_text(API_KIND), "metadata", metadata, "spec", spec, "status",
                          manifest_status(job, status), NULL);
}
