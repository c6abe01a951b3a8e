/* What a person names a model or a tokenizer by: a path, or an id of the Hub that a cache on this
 * machine has, as the agent finds them. */
#ifndef SHOAL_CLI_NAMED_MODEL_H
#define SHOAL_CLI_NAMED_MODEL_H

#include "base/error.h"
#include "base/mem.h"

/* *ret_path: `name` itself, or the cache's directory; from the arena. Errors: ERR_NOT_FOUND says
 * where it was looked for, and what brings it. */
int named_model(const char *name, struct arena *arena, const char **ret_path, struct error *err);

#endif
