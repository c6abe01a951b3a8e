/* Manifests that another program makes of a folder. Yields text; does not know what is in it. */
#ifndef SHOAL_CLI_KUSTOMIZE_H
#define SHOAL_CLI_KUSTOMIZE_H

#include "base/error.h"
#include "base/str.h"

/* Adds what `kubectl kustomize FOLDER` prints, or `kustomize build FOLDER`: whichever is on the
 * PATH first in this order; *ret_command (the caller frees) says which it was, for messages about
 * lines of that text. Without either: ERR_NOT_FOUND. */
int kustomize_build(const char *folder, struct str *text, char **ret_command, struct error *err);
#endif
