/* Which samples a rank sees, in which order: torch.utils.data.DistributedSampler's rule as pure
 * functions. The order of an epoch is the identity, or a permutation that depends on (seed, epoch)
 * only; it is extended with its own beginning to a multiple of the world size W; rank r takes the
 * positions r, r + W, r + 2W, ... behind `first`. Nothing is dropped, so up to W - 1 samples are
 * seen twice. */
#ifndef SHOAL_AGENT_DATASET_SAMPLER_H
#define SHOAL_AGENT_DATASET_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

struct sampler {
    int64_t items; /* samples in the data set, >= 1 */
    int rank, world_size;
    int64_t first; /* position in the order where the ranks begin, 0 .. items: what is before it is
                      done, perhaps by another number of ranks */
};

/* Samples a rank takes of the epoch: ceil((items - first) / world_size), the same on every rank. */
int64_t sampler_count(const struct sampler *sampler);

/* The sample at position i (0 .. sampler_count - 1) of the rank's share. order: [items], the
 * epoch's permutation, or NULL for the identity. */
int64_t sampler_index(const struct sampler *sampler, const int64_t *order, int64_t i);

/* Whether position i of the rank's share was seen before: it is of the order's own beginning. */
bool sampler_repeats(const struct sampler *sampler, int64_t i);

/* Fills order[items] with the permutation of (seed, epoch): Fisher-Yates with counter-based random
 * numbers. It is ours, not torch.randperm's. */
void sampler_permute(int64_t items, uint64_t seed, uint64_t epoch, int64_t *order);

/* Uniform in 0 .. bound - 1: the number at (key, counter). */
int64_t sampler_random_below(uint64_t key, uint64_t counter, int64_t bound);
#endif
