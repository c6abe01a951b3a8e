/* YAML text to JSON values, with the scalar rules that Kubernetes' own tools use (YAML 1.1: yes, on
 * and 0x10 are no strings), so that a manifest means here what it means to kubectl. JSON is a
 * subset. Knows nothing of what the documents are about. */
#ifndef SHOAL_BASE_YAML_H
#define SHOAL_BASE_YAML_H

#include "base/error.h"

#include <stddef.h>

struct json;

#define YAML_MAX_BYTES (4 << 20)
#define YAML_MAX_DEPTH 64
/* Of all documents, with every alias counted as what it stands for. */
#define YAML_MAX_NODES     200000
#define YAML_MAX_DOCUMENTS 256
#define YAML_MAX_ANCHORS   1000 /* of one document */

/* Reads all documents of the text; *ret_documents is a JSON array with one element each, empty
 * documents left out; the caller owns it. Values that an alias repeats are shared: treat all as
 * read-only. Merge keys (<<) are resolved. ERR_INPUT with "SOURCE:LINE:COLUMN: ..." if the text is
 * no YAML, has a key twice in one mapping, an unknown alias or tag, or goes beyond a limit. */
int yaml_parse(const char *text, size_t bytes, const char *source, struct json **ret_documents,
               struct error *err);
#endif
