#include "agent/launch/stopped_note.h"

#include <stdio.h>
#include <string.h>

void stopped_note_write(const struct stopped_note *note, struct str *out)
{
    str_printf(out, "%d %s %s", note->rank, note->time, note->report);
}

int stopped_note_read(const char *text, struct stopped_note *ret, struct error *err)
{
    struct stopped_note note = {0};
    int at = 0;
    bool has_rank = sscanf(text, "%d %n", &note.rank, &at) == 1 && note.rank >= 0;
    size_t length = has_rank ? strcspn(text + at, " ") : 0;
    if (length == 0 || length >= sizeof note.time)
        return error_set(err, ERR_INPUT, "a note of a stopped rank that is none: %.60s", text);
    memcpy(note.time, text + at, length);
    note.report = text + at + length;
    note.report += *note.report == ' ';
    *ret = note;
    return 0;
}
