#include "cli/run_pods.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* From the root on, as whoever asks may be in another folder; NULL: there is none yet. */
static const char *absolute(const char *path, struct arena *arena)
{
    auto_free char *real = path ? realpath(path, NULL) : NULL;
    return real ? arena_strdup(arena, real) : path;
}

static const struct pod *find(const struct snapshot *snapshot, const char *name)
{
    for (size_t i = 0; i < snapshot->pod_count; i++)
        if (strcmp(snapshot->pods[i].name, name) == 0)
            return &snapshot->pods[i];
    return NULL;
}

/* Between two starts a kubelet calls it by this name. */
static void set_back_off(struct pod *pod, const struct local_replica *replica, struct arena *arena)
{
    if (replica->state != LOCAL_RESTARTING)
        return;
    pod->waiting_reason = "CrashLoopBackOff";
    pod->waiting_message = arena_printf(arena, "starts again after exit code %d",
                                        replica->exit_code >= 0 ? replica->exit_code : 0);
}

size_t run_pods(struct local *local, int64_t now_ms, const char *node, struct arena *arena,
                struct pod_facts **ret_pods)
{
    struct snapshot snapshot;
    size_t replica_count, count = 0;
    const struct local_replica *replicas = local_replicas(local, &replica_count);
    local_snapshot(local, now_ms, &snapshot);
    struct pod_facts *pods = arena_array(arena, struct pod_facts, replica_count + 1);
    for (size_t i = 0; i < replica_count; i++) {
        const struct pod *found = find(&snapshot, replicas[i].name);
        if (!found)
            continue;
        struct pod pod = *found;
        pod.node = node;
        pod.created_ms = replicas[i].created_ms;
        set_back_off(&pod, &replicas[i], arena);
        pods[count] = job_facts_of_pod(&pod, arena);
        pods[count++].log = absolute(replicas[i].log_path, arena);
    }
    *ret_pods = pods;
    return count;
}
