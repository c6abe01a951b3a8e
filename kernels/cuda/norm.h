/* What the norms share: how backward is split into blocks, and its sums over the rows.
 *
 * Summing dw over rows is the part of backward that crosses rows. Each group of threads keeps its
 * own partial sum. A block adds those of its groups in a fixed order. A last kernel adds those of
 * the blocks: the bits do not depend on which block runs first, as they would with atomics. */
#ifndef SHOAL_KERNELS_CUDA_NORM_H
#define SHOAL_KERNELS_CUDA_NORM_H

#include "kernels/cuda/rows.h"
#include "kernels/cuda/sum_rows.h"

#ifdef __cplusplus

/* Blocks stride over the rows; each group of `lanes` threads takes one row at a time. A group sums
 * its rows' gradients of the parameters in shared memory, `count` floats. A block writes the sum of
 * its groups to its row of `partials`: [blocks, count] in scratch memory. If the floats do not fit
 * shared memory, a block is one group, which sums in its row of partials. */
struct norm_plan {
    int lanes;
    unsigned blocks;
    int64_t count;
    size_t shared_bytes; /* 0: adds up in partials */
    float *partials;     /* NULL: no memory; the stream has failed */
};

static inline struct norm_plan norm_plan_of(struct stream *s, int64_t rows, int64_t items,
                                            int64_t count)
{
    /* all architectures have it, Hopper three times; more than one group never needs more */
    const size_t most_bytes = 64 * 1024;
    struct norm_plan plan;
    plan.lanes = row_lanes(items);
    plan.count = count;
    size_t group_bytes = (size_t)count * sizeof(float);
    plan.shared_bytes = ROW_THREADS / plan.lanes * group_bytes;
    if (plan.shared_bytes > most_bytes) {
        assert(plan.lanes == ROW_THREADS);
        plan.shared_bytes = 0;
    }
    int64_t most = 4 * cuda_multiprocessors(s);
    if (most > SUM_ROWS_AT_ONCE)
        most = SUM_ROWS_AT_ONCE;
    plan.blocks = cuda_blocks(rows, ROW_THREADS / plan.lanes, most);
    plan.partials = (float *)cuda_scratch(s, plan.blocks * group_bytes);
    return plan;
}

/* Where a thread's group adds up rows of D, count / D for each, set to 0. A thread reads and writes
 * only the places of the elements that it takes of each row, here and later. */
template <int N>
static __device__ inline float *norm_sums(const struct norm_plan *plan, float *shared, int64_t D)
{
    int64_t group = (int)threadIdx.x / plan->lanes, lane = (int)threadIdx.x % plan->lanes;
    float zeros[N] = {0}, *sums = plan->shared_bytes
                                      ? shared + group * plan->count
                                      : plan->partials + (int64_t)blockIdx.x * plan->count;
    for (int64_t row = 0; row < plan->count; row += D)
        for (int64_t i = lane * N; i < D; i += plan->lanes * N)
            store(sums + row + i, zeros);
    return sums;
}

/* The end of a block: the groups' sums, in order, are its row of partials. */
static __device__ inline void norm_finish(const struct norm_plan *plan, const float *shared)
{
    __syncthreads();
    if (!plan->shared_bytes)
        return;
    for (int64_t i = threadIdx.x; i < plan->count; i += ROW_THREADS) {
        float total = 0;
        for (int64_t group = 0; group < ROW_THREADS / plan->lanes; group++)
            total += shared[group * plan->count + i];
        plan->partials[blockIdx.x * plan->count + i] = total;
    }
}

/* a = the next numbers of a row x, to which those of the residual were added, unless it is NULL. */
template <int N, class T>
static __device__ inline void norm_load(float (&a)[N], T *x, const T *residual, int64_t i)
{
    load(a, x + i);
    if (!residual)
        return;
    float b[N];
    load(b, residual + i);
#pragma unroll
    for (int j = 0; j < N; j++)
        a[j] = number_round<T>(a[j] + b[j]);
    store(x + i, a);
}

/* The next numbers of dx are a, or what they were and a. */
template <int N, class T>
static __device__ inline void norm_store(T *dx, const float (&a)[N], bool add_dx)
{
    if (!add_dx) {
        store(dx, a);
        return;
    }
    float b[N];
    load(b, dx);
#pragma unroll
    for (int j = 0; j < N; j++)
        b[j] = __fadd_rn(b[j], number_round<T>(a[j])); /* not one operation with a's last */
    store(dx, b);
}

static inline bool norm_is_wide(enum dtype t, int64_t D, const void *x, const void *y,
                                const void *w)
{
    return is_aligned(x) && is_aligned(y) && is_aligned(w) &&
           is_aligned(D * (int64_t)dtype_bytes(t));
}

#endif
#endif
