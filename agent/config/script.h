/* Scripts of other trainers that a preset stands in for. They are never run; one that lies there is
 * looked at for what the preset does not do, so that nothing of it is passed over in silence. */
#ifndef SHOAL_AGENT_SCRIPT_H
#define SHOAL_AGENT_SCRIPT_H

#include "agent/config/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The preset that stands in for a script, a path or the name of a file; NULL: nobody knows it.
 * Under accelerate its name says less: anybody's train.py may be launched so. */
const char *script_preset(const char *script, bool by_accelerate);
/* All names that are known, a blank before each. */
void script_names(struct str *out);

/* Says which preset stands in for runtime.script (config->stand_in), and adds to the headline what
 * the file does otherwise, as far as `text` (NULL: it is not there) shows. Pure. */
void script_compare(struct config *config, const char *text, struct arena *arena);
/* The same with the file read. */
void script_look(struct config *config, struct arena *arena);

#ifdef __cplusplus
}
#endif
#endif
