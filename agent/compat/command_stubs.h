/* Commands that manifests run before their script, to fetch what the agent needs none of: git clone
 * and pip install. The agent's image has it under their names too, so that such a line neither
 * fails nor fetches anything, and the log says why. Pure. */
#ifndef SHOAL_AGENT_COMPAT_COMMAND_STUBS_H
#define SHOAL_AGENT_COMPAT_COMMAND_STUBS_H

#include "base/str.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether argv is such a command, by its first word; pip as "python -m pip" too. Then `out` has the
 * line it says, with its newline, and *ret_exit_code how it ends: 0, or 1 if it was asked for
 * anything else. */
bool command_stub(char *const *argv, struct str *out, int *ret_exit_code);

#ifdef __cplusplus
}
#endif
#endif
