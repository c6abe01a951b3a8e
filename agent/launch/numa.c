#include "agent/launch/numa.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX_BYTES = 64 * 1024 };

bool numa_parse_cores(const char *text, cpu_set_t *ret_cores)
{
    CPU_ZERO(ret_cores);
    auto_free char *list = xstrdup(text);
    list[strcspn(list, "\n")] = '\0';
    char *rest = list;
    for (char *range; (range = strsep(&rest, ","));) {
        char *dash = strchr(range, '-');
        int64_t first, last;
        if (dash)
            *dash = '\0';
        if (!str_to_i64(range, 0, CPU_SETSIZE - 1, &first))
            return false;
        last = first;
        if (dash && !str_to_i64(dash + 1, first, CPU_SETSIZE - 1, &last))
            return false;
        for (int64_t core = first; core <= last; core++)
            CPU_SET((size_t)core, ret_cores);
    }
    return true;
}

void numa_read(const char *root, const cpu_set_t *allowed, struct numa_nodes *ret_nodes)
{
    ret_nodes->count = 0;
    for (int i = 0; i < NUMA_MAX_NODES; i++) {
        auto_free char *path = xasprintf("%s/node%d/cpulist", root, i);
        auto_free char *list = NULL;
        size_t bytes;
        cpu_set_t cores;
        struct error ignored; /* numbers may be left out */
        if (file_read(path, LIST_MAX_BYTES, &list, &bytes, &ignored) < 0 ||
            !numa_parse_cores(list, &cores)) /* a node without cores has an empty list */
            continue;
        CPU_AND(&cores, &cores, allowed);
        if (CPU_COUNT(&cores) == 0)
            continue;
        ret_nodes->numbers[ret_nodes->count] = i;
        ret_nodes->cores[ret_nodes->count++] = cores;
    }
}

int numa_of_device(const char *root, const char *pci)
{
    auto_free char *path = pci ? xasprintf("%s/%s/numa_node", root, pci) : NULL;
    auto_free char *text = NULL;
    size_t bytes;
    int64_t node;
    struct error ignored; /* a virtual machine may list no devices */
    if (!path || file_read(path, LIST_MAX_BYTES, &text, &bytes, &ignored) < 0)
        return -1;
    text[strcspn(text, "\n")] = '\0';
    return str_to_i64(text, 0, INT_MAX, &node) ? (int)node : -1;
}

int numa_choose(const struct numa_nodes *nodes, int wanted, int local_rank, int local_size,
                int *ret_sharing)
{
    /* Neighbouring ranks on one node, as GPUs are numbered along the PCIe root ports. */
    int count = nodes->count, node = local_rank * count / local_size;
    *ret_sharing = 0;
    for (int rank = 0; rank < local_size; rank++)
        *ret_sharing += rank * count / local_size == node;
    for (int i = 0; i < count; i++)
        if (nodes->numbers[i] == wanted) {
            *ret_sharing = (local_size + count - 1) / count;
            return i;
        }
    return node;
}

int numa_bind(const char *pci, int local_rank, int local_size, int *ret_sharing, struct error *err)
{
    cpu_set_t allowed;
    struct numa_nodes nodes;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return error_errno(err, errno, "runtime.cpu_affinity: sched_getaffinity");
    numa_read("/sys/devices/system/node", &allowed, &nodes);
    if (nodes.count == 0)
        return error_set(err, ERR_UNSUPPORTED,
                         "runtime.cpu_affinity: this system reports no NUMA nodes "
                         "(/sys/devices/system/node): leave it out");
    int wanted = numa_of_device("/sys/bus/pci/devices", pci);
    int node = numa_choose(&nodes, wanted, local_rank, local_size, ret_sharing);
    if (sched_setaffinity(0, sizeof nodes.cores[node], &nodes.cores[node]) < 0)
        return error_errno(err, errno, "runtime.cpu_affinity: sched_setaffinity");
    return 0;
}
