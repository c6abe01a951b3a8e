/* One job on this machine, from its first pass to the end of its last process: the loop of
 * `shoal run`. */
#ifndef SHOAL_CLI_JOB_RUN_H
#define SHOAL_CLI_JOB_RUN_H

#include "base/signals.h"
#include "cli/run_options.h"
#include "operator/job/types.h"

enum { EXIT_BAD_INPUT = 2 }; /* the other exit codes of a run: 0, 1 (Failed), 128 + signal */

/* Runs the job, a valid one with its defaults and a UID; `source` is where its manifest is from.
 * Returns the exit code for the program; whatever there is to say has been said on stderr. */
int job_run(const struct job *job, const char *source, const struct run_options *options,
            const struct signals *signals);
#endif
