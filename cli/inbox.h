/* Progress reports of the training inside the pods: a Unix datagram socket that takes one JSON
 * object a datagram, as base/contract.h says. Programs other than the agent send none. */
#ifndef SHOAL_CLI_INBOX_H
#define SHOAL_CLI_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The latest report. A number is negative if it was not reported. */
struct progress {
    bool known; /* there was a report */
    int64_t epoch, epochs, step, steps;
    double loss, samples_per_s, seconds_left;
    bool has_loss; /* a loss may be negative */
};

/* Reads a report; false, and nothing written, if the text is none. */
bool inbox_parse(const char *text, size_t bytes, struct progress *ret_progress);

struct inbox {
    int fd;           /* never blocks */
    char folder[108]; /* ours */
    char path[108];   /* FOLDER/progress */
};

/* Makes the socket in a new folder below $XDG_RUNTIME_DIR, $TMPDIR or /tmp. */
int inbox_open(struct inbox *inbox, struct error *err);
void inbox_close(struct inbox *inbox); /* removes both; the folder has nothing else any more */

/* Takes what has come in, without waiting. Returns whether *progress changed. */
bool inbox_read(const struct inbox *inbox, struct progress *progress);
#endif
