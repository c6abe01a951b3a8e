/* The job's bytes on their way to stdout. They wait here for a slow reader, so that the run does
 * not: deadlines, restarts and signals go on while a pager stands still. Knows bytes only. */
#ifndef SHOAL_CLI_OUTPUT_H
#define SHOAL_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum {
    OUTPUT_ENOUGH_BYTES = 256 * 1024, /* from here on there is no room: read no more from the job */
    OUTPUT_MAX_BYTES = 4 * 1024 * 1024, /* what ended processes left behind comes on top */
};

struct output {
    int fd;             /* never blocks, if the file is of a kind that can do that */
    bool owns_fd;       /* it was opened anew */
    struct str waiting; /* in order */
    int failure; /* errno of the write that failed, EPIPE: nobody reads; 0: none did. From then
                    on bytes are dropped. */
};

/* A pipe or terminal is opened anew: O_NONBLOCK would else hold for all that share it. SIGPIPE must
 * be ignored. */
void output_open(struct output *output, int fd);
void output_close(struct output *output); /* what still waits is lost; NULL-safe */

bool output_has_room(const struct output *output);

/* Adds bytes; false, and nothing added, if they would exceed the cap. */
bool output_add(struct output *output, const char *bytes, size_t count);

/* Whether output_flush would do something now. timeout_ms: for poll; -1: no limit. Returns early
 * once stop_fd, if it is not negative, is readable. */
bool output_wait(const struct output *output, int stop_fd, int timeout_ms);

/* Whether bytes were lost, other than to a reader that went away by its own will. */
bool output_is_broken(const struct output *output);

/* Writes what can be written without blocking. */
void output_flush(struct output *output);
#endif
