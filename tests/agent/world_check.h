/* What tests ask of a world, in the test's own thread. */
#ifndef SHOAL_TESTS_AGENT_WORLD_CHECK_H
#define SHOAL_TESTS_AGENT_WORLD_CHECK_H

#include "tests/agent/world.h"

/* The engine as it is by default; HYBRID's groups: two pairs of four ranks, all of three, else one
 * rank each. */
struct shard_config world_shard_config(int ranks, enum shard_strategy strategy);

/* Fails the test if a rank fails or leaks; `what` says which world. */
void world_must_run(const struct world *w, struct world_result *ret_result, const char *what);

/* Losses within 1e-5 relative, the requirement; gradients and weights as close as sums in another
 * order and five steps of Adadelta leave them. Both ways out of the engine give the same bits. */
void world_assert_same(const struct world_result *got, const struct world_result *expected,
                       int steps, const char *what);
/* The first step asked the system for memory, and no later one did; blocks[step]: by its end. */
void world_assert_no_fresh_blocks(const int64_t *blocks, int steps, const char *what);
/* Losses, gradients and weights are the very same. */
void world_assert_bits(const struct world_result *got, const struct world_result *expected,
                       const char *what);
#endif
