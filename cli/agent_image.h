/* What the agent's image has in /usr/local/bin, on this machine: a folder of links to the agent
 * under the names of launchers and of what manifests run before them, for the containers of that
 * image. */
#ifndef SHOAL_CLI_AGENT_IMAGE_H
#define SHOAL_CLI_AGENT_IMAGE_H

#include "base/error.h"

#include <limits.h>

struct agent_image {
    char path[PATH_MAX]; /* "": there is none */
};

/* Makes the folder "bin" in `folder`, which is the run's own. program_dir: where the agent lies;
 * without one there the path is "". Errors: ERR_IO. */
int agent_image_open(struct agent_image *image, const char *folder, const char *program_dir,
                     struct error *err);
/* Removes the folder. One that was never opened, of all zeroes, will do. */
void agent_image_close(struct agent_image *image);
#endif
