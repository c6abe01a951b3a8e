/* Scripts of other trainers that a preset replaces. The agent never runs a script. If the file is
 * there, the agent reads it and warns of each difference from the preset that it can recognize. */
#ifndef SHOAL_AGENT_COMPAT_SCRIPT_H
#define SHOAL_AGENT_COMPAT_SCRIPT_H

#include "agent/config/config.h"

/* The preset that replaces a script, given by its path or name; NULL: none. by_accelerate: the name
 * says less, as accelerate launches scripts of any name. */
const char *script_preset(const char *script, bool by_accelerate);
/* Adds all known names, a blank before each. */
void script_names(struct str *out);

/* Sets config->script_notice: which preset replaces runtime.script. is_here: the file
 * exists. Pure. */
void script_describe(struct config *config, bool is_here, struct arena *arena);
/* Adds a headline for each difference that the script's `text` shows. Pure. Errors: ERR_CONFIG if
 * the script trains on other data. */
int script_compare(struct config *config, const char *text, struct arena *arena, struct error *err);
/* Describes, reads the file and compares it. A file that cannot be read gets a headline. Errors:
 * also ERR_CONFIG if it is no regular file. */
int script_check(struct config *config, struct arena *arena, struct error *err);
#endif
