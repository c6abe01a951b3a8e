#include "base/cores.h"

#include "base/file.h"
#include "base/mem.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CGROUPS "/sys/fs/cgroup"
enum { FILE_MAX_BYTES = 64 * 1024 };

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

/* NULL if it cannot be read. */
static char *read_text(const char *path)
{
    char *text;
    size_t bytes;
    struct error ignored;
    return file_read(path, FILE_MAX_BYTES, &text, &bytes, &ignored) < 0 ? NULL : text;
}

/* The quota of one group of v2, or of v1's controller; 0: none. */
static int group_quota(const char *directory)
{
    auto_free char *v2 = xasprintf("%s/cpu.max", directory), *max = read_text(v2);
    if (max)
        return cores_of_quota(max);
    auto_free char *quota_path = xasprintf("%s/cpu.cfs_quota_us", directory);
    auto_free char *period_path = xasprintf("%s/cpu.cfs_period_us", directory);
    auto_free char *quota = read_text(quota_path), *period = read_text(period_path);
    auto_free char *both = quota && period ? xasprintf("%s %s", quota, period) : NULL;
    return both ? cores_of_quota(both) : 0;
}

/* The least of the quotas of a group and those above it, up to the root; 0: none. */
static int path_quota(const char *root, const char *path)
{
    int least = 0;
    auto_free char *directory = xasprintf("%s%s", root, path);
    /* A group is limited by each of those above it as well: the kubelet sets the pod's limit
     * there. */
    for (;;) {
        int cores = group_quota(directory);
        if (cores > 0 && (least == 0 || cores < least))
            least = cores;
        char *slash = strrchr(directory, '/');
        if (!slash || slash < directory + strlen(root))
            return least;
        *slash = '\0';
    }
}

/* Lines "0::PATH" (v2) and "N:cpu,cpuacct:PATH" (v1). In a container the path is often "/". */
static int own_quota(void)
{
    int least = 0;
    auto_free char *groups = read_text("/proc/self/cgroup");
    char *rest = groups, *line;
    while (groups && (line = strsep(&rest, "\n"))) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        bool is_v2 = names[1] == '\0',
             is_cpu = strncmp(names + 1, "cpu", 3) == 0 && (names[4] == '\0' || names[4] == ',');
        int cores = is_v2    ? path_quota(CGROUPS, path)
                    : is_cpu ? path_quota(CGROUPS "/cpu", path)
                             : 0;
        if (cores > 0 && (least == 0 || cores < least))
            least = cores;
    }
    return least;
}

int cores_available(void)
{
    cpu_set_t set;
    /* The number of processors is that of the machine, also in a container: there it starts dozens
     * of threads on two cores. */
    long cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                             : sysconf(_SC_NPROCESSORS_ONLN);
    int quota = own_quota();
    if (quota > 0 && quota < cores)
        cores = quota;
    return cores > 1 ? (int)cores : 1;
}
