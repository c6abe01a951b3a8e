/* Ranks as threads of the test: each has a device and a stream of its own, and all meet in one
 * comm_local. */
#ifndef SHOAL_TESTS_AGENT_RANKS_H
#define SHOAL_TESTS_AGENT_RANKS_H

#include "tests/support.h"

#include "tests/agent/comm_local.h"

#include <stdint.h>

enum { RANKS_MAX = 8, RANKS_TIMEOUT_MS = SUPPORT_PATIENCE_MS };

struct rank {
    int rank, size;
    struct comm_local *group;
    int timeout_ms; /* of each collective; to meet all have RANKS_TIMEOUT_MS */
    int (*body)(struct rank *rank, struct comm *c, struct stream *s, struct error *err);
    void *arg; /* the test's */
    uint64_t seed, digest;
    int result; /* of the body, or of getting there */
    struct error err;
};

/* Runs the body on ranks 0 .. size - 1 and waits for all. Of `ranks` the test has set `arg` and
 * `seed`, or zeroed them. */
void ranks_run(struct rank *ranks, int size, int timeout_ms,
               int (*body)(struct rank *, struct comm *, struct stream *, struct error *));
#endif
