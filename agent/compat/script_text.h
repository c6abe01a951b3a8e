/* What a Python script calls, and with which arguments: found in its text, which is never run.
 * Pure. */
#ifndef SHOAL_AGENT_COMPAT_SCRIPT_TEXT_H
#define SHOAL_AGENT_COMPAT_SCRIPT_TEXT_H

#include "base/mem.h"

/* The text without comments, strings and blanks, but with each of its line ends; from the arena. */
const char *script_text_bare(const char *text, struct arena *arena);
/* The number, from 1, of the line of a bare text that `at` points into. */
int script_text_line(const char *bare, const char *at);

/* The word that begins at `at`; "" if none does. */
const char *script_text_name(const char *at, struct arena *arena);
/* The arguments of the next call of the function in the bare text, from `from` on, where its
 * name has no module in front. NULL: there is none. */
const char *script_text_call(const char *bare, const char *from, const char *function);
/* The value of a keyword of a call whose arguments begin at `call`, and where it stands; "": the
 * call has no such keyword. "**" finds a mapping's name. */
const char *script_text_keyword(const char *call, const char *name, const char **ret_at,
                                struct arena *arena);
/* The value that the script assigns to the variable, if it does so once and on one line; "" else.
 */
const char *script_text_assigned(const char *bare, const char *variable, struct arena *arena);

#endif
