/* What happened to the replicas between two looks, one line for each thing. Pure. */
#ifndef SHOAL_CLI_CHANGES_H
#define SHOAL_CLI_CHANGES_H

#include "base/str.h"
#include "operator/local/local.h"

/* The job's side of a failure. */
struct changes_job {
    bool finished;    /* no restart follows a failure any more */
    int32_t failures; /* counted so far, those of now included */
    int64_t limit;    /* restarts granted; negative: any number */
};

/* Adds the lines for a replica that was `before` and is `after`, e.g.
 * "mnist-worker-1: Running -> Failed (exit code 138), restart 1 of 6". `quiet`: only failures and
 * what else counts as a restart. */
void changes_print(const struct local_replica *before, const struct local_replica *after,
                   const struct changes_job *job, bool quiet, struct str *out);

/* The same of the job's ranks, which launchers start again in their containers: how often that was
 * done `before` and `after`. If it is more, "mnist: ranks restarted in place (restart 1)". */
void changes_print_ranks(const char *job, int32_t before, int32_t after, struct str *out);
#endif
