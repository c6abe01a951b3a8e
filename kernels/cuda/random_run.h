/* Random numbers by the group, for the kernels that use them (kernels/random.h says which number is
 * which). Four neighbouring threads share a group: each makes two of Philox's blocks, and gets
 * eight numbers in order. */
#ifndef SHOAL_KERNELS_CUDA_RANDOM_RUN_H
#define SHOAL_KERNELS_CUDA_RANDOM_RUN_H

#include "kernels/cuda/cuda.h"
#include "kernels/random.h"

#ifdef __cplusplus

enum { RUN = 8, RUN_THREADS = RANDOM_GROUP / RUN };

/* words[i] of thread j of the four becomes words[j] of thread i. In two steps: threads next to each
 * other exchange one word of each pair, threads two apart one pair. */
static __device__ inline void exchange(uint32_t words[4], int thread)
{
#pragma unroll
    for (int distance = 1; distance <= 2; distance *= 2)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & distance)
                continue;
            bool high = thread & distance;
            uint32_t out = high ? words[i] : words[i + distance];
            uint32_t in = __shfl_xor_sync(CUDA_WARP, out, distance);
            words[i] = high ? in : words[i];
            words[i + distance] = high ? words[i + distance] : in;
        }
}

/* numbers[i] = random_uniform(key, RANDOM_GROUP * group + RUN * thread + i), thread being this
 * one's place of the four. All threads of a warp call it. */
static __device__ inline void random_run(float (&numbers)[RUN], uint64_t key, uint64_t group)
{
    int thread = (int)threadIdx.x % RUN_THREADS;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint64_t index = group * RANDOM_GROUP_BLOCKS + (uint64_t)(half * 4 + thread);
        struct philox_block block = {{(uint32_t)index, (uint32_t)(index >> 32), 0, 0}};
        block = philox(block, (uint32_t)key, (uint32_t)(key >> 32));
        exchange(block.words, thread);
#pragma unroll
        for (int i = 0; i < 4; i++)
            numbers[half * 4 + i] = random_unit(block.words[i]);
    }
}

#endif
#endif
