/* Which samples a rank sees, in which order: torch.utils.data.DistributedSampler's rule as pure
 * functions. The order of an epoch is the identity, or a permutation that depends on (seed, epoch)
 * only; it is extended with its own beginning to a multiple of the world size W; rank r takes the
 * places r, r + W, r + 2W, ... Nothing is dropped, so up to W - 1 samples are seen twice. */
#ifndef SHOAL_AGENT_DATASET_SAMPLER_H
#define SHOAL_AGENT_DATASET_SAMPLER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sampler {
    int64_t items; /* samples in the data set, >= 1 */
    int rank, world_size;
};

/* Samples a rank takes per epoch: ceil(items / world_size), the same on every rank. */
int64_t sampler_count(const struct sampler *sampler);

/* The sample at place i (0 .. sampler_count - 1) of the rank's share. order: [items], the epoch's
 * permutation, or NULL for the identity. */
int64_t sampler_index(const struct sampler *sampler, const int64_t *order, int64_t i);

/* Fills order[items] with the permutation of (seed, epoch): Fisher-Yates with counter-based random
 * numbers. It is ours, not torch.randperm's. */
void sampler_permute(int64_t items, uint64_t seed, uint64_t epoch, int64_t *order);

#ifdef __cplusplus
}
#endif
#endif
