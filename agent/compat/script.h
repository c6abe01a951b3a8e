/* Scripts of other trainers that a preset stands in for. They are never run; one that lies there is
 * looked at for what the preset does not do, so that nothing of it is passed over in silence. */
#ifndef SHOAL_AGENT_COMPAT_SCRIPT_H
#define SHOAL_AGENT_COMPAT_SCRIPT_H

#include "agent/config/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The preset that stands in for a script, a path or the name of a file; NULL: nobody knows it.
 * Under accelerate its name says less: anybody's train.py may be launched so. */
const char *script_preset(const char *script, bool by_accelerate);
/* All names that are known, a blank before each. */
void script_names(struct str *out);

/* Says which preset stands in for runtime.script (config->script_notice); is_here: its file is.
 * Pure. */
void script_describe(struct config *config, bool is_here, struct arena *arena);
/* The same, and adds to the headline what the file does otherwise, as far as `text` (NULL: it is
 * not there) shows. Pure. Errors: ERR_CONFIG if it trains on other data. */
int script_compare(struct config *config, const char *text, struct arena *arena, struct error *err);
/* The same with the file read. Errors: also what is no regular file. */
int script_look(struct config *config, struct arena *arena, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
