/* What a launcher notes of a rank that it has ended, as all of its pod were stopped: the text of
 * RANK_NOTE_STOPPED (rank_note.h). The rank in its place reads it. Pure; knows not what is in a
 * report. */
#ifndef SHOAL_AGENT_LAUNCH_STOPPED_NOTE_H
#define SHOAL_AGENT_LAUNCH_STOPPED_NOTE_H

#include "base/error.h"
#include "base/str.h"

enum { STOPPED_NOTE_TIME_BYTES = 32 }; /* of clock_format_rfc3339() */

struct stopped_note {
    int rank;
    char time[STOPPED_NOTE_TIME_BYTES]; /* when it was ended; RFC 3339 */
    const char *report;                 /* its last (rank_report.h); "": it had made none */
};

/* Adds "RANK TIME REPORT". */
void stopped_note_write(const struct stopped_note *note, struct str *out);
/* The report stays in `text`. Errors: ERR_INPUT if that is none: it has no rank or no time. */
int stopped_note_read(const char *text, struct stopped_note *ret_note, struct error *err);
#endif
