#include "base/memory_left.h"

#include "base/cgroup.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
    struct memory_bound *least = ctx;
    struct stat st;
    auto_free char *v2 = cgroup_read(directory, "memory.max");
    auto_free char *limit = v2 ? NULL : cgroup_read(directory, "memory.limit_in_bytes");
    auto_free char *used = cgroup_read(directory, v2 ? "memory.current" : "memory.usage_in_bytes");
    auto_free char *stat_text = cgroup_read(directory, "memory.stat");
    int64_t left = memory_left_of_group(v2 ? v2 : limit, used, stat_text);
    if (left >= least->left)
        return;
    least->left = left;
    /* A group has the same inode in each container that sees it. */
    least->id = stat(directory, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* The same in all containers, and another after each boot; 0: not known. */
static uint64_t machine_id(void)
{
    unsigned first, second, third;
    auto_free char *text = cgroup_read("/proc/sys/kernel/random", "boot_id");
    if (!text || sscanf(text, "%8x-%4x-%4x", &first, &second, &third) != 3)
        return 0;
    return (uint64_t)first << 32 | second << 16 | third;
}

const char *memory_bound_name(enum memory_bound_of of)
{
    return of == MEMORY_OF_MACHINE ? "the machine" : "the container's memory limit";
}

void memory_bounds(struct memory_bound ret_bounds[MEMORY_BOUNDS])
{
    auto_free char *meminfo = cgroup_read("/proc", "meminfo");
    struct memory_bound *machine = &ret_bounds[MEMORY_OF_MACHINE],
                        *group = &ret_bounds[MEMORY_OF_CONTAINER];
    *machine = (struct memory_bound){machine_id(), memory_left_of_machine(meminfo)};
    *group = (struct memory_bound){0, INT64_MAX};
    cgroup_walk("memory", take_least, group);
    group->id = group->id && machine->id ? machine->id + group->id : 0;
}

int64_t memory_left(const char **ret_by)
{
    struct memory_bound bounds[MEMORY_BOUNDS];
    memory_bounds(bounds);
    bool by_group = bounds[MEMORY_OF_CONTAINER].left < bounds[MEMORY_OF_MACHINE].left;
    enum memory_bound_of least = by_group ? MEMORY_OF_CONTAINER : MEMORY_OF_MACHINE;
    *ret_by = memory_bound_name(least);
    return bounds[least].left;
}
