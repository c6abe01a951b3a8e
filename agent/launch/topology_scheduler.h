/* The topology where Slurm's srun or an mpirun has started one process per rank. Pure. Private to
 * topology.c. */
#ifndef SHOAL_AGENT_LAUNCH_TOPOLOGY_SCHEDULER_H
#define SHOAL_AGENT_LAUNCH_TOPOLOGY_SCHEDULER_H

#include "agent/launch/topology.h"

/* Fills in rank, world_size, local_rank, local_size, node_rank and nodes from OMPI_COMM_WORLD_*,
 * PMI_* or, in a Slurm step, SLURM_*. *ret_found: true if they describe more than one process.
 * Errors: ERR_CONFIG names the variable and its value. */
int topology_read_scheduler(getenv_fn *lookup, void *ctx, struct topology *t, bool *ret_found,
                            struct error *err);

/* The first host of SLURM_NODELIST: "a" of "a,b", "n5" of "n[5-7,9]"; "" if there is none or its
 * name is too long. */
void topology_first_host(getenv_fn *lookup, void *ctx, char ret_host[TOPOLOGY_HOST_BYTES]);
#endif
