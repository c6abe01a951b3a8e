/* A short text that a rank leaves for the one that is started in its place: the launcher holds it
 * in memory (memfd), so that it also outlives a rank that is killed. Knows not what is in it. */
#ifndef SHOAL_AGENT_LAUNCH_RANK_NOTE_H
#define SHOAL_AGENT_LAUNCH_RANK_NOTE_H

#include "base/str.h"

enum { RANK_NOTE_BYTES = 2048 };

/* ---- in the launcher ---- */

/* An empty one, above 0; the caller closes it. 0: the system has none, and ranks go without. */
int rank_note_open(void);
/* Hands it to the program that this process executes next: called in the child, between fork and
 * exec. 0: it gets none. */
void rank_note_set_inheritable(int fd);

/* ---- in the rank; fd 0: it has none, and nothing happens ---- */

/* What rank_note_set_inheritable() put into the environment: once, before any thread starts. 0:
 * there is none. */
int rank_note_inherit(void);
/* Replaces what is there. The text has at most RANK_NOTE_BYTES - 1 bytes. */
void rank_note_write(int fd, const char *text);
/* Adds what was written last, if anything was. */
void rank_note_read(int fd, struct str *out);
#endif
