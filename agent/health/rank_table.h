/* All ranks as they are shown: where each runs, what it does, whether it is well. Pure. */
#ifndef SHOAL_AGENT_HEALTH_RANK_TABLE_H
#define SHOAL_AGENT_HEALTH_RANK_TABLE_H

#include "agent/health/rank_report.h"
#include "base/str.h"

enum {
    RANK_LOCATION_BYTES = 48,
    RANK_TABLE_BYTES = 768 * 1024,
    RANK_TABLE_ROWS = 1024,
    RANK_TABLE_MORE = 64,
    RANK_HANG_BYTES = 1536, /* every character escaped */
};

/* Where a rank runs; "": not known. Cut off at the end. */
struct rank_location {
    char host[RANK_LOCATION_BYTES], pod[RANK_LOCATION_BYTES];
};

/* As one text without blanks in the names. */
void rank_location_write(const char *host, const char *pod, char *text, int bytes);
void rank_location_read(const char *text, struct rank_location *ret_location);
/* Adds "rank 3 (pod mnist-worker-2, host node-7, process 812)". */
void rank_location_describe(const struct rank_location *location, int rank, int pid,
                            struct str *out);

enum rank_state { RANK_IS_WELL, RANK_IS_STRAGGLING, RANK_IS_HUNG };

struct rank_row {
    struct rank_location location;
    const struct rank_report *report; /* NULL: not heard */
    double still_s;                   /* without progress so far */
    double compute_ratio;             /* straggler_ratio() */
    enum rank_state state;
};

/* An array with an object for each rank that was heard: of the first RANK_TABLE_ROWS, and beyond
 * them of at most RANK_TABLE_MORE that are not well, and of the slowest. */
void rank_table_json(const struct rank_row rows[], int count, struct str *out);

/* Adds TRAINING_LAST_HANG's object (contract.h) for a rank that was named at `time`, RFC 3339. At
 * most RANK_HANG_BYTES. */
void rank_table_hang_json(const struct rank_location *location, const struct rank_report *report,
                          int rank, const char *time, struct str *out);
#endif
