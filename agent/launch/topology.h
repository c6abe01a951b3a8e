/* Who this process is among the ranks of a job: read from the environment that the operator,
 * torchrun or a person has set. Pure: the environment is given as a function.
 *
 * PyTorchJob's RANK and WORLD_SIZE speak of pods (WORLD_SIZE is pods times nprocPerNode, RANK the
 * pod's number): they are a process's own only where LOCAL_RANK is set too, as torchrun does for
 * its children. Everywhere else this is a pod's first process, known by PET_NODE_RANK (or RANK),
 * PET_NNODES and PET_NPROC_PER_NODE, or where srun or mpirun started it, by their variables. The
 * workers of an elastic job, which are not numbered so, have their number in their names. */
#ifndef SHOAL_AGENT_TOPOLOGY_H
#define SHOAL_AGENT_TOPOLOGY_H

#include "base/error.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TOPOLOGY_MAX_RANKS = 4096,
    TOPOLOGY_HOST_BYTES = 256,
    TOPOLOGY_SECRET_BYTES = 256,
    TOPOLOGY_DEFAULT_PORT = 29500
};

struct topology {
    int rank, world_size; /* of processes; of a pod's first process with local_size > 1: its first
                             child's */
    int local_rank, local_size;     /* within the pod */
    int node_rank, nodes;           /* pods */
    char host[TOPOLOGY_HOST_BYTES]; /* where rank 0 is */
    int port;                       /* 0: the launcher is to find one that is free */
    char job_id[128];  /* PET_RDZV_ID; "" if there is none: only processes with the same meet */
    bool is_launcher;  /* the local ranks are still to be launched */
    int restart_count; /* starts of this replica before */
    char run_id[64];   /* SHOAL_RUN_ID; "" if there is none */
    char secret[TOPOLOGY_SECRET_BYTES]; /* SHOAL_RUN_SECRET, or run_id where that is not set; "" if
                                           there is none: only who knows it meets */
    bool is_secret_set;                 /* by SHOAL_RUN_SECRET */
};

/* What the configuration says instead of the environment; "" and negative or 0: nothing. */
struct topology_wish {
    const char *nproc_per_node; /* a number, "auto", "cpu" or "gpu" */
    const char *nnodes;
    int node_rank; /* -1 */
    const char *master_addr;
    int master_port;
    const char *rdzv_backend;  /* NULL: nothing */
    const char *rdzv_endpoint; /* "HOST" or "HOST:PORT"; NULL: nothing */
    const char *rdzv_id;       /* NULL: nothing */
    bool standalone;           /* this pod alone, at a port that the launcher finds */
    bool launch;               /* even a single rank is a process of the launcher's */
    int (*count_gpus)(void); /* for "auto" and "gpu"; called if needed; NULL: none are to be used */
};

typedef const char *(*topology_getenv)(void *ctx, const char *name);

/* Errors: ERR_CONFIG names the variable or key, its value and what is allowed. */
int topology_read(topology_getenv lookup, void *ctx, const struct topology_wish *wish,
                  struct topology *ret_topology, struct error *err);

/* How many nodes "4" or "MIN:MAX" starts with: MIN, as nodes are not awaited beyond what is needed.
 * Errors: ERR_CONFIG names `name`, the text and what is allowed. */
int topology_parse_nodes(const char *name, const char *text, int *ret_count, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
