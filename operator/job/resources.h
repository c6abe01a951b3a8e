/* The API's names of what the operator reads and writes: resources, and the labels and annotations
 * that only the operator uses (those shared with the agent are in base/contract.h). */
#ifndef SHOAL_OPERATOR_JOB_RESOURCES_H
#define SHOAL_OPERATOR_JOB_RESOURCES_H

#include "operator/job/types.h"

/* The attempt that a pod belongs to. */
#define LABEL_ATTEMPT "shoal.dev/restart-attempt"
/* autoscaler_spec.metrics_hash of an autoscaler. */
#define ANNOTATION_METRICS_HASH "shoal.dev/metrics-hash"

/* The field manager of all we write. */
#define FIELD_MANAGER "shoal-operator"

/* The init container in which a worker waits for its master, named as by the training operator; and
 * the annotation that lists such containers, with commas, in a pod that has others. */
#define INIT_CONTAINER_NAME        "init-pytorch"
#define ANNOTATION_INIT_CONTAINERS "shoal.dev/init-containers"
/* The nodes that a pod was made not to come to, with commas between them; absent: none. */
#define ANNOTATION_AVOIDED_NODES "shoal.dev/avoided-nodes"

/* By these the gang schedulers find a pod's PodGroup, and Volcano its task. */
#define LABEL_PLUGINS_GROUP      "scheduling.x-k8s.io/pod-group"
#define ANNOTATION_VOLCANO_GROUP "scheduling.k8s.io/group-name"
#define ANNOTATION_VOLCANO_TASK  "volcano.sh/task-spec"

/* Kueue's labels of a job, and those of the Workload and the pods. */
#define LABEL_QUEUE               "kueue.x-k8s.io/queue-name"
#define LABEL_QUEUE_PRIORITY      "kueue.x-k8s.io/priority-class"
#define LABEL_QUEUE_MAX_EXECUTION "kueue.x-k8s.io/max-exec-time-seconds"
#define LABEL_QUEUE_PREBUILT      "kueue.x-k8s.io/prebuilt-workload-name" /* also an annotation */
#define LABEL_WORKLOAD_JOB_UID    "kueue.x-k8s.io/job-uid"
#define LABEL_POD_SET             "kueue.x-k8s.io/podset"
#define LABEL_LOCAL_QUEUE         "kueue.x-k8s.io/local-queue-name"
#define LABEL_CLUSTER_QUEUE       "kueue.x-k8s.io/cluster-queue-name"
/* workload_spec.pods_hash of a Workload that we made. */
#define ANNOTATION_PODS_HASH "shoal.dev/pods-hash"
/* Of a template, the topology request of its pods; of a pod, the Workload it belongs to. */
#define ANNOTATION_TOPOLOGY "kueue.x-k8s.io/podset-"
#define ANNOTATION_WORKLOAD "kueue.x-k8s.io/workload"
#define GATE_TOPOLOGY       "kueue.x-k8s.io/topology"

struct resource {
    const char *group;       /* "": the core group */
    const char *version;     /* of the group */
    const char *api_version; /* group/version */
    const char *plural;      /* in paths */
    const char *kind;
};

extern const struct resource resource_job, resource_pod, resource_service, resource_event,
    resource_lease, resource_node, resource_priority;
/* NULL with GANG_NONE. */
const struct resource *resource_pod_group(enum gang_scheduler gang);
/* version: "v2" or "v2beta2"; NULL for any other. */
const struct resource *resource_autoscaler(const char *version);
/* Kueue's; version: "v1beta2" or "v1beta1"; NULL for any other. */
const struct resource *resource_workload(const char *version);
const struct resource *resource_flavor(const char *version);
const struct resource *resource_workload_priority(const char *version);
#endif
