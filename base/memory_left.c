#include "base/memory_left.h"

#include "base/cgroup.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A line "NAME VALUE" of such a file. */
static bool find_number(const char *text, const char *name, int64_t *ret_value)
{
    size_t length = strlen(name);
    while (text && *text) {
        if (strncmp(text, name, length) == 0 && text[length] == ' ')
            return sscanf(text + length, "%" SCNd64, ret_value) == 1;
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return false;
}

int64_t memory_left_of_machine(const char *meminfo)
{
    int64_t kib;
    return find_number(meminfo, "MemAvailable:", &kib) && kib >= 0 && kib < INT64_MAX / 1024
               ? kib * 1024
               : INT64_MAX;
}

int64_t memory_left_of_group(const char *limit, const char *used, const char *stat)
{
    int64_t most, current, cache = 0;
    /* "max" is no number; version 1 has the largest multiple of a page instead. */
    if (!limit || sscanf(limit, "%" SCNd64, &most) != 1 || most < 0 || most > INT64_MAX / 2 ||
        !used || sscanf(used, "%" SCNd64, &current) != 1 || current < 0)
        return INT64_MAX;
    if (!find_number(stat, "total_inactive_file", &cache))
        find_number(stat, "inactive_file", &cache);
    if (cache < 0 || cache > current)
        cache = 0;
    int64_t left = most - (current - cache);
    return left > 0 ? left : 0;
}

static void take_least(void *ctx, const char *directory)
{
    int64_t *least = ctx;
    auto_free char *v2 = cgroup_read(directory, "memory.max");
    auto_free char *limit = v2 ? NULL : cgroup_read(directory, "memory.limit_in_bytes");
    auto_free char *used = cgroup_read(directory, v2 ? "memory.current" : "memory.usage_in_bytes");
    auto_free char *stat = cgroup_read(directory, "memory.stat");
    int64_t left = memory_left_of_group(v2 ? v2 : limit, used, stat);
    *least = left < *least ? left : *least;
}

int64_t memory_left(const char **ret_by)
{
    auto_free char *meminfo = cgroup_read("/proc", "meminfo");
    int64_t machine = memory_left_of_machine(meminfo), groups = INT64_MAX;
    cgroup_walk("memory", take_least, &groups);
    *ret_by = groups < machine ? "the container's memory limit" : "the machine";
    return groups < machine ? groups : machine;
}
