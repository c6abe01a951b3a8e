#include "base/cores.h"

#include "base/cgroup.h"
#include "base/mem.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

int cores_of_quota(const char *text)
{
    double quota, period;
    if (sscanf(text, "%lf %lf", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return 0;
    /* Rounded down: a thread more than the quota makes all of them wait for the end of each
     * period. */
    double cores = quota / period;
    return cores < 1 ? 1 : cores < 1 << 16 ? (int)cores : 0;
}

/* The quota of one group of v2, or of v1's controller; 0: none. */
static int group_quota(const char *directory)
{
    auto_free char *max = cgroup_read(directory, "cpu.max");
    if (max)
        return cores_of_quota(max);
    auto_free char *quota = cgroup_read(directory, "cpu.cfs_quota_us");
    auto_free char *period = cgroup_read(directory, "cpu.cfs_period_us");
    auto_free char *both = quota && period ? xasprintf("%s %s", quota, period) : NULL;
    return both ? cores_of_quota(both) : 0;
}

static void take_least(void *ctx, const char *directory)
{
    int *least = ctx, cores = group_quota(directory);
    if (cores > 0 && (*least == 0 || cores < *least))
        *least = cores;
}

int cores_available(void)
{
    cpu_set_t set;
    /* The number of processors is that of the machine, also in a container: there it starts dozens
     * of threads on two cores. */
    long cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                             : sysconf(_SC_NPROCESSORS_ONLN);
    int quota = 0;
    cgroup_walk("cpu", take_least, &quota);
    if (quota > 0 && quota < cores)
        cores = quota;
    return cores > 1 ? (int)cores : 1;
}
