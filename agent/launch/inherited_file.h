/* A file that the launcher hands to a rank that it starts, under its number in a variable. */
#ifndef SHOAL_AGENT_LAUNCH_INHERITED_FILE_H
#define SHOAL_AGENT_LAUNCH_INHERITED_FILE_H

#include "base/error.h"

#include <stdbool.h>

/* A pipe from the rank to the launcher, which nobody inherits yet. No end blocks: a launcher that
 * is stopped (SIGSTOP, a debugger) must not hold up training. Errors: ERR_IO. */
int inherited_file_pipe(int *ret_read, int *ret_write, struct error *err);
/* Hands the file to the program that this process executes next: called in the child, between fork
 * and exec. */
void inherited_file_give(const char *variable, int fd);
/* Takes it, once, and before any thread starts: what the rank starts gets neither the file nor the
 * variable. -1: there is none; or is_right(fd) says no, as somebody may have passed on a variable
 * that names any other open file. */
int inherited_file_take(const char *variable, bool (*is_right)(int fd));
bool inherited_file_is_pipe(int fd); /* an is_right */
#endif
