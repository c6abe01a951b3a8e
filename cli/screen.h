/* What a run looks like on a terminal: text from a snapshot. Pure: the size and the time are given;
 * who draws it, and where, is terminal's matter. */
#ifndef SHOAL_CLI_SCREEN_H
#define SHOAL_CLI_SCREEN_H

#include "base/str.h"
#include "cli/curve.h"
#include "cli/inbox.h"
#include "operator/local/local.h"

struct screen {
    const char *job;   /* its name */
    const char *state; /* its last condition, e.g. "Running" */
    int64_t started_ms;
    const struct local_replica *replicas;
    size_t replica_count;
    int32_t rank_restarts; /* of ranks in their containers, by the job's history */
    struct progress progress;
    const struct training *training; /* what the run tells besides */
    const struct series *losses;
    const struct rank_list *ranks;
    bool unicode; /* may be drawn with characters that are not ASCII */
};

/* Adds lines of at most `columns` - 1 characters, at most `rows` of them; the last ends with a
 * newline, too. More replicas than there is room for are counted by state. */
void screen_render(const struct screen *screen, int columns, int rows, int64_t now_ms,
                   struct str *out);

/* The table at the end of a run: every replica with its state, restarts, exit code and log. Ranks
 * that were started again in their containers have a row of their own: all launchers do that
 * together, so it is the restart of no single replica. */
void screen_summary(const struct local_replica *replicas, size_t count, int32_t rank_restarts,
                    struct str *out);

/* "; last failure: w with exit code 9, see LOG": of the replica that failed last, or nothing. */
void screen_last_failure(const struct local_replica *replicas, size_t count, struct str *out);

/* "43s", "1m43s", "1h02m03s". */
void screen_duration(int64_t ms, struct str *out);
#endif
