/* How a program ends for a failure: the one way from error.h's codes to contract.h's. Pure. */
#ifndef SHOAL_BASE_EXIT_CODE_H
#define SHOAL_BASE_EXIT_CODE_H

#include "base/error.h"

/* EXIT_CONFIG for what trying again cannot help, EXIT_RETRYABLE where it can, EXIT_TERMINATED for
 * ERR_CANCELLED, EXIT_FAILED for the rest, EXIT_DONE for ERR_NONE. */
int exit_code_of(enum error_code code);

/* Prints "PROGRAM: text" to stderr; returns the exit code. For main and its commands. */
int exit_failed(const char *program, const struct error *err);
#endif
