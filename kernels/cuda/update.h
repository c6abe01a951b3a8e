/* Optimizer steps on a GPU: applies a rule, in fp32, to each element of a flat range, and rounds
 * weights and state to their dtype. A rule is a struct with a device function step(w, g, a, b); a,
 * b: the element's state. The rule names each fused multiply-add, so both dtypes compute the same
 * and differ only in rounding. */
#ifndef SHOAL_KERNELS_CUDA_UPDATE_H
#define SHOAL_KERNELS_CUDA_UPDATE_H

#include "kernels/cuda/map.h"
#include "kernels/cuda/random_run.h"

#ifdef __cplusplus

/* The tensors of a step, as ops.h's optimizers take them. */
struct update {
    void *w;
    const float *g;
    void *a, *b; /* the state */
    int64_t count;
    uint64_t key, first;
    struct update_extras extras;
};

static inline struct update_extras update_extras_of(const struct update_extras *extras)
{
    return extras ? *extras : update_extras{};
}

/* What clipping multiplies gradients by: 1, less, or a NaN, which goes on. */
static __device__ inline float update_clip_factor(const struct update &u)
{
    if (!u.extras.sum_of_squares)
        return 1;
    float factor = (float)(u.extras.max_norm / (sqrt(*u.extras.sum_of_squares) + 1e-6));
    return factor >= 1 ? 1 : factor;
}

/* What is stored of x: of bf16 its rounding by a random number. */
static __device__ inline float update_round(const float *, float x, float)
{
    return x;
}
static __device__ inline float update_round(const bf16 *, float x, float number)
{
    return bf16_to_float(bf16_stochastic(x, number));
}

/* Elements i to i + N, of which STATES tensors of state are kept. factor: of the gradients.
 * numbers: for bf16. */
template <int N, int STATES, class T, class Rule>
static __device__ inline void update_at(const struct update &u, const Rule &rule, int64_t i,
                                        float factor, const float *numbers)
{
    T *tensors[3] = {(T *)u.w, (T *)u.a, (T *)u.b};
    float x[3][N] = {}, g[N];
    load(g, u.g + i);
#pragma unroll
    for (int k = 0; k <= STATES; k++)
        load(x[k], tensors[k] + i);
#pragma unroll
    for (int j = 0; j < N; j++) {
        float number = sizeof(T) == sizeof(bf16) ? numbers[j] : 0;
        rule.step(&x[0][j], g[j] * factor, &x[1][j], &x[2][j]);
#pragma unroll
        for (int k = 0; k <= STATES; k++)
            x[k][j] = update_round(tensors[k], x[k][j], number);
    }
#pragma unroll
    for (int k = 0; k <= STATES; k++)
        store(tensors[k] + i, x[k]);
    if constexpr (sizeof(T) == sizeof(float)) {
        if (!u.extras.copy)
            return;
        if constexpr (N == 4)
            numbers_store(u.extras.copy + i, x[0]);
        else
            number_store(u.extras.copy + i, x[0][0]);
    }
}

template <int N, int STATES, class Rule>
static __global__ void update_fp32(struct update u, Rule rule)
{
    int64_t whole = u.count / N * N;
    float factor = update_clip_factor(u);
    for (int64_t i = grid_thread() * N; i < whole; i += grid_threads() * N)
        update_at<N, STATES, float>(u, rule, i, factor, nullptr);
    if (grid_thread() < u.count - whole)
        update_at<1, STATES, float>(u, rule, whole + grid_thread(), factor, nullptr);
}

/* A thread has RUN elements with neighbouring numbers, which begin at element 0 or before it. */
template <bool WIDE, int STATES, class Rule>
static __global__ void update_bf16(struct update u, Rule rule, int64_t runs)
{
    uint64_t first_group = u.first / RANDOM_GROUP;
    int64_t skip = (int64_t)(u.first % RANDOM_GROUP);
    float factor = update_clip_factor(u);
    for (int64_t block = (int64_t)blockIdx.x * MAP_THREADS; block < runs;
         block += (int64_t)gridDim.x * MAP_THREADS) {
        int64_t run = block + threadIdx.x, i = run * RUN - skip;
        float numbers[RUN];
        random_run(numbers, u.key, first_group + (uint64_t)run / RUN_THREADS);
        if (WIDE && i >= 0 && i + RUN <= u.count) {
            update_at<RUN, STATES, bf16>(u, rule, i, factor, numbers);
            continue;
        }
#pragma unroll
        for (int j = 0; j < RUN; j++)
            if (i + j >= 0 && i + j < u.count)
                update_at<1, STATES, bf16>(u, rule, i + j, factor, numbers + j);
    }
}

/* Queues a step of all elements. */
template <int STATES, class Rule>
static inline void update_queue(struct stream *s, enum dtype t, const struct update &u, Rule rule)
{
    bool wide = is_aligned(u.w) && is_aligned(u.g) && is_aligned(u.a) && is_aligned(u.b) &&
                (uintptr_t)u.extras.copy % 8 == 0;
    int64_t runs = ((int64_t)(u.first % RANDOM_GROUP) + u.count + RUN - 1) / RUN;
    if (t == DTYPE_F32 && wide)
        CUDA_LAUNCH(s, (update_fp32<4, STATES, Rule>), map_blocks(s, u.count, 4), MAP_THREADS, 0, u,
                    rule);
    else if (t == DTYPE_F32)
        CUDA_LAUNCH(s, (update_fp32<1, STATES, Rule>), map_blocks(s, u.count, 4), MAP_THREADS, 0, u,
                    rule);
    else if (wide && u.first % RUN == 0)
        CUDA_LAUNCH(s, (update_bf16<true, STATES, Rule>), map_blocks(s, runs, 1), MAP_THREADS, 0, u,
                    rule, runs);
    else
        CUDA_LAUNCH(s, (update_bf16<false, STATES, Rule>), map_blocks(s, runs, 1), MAP_THREADS, 0,
                    u, rule, runs);
}

#endif
#endif
