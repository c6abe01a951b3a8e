#include "kernels/random.h"

float random_uniform(uint64_t key, uint64_t counter)
{
    uint64_t n = counter % RANDOM_GROUP;
    uint64_t index = counter / RANDOM_GROUP * RANDOM_GROUP_BLOCKS + n % RANDOM_GROUP_BLOCKS;
    struct philox_block block = {{(uint32_t)index, (uint32_t)(index >> 32), 0, 0}};
    block = philox(block, (uint32_t)key, (uint32_t)(key >> 32));
    return random_unit(block.words[n / RANDOM_GROUP_BLOCKS]);
}

/* The names are the counter and the seed is the key; the third name goes in by a second pass. */
uint64_t random_key(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    struct philox_block block = {
        {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)}};
    block = philox(block, key0, key1);
    block.words[0] ^= (uint32_t)c;
    block.words[1] ^= (uint32_t)(c >> 32);
    block = philox(block, key0, key1);
    return block.words[0] | (uint64_t)block.words[1] << 32;
}
