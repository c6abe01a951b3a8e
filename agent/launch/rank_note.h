/* Short texts that a rank leaves for its launcher, and for the rank that is started in its place:
 * the launcher holds them in memory (memfd), so that they outlive a rank that is killed. Knows not
 * what is in them. */
#ifndef SHOAL_AGENT_LAUNCH_RANK_NOTE_H
#define SHOAL_AGENT_LAUNCH_RANK_NOTE_H

#include "base/str.h"

enum { RANK_NOTE_BYTES = 2048 };

enum rank_note {
    RANK_NOTE_HANG,   /* rank 0's: the last hang (contract.h) */
    RANK_NOTE_STEP,   /* where it is (fatal_step.h). The launcher empties it before each start */
    RANK_NOTE_REPORT, /* likewise: what it does (rank_report.h), each second */
    /* Of one that the launcher has ended, as all of its pod were stopped (stopped_note.h). Emptied
     * when it is told (stopped_hang.h). */
    RANK_NOTE_STOPPED,
    RANK_NOTE_PAGE, /* what the time went to so far (page_past.h), each second */
};

/* How a text of RANK_NOTE_STEP is told: how often the run has ended there, the text. */
#define RANK_NOTE_ENDS "the run has ended %d times in a row %s"

/* ---- in the launcher ---- */

/* Empty ones, above 0; the caller closes it. 0: the system has none, and the rank goes without. */
int rank_note_open(int local_rank);
/* Hands it to the program that this process executes next: called in the child, between fork and
 * exec. 0: it gets none. */
void rank_note_set_inheritable(int fd);

/* ---- in the rank ---- */

/* What rank_note_set_inheritable() put into the environment: once, before any thread starts. 0:
 * there is none. */
int rank_note_inherit(void);

/* ---- in both; fd 0: there is none, and nothing happens ---- */

/* Replaces what is there. The text has at most RANK_NOTE_BYTES - 1 bytes. */
void rank_note_write(int fd, enum rank_note note, const char *text);
/* Adds what was written last, if anything was. */
void rank_note_read(int fd, enum rank_note note, struct str *out);
#endif
