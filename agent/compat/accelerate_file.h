/* Accelerate's configuration file: where a user's own lies, and how one is written. Which keys it
 * may have is config_accelerate.c's to say. */
#ifndef SHOAL_AGENT_COMPAT_ACCELERATE_FILE_H
#define SHOAL_AGENT_COMPAT_ACCELERATE_FILE_H

#include "base/environment.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdio.h>

/* default_config.yaml in $HF_HOME/accelerate, else $XDG_CACHE_HOME/huggingface/accelerate, else
 * $HOME/.cache/huggingface/accelerate; from `arena`. NULL if none of them is set. */
const char *accelerate_default_file(getenv_fn *lookup, void *ctx, struct arena *arena);
/* That one, or default_config.json beside it, if it can be read; else NULL. */
const char *accelerate_find_file(getenv_fn *lookup, void *ctx, struct arena *arena);

/* Values by their keys, "KEY=VALUE" (the dashes of flags may stand before them), NULL-terminated;
 * what is not there is asked for on `out` and read from `in`, or is its default without `in`. Adds
 * the file's text. Errors: ERR_CONFIG names the key or value and what is allowed. */
int accelerate_write_file(const char *const *values, FILE *in, FILE *out, struct str *text,
                          struct error *err);
#endif
