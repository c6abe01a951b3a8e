#include "tests/operator/cluster.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/history.h"
#include "operator/job_status.h"
#include "operator/names.h"
#include "operator/pod.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PASSES 20

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
    struct world world = {
        .job = cluster->job,
        .status = &cluster->status,
        .pods = cluster->pods,
        .pod_count = cluster->pod_count,
        .services = cluster->services,
        .service_count = cluster->service_count,
        .pod_group = cluster->pod_group.name ? &cluster->pod_group : NULL,
        .autoscaler = cluster->autoscaler.name ? &cluster->autoscaler : NULL,
        .options = cluster->options,
        .now_ms = cluster->now_ms,
    };
    cluster->plan = reconcile(&world, cluster->arena);
}

static const char *fresh_uid(struct cluster *cluster)
{
    return arena_printf(cluster->arena, "u%d", ++cluster->uids);
}

static struct service *find_service(struct cluster *cluster, const char *name)
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
        .owner_uid = cluster->job->uid,
        .type = action->type,
        .index = action->index,
        .attempt = action->attempt,
    };
}

static void create_service(struct cluster *cluster, const struct action *action)
{
    if (find_service(cluster, action->name))
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
    struct service *service = find_service(cluster, action->name);
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

void cluster_apply(struct cluster *cluster, size_t count)
{
    for (size_t i = 0; i < count && i < cluster->plan->count; i++) {
        const struct action *action = &cluster->plan->actions[i];
        switch (action->kind) {
        case ACTION_SET_STATUS:
            cluster->status = job_status_copy(action->status, cluster->arena);
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
        case ACTION_DELETE_JOB:
            cluster->job_deleted = true;
            break;
        case ACTION_EVENT:
        case ACTION_REQUEUE:
            break;
        }
    }
}

static void remove_deleted(struct cluster *cluster)
{
    for (size_t i = cluster->pod_count; i-- > 0;)
        if (cluster->pods[i].deleted_ms)
            cluster_remove_pod(cluster, &cluster->pods[i]);
}

static void settle(struct cluster *cluster)
{
    for (int pass = 0; pass < MAX_PASSES; pass++) {
        cluster_plan(cluster);
        if (cluster->plan->count == 0 || cluster->plan->actions[0].kind == ACTION_REQUEUE)
            return;
        cluster_apply(cluster, cluster->plan->count);
        remove_deleted(cluster);
    }
    fail_msg("no fixed point after %d passes", MAX_PASSES);
}

static void end_pod(struct cluster *cluster, struct pod *pod, int exit_code)
{
    pod->phase = exit_code == 0 ? POD_SUCCEEDED : POD_FAILED;
    pod->exited = true;
    pod->exit_code = exit_code;
    pod->exited_ms = cluster->now_ms;
}

static void move_pod(struct cluster *cluster, const char *verb, struct pod *pod,
                     const char *argument)
{
    if (strcmp(verb, "run") == 0)
        pod->phase = POD_RUNNING;
    else if (strcmp(verb, "exit") == 0)
        end_pod(cluster, pod, atoi(argument));
    else if (strcmp(verb, "restart") == 0)
        pod->restart_count++;
    else if (strcmp(verb, "fail") == 0 || strcmp(verb, "evict") == 0)
        pod->phase = POD_FAILED;
    else if (strcmp(verb, "delete") == 0)
        pod->deleted_ms = cluster->now_ms;
    else if (strcmp(verb, "gone") == 0)
        cluster_remove_pod(cluster, pod);
    else
        fail_msg("unknown command %s", verb);
    if (strcmp(verb, "evict") == 0)
        pod->disrupted = true;
}

static void move_pods(struct cluster *cluster, const char *verb, const char *which,
                      const char *argument)
{
    size_t moved = 0;
    for (size_t i = cluster->pod_count; i-- > 0;) {
        if (strcmp(which, "*") == 0 || strcmp(cluster->pods[i].name + 2, which) == 0) {
            move_pod(cluster, verb, &cluster->pods[i], argument);
            moved++;
        }
    }
    if (moved == 0)
        fail_msg("%s: no pod %s", verb, which);
}

/* A pod (and a service) like ours of someone else, or one of ours with a wrong name. */
static void intrude(struct cluster *cluster, const char *verb, const char *which)
{
    bool foreign = strcmp(verb, "foreign") == 0;
    int index = 0;
    assert_int_equal(sscanf(which, "%*[a-z]-%d", &index), 1);
    struct action action = {.index = index};
    action.type = which[0] == 'm' ? REPLICA_MASTER : REPLICA_WORKER;
    action.name = arena_printf(cluster->arena, foreign ? "j-%s" : "other-%s", which);
    create_pod(cluster, &action);
    if (!foreign)
        return;
    cluster_pod(cluster, action.name)->owner_uid = "someone";
    create_service(cluster, &action);
    find_service(cluster, action.name)->owner_uid = "someone";
}

static void show_state(struct cluster *cluster)
{
    cluster->plan = plan_open(cluster->arena);
    plan_add(cluster->plan, (struct action){.kind = ACTION_SET_STATUS, .status = &cluster->status});
}

static void do_one(struct cluster *cluster, const char *command)
{
    char verb[16] = "", first[32] = "", second[32] = "";
    sscanf(command, "%15s %31s %31s", verb, first, second);
    if (strcmp(verb, "pass") == 0) {
        cluster_plan(cluster);
        cluster_apply(cluster, cluster->plan->count);
    } else if (strcmp(verb, "settle") == 0) {
        settle(cluster);
    } else if (strcmp(verb, "state") == 0) {
        show_state(cluster);
    } else if (strcmp(verb, "wait") == 0) {
        cluster->now_ms += atoi(first);
    } else if (strcmp(verb, "suspend") == 0 || strcmp(verb, "resume") == 0) {
        cluster->job->run_policy.suspend = verb[0] == 's';
    } else if (strcmp(verb, "scale") == 0) {
        cluster->job->replicas[REPLICA_WORKER].replicas.value = atoi(first);
    } else if (strcmp(verb, "foreign") == 0 || strcmp(verb, "double") == 0) {
        intrude(cluster, verb, first);
    } else {
        move_pods(cluster, verb, first, second);
    }
}

void cluster_do(struct cluster *cluster, const char *script)
{
    auto_free char *copy = xstrdup(script);
    char *rest = copy, *command;
    while ((command = strsep(&rest, ";")))
        do_one(cluster, command);
}

void cluster_tell(const struct story *stories, size_t count)
{
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        const struct story *story = &stories[i];
        struct cluster *cluster = cluster_open(story->masters, story->workers,
                                               story->restart_policy, story->run_policy, "");
        cluster_do(cluster, story->script);
        auto_str struct str text;
        str_init(&text, 1 << 16);
        plan_print(cluster->plan, &text);
        if (strcmp(str_text(&text), story->plan) != 0) {
            print_error("%s: planned\n%sexpected\n%s\n", story->name, str_text(&text), story->plan);
            failed++;
        }
        cluster_close(cluster);
    }
    assert_int_equal(failed, 0);
}
