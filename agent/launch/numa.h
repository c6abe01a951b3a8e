/* Which cores a rank stays on: those of one NUMA node, so that its memory is near: the node its GPU
 * hangs on, where the system tells. Else the ranks of a node of the job are spread over the
 * machine's NUMA nodes in their order. */
#ifndef SHOAL_AGENT_NUMA_H
#define SHOAL_AGENT_NUMA_H

#include "base/error.h"

#include <sched.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NUMA_MAX_NODES = 64 };

struct numa_nodes {
    cpu_set_t cores[NUMA_MAX_NODES];
    int numbers[NUMA_MAX_NODES]; /* the system's, ascending */
    int count;
};

/* "0-3,8" as in a node's cpulist, up to CPU_SETSIZE. False if it is no such text. Pure. */
bool numa_parse_cores(const char *text, cpu_set_t *ret_cores);

/* The nodes below `root` (/sys/devices/system/node) that have some of the allowed cores, with
 * those; none if the system tells of none. */
void numa_read(const char *root, const cpu_set_t *allowed, struct numa_nodes *ret_nodes);

/* The system's number of the NUMA node that a device hangs on; -1 if it does not tell. root:
 * /sys/bus/pci/devices; pci: the device's id there ("0000:1b:00.0"), or NULL. */
int numa_of_device(const char *root, const char *pci);

/* Where in `nodes` a rank stays: the node of the number `wanted`, if it is there, else its share of
 * them. *ret_sharing: how many of the ranks have it, if they are spread evenly. nodes->count >= 1.
 * Pure. */
int numa_choose(const struct numa_nodes *nodes, int wanted, int local_rank, int local_size,
                int *ret_sharing);

/* Keeps the calling process, and the threads it will start, on its rank's node. pci: of its GPU,
 * or NULL. *ret_sharing as above. ERR_UNSUPPORTED if the system tells of no nodes. */
int numa_bind(const char *pci, int local_rank, int local_size, int *ret_sharing, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
