/* The commands of accelerate that start no training: config, env and merge-weights. Part of the
 * program: they print and write files. */
#ifndef SHOAL_AGENT_COMPAT_ACCELERATE_H
#define SHOAL_AGENT_COMPAT_ACCELERATE_H

#include "agent/compat/accelerate_file.h"

/* Runs argv if it is such a command, also after the agent's own name, and sets *ret_exit_code.
 * False: it is none. */
bool accelerate_command(char *const *argv, getenv_fn *lookup, void *ctx, int *ret_exit_code);
#endif
