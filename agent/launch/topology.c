#include "agent/launch/topology.h"

#include "agent/launch/topology_scheduler.h"

#include "base/contract.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct reader {
    getenv_fn *lookup;
    void *ctx;
};

/* The first of the two variables that is set and not empty; NULL if none. `ret_name` says which. */
static const char *first_of(const struct reader *r, const char *a, const char *b,
                            const char **ret_name)
{
    const char *names[] = {a, b};
    for (int i = 0; i < 2; i++) {
        const char *value = names[i] ? r->lookup(r->ctx, names[i]) : NULL;
        *ret_name = names[i];
        if (value && *value)
            return value;
    }
    return NULL;
}

/* Half of an identity is worse than none: every process would take itself for rank 0. */
static int not_set(const char *name, const char *because, struct error *err)
{
    return error_set(err, ERR_CONFIG, "%s: not set, although %s", name, because);
}

static bool is_set(const struct reader *r, const char *name)
{
    const char *ignored;
    return first_of(r, name, NULL, &ignored) != NULL;
}

/* A whole number in [low, high] from a variable, `fallback` if it is not set. */
static int read_number(const struct reader *r, const char *a, const char *b, int low, int high,
                       int fallback, int *ret_value, struct error *err)
{
    const char *name;
    const char *text = first_of(r, a, b, &name);
    int64_t value = fallback;
    if (text && !str_to_i64(text, low, high, &value))
        return error_set(err, ERR_CONFIG, "%s: '%s' is not a whole number from %d to %d", name,
                         text, low, high);
    *ret_value = (int)value;
    return 0;
}

/* "4"; "auto" and "gpu" are one process per GPU, and like "cpu" one without GPUs. */
static int parse_processes(const char *name, const char *text, const struct topology_request *wish,
                           int *ret_count, struct error *err)
{
    int64_t count = 1;
    if (strcasecmp(text, "auto") == 0 || strcasecmp(text, "gpu") == 0) {
        int gpus = wish->count_gpus ? wish->count_gpus() : 0;
        count = gpus > 0 ? gpus : 1;
    } else if (strcasecmp(text, "cpu") != 0 && !str_to_i64(text, 1, TOPOLOGY_MAX_RANKS, &count)) {
        return error_set(err, ERR_CONFIG, "%s: '%s' is not auto, cpu, gpu or a number from 1 to %d",
                         name, text, TOPOLOGY_MAX_RANKS);
    }
    *ret_count = (int)count;
    return 0;
}

bool topology_is_elastic(const struct topology *t)
{
    return t->max_nodes > t->min_nodes;
}

int topology_parse_nodes(const char *name, const char *text, int *ret_min, int *ret_max,
                         struct error *err)
{
    char low[16];
    const char *colon = strchr(text, ':');
    snprintf(low, sizeof low, "%.*s", (int)(colon ? colon - text : 15), text);
    int64_t count, most;
    if (!str_to_i64(low, 1, TOPOLOGY_MAX_RANKS, &count) ||
        (colon && !str_to_i64(colon + 1, count, TOPOLOGY_MAX_RANKS, &most)))
        return error_set(err, ERR_CONFIG, "%s: '%s' is not a number of nodes, N or MIN:MAX", name,
                         text);
    *ret_min = (int)count;
    *ret_max = colon ? (int)most : (int)count;
    return 0;
}

/* N of "JOB-worker-N", the name of a pod; -1: it is no such name. */
static int number_in(const char *pod)
{
    const char *dash = pod ? strrchr(pod, '-') : NULL;
    int64_t number;
    if (!dash || dash - pod < 7 || strncmp(dash - 7, "-worker", 7) != 0 ||
        !str_to_i64(dash + 1, 0, TOPOLOGY_MAX_RANKS - 1, &number))
        return -1;
    return (int)number;
}

/* By the name of its pod. HOSTNAME is that by itself, but on the host's network the node's name. */
static int number_of_worker(const struct reader *r)
{
    const char *name;
    int number = number_in(first_of(r, "POD_NAME", NULL, &name));
    return number >= 0 ? number : number_in(first_of(r, "HOSTNAME", NULL, &name));
}

/* Whether one node is all that there will be, and not the least of a range: torchrun's default is
 * 1:1. */
static bool is_plainly_one(const struct reader *r, const struct topology_request *wish)
{
    const char *name, *text = wish->nnodes;
    if (!text || !text[0])
        text = first_of(r, ENV_PET_NNODES, NULL, &name);
    return !text || strcmp(text, "1") == 0 || strcmp(text, "1:1") == 0;
}

static int read_node_rank(const struct reader *r, const struct topology_request *wish,
                          struct topology *t, struct error *err)
{
    bool elastic =
        is_set(r, ENV_PET_RDZV_ENDPOINT) || (wish->rdzv_endpoint && wish->rdzv_endpoint[0]);
    /* The operator sets no RANK in a job without a Master, as torchrun's rendezvous would number
     * the nodes. Here the pod's name does. */
    int worker = elastic ? number_of_worker(r) : -1;
    t->node_rank = wish->standalone ? 0 : wish->node_rank;
    if (t->node_rank >= 0)
        return 0;
    if (is_set(r, ENV_PET_NODE_RANK) || is_set(r, ENV_RANK))
        return read_number(r, ENV_PET_NODE_RANK, ENV_RANK, 0, TOPOLOGY_MAX_RANKS - 1, 0,
                           &t->node_rank, err);
    if (is_set(r, "SLURM_NODEID"))
        return read_number(r, "SLURM_NODEID", NULL, 0, TOPOLOGY_MAX_RANKS - 1, 0, &t->node_rank,
                           err);
    t->node_rank = worker >= 0 ? worker : 0;
    bool may_grow = elastic && !is_plainly_one(r, wish);
    if (worker < 0 && (t->nodes > 1 || may_grow))
        return not_set(ENV_PET_NODE_RANK " (or --node_rank)",
                       elastic
                           ? "an elastic job's workers must be numbered: use a Master replica, or "
                             "on the host's network set POD_NAME (fieldRef: metadata.name)"
                           : "there is more than one node",
                       err);
    return 0;
}

/* Our operator sets ENV_RESTART_COUNT in every pod; torchrun's own default is no restart. */
static int max_restarts(const struct reader *r, const struct topology_request *wish)
{
    if (wish->max_restarts >= 0)
        return wish->max_restarts;
    return is_set(r, ENV_RESTART_COUNT) ? TOPOLOGY_JOB_RESTARTS : 0;
}

/* Beside the workers that PET_NNODES counts there is a master, which trains too. */
static bool has_master_beside(const struct reader *r)
{
    return is_set(r, ENV_PET_RDZV_ENDPOINT) && is_set(r, ENV_MASTER_ADDR) && is_set(r, ENV_RANK) &&
           is_set(r, ENV_WORLD_SIZE);
}

/* How many nodes an elastic run waits for at first: our operator tells how many pods there are. */
static int read_first_nodes(const struct reader *r, struct topology *t, struct error *err)
{
    int pods;
    t->nodes = t->max_nodes;
    if (!topology_is_elastic(t))
        return 0;
    t->min_nodes += has_master_beside(r);
    t->max_nodes += has_master_beside(r);
    if (read_number(r, ENV_NNODES, NULL, 1, TOPOLOGY_MAX_RANKS, t->max_nodes, &pods, err))
        return -1;
    t->nodes = pods < t->min_nodes ? t->min_nodes : pods > t->max_nodes ? t->max_nodes : pods;
    return 0;
}

static int read_pod(const struct reader *r, const struct topology_request *wish, struct topology *t,
                    struct error *err)
{
    const char *name = "runtime.nproc_per_node", *text = wish->nproc_per_node;
    if (!text[0])
        text = first_of(r, ENV_PET_NPROC_PER_NODE, NULL, &name);
    t->local_size = 1;
    if (text && parse_processes(name, text, wish, &t->local_size, err))
        return -1;
    name = "runtime.nnodes", text = wish->nnodes;
    if (!text[0])
        text = first_of(r, ENV_PET_NNODES, "SLURM_JOB_NUM_NODES", &name);
    if (wish->standalone)
        text = "1";
    if (text) {
        if (topology_parse_nodes(name, text, &t->min_nodes, &t->max_nodes, err) ||
            read_first_nodes(r, t, err))
            return -1;
    } else {
        /* Without torchrun's variables: the pods' own count times their processes. */
        int processes;
        if (read_number(r, ENV_WORLD_SIZE, NULL, 1, TOPOLOGY_MAX_RANKS, t->local_size, &processes,
                        err))
            return -1;
        if (processes % t->local_size != 0)
            return error_set(err, ERR_CONFIG, "%s: %d is not a multiple of %d processes per node",
                             ENV_WORLD_SIZE, processes, t->local_size);
        t->nodes = processes / t->local_size;
    }
    if (read_node_rank(r, wish, t, err))
        return -1;
    if (t->node_rank >= t->nodes && !topology_is_elastic(t))
        return error_set(err, ERR_CONFIG, "node rank %d is not below the number of nodes, %d",
                         t->node_rank, t->nodes);
    t->rank = t->node_rank * t->local_size;
    t->world_size = t->nodes * t->local_size;
    t->max_restarts = max_restarts(r, wish);
    t->is_launcher =
        t->local_size > 1 || wish->launch || t->max_restarts > 0 || topology_is_elastic(t);
    return 0;
}

/* A child of torchrun or of our own launcher: RANK and WORLD_SIZE are processes. */
static int read_process(const struct reader *r, struct topology *t, struct error *err)
{
    const int most = TOPOLOGY_MAX_RANKS;
    if (!is_set(r, ENV_RANK) || !is_set(r, ENV_WORLD_SIZE))
        return not_set(is_set(r, ENV_RANK) ? ENV_WORLD_SIZE : ENV_RANK, ENV_LOCAL_RANK " is", err);
    if (read_number(r, ENV_WORLD_SIZE, NULL, 1, most, 1, &t->world_size, err) ||
        read_number(r, ENV_RANK, NULL, 0, most - 1, 0, &t->rank, err) ||
        read_number(r, ENV_LOCAL_RANK, NULL, 0, most - 1, 0, &t->local_rank, err) ||
        read_number(r, ENV_LOCAL_WORLD_SIZE, NULL, 1, most, 1, &t->local_size, err))
        return -1;
    if (t->rank >= t->world_size)
        return error_set(err, ERR_CONFIG, "%s: %d is not below %s, %d", ENV_RANK, t->rank,
                         ENV_WORLD_SIZE, t->world_size);
    if (t->local_rank >= t->local_size)
        return error_set(err, ERR_CONFIG, "%s: %d is not below %s, %d", ENV_LOCAL_RANK,
                         t->local_rank, ENV_LOCAL_WORLD_SIZE, t->local_size);
    t->nodes = (t->world_size + t->local_size - 1) / t->local_size;
    t->node_rank = t->rank / t->local_size;
    return 0;
}

/* "host" or "host:port", of which port 0 is any free one, and an address of IPv6 is in brackets
 * (RFC 3986); `name` says where it is from. */
static int parse_endpoint(const char *name, const char *endpoint, struct topology *t,
                          struct error *err)
{
    const char *bracket = endpoint[0] == '[' ? strchr(endpoint, ']') : NULL;
    const char *host = bracket ? endpoint + 1 : endpoint;
    const char *end = bracket ? bracket : host + strcspn(host, ":");
    const char *behind = bracket ? bracket + 1 : end; /* ":port", or nothing */
    size_t length = (size_t)(end - host);
    int64_t port = TOPOLOGY_DEFAULT_PORT;
    if (length == 0 || length >= sizeof t->host ||
        (*behind && (*behind != ':' || !str_to_i64(behind + 1, 0, 65535, &port))))
        return error_set(err, ERR_CONFIG,
                         "%s: '%s' is not HOST:PORT (an address of IPv6: [ADDRESS]:PORT)", name,
                         endpoint);
    snprintf(t->host, sizeof t->host, "%.*s", (int)length, host);
    t->port = (int)port;
    return 0;
}

static int check_backend(const struct reader *r, const struct topology_request *wish,
                         struct error *err)
{
    const char *name = "runtime.rdzv_backend", *backend = wish->rdzv_backend;
    if (!backend || !backend[0])
        backend = first_of(r, ENV_PET_RDZV_BACKEND, NULL, &name);
    if (backend && strcmp(backend, "c10d") != 0 && strcmp(backend, "static") != 0)
        return error_set(err, ERR_UNSUPPORTED, "%s: '%s' is not built; c10d and static are", name,
                         backend);
    return 0;
}

/* From the environment; *ret_known: something there names it. */
static int read_host(const struct reader *r, struct topology *t, bool *ret_known, struct error *err)
{
    const char *name;
    const char *text = first_of(r, ENV_PET_RDZV_ENDPOINT, NULL, &name);
    *ret_known = true;
    if (text && parse_endpoint(name, text, t, err))
        return -1;
    const char *host = first_of(r, ENV_MASTER_ADDR, ENV_PET_MASTER_ADDR, &name);
    if (host && strlen(host) >= sizeof t->host)
        return error_set(err, ERR_CONFIG, "%s: longer than %zu bytes", name, sizeof t->host - 1);
    if (host)
        memcpy(t->host, host, strlen(host) + 1);
    else if (!is_set(r, ENV_PET_RDZV_ENDPOINT)) {
        topology_first_host(r->lookup, r->ctx, t->host);
        *ret_known = t->host[0];
    }
    return read_number(r, ENV_MASTER_PORT, ENV_PET_MASTER_PORT, 1, 65535, t->port, &t->port, err);
}

/* A launcher's child, which has read the same flags: where the ranks meet the launcher has chosen
 * since, for each round anew if the run is elastic. */
static bool is_placed(const struct reader *r)
{
    return is_set(r, ENV_LOCAL_RANK) && is_set(r, ENV_MASTER_ADDR) && is_set(r, ENV_MASTER_PORT);
}

/* What flags say of it. */
static int read_wished_endpoint(const struct topology_request *wish, struct topology *t,
                                bool *is_known, struct error *err)
{
    if (strlen(wish->master_addr) >= sizeof t->host)
        return error_set(err, ERR_CONFIG, "runtime.master_addr: longer than %zu bytes",
                         sizeof t->host - 1);
    if (wish->rdzv_endpoint && wish->rdzv_endpoint[0]) {
        if (parse_endpoint("runtime.rdzv_endpoint", wish->rdzv_endpoint, t, err))
            return -1;
        *is_known = true;
    }
    if (wish->master_addr[0]) {
        memcpy(t->host, wish->master_addr, strlen(wish->master_addr) + 1);
        *is_known = true;
    }
    if (wish->master_port > 0)
        t->port = wish->master_port;
    return 0;
}

static int read_master_endpoint(const struct reader *r, const struct topology_request *wish,
                                struct topology *t, struct error *err)
{
    bool is_known;
    t->port = TOPOLOGY_DEFAULT_PORT;
    if (check_backend(r, wish, err) || read_host(r, t, &is_known, err) ||
        (!is_placed(r) && read_wished_endpoint(wish, t, &is_known, err)))
        return -1;
    if (!is_known && t->nodes > 1)
        return not_set(ENV_MASTER_ADDR " (or --master_addr)", "there is more than one node", err);
    else if (!is_known)
        snprintf(t->host, sizeof t->host, "127.0.0.1");
    bool is_shared = t->world_size > 1 && (t->nodes > 1 || !t->is_launcher);
    if (t->port == 0 && is_shared)
        return error_set(err, ERR_CONFIG,
                         "runtime.rdzv_endpoint (PET_RDZV_ENDPOINT): port 0, any free one, is for "
                         "the ranks of one launcher: name a port that is free on the first node");
    if (t->port == 0)
        snprintf(t->host, sizeof t->host, "127.0.0.1");
    return 0;
}

/* A child of torchrun or of our own launcher, of srun or of mpirun, or a pod's first process. */
static int read_identity(const struct reader *r, const struct topology_request *wish,
                         struct topology *t, struct error *err)
{
    bool is_found = false;
    if (is_set(r, ENV_LOCAL_RANK))
        return read_process(r, t, err);
    /* Variables of srun and mpirun may be left over in a shell or an image: whoever says otherwise
     * is believed first. */
    bool counts = wish->nproc_per_node[0] || wish->launch || wish->standalone ||
                  wish->max_restarts > 0 || is_set(r, ENV_PET_NPROC_PER_NODE) ||
                  is_set(r, ENV_RANK);
    if (!counts && topology_read_scheduler(r->lookup, r->ctx, t, &is_found, err))
        return -1;
    return is_found ? 0 : read_pod(r, wish, t, err);
}

/* Cut off, two runs could have one name. */
static int keep_text(const char *text, const char *name, char *kept, size_t size, struct error *err)
{
    if (text && strlen(text) >= size)
        return error_set(err, ERR_CONFIG, "%s: longer than %zu bytes", name, size - 1);
    snprintf(kept, size, "%s", text ? text : "");
    return 0;
}

/* Which run it is, and what proves that a peer is of it. */
static int read_ids(const struct reader *r, const struct topology_request *wish, struct topology *t,
                    struct error *err)
{
    bool is_asked = wish->rdzv_id && wish->rdzv_id[0];
    const char *id = is_asked ? wish->rdzv_id : r->lookup(r->ctx, ENV_PET_RDZV_ID);
    if (keep_text(id, is_asked ? "runtime.rdzv_id" : ENV_PET_RDZV_ID, t->job_id, sizeof t->job_id,
                  err) ||
        keep_text(r->lookup(r->ctx, ENV_RUN_ID), ENV_RUN_ID, t->run_id, sizeof t->run_id, err))
        return -1;
    const char *secret = r->lookup(r->ctx, ENV_RUN_SECRET);
    t->is_secret_set = secret != NULL;
    return keep_text(secret ? secret : t->run_id, ENV_RUN_SECRET, t->secret, sizeof t->secret, err);
}

int topology_read(getenv_fn *lookup, void *ctx, const struct topology_request *wish,
                  struct topology *ret_topology, struct error *err)
{
    const struct reader r = {lookup, ctx};
    struct topology t = {.nodes = 1};
    if (read_identity(&r, wish, &t, err) || read_master_endpoint(&r, wish, &t, err) ||
        read_number(&r, ENV_RESTART_COUNT, NULL, 0, 1 << 30, 0, &t.restart_count, err))
        return -1;
    if (wish->standalone && !is_set(&r, ENV_LOCAL_RANK)) {
        snprintf(t.host, sizeof t.host, "127.0.0.1");
        t.port = 0;
    }
    if (t.world_size > TOPOLOGY_MAX_RANKS)
        return error_set(err, ERR_CONFIG, "%d ranks are more than %d", t.world_size,
                         TOPOLOGY_MAX_RANKS);
    if (read_ids(&r, wish, &t, err))
        return -1;
    *ret_topology = t;
    return 0;
}
