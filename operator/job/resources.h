/* What the operator's part of the API is called: the kinds of objects it reads and writes, where
 * each lives, and the labels and annotations that only it knows (base/contract.h has those that
 * others know too). Requests, watches and manifests all take them from here. */
#ifndef SHOAL_OPERATOR_JOB_RESOURCES_H
#define SHOAL_OPERATOR_JOB_RESOURCES_H

#include "operator/job/types.h"

/* Which attempt of the whole job a pod belongs to. */
#define LABEL_ATTEMPT "shoal.dev/restart-attempt"
/* Which list of metrics an autoscaler was made from: autoscaler_spec.metrics_hash. */
#define ANNOTATION_METRICS_HASH "shoal.dev/metrics-hash"

/* The init container in which a worker waits for its master, as the peer operator names it; and
 * the names of those that do so, with commas between, in a pod that has others. */
#define INIT_CONTAINER_NAME        "init-pytorch"
#define ANNOTATION_INIT_CONTAINERS "shoal.dev/init-containers"

/* By these the gang schedulers know which PodGroup a pod belongs to, and Volcano its task. */
#define LABEL_PLUGINS_GROUP      "scheduling.x-k8s.io/pod-group"
#define ANNOTATION_VOLCANO_GROUP "scheduling.k8s.io/group-name"
#define ANNOTATION_VOLCANO_TASK  "volcano.sh/task-spec"

struct resource {
    const char *group;       /* "" is the core */
    const char *version;     /* of the group */
    const char *api_version; /* both, as objects state it */
    const char *plural;      /* in paths */
    const char *kind;
};

extern const struct resource resource_job, resource_pod, resource_service, resource_event,
    resource_lease;
/* NULL with GANG_NONE. */
const struct resource *resource_pod_group(enum gang_scheduler gang);
/* version: "v2" or "v2beta2"; of any other there is none. */
const struct resource *resource_autoscaler(const char *version);
#endif
