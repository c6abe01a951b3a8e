#include "operator/job/defaults.h"

#include "base/contract.h"
#include "base/mem.h"

#include <string.h>

#define GRACE_PERIOD_S 30 /* core/v1 PodSpec */

static void fill(struct optional *field, int64_t value)
{
    if (!field->set)
        *field = (struct optional){.set = true, .value = value};
}

/* A port of that number under another name does not count: services are found by the name. */
static void add_port(struct container *container, struct arena *arena)
{
    for (size_t i = 0; i < container->port_count; i++)
        if (strcmp(container->ports[i].name, API_PORT_NAME) == 0)
            return;
    struct port *ports = arena_array(arena, struct port, container->port_count + 1);
    if (container->port_count)
        memcpy(ports, container->ports, container->port_count * sizeof *ports);
    ports[container->port_count++] =
        (struct port){.name = API_PORT_NAME, .number = API_DEFAULT_PORT, .protocol = "TCP"};
    container->ports = ports;
}

static void default_replica(struct replica_spec *replica, struct arena *arena)
{
    fill(&replica->replicas, 1);
    fill(&replica->template_.grace_period_s, GRACE_PERIOD_S);
    if (replica->restart_policy == RESTART_UNSET)
        replica->restart_policy = RESTART_ON_FAILURE;
    for (size_t i = 0; i < replica->template_.container_count; i++)
        if (strcmp(replica->template_.containers[i].name, API_CONTAINER_NAME) == 0)
            add_port(&replica->template_.containers[i], arena);
}

static void default_elastic(struct elastic_policy *elastic, int64_t workers)
{
    struct optional min = elastic->min_replicas, max = elastic->max_replicas;
    fill(&elastic->min_replicas, max.set ? max.value : workers);
    fill(&elastic->max_replicas, min.set ? min.value : workers);
}

void defaults_apply(struct job *job, int64_t default_backoff_limit, struct arena *arena)
{
    struct run_policy *policy = &job->run_policy;
    if (policy->clean_pod_policy == CLEAN_UNSET)
        policy->clean_pod_policy = CLEAN_NONE;
    if (policy->restart_scope == SCOPE_UNSET)
        policy->restart_scope = SCOPE_REPLICA;
    fill(&policy->backoff_limit, default_backoff_limit);
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (job->replicas[type].present)
            default_replica(&job->replicas[type], arena);
    if (job->elastic.present)
        default_elastic(&job->elastic, job->replicas[REPLICA_WORKER].replicas.value);
    if (!job->nproc_per_node && !(job->elastic.present && job->elastic.nproc_per_node.set))
        job->nproc_per_node = "auto";
}
