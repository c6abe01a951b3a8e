/* Random numbers by the group, for the ops that use them. */
#ifndef SHOAL_KERNELS_CPU_RANDOM_RUN_H
#define SHOAL_KERNELS_CPU_RANDOM_RUN_H

#include "kernels/random.h"

/* The numbers of a group: random_uniform(key, RANDOM_GROUP * group + i). */
static inline void random_group(float numbers[RANDOM_GROUP], uint64_t key, uint64_t group)
{
#pragma GCC ivdep
    for (uint32_t i = 0; i < RANDOM_GROUP_BLOCKS; i++) {
        uint64_t first =
            group * RANDOM_GROUP_BLOCKS; /* a multiple of 8: adding i carries nothing */
        struct philox_block block = {{(uint32_t)first + i, (uint32_t)(first >> 32), 0, 0}};
        block = philox(block, (uint32_t)key, (uint32_t)(key >> 32));
        numbers[i] = random_unit(block.words[0]);
        numbers[RANDOM_GROUP_BLOCKS + i] = random_unit(block.words[1]);
        numbers[2 * RANDOM_GROUP_BLOCKS + i] = random_unit(block.words[2]);
        numbers[3 * RANDOM_GROUP_BLOCKS + i] = random_unit(block.words[3]);
    }
}

/* numbers[i] = random_uniform(key, first + i) up to the end of first's group, at most `most`.
 * Returns how many, and in *ret_numbers where. */
static inline int64_t random_run(float buffer[RANDOM_GROUP], uint64_t key, uint64_t first,
                                 int64_t most, const float **ret_numbers)
{
    int64_t skip = (int64_t)(first % RANDOM_GROUP), count = RANDOM_GROUP - skip;
    random_group(buffer, key, first / RANDOM_GROUP);
    *ret_numbers = buffer + skip;
    return count < most ? count : most;
}

#endif
