#include "agent/launch/rank_note.h"

#include "agent/launch/inherited_file.h"
#include "agent/launch/rank_memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTE_FD "SHOAL_NOTE_FD"

int rank_note_open(void)
{
    struct error ignored;
    int fd;
    return rank_memory_open(0, &fd, &ignored) ? 0 : fd;
}

void rank_note_set_inheritable(int fd)
{
    if (fd > 0)
        inherited_file_give(NOTE_FD, fd);
    else
        unsetenv(NOTE_FD);
}

int rank_note_inherit(void)
{
    int fd = inherited_file_take(NOTE_FD, rank_memory_is);
    return fd > 0 ? fd : 0;
}

void rank_note_write(int fd, const char *text)
{
    char note[RANK_NOTE_BYTES];
    assert(strlen(text) < sizeof note);
    /* All of it in one write(2), which no signal cuts short in memory. */
    memset(note, 0, sizeof note);
    snprintf(note, sizeof note, "%s", text);
    if (fd > 0 && pwrite(fd, note, sizeof note, 0) < 0)
        return; /* no memory is left: the next rank goes without */
}

void rank_note_read(int fd, struct str *out)
{
    char note[RANK_NOTE_BYTES];
    if (fd <= 0 || pread(fd, note, sizeof note, 0) != sizeof note)
        return;
    note[sizeof note - 1] = '\0';
    str_add(out, note);
}
