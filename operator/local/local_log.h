/* The log of one replica: a pipe that its processes write to, and a file that what comes out is
 * appended to, byte for byte and in order. Knows bytes, not pods. */
#ifndef SHOAL_OPERATOR_LOCAL_LOCAL_LOG_H
#define SHOAL_OPERATOR_LOCAL_LOCAL_LOG_H

#include <stddef.h>

#include "base/error.h"

/* Bytes moved at once: a pipe that polls writable takes that much without blocking. */
enum { LOCAL_LOG_CHUNK_BYTES = 4096 };

struct local_log {
    char *path;           /* of the file; owned */
    int file;             /* -1: not open */
    int read_end;         /* of the pipe; never blocks */
    int write_end;        /* give this to processes */
    char last_byte;       /* of what was written; '\n' at first */
    struct error failure; /* the first write that failed; code ERR_NONE: none did */
};

/* Makes the file anew, an older one is emptied, and the pipe. ERR_EXISTS if a link or anything else
 * that is no file has the name. Close it also after a failure. */
int local_log_open(struct local_log *log, const char *path, struct error *err);
void local_log_close(struct local_log *log);

/* Moves at most one chunk from the pipe to the file and leaves it in `chunk` as well. Returns its
 * bytes, 0 if the pipe is empty now. A full disk is no reason to stop: see log->failure. */
size_t local_log_pump(struct local_log *log, char chunk[LOCAL_LOG_CHUNK_BYTES]);

/* Writes a line of our own to the file, at the start of a line. */
void local_log_mark(struct local_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#endif
