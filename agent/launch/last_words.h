/* What a rank tells its launcher over a pipe: that it has met the others, and the error that it
 * ends with. The launcher names the cause of a round's end by it, and judges whether a restart is
 * spent. It reads when the rank has ended. */
#ifndef SHOAL_AGENT_LAUNCH_LAST_WORDS_H
#define SHOAL_AGENT_LAUNCH_LAST_WORDS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct last_words {
    int32_t code; /* enum error_code; ERR_NONE: the rank said nothing */
    bool has_met; /* the rank had joined all others before it failed */
    char text[sizeof((struct error *)NULL)->msg];
    bool was_asked;           /* a signal had asked this rank itself to stop */
    bool was_asked_by_others; /* likewise, and its launcher had not sent it */
    int new_launchers; /* of other ranks: those that have met in fewer rounds than this rank's
                          launcher since it last asked */
};

/* The rank ended before it could ask which launchers are new. */
enum { LAST_WORDS_NOT_ASKED = -1 };

/* ---- in the rank ---- */

/* Takes the pipe from the environment; called once, before any thread starts. */
void last_words_inherit(void);
/* The rank has joined all others; and again when it knows more. Before last_words_send(). */
void last_words_met(int new_launchers);
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
/* Reads all that a rank that has ended has said, and closes the read end; -1: there is none. */
void last_words_take(int fd, struct last_words *ret_words);
#endif
