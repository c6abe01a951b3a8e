/* The jobs that `shoal run`s of this user on this machine are at: each is asked over the socket
 * that takes its progress (cli/inbox.h). */
#ifndef SHOAL_CLI_LOCAL_RUNS_H
#define SHOAL_CLI_LOCAL_RUNS_H

#include "base/error.h"
#include "cli/cluster_jobs.h"

/* Into the arena. A run that does not answer within a second, as it was stopped, is left out.
 * ERR_CANCELLED: stop_fd (-1: none) was readable. */
int local_runs_jobs(int stop_fd, struct arena *arena, struct job_list *ret_jobs, struct error *err);
#endif
