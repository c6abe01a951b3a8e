/* Philox 4x32-10, the counter-based generator all backends share (Salmon, Moraes, Dror, Shaw:
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011), and which of its words is which number.
 * Pure. */
#ifndef SHOAL_KERNELS_RANDOM_H
#define SHOAL_KERNELS_RANDOM_H

#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct philox_block {
    uint32_t words[4]; /* least significant first */
};

enum { PHILOX_ROUNDS = 10 };

/* The keys of the rounds, for those who make many blocks under one key. */
struct philox_keys {
    uint32_t words[PHILOX_ROUNDS][2];
};

ON_ANY_DEVICE static inline uint32_t philox_key(uint32_t key, uint32_t round, int word)
{
    return key + round * (word ? 0xBB67AE85u : 0x9E3779B9u);
}

ON_ANY_DEVICE static inline struct philox_block philox_round(struct philox_block c, uint32_t key0,
                                                             uint32_t key1)
{
    uint64_t p0 = (uint64_t)0xD2511F53u * c.words[0], p1 = (uint64_t)0xCD9E8D57u * c.words[2];
    struct philox_block next = {{(uint32_t)(p1 >> 32) ^ c.words[1] ^ key0, (uint32_t)p1,
                                 (uint32_t)(p0 >> 32) ^ c.words[3] ^ key1, (uint32_t)p0}};
    return next;
}

/* Ten rounds on a counter under a key of two words. */
ON_ANY_DEVICE static inline struct philox_block philox(struct philox_block counter, uint32_t key0,
                                                       uint32_t key1)
{
#if defined(__CUDA_ARCH__)
#pragma unroll
#elif !defined(__CUDACC__)
#pragma GCC unroll 10
#endif
    for (uint32_t round = 0; round < PHILOX_ROUNDS; round++)
        counter = philox_round(counter, philox_key(key0, round, 0), philox_key(key1, round, 1));
    return counter;
}

static inline struct philox_keys philox_keys_of(uint64_t key)
{
    struct philox_keys keys;
    for (uint32_t round = 0; round < PHILOX_ROUNDS; round++)
        for (int word = 0; word < 2; word++)
            keys.words[round][word] = philox_key((uint32_t)(key >> 32 * word), round, word);
    return keys;
}

/* The same as philox() with the key of `keys`. */
ON_ANY_DEVICE static inline struct philox_block philox_of_keys(struct philox_block counter,
                                                               const struct philox_keys *keys)
{
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int round = 0; round < PHILOX_ROUNDS; round++)
        counter = philox_round(counter, keys->words[round][0], keys->words[round][1]);
    return counter;
}

/* Numbers come in groups of 32: number n of group g is word n / 8 of Philox's block 8 g + n % 8. So
 * 8 blocks side by side in vector registers are 32 numbers in order. */
enum { RANDOM_GROUP = 32, RANDOM_GROUP_BLOCKS = 8 };

/* 24 bits to [0, 1): exact in a float. */
ON_ANY_DEVICE static inline float random_unit(uint32_t word)
{
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

/* Numbers by name: the one at (key, counter) is a pure function of both. So an element gets the
 * same number whatever rank, batch or thread computes it. */
float random_uniform(uint64_t key, uint64_t counter); /* host; in [0, 1), 24 bits */
/* A key for a sequence of numbers of its own, from a seed and up to three numbers that name it. */
uint64_t random_key(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);

#ifdef __cplusplus
}
#endif
#endif
