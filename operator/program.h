/* shoal-operator, all parts wired: credentials, client, election, controller, pages. The one file
 * that knows them all, and the only one that waits. */
#ifndef SHOAL_OPERATOR_PROGRAM_H
#define SHOAL_OPERATOR_PROGRAM_H

#include "operator/config.h"

struct program;

/* Blocks SIGINT, SIGTERM and SIGHUP, listens, reads credentials; sends nothing yet. *ret_program is
 * set in any case. config's texts are borrowed. */
int program_open(struct program **ret_program, const struct operator_config *config,
                 struct error *err);
void program_close(struct program *program); /* NULL-safe */

/* The loop. Returns 0 when a signal asked it to stop and the Lease was given back. */
int program_run(struct program *program, struct error *err);
#endif
