/* Tries everything that may happen in a small world, from its beginning on, each state once. Where
 * a check fails the whole history up to there is told. */
#ifndef SHOAL_TESTS_OPERATOR_HISTORIES_EXPLORE_H
#define SHOAL_TESTS_OPERATOR_HISTORIES_EXPLORE_H

#include "tests/operator/histories/world.h"

enum { EXPLORE_MAX_PROCESSES = 64 };

struct explored {
    size_t states, edges, rests; /* rests: different states in which only people and kubelets go
                                    on */
    uint64_t rests_sum;          /* of their hashes */
    int depth, longest_calm;     /* most steps from the beginning; until a rest */
};

struct exploring {
    int processes; /* 1: this one alone */
    /* Orders and states are left out that lead to nothing else (docs/operator-proofs.md). False:
     * only orders of what is shown before one plan. */
    bool reduces;
};

/* Of several processes one that fails has told why: the test fails, too. */
struct explored explore(const struct world_setting *setting, struct exploring exploring);
#endif
