#include "agent/launch/rank_note.h"

#include "agent/launch/inherited_file.h"
#include "agent/launch/rank_memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTE_FD "SHOAL_NOTE_FD"

int rank_note_open(int local_rank)
{
    struct error ignored;
    char name[32];
    int fd;
    snprintf(name, sizeof name, "shoal-note-%d", local_rank);
    return rank_memory_open_as(name, &fd, &ignored) ? 0 : fd;
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

void rank_note_write(int fd, enum rank_note note, const char *text)
{
    size_t bytes = strlen(text) + 1;
    assert(bytes <= RANK_NOTE_BYTES);
    /* All of it in one write(2), which no signal cuts short in memory. */
    if (fd > 0 && pwrite(fd, text, bytes, (off_t)note * RANK_NOTE_BYTES) < 0)
        return; /* no memory is left: it goes without */
}

void rank_note_read(int fd, enum rank_note note, struct str *out)
{
    char text[RANK_NOTE_BYTES];
    ssize_t bytes = fd > 0 ? pread(fd, text, sizeof text - 1, (off_t)note * RANK_NOTE_BYTES) : 0;
    text[bytes > 0 ? bytes : 0] = '\0';
    str_add(out, text);
}
