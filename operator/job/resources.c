#include "operator/job/resources.h"

#include "base/contract.h"
#include "base/mem.h"

#include <string.h>

#define CORE(plural, kind)                                                                         \
    {                                                                                              \
        "", "v1", "v1", plural, kind                                                               \
    }
#define OF(group, version, plural, kind)                                                           \
    {                                                                                              \
        group, version, group "/" version, plural, kind                                            \
    }

const struct resource resource_job = OF(API_GROUP, API_VERSION, "pytorchjobs", API_KIND);
const struct resource resource_pod = CORE("pods", "Pod");
const struct resource resource_service = CORE("services", "Service");
const struct resource resource_node = CORE("nodes", "Node");
const struct resource resource_event = CORE("events", "Event");
const struct resource resource_priority =
    OF("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass");
const struct resource resource_lease = OF("coordination.k8s.io", "v1", "leases", "Lease");

const struct resource *resource_pod_group(enum gang_scheduler gang)
{
    static const struct resource groups[] = {
        [GANG_VOLCANO] = OF("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"),
        [GANG_PLUGINS] = OF("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"),
    };
    return gang == GANG_NONE ? NULL : &groups[gang];
}

static const struct resource *of_version(const struct resource *versions, size_t count,
                                         const char *version)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(versions[i].version, version) == 0)
            return &versions[i];
    return NULL;
}

const struct resource *resource_autoscaler(const char *version)
{
    static const struct resource versions[] = {
        OF("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
        OF("autoscaling", "v2beta2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    };
    return of_version(versions, array_length(versions), version);
}

#define KUEUE(plural, kind)                                                                        \
    {                                                                                              \
        OF("kueue.x-k8s.io", "v1beta2", plural, kind),                                             \
            OF("kueue.x-k8s.io", "v1beta1", plural, kind)                                          \
    }

const struct resource *resource_workload(const char *version)
{
    static const struct resource versions[] = KUEUE("workloads", "Workload");
    return of_version(versions, array_length(versions), version);
}

const struct resource *resource_flavor(const char *version)
{
    static const struct resource versions[] = KUEUE("resourceflavors", "ResourceFlavor");
    return of_version(versions, array_length(versions), version);
}

const struct resource *resource_workload_priority(const char *version)
{
    static const struct resource versions[] =
        KUEUE("workloadpriorityclasses", "WorkloadPriorityClass");
    return of_version(versions, array_length(versions), version);
}
