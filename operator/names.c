#include "operator/names.h"

#include "base/mem.h"

#include <inttypes.h>

const char *names_replica_type(enum replica_type type)
{
    return type == REPLICA_MASTER ? "Master" : "Worker";
}

const char *names_replica_label(enum replica_type type)
{
    return type == REPLICA_MASTER ? "master" : "worker";
}

const char *names_condition(enum condition_type type)
{
    static const char *const names[] = {"Created",   "Running", "Restarting", "Suspended",
                                        "Succeeded", "Failed",  "Waiting"};
    return names[type];
}

const char *names_phase(enum pod_phase phase)
{
    static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed", "Unknown"};
    return names[phase];
}

const char *names_restart_policy(enum restart_policy policy)
{
    static const char *const names[] = {"", "Always", "OnFailure", "Never", "ExitCode"};
    return names[policy];
}

const char *names_child(struct arena *arena, const struct job *job, enum replica_type type,
                        int32_t index)
{
    return arena_printf(arena, "%s-%s-%" PRId32, job->name, names_replica_label(type), index);
}
