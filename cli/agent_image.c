#include "cli/agent_image.h"

#include "base/contract.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[] = {AGENT_IMAGE_NAMES};

int agent_image_open(struct agent_image *image, const char *folder, const char *program_dir,
                     struct error *err)
{
    auto_free char *agent = xasprintf("%s/" AGENT_PROGRAM, program_dir);
    image->path[0] = '\0';
    if (access(agent, X_OK) < 0)
        return 0;
    snprintf(image->path, sizeof image->path, "%s/bin", folder);
    if (mkdir(image->path, 0700) < 0) {
        error_errno(err, errno, "create a folder %s", image->path);
        image->path[0] = '\0';
        return -1;
    }
    for (size_t i = 0; i < array_length(names); i++) {
        auto_free char *link = xasprintf("%s/%s", image->path, names[i]);
        /* The agent looks at argv[0] for the name that it was called by, so links are enough. */
        if (symlink(agent, link) < 0) {
            error_errno(err, errno, "create the link %s", link);
            agent_image_close(image);
            return -1;
        }
    }
    return 0;
}

void agent_image_close(struct agent_image *image)
{
    if (!image->path[0])
        return;
    for (size_t i = 0; i < array_length(names); i++) {
        auto_free char *link = xasprintf("%s/%s", image->path, names[i]);
        unlink(link);
    }
    rmdir(image->path);
    image->path[0] = '\0';
}
