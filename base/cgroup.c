#include "base/cgroup.h"

#include "base/file.h"
#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

#define CGROUPS "/sys/fs/cgroup"
enum { FILE_MAX_BYTES = 64 * 1024 };

char *cgroup_read(const char *directory, const char *name)
{
    char *text;
    size_t bytes;
    struct error ignored;
    auto_free char *path = xasprintf("%s/%s", directory, name);
    return file_read(path, FILE_MAX_BYTES, &text, &bytes, &ignored) < 0 ? NULL : text;
}

/* A group is limited by each of those above it as well: the kubelet sets the pod's limit there. */
static void walk_up(const char *root, const char *path,
                    void (*visit)(void *ctx, const char *directory), void *ctx)
{
    auto_free char *directory = xasprintf("%s%s", root, path);
    for (;;) {
        visit(ctx, directory);
        char *slash = strrchr(directory, '/');
        if (!slash || slash < directory + strlen(root))
            return;
        *slash = '\0';
    }
}

/* Lines "0::PATH" (v2) and "N:cpu,cpuacct:PATH" (v1). */
void cgroup_walk(const char *controller, void (*visit)(void *ctx, const char *directory), void *ctx)
{
    size_t length = strlen(controller);
    auto_free char *groups = cgroup_read("/proc/self", "cgroup");
    auto_free char *v1 = xasprintf(CGROUPS "/%s", controller);
    char *rest = groups, *line;
    while (groups && (line = strsep(&rest, "\n"))) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        bool is_v2 = names[1] == '\0',
             is_mine = strncmp(names + 1, controller, length) == 0 &&
                       (names[1 + length] == '\0' || names[1 + length] == ',');
        if (is_v2 || is_mine)
            walk_up(is_v2 ? CGROUPS : v1, path, visit, ctx);
    }
}
