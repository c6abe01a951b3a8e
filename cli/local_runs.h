/* The jobs that `shoal run`s of this user on this machine are at: each is asked over the socket
 * that takes its progress (cli/inbox.h). */
#ifndef SHOAL_CLI_LOCAL_RUNS_H
#define SHOAL_CLI_LOCAL_RUNS_H

#include "base/error.h"
#include "cli/cluster_jobs.h"
#include "cli/story.h"

/* Into the arena. A run that does not answer within a second, as it was stopped, is left out.
 * ERR_CANCELLED: stop_fd (-1: none) was readable. */
int local_runs_jobs(int stop_fd, struct arena *arena, struct job_list *ret_jobs, struct error *err);

struct local_runs_query {
    const char *name;
    const char *namespace_; /* NULL: any */
};

/* The story of the run of this job, and its job in *ret_job, into the arena. *ret_count: how many
 * of them there are; the one that began last is told. ERR_INPUT: there is none; the error names the
 * nearest that there is. */
int local_runs_story(const struct local_runs_query *query, struct arena *arena,
                     struct job_facts *ret_job, struct story *ret_story, size_t *ret_count,
                     struct error *err);
#endif
