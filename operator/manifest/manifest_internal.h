/* What the files of manifest*.c share, each of which writes another kind of object. */
#ifndef SHOAL_OPERATOR_MANIFEST_MANIFEST_INTERNAL_H
#define SHOAL_OPERATOR_MANIFEST_MANIFEST_INTERNAL_H

#include "operator/manifest/manifest.h"

/* `version` is the apiVersion; the owner is the job. `labels` and
 * `annotations` may be empty. */
struct json *manifest_object(const char *version, const char *kind, const char *name,
                             const struct job *job, const struct pairs *labels,
                             const struct pairs *annotations);

/* Whether an API server has kept all of a member that was written. A map or a list of which an
 * entry is missing is not whole. answer may be NULL. */
bool manifest_is_whole(const struct json *written, const struct json *answer);
#endif
