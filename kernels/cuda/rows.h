/* Kernels that reduce rows: a block's threads are split into groups of `lanes`, a power of two from
 * 32 to the block's threads. Each group has a row. */
#ifndef SHOAL_KERNELS_CUDA_ROWS_H
#define SHOAL_KERNELS_CUDA_ROWS_H

#include "kernels/cuda/wide.h"

#ifdef __cplusplus

enum { ROW_THREADS = 256, ROW_WARPS = ROW_THREADS / 32 };

/* Threads for a row of `items`: one for about four items. */
static inline int row_lanes(int64_t items)
{
    int lanes = 32;
    while (lanes < ROW_THREADS && lanes * 4 < items)
        lanes *= 2;
    return lanes;
}

/* The row of this thread's group, if blocks have as many rows as they have groups. */
static __device__ inline int64_t row_of(int lanes)
{
    return (int64_t)blockIdx.x * (ROW_THREADS / lanes) + (int)threadIdx.x / lanes;
}

/* Shared memory of group_sums. Calls alternate between its two halves, so one barrier per call is
 * enough: a thread in the next call is past all readers of the call before. */
template <int COUNT> struct group_room {
    float at[2][ROW_WARPS][COUNT];
};

/* Each of the numbers x becomes its sum over the group's threads, the same in all of them. Every
 * thread of the block calls it; half: 0, 1, 0, ... */
template <int COUNT>
static __device__ inline void group_sums(float (&x)[COUNT], int lanes, int half,
                                         struct group_room<COUNT> *room)
{
    int warp = (int)threadIdx.x / 32, first = (int)threadIdx.x / lanes * lanes / 32;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        x[i] = warp_sum(x[i]);
    if (lanes == 32)
        return;
    if (threadIdx.x % 32 == 0)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            room->at[half][warp][i] = x[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        x[i] = 0;
        for (int w = first; w < first + lanes / 32; w++)
            x[i] += room->at[half][w][i];
    }
}

#endif
#endif
