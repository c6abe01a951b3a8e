/* Finds calls, arguments and assignments in the text of a Python script, without
 * running it. Pure. */
#ifndef SHOAL_AGENT_COMPAT_SCRIPT_TEXT_H
#define SHOAL_AGENT_COMPAT_SCRIPT_TEXT_H

#include "base/mem.h"

/* The text without comments, strings and blanks. It keeps all line ends. From the arena. */
const char *script_text_bare(const char *text, struct arena *arena);
/* The number of the line that `at` points into, from 1. */
int script_text_line(const char *bare, const char *at);

/* The word that begins at `at`; "" if none does. */
const char *script_text_name(const char *at, struct arena *arena);
/* The arguments of the next call of the function after `from`. A call with a module's name before
 * it does not count. NULL: there is none. */
const char *script_text_call(const char *bare, const char *from, const char *function);
/* The value of a keyword argument; "": the call has no such keyword. `call` is where its arguments
 * begin; *ret_at: where the argument begins. "**" finds the name of a mapping. */
const char *script_text_keyword(const char *call, const char *name, const char **ret_at,
                                struct arena *arena);
/* The value that the script assigns to the variable; "" unless it does so exactly once, on one
 * line. */
const char *script_text_assigned(const char *bare, const char *variable, struct arena *arena);

#endif
