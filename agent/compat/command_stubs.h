/* Stubs of commands that manifests run before their script: git clone and pip install. The agent
 * needs nothing of what they fetch. The agent's image links these names to the agent, so that such
 * a line succeeds, fetches nothing and says why. Pure. */
#ifndef SHOAL_AGENT_COMPAT_COMMAND_STUBS_H
#define SHOAL_AGENT_COMPAT_COMMAND_STUBS_H

#include "base/str.h"

#include <stdbool.h>

/* Whether argv is such a command, also as "python -m pip" or after the agent's own name. If so,
 * adds the line to print, with its newline, and sets *ret_exit_code: 0, or 1 for another
 * subcommand. */
bool command_stub(char *const *argv, struct str *out, int *ret_exit_code);
#endif
