/* Binds a rank to the cores of one NUMA node, so that its memory is local: the node of its GPU
 * where the kernel reports one. Otherwise the local ranks are spread over the NUMA
 * nodes in order. */
#ifndef SHOAL_AGENT_LAUNCH_NUMA_H
#define SHOAL_AGENT_LAUNCH_NUMA_H

#include "base/error.h"

#include <sched.h>
#include <stdbool.h>

enum { NUMA_MAX_NODES = 64 };

struct numa_nodes {
    cpu_set_t cores[NUMA_MAX_NODES];
    int numbers[NUMA_MAX_NODES]; /* the kernel's, ascending */
    int count;
};

/* Parses "0-3,8", as in a node's cpulist, up to CPU_SETSIZE. False if the text is
 * malformed. Pure. */
bool numa_parse_cores(const char *text, cpu_set_t *ret_cores);

/* Reads the nodes below `root` (/sys/devices/system/node). Keeps the allowed cores, and the nodes
 * that have some. No nodes if the kernel reports none. */
void numa_read(const char *root, const cpu_set_t *allowed, struct numa_nodes *ret_nodes);

/* The number of a PCI device's NUMA node; -1 if the kernel does not report it. root:
 * /sys/bus/pci/devices; pci: the device's id there ("0000:1b:00.0"), or NULL. */
int numa_of_device(const char *root, const char *pci);

/* The rank's index in `nodes`: the node with the number `wanted` if it is there, else the one of
 * the rank's share. *ret_sharing: how many local ranks use that node if they are spread evenly.
 * nodes->count >= 1. Pure. */
int numa_choose(const struct numa_nodes *nodes, int wanted, int local_rank, int local_size,
                int *ret_sharing);

/* Binds the calling process, and threads that it starts later, to its rank's node. pci: of its GPU,
 * or NULL. *ret_sharing as above. ERR_UNSUPPORTED if the kernel reports no nodes. */
int numa_bind(const char *pci, int local_rank, int local_size, int *ret_sharing, struct error *err);
#endif
