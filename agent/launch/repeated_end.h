/* Whether rounds of ranks end in the same place again and again: bad data and a bug look like bad
 * hardware otherwise. Pure; knows not what a place is. */
#ifndef SHOAL_AGENT_LAUNCH_REPEATED_END_H
#define SHOAL_AGENT_LAUNCH_REPEATED_END_H

#include "agent/launch/rank_note.h"

/* All zero: no round has ended. */
struct repeated_end {
    char where[RANK_NOTE_BYTES]; /* of the last end, as the rank told it; "": not known */
    int times;                   /* that rounds have ended there, in a row */
};

void repeated_end_add(struct repeated_end *ends, const char *where);
/* Adds RANK_NOTE_ENDS, if the last two rounds or more have ended in one place. */
void repeated_end_describe(const struct repeated_end *ends, struct str *out);
#endif
