/* How many CPU cores this process may keep busy: those its affinity names, and no more than the
 * quota of its cgroup (a container's CPU limit) gives time for. Threads beyond it would only wait
 * for each other. */
#ifndef SHOAL_BASE_CORES_H
#define SHOAL_BASE_CORES_H

/* >= 1. Reads the cgroup's files: v2's cpu.max and v1's cpu.cfs_*_us, of the process's own group
 * and those above it. */
int cores_available(void);

/* Whole cores of a quota: "QUOTA PERIOD" as in cpu.max, at least 1; 0 for "max", a quota below 0
 * (v1: none) and what is no quota. Pure. */
int cores_of_quota(const char *text);
#endif
