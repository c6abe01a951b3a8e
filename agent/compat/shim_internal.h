/* Private to shim.c (torchrun's command line) and shim_accelerate.c (accelerate's). */
#ifndef SHOAL_AGENT_COMPAT_SHIM_INTERNAL_H
#define SHOAL_AGENT_COMPAT_SHIM_INTERNAL_H

#include "agent/compat/shim.h"

enum { SHIM_MAX_WORDS = 512 };

/* The agent's command line as it is built. */
struct shim_writer {
    getenv_fn *lookup;
    void *ctx;
    struct arena *arena;
    const char *tool; /* "torchrun" */
    char *words[SHIM_MAX_WORDS + 1];
    int count;
};

/* Errors: ERR_CONFIG if there are too many. */
int shim_add_word(struct shim_writer *w, const char *word, struct error *err);

/* Adds the flags that name the script (a path or a module's name) and its preset. Errors:
 * ERR_CONFIG if the script is unknown. */
int shim_add_script(struct shim_writer *w, const char *script, bool is_module, struct error *err);

/* Whether the flag `word` ("--name", "--name=value", '-' and '_' equal) has this name. */
bool shim_is_flag(const char *word, const char *name);

/* ERR_CONFIG for a flag before the script that `tool` has not; names: all that it has, with their
 * dashes, separated by spaces. */
int shim_refuse_flag(const char *tool, const char *word, const char *names, struct error *err);

/* "accelerate launch [FLAGS] SCRIPT [ARGUMENTS]", from the word after "accelerate". *words is
 * then after the script. */
int shim_read_accelerate(struct shim_writer *w, char *const **words, struct error *err);
#endif
