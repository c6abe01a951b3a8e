/* The error that a rank ends with, told to its launcher over a pipe. The launcher names the cause
 * of a round's end by it. */
#ifndef SHOAL_AGENT_LAUNCH_LAST_WORDS_H
#define SHOAL_AGENT_LAUNCH_LAST_WORDS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct last_words {
    int32_t code; /* enum error_code; ERR_NONE: the rank said nothing */
    bool has_met; /* the rank had joined all others before it failed */
    char text[sizeof((struct error *)NULL)->msg];
};

/* ---- in the rank ---- */

/* Takes the pipe from the environment; called once, before any thread starts. */
void last_words_inherit(void);
/* Only the first call of a process has an effect: it is closest to the cause. Without a launcher,
 * none has. From any thread; never blocks. */
void last_words_send(const struct error *err, bool has_met);

/* ---- in the launcher ---- */

/* *ret_inherited: the write end, for last_words_set_inheritable(). The caller closes it after the
 * fork. Errors: ERR_IO. */
int last_words_open(int *ret_fd, int *ret_inherited, struct error *err);
/* Hands the write end to the program that this process executes next: called in the child, between
 * fork and exec. */
void last_words_set_inheritable(int fd);
/* Reads what a rank that has ended has said, and closes the read end; -1: there is none. */
void last_words_take(int fd, struct last_words *ret_words);
#endif
