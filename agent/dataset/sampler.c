#include "agent/dataset/sampler.h"

#include "kernels/random.h"

#include <assert.h>
#include <stddef.h>

int64_t sampler_count(const struct sampler *sampler)
{
    assert(sampler->items >= 1 && sampler->world_size >= 1);
    assert(sampler->first >= 0 && sampler->first <= sampler->items);
    return (sampler->items - sampler->first + sampler->world_size - 1) / sampler->world_size;
}

static int64_t position_of(const struct sampler *sampler, int64_t i)
{
    /* As torch's DistributedSampler: ranks take turns, so that they are at the same position of the
     * order. */
    return sampler->first + i * sampler->world_size + sampler->rank;
}

bool sampler_repeats(const struct sampler *sampler, int64_t i)
{
    return position_of(sampler, i) >= sampler->items;
}

int64_t sampler_index(const struct sampler *sampler, const int64_t *order, int64_t i)
{
    assert(i >= 0 && i < sampler_count(sampler));
    /* As DistributedSampler without drop_last: the first samples fill the last step up, so that no
     * rank waits for others in vain. */
    int64_t position = position_of(sampler, i) % sampler->items;
    return order ? order[position] : position;
}

/* 48 random bits, so that the bias is below bound / 2^48. */
int64_t sampler_random_below(uint64_t key, uint64_t counter, int64_t bound)
{
    uint64_t high = (uint64_t)(random_uniform(key, 2 * counter) * 0x1p24F);
    uint64_t low = (uint64_t)(random_uniform(key, 2 * counter + 1) * 0x1p24F);
    return (int64_t)(((unsigned __int128)(high << 24 | low) * (uint64_t)bound) >> 48);
}

void sampler_permute(int64_t items, uint64_t seed, uint64_t epoch, int64_t *order)
{
    /* The second number keeps the data's random numbers apart from the model's. */
    uint64_t key = random_key(seed, epoch, 0x5a3b1e, 0);
    for (int64_t i = 0; i < items; i++)
        order[i] = i;
    /* Fisher and Yates, as Durstenfeld writes it: each order is equally likely. */
    for (int64_t i = items - 1; i > 0; i--) {
        int64_t j = sampler_random_below(key, (uint64_t)i, i + 1);
        int64_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}
