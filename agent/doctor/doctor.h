/* The command `shoal-agent doctor` (or --check): prints whether training could start here, what it
 * would take, and what is missing. Part of the program: it prints. */
#ifndef SHOAL_AGENT_DOCTOR_DOCTOR_H
#define SHOAL_AGENT_DOCTOR_DOCTOR_H

#include <stdbool.h>

/* Runs argv if it is this command, and sets *ret_exit_code: 0, or 2 if training could not start.
 * False: it is none; under another program's name,
 * such as torchrun's, it never is. */
bool doctor_command(char *const *argv, int *ret_exit_code);
#endif
