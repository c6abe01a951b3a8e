/* One command, run to its end: for credential plugins, whose output is short. Blocks. Knows
 * argument lists and environments, not what they are for. */
#ifndef SHOAL_OPERATOR_COMMAND_H
#define SHOAL_OPERATOR_COMMAND_H

#include "base/error.h"

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

/* Runs it with nothing to read, and with signals at their defaults. *ret_output is what it wrote to
 * its standard output, with a terminating zero; the caller frees. Errors: ERR_NOT_FOUND if there is
 * no such program; ERR_IO if it did not end with 0: with the end of what it wrote to its standard
 * error; ERR_LIMIT for more than COMMAND_MAX_OUTPUT_BYTES. */
int command_run(const struct command *command, char **ret_output, size_t *ret_bytes,
                struct error *err);

#ifdef __cplusplus
}
#endif
#endif
