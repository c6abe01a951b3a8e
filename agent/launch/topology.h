/* This process's place among the ranks of a job, read from the environment that the operator,
 * torchrun or a person has set. Pure: the environment is given as a function.
 *
 * A PyTorchJob's RANK and WORLD_SIZE are about pods: WORLD_SIZE is pods times nprocPerNode, RANK
 * the pod's number. They are this process's own only if LOCAL_RANK is set, too, as torchrun does
 * for its children. Otherwise this is a pod's first process: PET_NODE_RANK (or RANK), PET_NNODES
 * and PET_NPROC_PER_NODE describe it, or the variables of srun or mpirun. The workers of an elastic
 * job have no such number: theirs is the end of the pod's name. */
#ifndef SHOAL_AGENT_LAUNCH_TOPOLOGY_H
#define SHOAL_AGENT_LAUNCH_TOPOLOGY_H

#include "base/environment.h"
#include "base/error.h"

#include <stdbool.h>

enum {
    TOPOLOGY_MAX_RANKS = 4096,
    TOPOLOGY_HOST_BYTES = 256,
    TOPOLOGY_SECRET_BYTES = 256,
    TOPOLOGY_DEFAULT_PORT = 29500,
    TOPOLOGY_JOB_RESTARTS = 3 /* max_restarts in a pod of a PyTorchJob, unless it is set */
};

struct topology {
    int rank, world_size;           /* of this process; in a launcher: of its first child */
    int local_rank, local_size;     /* within the pod */
    int node_rank, nodes;           /* pods; of an elastic run those that there are at first */
    int min_nodes, max_nodes;       /* in a launcher: how many may train together */
    char host[TOPOLOGY_HOST_BYTES]; /* MASTER_ADDR: rank 0's */
    int port;                       /* MASTER_PORT; 0: the launcher chooses a free one */
    char job_id[128];  /* PET_RDZV_ID; "": none. Ranks with different ids do not meet */
    bool is_launcher;  /* this process starts the local ranks */
    int max_restarts;  /* how often a launcher starts them again */
    int restart_count; /* how often this replica was started before */
    char run_id[64];   /* SHOAL_RUN_ID; "" if there is none */
    char secret[TOPOLOGY_SECRET_BYTES]; /* SHOAL_RUN_SECRET, else run_id; "": none. Ranks must prove
                                           that they know it */
    bool is_secret_set;                 /* by SHOAL_RUN_SECRET */
};

/* Settings of the configuration that win over the environment; "", negative or 0: not set. */
struct topology_request {
    const char *nproc_per_node; /* a number, "auto", "cpu" or "gpu" */
    const char *nnodes;
    int node_rank; /* -1 */
    const char *master_addr;
    int master_port;
    const char *rdzv_backend;  /* NULL: not set */
    const char *rdzv_endpoint; /* "HOST" or "HOST:PORT", 0: a free one; NULL: not set */
    const char *rdzv_id;       /* NULL: not set */
    bool standalone;           /* this pod alone, at a port that the launcher chooses */
    bool launch;               /* start even a single rank as a child of the launcher */
    int max_restarts;          /* -1: not set. A pod that may restart its ranks has a launcher */
    int (*count_gpus)(void);   /* for "auto" and "gpu"; NULL: use no GPUs */
};

/* Errors: ERR_CONFIG names the variable or key, its value and what is allowed. */
int topology_read(getenv_fn *lookup, void *ctx, const struct topology_request *wish,
                  struct topology *ret_topology, struct error *err);

/* Whether the number of nodes may change while the job runs. */
bool topology_is_elastic(const struct topology *topology);

/* Parses "4", which is both, or "MIN:MAX". Errors: ERR_CONFIG names `name`, the text and what is
 * allowed. */
int topology_parse_nodes(const char *name, const char *text, int *ret_min, int *ret_max,
                         struct error *err);
#endif
