/* How much may still happen in a state, apart from what the state is: each budget that is left
 * (struct world_bounds), and how many objects may still be shown before the next plan. Of two equal
 * states the one that allows more of each leads to all that the other leads to. So what was
 * searched with more need not be searched with less.
 *
 * Knows how often things may happen, and not what they do. */
#ifndef SHOAL_TESTS_OPERATOR_HISTORIES_ALLOWANCE_H
#define SHOAL_TESTS_OPERATOR_HISTORIES_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

enum allowed {
    ALLOWED_CRASHES,
    ALLOWED_SHOWS,
    ALLOWED_DELETIONS,
    ALLOWED_EDITS,
    ALLOWED_FAILURES,
    ALLOWED_TROUBLES,
    ALLOWED_DELAYS,
    ALLOWED_KINDS
};

enum { ALLOWANCES_MAX = 64 }; /* a bit each */

struct allowances {
    int most[ALLOWED_KINDS];         /* of each kind */
    bool is_compared[ALLOWED_KINDS]; /* the first ones, as many as ALLOWANCES_MAX has room for */
    uint64_t below[ALLOWANCES_MAX];  /* of each: the bits of all that allow no more, its own too */
};

/* most: set, the rest follows from it. compares: false: nothing is compared. */
void allowances_open(struct allowances *allowances, bool compares);
/* The number of this allowance: a bit in `below`. Kinds that are not compared do not count in it:
 * what differs in them must differ as a state. */
int allowances_index(const struct allowances *allowances, const int left[ALLOWED_KINDS]);
#endif
