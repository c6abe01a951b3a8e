/* The cgroups that limit this process: its own, and each above it, up to the root. */
#ifndef SHOAL_BASE_CGROUP_H
#define SHOAL_BASE_CGROUP_H

#include <stddef.h>

/* Calls `visit` with the directory of each: of version 2, and of version 1's controller ("cpu",
 * "memory"). In a container the first is often the root, the only one there is to be seen. */
void cgroup_walk(const char *controller, void (*visit)(void *ctx, const char *directory),
                 void *ctx);

/* The text of a file of a group, or of /proc; NULL if it cannot be read. The caller frees. */
char *cgroup_read(const char *directory, const char *name);
#endif
