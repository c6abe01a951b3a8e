/* A word to who runs a manifest for PyTorch here as it is: torchrun and accelerate come with images
 * named shoal-agent, or lie on this machine. */
#ifndef SHOAL_CLI_LAUNCHER_HINT_H
#define SHOAL_CLI_LAUNCHER_HINT_H

#include "base/str.h"
#include "operator/job/types.h"

/* Adds a line, without its newline, if a container of another image calls a launcher
 * that is not on `path` (the PATH, or NULL); adds nothing else. */
void launcher_hint(const struct job *job, const char *path, struct str *out);
#endif
