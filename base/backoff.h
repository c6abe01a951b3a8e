/* How long to wait before trying again: doubled with each failure, up to a cap, with full jitter,
 * so that many who failed together do not come back together. Pure: the random state is the
 * caller's, and the same state gives the same waits. */
#ifndef SHOAL_BASE_BACKOFF_H
#define SHOAL_BASE_BACKOFF_H

#include <stdint.h>

/* The next number of a sequence that *state (any number, the seed) stands for (splitmix64). */
uint64_t backoff_random(uint64_t *state);

/* After the n-th failure in a row (n >= 1): min(max_ms, first_ms * 2^(n-1)). first_ms and max_ms
 * are at least 1. */
int64_t backoff_most_ms(int64_t first_ms, int64_t max_ms, unsigned failures);

/* With jitter: uniform within [1, backoff_most_ms]. */
int64_t backoff_ms(int64_t first_ms, int64_t max_ms, unsigned failures, uint64_t *state);
#endif
