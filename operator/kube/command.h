/* One command, run beside the loop: for credential plugins, whose output is short. Nothing here
 * waits; whoever started it polls its files and asks whether it is over. Knows argument lists and
 * environments, not what they are for. */
#ifndef SHOAL_OPERATOR_KUBE_COMMAND_H
#define SHOAL_OPERATOR_KUBE_COMMAND_H

#include "base/error.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COMMAND_MAX_OUTPUT_BYTES (1 << 20)

struct command {
    const char *const *argv; /* NULL-terminated; argv[0] without a "/" is looked up on our PATH */
    const char *const *env;  /* "NAME=value", NULL-terminated: the whole environment */
    int64_t limit_ms;        /* then it is killed, with what it started: ERR_TIMEOUT */
};

#define COMMAND_FDS_MAX 3

struct command_run;

/* Starts it with nothing to read, and with signals at their defaults. Copies what it needs. Errors:
 * ERR_NOT_FOUND if there is no such program. */
int command_start(struct command_run **ret_run, const struct command *command, struct error *err);
/* Kills it, with what it started, and forgets it. NULL-safe. */
void command_cancel(struct command_run *run);

/* What to poll while it runs, COMMAND_FDS_MAX at most. Returns how many. */
size_t command_fds(const struct command_run *run, struct pollfd *fds);
/* In how many milliseconds its time is over; 0: it is. */
int64_t command_left_ms(const struct command_run *run);
/* Reads what is there. Returns whether it has ended, or its time is over. Its children may hold its
 * files open longer: nobody waits for those. */
bool command_is_over(struct command_run *run);

/* Once it is over; frees the run. *ret_output is what it wrote to its standard output, with a
 * terminating zero; the caller frees. Errors: ERR_IO if it did not end with 0: with the end of what
 * it wrote to its standard error; ERR_TIMEOUT; ERR_LIMIT for more than COMMAND_MAX_OUTPUT_BYTES. */
int command_finish(struct command_run *run, char **ret_output, size_t *ret_bytes,
                   struct error *err);

#ifdef __cplusplus
}
#endif
#endif
