#include "operator/manifest/pod.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/job/history.h"
#include "operator/job/names.h"
#include "operator/job/resources.h"
#include "operator/reconcile/restart.h"

#include <inttypes.h>
#include <string.h>

/* Room for every variable of environment() and then some. */
#define ENV_MAX 24

struct env_list {
    struct arena *arena;
    struct env_var items[ENV_MAX];
    size_t count;
};

static void put(struct env_list *env, const char *name, const char *value)
{
    env->items[env->count++] = (struct env_var){.name = name, .value = value};
}

#define put_number(env, name, number)                                                              \
    put((env), (name), arena_printf((env)->arena, "%" PRId64, (int64_t)(number)))

static const struct container *main_container(const struct job *job, enum replica_type type)
{
    const struct pod_template *template_ = &job->replicas[type].template_;
    for (size_t i = 0; i < template_->container_count; i++)
        if (strcmp(template_->containers[i].name, API_CONTAINER_NAME) == 0)
            return &template_->containers[i];
    return NULL;
}

/* The rendezvous port of a replica type; defaults_apply has seen to it that there is one. */
static int32_t rendezvous_port(const struct job *job, enum replica_type type)
{
    const struct container *container = main_container(job, type);
    for (size_t i = 0; container && i < container->port_count; i++)
        if (strcmp(container->ports[i].name, API_PORT_NAME) == 0)
            return container->ports[i].number;
    return API_DEFAULT_PORT;
}

static int64_t total_replicas(const struct job *job)
{
    int64_t total = 0;
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (job->replicas[type].present)
            total += job->replicas[type].replicas.value;
    return total;
}

/* Processes in each pod as far as the specification says a number; torchrun finds out the rest. */
static int64_t processes_per_pod(const struct job *job)
{
    int64_t n = 1;
    return job->nproc_per_node && str_to_i64(job->nproc_per_node, 1, INT32_MAX, &n) ? n : 1;
}

/* RANK is the rank of the pod, not of a process: what torchrun calls the node rank. */
static void put_master(struct env_list *env, const struct job *job, enum replica_type type,
                       int32_t index)
{
    int32_t port = rendezvous_port(job, REPLICA_MASTER);
    /* The name of the master's service, also for the master itself: as Kubeflow, and not
     * "localhost". */
    const char *address = names_child(env->arena, job, REPLICA_MASTER, 0);
    int32_t rank = type == REPLICA_MASTER ? 0 : index + 1;
    put_number(env, ENV_MASTER_PORT, port);
    put_number(env, ENV_PET_MASTER_PORT, port);
    put(env, ENV_MASTER_ADDR, address);
    put(env, ENV_PET_MASTER_ADDR, address);
    put_number(env, ENV_WORLD_SIZE, total_replicas(job) * processes_per_pod(job));
    put_number(env, ENV_RANK, rank);
    put_number(env, ENV_PET_NODE_RANK, rank);
}

/* Each attempt of the whole job has a rendezvous of its own: what is left of the one before must
 * not be joined. */
static const char *rendezvous_id(const struct job *job, int32_t attempt, struct arena *arena)
{
    const char *id = job->elastic.rdzv_id;
    if (job->run_policy.restart_scope != SCOPE_JOB || attempt == 0)
        return id;
    return arena_printf(arena, "%s-%" PRId32, id ? id : job->name, attempt);
}

static void put_elastic(struct env_list *env, const struct job *job, int32_t attempt)
{
    const struct elastic_policy *elastic = &job->elastic;
    const char *host =
        elastic->rdzv_host ? elastic->rdzv_host : names_child(env->arena, job, REPLICA_WORKER, 0);
    int64_t port =
        elastic->rdzv_port.set ? elastic->rdzv_port.value : rendezvous_port(job, REPLICA_WORKER);
    put(env, ENV_PET_RDZV_ENDPOINT, arena_printf(env->arena, "%s:%" PRId64, host, port));
    put(env, ENV_PET_RDZV_BACKEND, elastic->rdzv_backend ? elastic->rdzv_backend : "c10d");
    put(env, ENV_PET_NNODES,
        arena_printf(env->arena, "%" PRId64 ":%" PRId64, elastic->min_replicas.value,
                     elastic->max_replicas.value));
    if (elastic->max_restarts.set)
        put_number(env, ENV_PET_MAX_RESTARTS, elastic->max_restarts.value);
    if (elastic->nproc_per_node.set)
        put_number(env, ENV_PET_NPROC_PER_NODE, elastic->nproc_per_node.value);
    put_number(env, ENV_NNODES, total_replicas(job));
    if (elastic->shrink_after_s.set)
        put_number(env, ENV_SHRINK_AFTER, elastic->shrink_after_s.value);
    const char *id = rendezvous_id(job, attempt, env->arena);
    if (id)
        put(env, ENV_PET_RDZV_ID, id);
    if (elastic->rdzv_conf.count) {
        const char *all = "";
        for (size_t i = 0; i < elastic->rdzv_conf.count; i++)
            all = arena_printf(env->arena, "%s%s%s=%s", all, i ? "," : "",
                               elastic->rdzv_conf.items[i].key, elastic->rdzv_conf.items[i].value);
        put(env, ENV_PET_RDZV_CONF, all);
    }
    /* Not empty, as the training operator has it: torchrun reads a number (check_env in
     * torch/distributed/argparse_util.py) and ends with a ValueError. */
    if (elastic->standalone)
        put(env, ENV_PET_STANDALONE, "1");
}

static struct env_list environment(const struct job *job, const struct pod_spec *pod,
                                   struct arena *arena)
{
    struct env_list env = {.arena = arena};
    put(&env, ENV_UNBUFFERED, "1");
    if (job->replicas[REPLICA_MASTER].present)
        put_master(&env, job, pod->type, pod->index);
    if (job->nproc_per_node)
        put(&env, ENV_PET_NPROC_PER_NODE, job->nproc_per_node);
    if (job->elastic.present)
        put_elastic(&env, job, pod->attempt);
    else
        put_number(&env, ENV_PET_NNODES, total_replicas(job));
    put_number(&env, ENV_RESTART_COUNT, pod->restart_count);
    return env;
}

static bool has_variable(const struct container *container, const char *name)
{
    for (size_t i = 0; i < container->env_count; i++)
        if (strcmp(container->env[i].name, name) == 0)
            return true;
    return false;
}

/* The job's variables behind the container's own, over which they win. Only which run it is and
 * what its job is called may be said in the manifest: a job that is made anew can so be the run of
 * the one before. */
static void add_environment(struct container *container, const struct job *job,
                            const struct env_list *env, struct arena *arena)
{
    const struct env_var names[] = {
        {.name = ENV_RUN_ID, .value = job->uid},
        {.name = ENV_JOB, .value = arena_printf(arena, "%s/%s", job->namespace_, job->name)},
    };
    struct env_var *all =
        arena_array(arena, struct env_var, container->env_count + env->count + array_length(names));
    size_t count = container->env_count;
    if (count)
        memcpy(all, container->env, count * sizeof *all);
    memcpy(all + count, env->items, env->count * sizeof *all);
    count += env->count;
    for (size_t i = 0; i < array_length(names); i++)
        if (!has_variable(container, names[i].name))
            all[count++] = names[i];
    container->env = all;
    container->env_count = count;
}

/* In the order in which tools print them; later values win over the user's. */
static struct pairs labels(const struct job *job, enum replica_type type, int32_t index,
                           struct arena *arena)
{
    struct pairs all = {.items = arena_array(arena, struct pair, 4), .count = 4};
    all.items[0] = (struct pair){LABEL_JOB_NAME, job->name};
    all.items[1] = (struct pair){LABEL_OPERATOR_NAME, OPERATOR_NAME};
    all.items[2] = (struct pair){LABEL_REPLICA_INDEX, arena_printf(arena, "%" PRId32, index)};
    all.items[3] = (struct pair){LABEL_REPLICA_TYPE, names_replica_label(type)};
    return all;
}

/* `pairs` has room for one more. */
static void pairs_set(struct pairs *pairs, struct pair pair)
{
    for (size_t i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->items[i].key, pair.key) == 0) {
            pairs->items[i] = pair;
            return;
        }
    }
    pairs->items[pairs->count++] = pair;
}

static struct pairs pod_labels(const struct job *job, const struct pod_spec *pod,
                               const struct gang *gang, struct arena *arena)
{
    const struct pairs *user = &job->replicas[pod->type].template_.labels;
    struct pairs own = labels(job, pod->type, pod->index, arena);
    struct pairs all = {.items = arena_array(arena, struct pair, user->count + own.count + 3)};
    for (size_t i = 0; i < user->count; i++)
        pairs_set(&all, user->items[i]);
    /* Ours come last and win: the cache and the services' selectors find pods by them. */
    for (size_t i = 0; i < own.count; i++)
        pairs_set(&all, own.items[i]);
    bool master =
        pod->type == REPLICA_MASTER || (!job->replicas[REPLICA_MASTER].present && pod->index == 0);
    if (master)
        pairs_set(&all, (struct pair){LABEL_JOB_ROLE, "master"});
    if (pod->attempt > 0)
        pairs_set(&all,
                  (struct pair){LABEL_ATTEMPT, arena_printf(arena, "%" PRId32, pod->attempt)});
    if (gang->scheduler == GANG_PLUGINS)
        pairs_set(&all, (struct pair){LABEL_PLUGINS_GROUP, job->name});
    return all;
}

/* Whether the operator reads of a pod how it made it. A template that was copied from a running pod
 * would tell of that one. */
static bool is_told_by_pods(const char *annotation)
{
    return strcmp(annotation, ANNOTATION_AVOIDED_NODES) == 0 ||
           strcmp(annotation, ANNOTATION_INIT_CONTAINERS) == 0;
}

static struct pairs pod_annotations(const struct job *job, const struct history *history,
                                    enum replica_type type, const struct gang *gang,
                                    struct arena *arena)
{
    const struct pairs *user = &job->replicas[type].template_.annotations;
    const char *avoided = history_avoided_names(history, arena);
    struct pairs all = {.items = arena_array(arena, struct pair, user->count + 3)};
    for (size_t i = 0; i < user->count; i++)
        if (!is_told_by_pods(user->items[i].key))
            pairs_set(&all, user->items[i]);
    if (gang->scheduler == GANG_VOLCANO) {
        pairs_set(&all, (struct pair){ANNOTATION_VOLCANO_GROUP, job->name});
        pairs_set(&all, (struct pair){ANNOTATION_VOLCANO_TASK, names_replica_label(type)});
    }
    if (avoided)
        pairs_set(&all, (struct pair){ANNOTATION_AVOIDED_NODES, avoided});
    return all;
}

static struct strings avoided_nodes(const struct history *history, struct arena *arena)
{
    struct strings nodes = {.items = arena_array(arena, const char *, history->avoided_count)};
    for (size_t i = 0; i < history->avoided_count; i++)
        nodes.items[nodes.count++] = history->avoided[i].name;
    return nodes;
}

static enum pod_restart pod_restart(const struct job *job, enum replica_type type)
{
    if (!restart_in_place(job, type))
        return POD_RESTART_NEVER;
    return job->replicas[type].restart_policy == RESTART_ALWAYS ? POD_RESTART_ALWAYS
                                                                : POD_RESTART_ON_FAILURE;
}

static int32_t restarts_before(const struct job *job, const struct history *history,
                               enum replica_type type, int32_t index)
{
    if (job->run_policy.restart_scope == SCOPE_JOB)
        return history->attempt;
    const struct replica_history *replica = history_find(history, type, index);
    return replica ? replica->counted + replica->earlier : 0;
}

struct pod_spec *pod_build(const struct job *job, const struct history *history,
                           enum replica_type type, int32_t index, const struct pod_options *options,
                           struct arena *arena)
{
    const struct pod_template *template_ = &job->replicas[type].template_;
    struct pod_spec *pod = arena_new(arena, struct pod_spec);
    *pod = (struct pod_spec){
        .name = names_child(arena, job, type, index),
        .namespace_ = job->namespace_,
        .owner_uid = job->uid,
        .type = type,
        .index = index,
        .attempt = history->attempt,
        .restart_count = restarts_before(job, history, type, index),
        .annotations = pod_annotations(job, history, type, &options->gang, arena),
        .avoided = avoided_nodes(history, arena),
        .scheduler_name = template_->scheduler_name ? NULL : options->gang.scheduler_name,
        .restart = pod_restart(job, type),
        .container_count = template_->container_count,
        .init_containers = template_->init_containers,
        .init_container_count = template_->init_container_count,
        .grace_period_s = template_->grace_period_s.value,
        .raw = template_->raw,
    };
    pod->labels = pod_labels(job, pod, &options->gang, arena);
    struct env_list env = environment(job, pod, arena);
    pod->containers = arena_array(arena, struct container, pod->container_count);
    for (size_t i = 0; i < pod->container_count; i++) {
        pod->containers[i] = template_->containers[i];
        add_environment(&pod->containers[i], job, &env, arena);
    }
    if (type == REPLICA_WORKER && job->replicas[REPLICA_MASTER].present)
        pod->wait_for = names_child(arena, job, REPLICA_MASTER, 0);
    return pod;
}

struct service_spec *pod_build_service(const struct job *job, enum replica_type type, int32_t index,
                                       struct arena *arena)
{
    const struct container *container = main_container(job, type);
    struct service_spec *service = arena_new(arena, struct service_spec);
    *service = (struct service_spec){
        .name = names_child(arena, job, type, index),
        .namespace_ = job->namespace_,
        .owner_uid = job->uid,
        .type = type,
        .index = index,
        .labels = labels(job, type, index, arena),
        .ports = container ? container->ports : NULL,
        .port_count = container ? container->port_count : 0,
    };
    return service;
}
