/* What the launchers' command lines share. Private to agent/compat/shim*.c. */
#ifndef SHOAL_AGENT_COMPAT_SHIM_PARTS_H
#define SHOAL_AGENT_COMPAT_SHIM_PARTS_H

#include "agent/compat/shim.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SHIM_MAX_WORDS = 512 };

/* The agent's command line in the making. */
struct shim_writer {
    shim_getenv lookup;
    void *ctx;
    struct arena *arena;
    const char *tool; /* "torchrun" */
    char *words[SHIM_MAX_WORDS + 1];
    int count;
};

/* Errors: ERR_CONFIG if there are too many. */
int shim_add_word(struct shim_writer *w, const char *word, struct error *err);

/* The preset that stands in for a script (a path, or a module's name) under the tool, and where the
 * script is. Errors: ERR_CONFIG if nobody knows it. */
int shim_add_script(struct shim_writer *w, const char *script, bool is_module, struct error *err);

/* Whether the flag `word` ("--name", "--name=value", '-' and '_' equal) has this name. */
bool shim_is_flag(const char *word, const char *name);

/* "accelerate launch [FLAGS] SCRIPT [ARGUMENTS]", from the word after "accelerate". Leaves *words
 * behind the script. */
int shim_read_accelerate(struct shim_writer *w, char *const **words, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
