/* Runs one command, a credential plugin with short output, without blocking: the caller polls its
 * fds and asks whether it is over. Knows arguments and environments only. */
#ifndef SHOAL_OPERATOR_KUBE_COMMAND_H
#define SHOAL_OPERATOR_KUBE_COMMAND_H

#include "base/error.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMMAND_MAX_OUTPUT_BYTES (1 << 20)

struct command {
    const char *const *argv; /* NULL-terminated; argv[0] without a "/" is searched on our PATH */
    const char *const *env;  /* "NAME=value", NULL-terminated: the whole environment */
    int64_t limit_ms;        /* after it the command and its children are killed: ERR_TIMEOUT */
};

#define COMMAND_FDS_MAX 3

struct command_run;

/* Starts the command with /dev/null as standard input and default signal handlers. Copies its
 * arguments. ERR_NOT_FOUND: there is no such program. */
int command_start(struct command_run **ret_run, const struct command *command, struct error *err);
/* Kills the command and its children, and frees the run. NULL-safe. */
void command_cancel(struct command_run *run);

/* What to poll while it runs. Returns the number of fds, COMMAND_FDS_MAX at most. */
size_t command_fds(const struct command_run *run, struct pollfd *fds);
/* In how many milliseconds its limit is reached; 0: it is. */
int64_t command_left_ms(const struct command_run *run);
/* Reads available output. Returns whether the command has exited or its limit is reached. Its
 * children may keep its pipes open longer; nothing waits for them. */
bool command_has_finished(struct command_run *run);

/* Call it once the command is over; frees the run. *ret_output: its standard output,
 * zero-terminated; the caller frees it. ERR_IO: its exit code was not 0; the message ends with its
 * standard error. ERR_TIMEOUT. ERR_LIMIT: more than COMMAND_MAX_OUTPUT_BYTES. */
int command_finish(struct command_run *run, char **ret_output, size_t *ret_bytes,
                   struct error *err);
#endif
