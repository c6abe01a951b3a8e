/* How much more memory this process can have: what the machine has available, and no more than the
 * limits of its cgroups (a container's memory limit) leave. Pages of a memfd count as any other. */
#ifndef SHOAL_BASE_MEMORY_LEFT_H
#define SHOAL_BASE_MEMORY_LEFT_H

#include <stdint.h>

/* What bounds the memory of this process and of others with it. */
enum memory_bound_of { MEMORY_OF_MACHINE, MEMORY_OF_CONTAINER, MEMORY_BOUNDS };
struct memory_bound {
    uint64_t id;  /* the same for all that share it, on any machine; 0: not known */
    int64_t left; /* bytes for all of them; INT64_MAX: nobody tells, or there is no limit */
};
const char *memory_bound_name(enum memory_bound_of of); /* "the machine" */
void memory_bounds(struct memory_bound ret_bounds[MEMORY_BOUNDS]);

/* The least of them. Bytes; INT64_MAX if nobody tells. *ret_by: who limits it, "the machine" or
 * "the container's memory limit". */
int64_t memory_left(const char **ret_by);

/* The line MemAvailable of /proc/meminfo, in bytes; INT64_MAX if there is none. Pure. */
int64_t memory_left_of_machine(const char *meminfo);
/* Of a cgroup: its limit (memory.max, memory.limit_in_bytes), less what it uses (memory.current,
 * memory.usage_in_bytes), but for file pages that the kernel would drop first (inactive_file of
 * memory.stat). INT64_MAX without a limit. Texts may be NULL. Pure. */
int64_t memory_left_of_group(const char *limit, const char *used, const char *stat);
#endif
