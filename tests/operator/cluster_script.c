#include "tests/operator/cluster.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PASSES 20

/* A lost node ends nothing. Returns whether anything went. */
static bool remove_deleted(struct cluster *cluster)
{
    size_t before = cluster->pod_count;
    for (size_t i = cluster->pod_count; i-- > 0;)
        if (cluster->pods[i].deleted_ms && !cluster->pods[i].node_lost_ms)
            cluster_remove_pod(cluster, &cluster->pods[i]);
    return cluster->pod_count < before;
}

static void settle(struct cluster *cluster)
{
    for (int pass = 0; pass < MAX_PASSES; pass++) {
        cluster_plan(cluster);
        bool rests = cluster->plan->count == 0 || cluster->plan->actions[0].kind == ACTION_REQUEUE;
        cluster_apply(cluster, cluster->plan->count);
        if (!remove_deleted(cluster) && rests)
            return;
    }
    fail_msg("no fixed point after %d passes", MAX_PASSES);
}

/* CODE[:REASON][@CONTAINER]; "": nobody knows. */
static struct pod_end read_end(struct cluster *cluster, const char *text)
{
    char reason[32] = "";
    struct pod_end end = {.code = atoi(text)};
    if (!*text)
        return end;
    sscanf(text, "%*[0-9]:%31[^@]", reason);
    const char *at = strchr(text, '@');
    end.container = arena_strdup(cluster->arena, at ? at + 1 : "pytorch");
    end.reason = *reason ? arena_strdup(cluster->arena, reason) : NULL;
    if (end.code == EXIT_HARDWARE)
        end.hardware = take(end.reason);
    return end;
}

static void end_pod(struct cluster *cluster, struct pod *pod, const char *end)
{
    int exit_code = atoi(end);
    pod->phase = exit_code == 0 ? POD_SUCCEEDED : POD_FAILED;
    pod->exited = true;
    pod->exit_code = exit_code;
    pod->exited_ms = cluster->now_ms;
    if (exit_code)
        pod->end = read_end(cluster, end);
}

static void restart_pod(struct cluster *cluster, struct pod *pod, const char *end)
{
    pod->restart_count++;
    pod->end = read_end(cluster, end);
}

static void reject_pod(struct cluster *cluster, struct pod *pod, const char *reason)
{
    pod->phase = POD_FAILED;
    pod->disrupted = true;
    pod->created_ms = cluster->now_ms;
    pod->waiting_reason = arena_strdup(cluster->arena, reason);
}

/* As a kubelet has it that ends a pod whose container has not begun. */
static void abort_pod(struct pod *pod)
{
    pod->phase = POD_FAILED;
    pod->disrupted = true;
    pod->exited = true;
    pod->exit_code = 137;
    pod->end =
        (struct pod_end){.container = "pytorch", .code = 137, .reason = "ContainerStatusUnknown"};
}

static void bind_pod(struct cluster *cluster, struct pod *pod, const char *node)
{
    pod->node = arena_strdup(cluster->arena, node);
    pod->created_ms = cluster->now_ms;
    pod->waiting_reason = pod->waiting_message = NULL;
}

/* As the scheduler says it. */
static void refuse_pod(struct cluster *cluster, struct pod *pod)
{
    pod->created_ms = cluster->now_ms;
    pod->waiting_reason = "Unschedulable";
    pod->waiting_message = "0/3 nodes are available";
}

static void delete_pod(struct cluster *cluster, const struct pod *pod)
{
    cluster_carry_out(
        cluster, &(struct action){.kind = ACTION_DELETE_POD, .name = pod->name, .uid = pod->uid});
}

static void move_pod(struct cluster *cluster, const char *verb, struct pod *pod,
                     const char *argument)
{
    if (strcmp(verb, "run") == 0)
        pod->phase = POD_RUNNING;
    else if (strcmp(verb, "exit") == 0)
        end_pod(cluster, pod, argument);
    else if (strcmp(verb, "restart") == 0)
        restart_pod(cluster, pod, argument);
    else if (strcmp(verb, "fail") == 0 || strcmp(verb, "evict") == 0 || strcmp(verb, "starve") == 0)
        pod->phase = POD_FAILED;
    else if (strcmp(verb, "reject") == 0)
        reject_pod(cluster, pod, argument);
    else if (strcmp(verb, "abort") == 0)
        abort_pod(pod);
    else if (strcmp(verb, "lose") == 0)
        pod->node_lost_ms = cluster->now_ms;
    else if (strcmp(verb, "find") == 0)
        pod->node_lost_ms = 0;
    else if (strcmp(verb, "stuck") == 0)
        pod->waiting_reason = arena_strdup(cluster->arena, argument);
    else if (strcmp(verb, "unfit") == 0)
        refuse_pod(cluster, pod);
    else if (strcmp(verb, "bind") == 0)
        bind_pod(cluster, pod, argument);
    else if (strcmp(verb, "delete") == 0)
        delete_pod(cluster, pod);
    else if (strcmp(verb, "gone") == 0)
        cluster_remove_pod(cluster, pod);
    else
        fail_msg("unknown command %s", verb);
    pod->master_not_found |= strcmp(verb, "starve") == 0;
    pod->disrupted |= strcmp(verb, "evict") == 0 || strcmp(verb, "starve") == 0;
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

static void intrude_podgroup_hpa(struct cluster *cluster, enum action_kind kind, const char *owner)
{
    struct pod_group_spec group = {.queue = "", .priority_class = ""};
    struct autoscaler_spec autoscaler = {.metrics_hash = ""};
    cluster_carry_out(cluster, &(struct action){.kind = kind,
                                                .name = cluster->job->name,
                                                .pod_group = &group,
                                                .autoscaler = &autoscaler});
    if (kind == ACTION_CREATE_POD_GROUP)
        cluster->pod_group.owner_uid = owner;
    else
        cluster->autoscaler.owner_uid = owner;
}

/* Something like ours of someone else, or a pod of ours with a wrong name. */
static void intrude(struct cluster *cluster, const char *verb, const char *which)
{
    bool foreign = strcmp(verb, "double") != 0;
    const char *owner = strcmp(verb, "orphan") == 0 ? "" : "someone";
    int index = 0;
    if (strcmp(which, "group") == 0 || strcmp(which, "autoscaler") == 0) {
        intrude_podgroup_hpa(
            cluster, *which == 'g' ? ACTION_CREATE_POD_GROUP : ACTION_CREATE_AUTOSCALER, owner);
        return;
    }
    assert_int_equal(sscanf(which, "%*[a-z]-%d", &index), 1);
    struct action action = {.kind = ACTION_CREATE_POD, .index = index};
    action.type = which[0] == 'm' ? REPLICA_MASTER : REPLICA_WORKER;
    action.name = arena_printf(cluster->arena, foreign ? "j-%s" : "other-%s", which);
    cluster_carry_out(cluster, &action);
    if (!foreign)
        return;
    cluster_pod(cluster, action.name)->owner_uid = owner;
    action.kind = ACTION_CREATE_SERVICE;
    cluster_carry_out(cluster, &action);
    cluster_service(cluster, action.name)->owner_uid = owner;
}

/* The operator's options. */
static bool set_option(struct cluster *cluster, const char *verb, const char *value)
{
    struct reconcile_options *options = &cluster->options;
    if (strcmp(verb, "gang") == 0) {
        options->gang.scheduler = strcmp(value, "volcano") == 0 ? GANG_VOLCANO : GANG_PLUGINS;
        options->gang.scheduler_name = arena_strdup(cluster->arena, value);
    } else if (strcmp(verb, "autoscale") == 0) {
        options->autoscaling = true;
    } else if (strcmp(verb, "patience") == 0) {
        options->node_lost_ms = options->overdue_ms = atoi(value);
    } else if (strcmp(verb, "shun") == 0) {
        options->avoid_node_ms = atoi(value);
    } else if (strcmp(verb, "bytes") == 0) {
        cluster->job_bytes = (size_t)atol(value);
    } else if (strcmp(verb, "forbid") == 0) {
        cluster->list_forbidden = arena_strdup(cluster->arena, value);
    } else if (strcmp(verb, "adopt") == 0) {
        cluster->status.history = (struct history){0};
    } else if (strcmp(verb, "permit") == 0) {
        cluster->list_forbidden = NULL;
    } else if (strcmp(verb, "deny") == 0) {
        cluster->refused = arena_strdup(cluster->arena, value);
    } else if (strcmp(verb, "allow") == 0) {
        cluster->refused = NULL;
    } else {
        return false;
    }
    return true;
}

/* The user's edits, and those of what stands beside the pods. */
static bool edit(struct cluster *cluster, const char *verb, const char *value)
{
    struct job *job = cluster->job;
    if (strcmp(verb, "suspend") == 0 || strcmp(verb, "resume") == 0)
        job->run_policy.suspend = verb[0] == 's';
    else if (strcmp(verb, "scale") == 0)
        job->replicas[REPLICA_WORKER].replicas.value = atoi(value);
    else if (strcmp(verb, "limit") == 0)
        job->run_policy.backoff_limit.value = atoi(value);
    else if (strcmp(verb, "member") == 0)
        job->run_policy.scheduling.min_available =
            (struct optional){.set = true, .value = atoi(value)};
    else if (strcmp(verb, "unmetered") == 0)
        job->elastic.metrics = NULL;
    else if (strcmp(verb, "spoil") == 0)
        job->invalid = "spec.x: wrong";
    else if (strcmp(verb, "mend") == 0)
        job->invalid = NULL;
    else if (strcmp(verb, "group") == 0)
        cluster->pod_group.phase = arena_strdup(cluster->arena, value);
    else if (strcmp(verb, "refuse") == 0)
        cluster->pod_group.message = arena_strdup(cluster->arena, value);
    else
        return false;
    return true;
}

#define OF_2000_MS INT64_C(946684800000)

static bool tell(struct cluster *cluster, const char *name, const char *value)
{
    if (!cluster->told.known)
        cluster->told = training_open();
    struct training_hang *hang = &cluster->told.hang;
    if (strcmp(name, "hangPod") == 0)
        return training_set_word(hang->pod, value);
    if (strcmp(name, "hangPhase") == 0)
        return training_set_word(hang->phase, value);
    if (strcmp(name, "hangUnit") == 0)
        return training_set_word(hang->op, "all_gather") && training_set_word(hang->unit, value);
    for (const struct training_field *field = training_fields; field->name; field++) {
        if (strcmp(field->name, name) != 0)
            continue;
        if (field->kind == TRAINING_REAL)
            return training_set_real(&cluster->told, field, atof(value));
        if (field->kind == TRAINING_TIME)
            return training_set_time(&cluster->told, field, OF_2000_MS + 1000 * atoll(value));
        return training_set_count(&cluster->told, field, atoll(value));
    }
    return false;
}

/* What others say of a node; `word` NULL: nothing any more. */
static void mark_node(struct cluster *cluster, const char *node, const char *word)
{
    size_t at = 0;
    while (at < cluster->bad_node_count && strcmp(cluster->bad_nodes[at].name, node) != 0)
        at++;
    if (word) {
        assert_true(at < CLUSTER_MAX_BAD_NODES);
        cluster->bad_node_count += at == cluster->bad_node_count;
        cluster->bad_nodes[at] = (struct bad_node){.name = arena_strdup(cluster->arena, node),
                                                   .sign = arena_strdup(cluster->arena, word),
                                                   .spares = cluster->spares};
    } else if (at < cluster->bad_node_count) {
        cluster->bad_nodes[at] = cluster->bad_nodes[--cluster->bad_node_count];
    }
}

static void set_spares(struct cluster *cluster, size_t spares)
{
    cluster->spares = spares;
    for (size_t i = 0; i < cluster->bad_node_count; i++)
        cluster->bad_nodes[i].spares = spares;
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
    } else if (strcmp(verb, "hold") == 0) {
        cluster_plan(cluster);
        assert_int_equal(cluster->plan->actions[0].kind, ACTION_SET_STATUS);
        cluster->unwritten = &cluster->plan->actions[0].status->history;
    } else if (strcmp(verb, "settle") == 0) {
        settle(cluster);
    } else if (strcmp(verb, "state") == 0) {
        show_state(cluster);
    } else if (strcmp(verb, "wait") == 0) {
        cluster->now_ms += atoi(first);
    } else if (strcmp(verb, "foreign") == 0 || strcmp(verb, "orphan") == 0 ||
               strcmp(verb, "double") == 0) {
        intrude(cluster, verb, first);
    } else if (strcmp(verb, "told") == 0) {
        assert_true(tell(cluster, first, second));
    } else if (strcmp(verb, "untold") == 0) {
        cluster->told.known = false;
    } else if (strcmp(verb, "sign") == 0 || strcmp(verb, "heal") == 0) {
        mark_node(cluster, first, verb[0] == 's' ? second : NULL);
    } else if (strcmp(verb, "spare") == 0) {
        set_spares(cluster, (size_t)atoi(first));
    } else if (!set_option(cluster, verb, first) && !edit(cluster, verb, first) &&
               !cluster_kueue(cluster, verb, first)) {
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
    cluster_tell_of("", stories, count);
}

void cluster_tell_of(const char *spec, const struct story *stories, size_t count)
{
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        const struct story *story = &stories[i];
        struct cluster *cluster = cluster_open(story->masters, story->workers,
                                               story->restart_policy, story->run_policy, spec);
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
