#include "tests/bench/scale_objects.h"

#include "base/contract.h"
#include "base/mem.h"

#include <inttypes.h>

#define TIME "2026-01-01T00:00:00Z"

#define MANAGED                                                                                    \
    "\"managedFields\":[{\"manager\":\"kubelet\",\"operation\":\"Update\",\"apiVersion\":\"v1\","  \
    "\"time\":\"" TIME "\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{"               \
    "\"f:conditions\":{\"k:{\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:status\":{},\"f:type\":"   \
    "{}}}}}}]"
#define SCALE_JOB_UID "7c9e6679-7425-40de-944b-e07fc1f9%04d"

char *scale_job_text(int job, int64_t version, int pods, const char *status)
{
    return xasprintf(
        "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"j%d\","
        "\"namespace\":\"ns\",\"uid\":\"" SCALE_JOB_UID "\",\"resourceVersion\":\"%" PRId64
        "\",\"creationTimestamp\":\"" TIME "\"," MANAGED
        "},\"spec\":{\"runPolicy\":{\"cleanPodPolicy\":\"None\",\"backoffLimit\":1000},\"pytorchReplicaSpecs\":{"
        "\"Worker\":{\"replicas\":%d,\"restartPolicy\":\"ExitCode\",\"template\":{\"metadata\":{"
        "\"labels\":{\"app\":\"trainer\"}},\"spec\":{\"volumes\":[{\"name\":\"shm\",\"emptyDir\":{"
        "\"medium\":\"Memory\"}}],\"containers\":[{\"name\":\"pytorch\",\"image\":"
        "\"registry.example.com/team/trainer:1.2.3\",\"command\":[\"python\",\"-m\",\"train\"],"
        "\"env\":[{\"name\":\"A\",\"value\":\"b\"}],\"volumeMounts\":[{\"name\":\"shm\","
        "\"mountPath\":\"/dev/shm\"}],\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"8\"}}}]}}}}},"
        "\"status\":%s}",
        job, job, version, pods, status);
}

/* Of a pod or a service; `rest` from its spec on. */
static char *child_text(int job, int pod, int made, int64_t version, const char *rest)
{
    return xasprintf(
        "{\"metadata\":{\"name\":\"j%d-worker-%d\",\"namespace\":\"ns\",\"uid\":\"%d.%d.%d\","
        "\"resourceVersion\":\"%" PRId64 "\",\"creationTimestamp\":\"" TIME
        "\",\"labels\":{\"app\":\"trainer\",\"" LABEL_JOB_NAME "\":\"j%d\",\"" LABEL_REPLICA_TYPE
        "\":\"worker\",\"" LABEL_REPLICA_INDEX
        "\":\"%d\"},\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\","
        "\"name\":\"j%d\",\"uid\":\"" SCALE_JOB_UID "\",\"controller\":true}]," MANAGED "},%s}",
        job, pod, job, pod, made, version, job, pod, job, job, rest);
}

char *scale_pod_text(int job, int pod, int made, int64_t version, enum scale_state state)
{
    static const char *const phases[] = {"Unknown", "Pending", "Running", "Failed"};
    static const char *const states[] = {"\"waiting\":{\"reason\":\"ContainerCreating\"}",
                                         "\"waiting\":{\"reason\":\"ContainerCreating\"}",
                                         "\"running\":{\"startedAt\":\"" TIME "\"}",
                                         "\"terminated\":{\"exitCode\":137,\"finishedAt\":\"" TIME
                                         "\"}"};
    auto_free char *rest = xasprintf(
        "\"spec\":{\"restartPolicy\":\"Never\",\"nodeName\":\"node-%d\",\"containers\":[{\"name\":"
        "\"pytorch\",\"image\":\"registry.example.com/team/trainer:1.2.3\",\"env\":[{\"name\":"
        "\"RANK\",\"value\":\"%d\"}]}]},\"status\":{\"phase\":\"%s\",\"podIP\":\"10.0.0.1\","
        "\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\"},{\"type\":\"Ready\","
        "\"status\":\"True\"},{\"type\":\"PodScheduled\",\"status\":\"True\"}],"
        "\"containerStatuses\":[{\"name\":\"pytorch\",\"restartCount\":0,\"image\":\"i\","
        "\"state\":{%s}}]}",
        pod, pod, phases[state], states[state]);
    return child_text(job, pod, made, version, rest);
}

char *scale_service_text(int job, int pod, int64_t version)
{
    return child_text(job, pod, 0, version, "\"spec\":{\"clusterIP\":\"None\"}");
}
