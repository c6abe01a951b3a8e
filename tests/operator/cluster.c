#include "tests/operator/cluster.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/job/history.h"
#include "operator/job/job_status.h"
#include "operator/job/names.h"
#include "operator/manifest/pod.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *replica_text(const char *type, int replicas, const char *restart_policy)
{
    return xasprintf("    %s: {replicas: %d, restartPolicy: %s, template: {spec: {containers: "
                     "[{name: pytorch, image: i}]}}}\n",
                     type, replicas, restart_policy);
}

struct cluster *cluster_open(int masters, int workers, const char *restart_policy,
                             const char *run_policy, const char *spec)
{
    struct cluster *cluster = xcalloc(1, sizeof *cluster);
    cluster->arena = arena_open();
    cluster->now_ms = 1000;
    auto_free char *master =
        masters ? replica_text("Master", masters, restart_policy) : xstrdup("");
    auto_free char *worker =
        workers ? replica_text("Worker", workers, restart_policy) : xstrdup("");
    auto_free char *text = xasprintf("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"
                                     "metadata: {name: j, namespace: ns, uid: job}\n"
                                     "spec:\n  <<: {%s}\n  runPolicy: {%s}\n"
                                     "  pytorchReplicaSpecs:\n%s%s",
                                     spec, run_policy, master, worker);
    struct error err;
    assert_ok(decode_manifest(text, strlen(text), "test", 6, &cluster->manifest, &err), &err);
    cluster->job = cluster->manifest->jobs[0];
    return cluster;
}

void cluster_close(struct cluster *cluster)
{
    decode_close(cluster->manifest);
    arena_close(cluster->arena);
    free(cluster);
}

void cluster_plan(struct cluster *cluster)
{
    struct queue_view queue = cluster->queue;
    queue.workload = cluster->workload.name ? &cluster->workload : NULL;
    struct snapshot snapshot = {
        .job = cluster->job,
        .status = &cluster->status,
        .pods = cluster->pods,
        .pod_count = cluster->pod_count,
        .services = cluster->services,
        .service_count = cluster->service_count,
        .pod_group = cluster->pod_group.name ? &cluster->pod_group : NULL,
        .autoscaler = cluster->autoscaler.name ? &cluster->autoscaler : NULL,
        .queue = queue,
        .bad_nodes = cluster->bad_nodes,
        .bad_node_count = cluster->bad_node_count,
        .options = cluster->options,
        .list_forbidden = cluster->list_forbidden,
        .job_bytes = cluster->job_bytes,
        .refused = cluster->refused,
        .unproven = cluster->unproven,
        .quiet = cluster->quiet,
        .unwritten = cluster->unwritten,
        .unaccounted = cluster->unaccounted,
        .training = cluster->told.known ? &cluster->told : NULL,
        .now_ms = cluster->now_ms,
    };
    cluster->plan = reconcile(&snapshot, cluster->arena);
}

static const char *fresh_uid(struct cluster *cluster)
{
    return arena_printf(cluster->arena, "u%d", ++cluster->uids);
}

struct service *cluster_service(struct cluster *cluster, const char *name)
{
    for (size_t i = 0; i < cluster->service_count; i++)
        if (strcmp(cluster->services[i].name, name) == 0)
            return &cluster->services[i];
    return NULL;
}

struct pod *cluster_pod(struct cluster *cluster, const char *name)
{
    for (size_t i = 0; i < cluster->pod_count; i++)
        if (strcmp(cluster->pods[i].name, name) == 0)
            return &cluster->pods[i];
    return NULL;
}

void cluster_remove_pod(struct cluster *cluster, struct pod *pod)
{
    *pod = cluster->pods[--cluster->pod_count];
}

static void create_pod(struct cluster *cluster, const struct action *action)
{
    if (cluster_pod(cluster, action->name))
        return;
    assert_true(cluster->pod_count < CLUSTER_MAX_OBJECTS);
    cluster->pods[cluster->pod_count++] = (struct pod){
        .name = action->name,
        .uid = fresh_uid(cluster),
        .version = "seen",
        .owner_uid = cluster->job->uid,
        .type = action->type,
        .index = action->index,
        .attempt = action->attempt,
        .avoids = history_avoided_names(&cluster->status.history, cluster->arena),
    };
}

static void create_service(struct cluster *cluster, const struct action *action)
{
    if (cluster_service(cluster, action->name))
        return;
    assert_true(cluster->service_count < CLUSTER_MAX_OBJECTS);
    cluster->services[cluster->service_count++] = (struct service){
        .name = action->name,
        .uid = fresh_uid(cluster),
        .owner_uid = cluster->job->uid,
        .type = action->type,
        .index = action->index,
    };
}

static void delete_service(struct cluster *cluster, const struct action *action)
{
    struct service *service = cluster_service(cluster, action->name);
    if (service && strcmp(service->uid, action->uid) == 0)
        *service = cluster->services[--cluster->service_count];
}

static void delete_pod(struct cluster *cluster, const struct action *action)
{
    struct pod *pod = cluster_pod(cluster, action->name);
    if (!pod || strcmp(pod->uid, action->uid) != 0)
        return;
    if (action->kind == ACTION_FORCE_DELETE_POD) {
        cluster_remove_pod(cluster, pod);
    } else if (!pod->deleted_ms) {
        pod->deleted_ms = cluster->now_ms;
        pod->grace_ms = 1000 * cluster->job->replicas[pod->type].template_.grace_period_s.value;
    }
}

static struct pod_group_spec copy_pod_group(const struct pod_group_spec *spec, struct arena *arena)
{
    struct pod_group_spec copy = *spec;
    copy.min_resources.items = arena_array(arena, struct quantity, spec->min_resources.count);
    for (size_t i = 0; i < spec->min_resources.count; i++)
        copy.min_resources.items[i] = spec->min_resources.items[i];
    return copy;
}

static void change_pod_group(struct cluster *cluster, const struct action *action)
{
    struct pod_group *group = &cluster->pod_group;
    bool meant = group->name && action->uid && strcmp(group->uid, action->uid) == 0;
    if (action->kind == ACTION_CREATE_POD_GROUP && !group->name)
        *group = (struct pod_group){.name = action->name,
                                    .uid = fresh_uid(cluster),
                                    .owner_uid = cluster->job->uid,
                                    .phase = "",
                                    .spec = copy_pod_group(action->pod_group, cluster->arena)};
    else if (action->kind == ACTION_UPDATE_POD_GROUP && meant)
        group->spec = copy_pod_group(action->pod_group, cluster->arena);
    else if (action->kind == ACTION_DELETE_POD_GROUP && meant)
        *group = (struct pod_group){0};
}

static void change_autoscaler(struct cluster *cluster, const struct action *action)
{
    struct autoscaler *autoscaler = &cluster->autoscaler;
    bool meant = autoscaler->name && action->uid && strcmp(autoscaler->uid, action->uid) == 0;
    if (action->kind == ACTION_CREATE_AUTOSCALER && !autoscaler->name)
        *autoscaler = (struct autoscaler){.name = action->name,
                                          .uid = fresh_uid(cluster),
                                          .owner_uid = cluster->job->uid,
                                          .spec = *action->autoscaler};
    else if (action->kind == ACTION_UPDATE_AUTOSCALER && meant)
        autoscaler->spec = *action->autoscaler;
    else if (action->kind == ACTION_DELETE_AUTOSCALER && meant)
        *autoscaler = (struct autoscaler){0};
}

void cluster_carry_out(struct cluster *cluster, const struct action *action)
{
    switch (action->kind) {
    case ACTION_SET_STATUS:
        cluster->status = job_status_copy(action->status, cluster->arena);
        cluster->unwritten = NULL;
        break;
    case ACTION_CREATE_POD:
        create_pod(cluster, action);
        break;
    case ACTION_CREATE_SERVICE:
        create_service(cluster, action);
        break;
    case ACTION_DELETE_POD:
    case ACTION_FORCE_DELETE_POD:
        delete_pod(cluster, action);
        break;
    case ACTION_DELETE_SERVICE:
        delete_service(cluster, action);
        break;
    case ACTION_CREATE_POD_GROUP:
    case ACTION_UPDATE_POD_GROUP:
    case ACTION_DELETE_POD_GROUP:
        change_pod_group(cluster, action);
        break;
    case ACTION_CREATE_AUTOSCALER:
    case ACTION_UPDATE_AUTOSCALER:
    case ACTION_DELETE_AUTOSCALER:
        change_autoscaler(cluster, action);
        break;
    case ACTION_DELETE_WORKLOAD:
    case ACTION_CREATE_WORKLOAD:
    case ACTION_UPDATE_WORKLOAD:
    case ACTION_SET_WORKLOAD_STATUS:
        cluster_change_workload(cluster, action);
        break;
    case ACTION_DELETE_JOB:
        cluster->job_deleted = true;
        break;
    case ACTION_EVENT:
    case ACTION_REQUEUE:
        break;
    }
}

void cluster_apply(struct cluster *cluster, size_t count)
{
    for (size_t i = 0; i < count && i < cluster->plan->count; i++)
        cluster_carry_out(cluster, &cluster->plan->actions[i]);
}
