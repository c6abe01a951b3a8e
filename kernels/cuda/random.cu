/* Tensors of random numbers: each element's number is named by its place in the whole tensor. A
 * thread has one of Philox's blocks, whose four words are numbers n, n + 8, n + 16 and n + 24 of a
 * group of 32: two pairs of normal numbers. */
#include "kernels/random.h"

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/ops.h"

#include <math.h>

enum { THREADS = 256, WORDS = 4 };

/* Where the words of a thread's block go: y[at + word * RANDOM_GROUP_BLOCKS], if that is within
 * [0, count). */
struct thread_numbers {
    struct philox_block block;
    int64_t at;
};

static __device__ inline struct thread_numbers draw(uint64_t key, uint64_t first)
{
    const uint64_t index =
        first / RANDOM_GROUP * RANDOM_GROUP_BLOCKS + (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    struct thread_numbers drawn = {{{(uint32_t)index, (uint32_t)(index >> 32), 0, 0}}, 0};
    drawn.block = philox(drawn.block, (uint32_t)key, (uint32_t)(key >> 32));
    drawn.at =
        (int64_t)(index / RANDOM_GROUP_BLOCKS * RANDOM_GROUP + index % RANDOM_GROUP_BLOCKS - first);
    return drawn;
}

static __device__ inline void put(float *y, int64_t count, int64_t at,
                                  const float (&numbers)[WORDS], float offset, float scale)
{
#pragma unroll
    for (int word = 0; word < WORDS; word++) {
        const int64_t i = at + word * RANDOM_GROUP_BLOCKS;
        if (i >= 0 && i < count)
            y[i] = offset + scale * numbers[word];
    }
}

static __global__ void uniform_kernel(float *y, int64_t count, uint64_t key, uint64_t first,
                                      float low, float high)
{
    const struct thread_numbers drawn = draw(key, first);
    float numbers[WORDS];
#pragma unroll
    for (int word = 0; word < WORDS; word++)
        numbers[word] = random_unit(drawn.block.words[word]);
    put(y, count, drawn.at, numbers, low, high - low);
}

/* Box and Muller: the first two words are radii, the others their angles. */
static __global__ void normal_kernel(float *y, int64_t count, uint64_t key, uint64_t first,
                                     float mean, float stddev)
{
    const struct thread_numbers drawn = draw(key, first);
    float numbers[WORDS];
#pragma unroll
    for (int pair = 0; pair < WORDS / 2; pair++) {
        const float radius = sqrtf(-2 * logf(1 - random_unit(drawn.block.words[pair])));
        const float angle = 6.2831853f * random_unit(drawn.block.words[pair + WORDS / 2]);
        numbers[pair] = radius * cosf(angle);
        numbers[pair + WORDS / 2] = radius * sinf(angle);
    }
    put(y, count, drawn.at, numbers, mean, stddev);
}

/* Blocks of threads for all groups that [first, first + count) touches. */
static unsigned blocks_for(int64_t count, uint64_t first)
{
    const int64_t numbers = (int64_t)(first % RANDOM_GROUP) + count;
    const int64_t philox_blocks = (numbers + RANDOM_GROUP - 1) / RANDOM_GROUP * RANDOM_GROUP_BLOCKS;
    return cuda_blocks(philox_blocks, THREADS, INT32_MAX);
}

void cuda_uniform(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first,
                  float low, float high)
{
    if (count > 0)
        CUDA_LAUNCH(s, uniform_kernel, blocks_for(count, first), THREADS, 0, y, count, key, first,
                    low, high);
}

void cuda_normal(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first,
                 float mean, float stddev)
{
    if (count > 0)
        CUDA_LAUNCH(s, normal_kernel, blocks_for(count, first), THREADS, 0, y, count, key, first,
                    mean, stddev);
}
