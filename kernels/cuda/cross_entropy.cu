/* Cross-entropy straight from the logits. A block has a row: it reads the row once for the largest
 * logit and the sum of exponents together (Milakov and Gimelshein 2018: the sum is scaled anew
 * whenever a larger logit comes), and once more for the gradients. A vocabulary's row is too long
 * for the caches of all rows at work: its beginning stays in shared memory, and the rest is read
 * backwards the second time, what was read last first, while the L2 cache has it. Of a vocabulary
 * that is no whole number of items the last item reaches beyond it, into the space between rows. */
#include "kernels/cuda/data_fault.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/wide.h"

#include <float.h>

enum { MOST_THREADS = 1024, SUM_THREADS = 256 };

/* Of some of a row's logits. */
struct softmax {
    float largest, sum; /* of exp(logit - largest) */
    int at;             /* where the largest is first */
};

/* The same whichever is a. */
static __device__ inline struct softmax join(struct softmax a, struct softmax b)
{
    bool a_leads = a.largest > b.largest || (a.largest == b.largest && a.at <= b.at);
    struct softmax high = a_leads ? a : b, low = a_leads ? b : a;
    high.sum = fmaf(low.sum, expf(low.largest - high.largest), high.sum);
    return high;
}

static __device__ inline struct softmax join_warp(struct softmax mine)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        struct softmax other;
        other.largest = __shfl_xor_sync(CUDA_WARP, mine.largest, distance);
        other.sum = __shfl_xor_sync(CUDA_WARP, mine.sum, distance);
        other.at = __shfl_xor_sync(CUDA_WARP, mine.at, distance);
        mine = join(mine, other);
    }
    return mine;
}

static __device__ inline struct softmax no_logits(void)
{
    struct softmax none = {-FLT_MAX, 0, INT32_MAX};
    return none;
}

/* The whole row's, in every thread. */
static __device__ inline struct softmax join_block(struct softmax mine)
{
    CUDA_BLOCK(struct softmax, warps, [MOST_THREADS / 32]);
    int lane = (int)threadIdx.x % 32;
    mine = join_warp(mine);
    if (lane == 0)
        warps[threadIdx.x / 32] = mine;
    __syncthreads();
    return join_warp(lane < (int)blockDim.x / 32 ? warps[lane] : no_logits());
}

/* The logits from `at` on. */
template <int N>
static __device__ inline void take(struct softmax *mine, const float (&x)[N], int at)
{
    float largest = x[0];
#pragma unroll
    for (int i = 1; i < N; i++)
        largest = fmaxf(largest, x[i]);
    if (largest > mine->largest) {
        mine->sum *= __expf(mine->largest - largest);
        mine->largest = largest;
#pragma unroll
        for (int i = N - 1; i >= 0; i--)
            mine->at = x[i] == largest ? at + i : mine->at;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        mine->sum += __expf(x[i] - mine->largest);
}

/* Only the first `count` of them are logits. */
template <int N> static __device__ inline void hide_beyond(float (&x)[N], int count)
{
#pragma unroll
    for (int i = 1; i < N; i++)
        x[i] = i < count ? x[i] : -INFINITY;
}

/* The row's V logits in items of N; the first `kept` stay in shared memory. When it returns every
 * thread of the block has read what it reads of the row but its own items. */
template <int N, class T>
static __device__ inline struct softmax read_row(const T *x, int V, T *shared, int kept)
{
    constexpr int BATCH = N > 1 ? 16 / N : 8; /* that are on their way at once */
    struct softmax mine = no_logits();
    int step = (int)blockDim.x, items = (V + N - 1) / N;
    for (int first = (int)threadIdx.x; first < items; first += BATCH * step) {
        float a[BATCH][N];
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            if (first + b * step < items)
                load(a[b], x + (int64_t)(first + b * step) * N);
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            int item = first + b * step;
            if (N > 1 && item * N + N > V)
                hide_beyond(a[b], V - item * N);
            if (item < items)
                take(&mine, a[b], item * N);
            if (item < kept)
                store(shared + item * N, a[b]);
        }
    }
    return join_block(mine);
}

/* The row's gradients, factor * exp(logit - largest), which may take the logits' place. A thread
 * has the items that it read. */
template <int N, class T>
static __device__ inline void write_row(T *dx, const T *x, int items, const T *shared, int kept,
                                        float largest, float factor)
{
    int step = (int)blockDim.x, item = (items - 1) / step * step + (int)threadIdx.x;
#pragma unroll 2
    for (item = item < items ? item : item - step; item >= 0; item -= step) {
        float a[N];
        load(a, item < kept ? shared + item * N : x + (int64_t)item * N);
#pragma unroll
        for (int i = 0; i < N; i++)
            a[i] = factor * __expf(a[i] - largest);
        store(dx + (int64_t)item * N, a);
    }
}

/* What a row adds to the sums. */
struct row_sums {
    double loss;
    float hit, counted;
};

template <class T, int N>
static __global__ void __launch_bounds__(MOST_THREADS)
    cross_entropy(T *dlogits, struct row_sums *rows, const T *logits, const int32_t *targets,
                  float scale, int V, int64_t stride, int kept, struct data_fault *fault)
{
    CUDA_SHARED(T, shared);
    int target = targets[blockIdx.x], items = (V + N - 1) / N;
    const T *x = logits + (int64_t)blockIdx.x * stride;
    T *dx = dlogits ? dlogits + (int64_t)blockIdx.x * stride : NULL;
    if (target < 0) {
        float zeros[N] = {0};
        for (int item = (int)threadIdx.x; dx && item < items; item += (int)blockDim.x)
            store(dx + (int64_t)item * N, zeros);
        if (threadIdx.x == 0)
            rows[blockIdx.x] = {0, 0, 0};
        return;
    }
    if (target >= V)
        data_fault_stop(fault, DATA_LABEL, blockIdx.x, target, V);
    float chosen = number_load(x + target); /* another thread overwrites it, behind the barrier */
    struct softmax row = read_row<N>(x, V, shared, kept);
    if (threadIdx.x == 0)
        rows[blockIdx.x] = {log((double)row.sum) - (double)(chosen - row.largest),
                            row.at == target ? 1.0f : 0.0f, 1};
    if (!dx)
        return;
    write_row<N>(dx, x, items, shared, kept, row.largest, scale / row.sum);
    if (target / N % (int)blockDim.x == (int)threadIdx.x)
        number_store(dx + target, scale * (expf(chosen - row.largest) / row.sum - 1));
}

/* sums += the rows', by one block. */
static __global__ void add_rows(double *sums, const struct row_sums *rows, int64_t count)
{
    double loss = 0, hits = 0, counted = 0;
    for (int64_t r = threadIdx.x; r < count; r += SUM_THREADS) {
        loss += rows[r].loss;
        hits += (double)rows[r].hit;
        counted += (double)rows[r].counted;
    }
    loss = block_sum(loss);
    hits = block_sum(hits);
    counted = block_sum(counted);
    if (threadIdx.x > 0)
        return;
    sums[0] += loss;
    sums[1] += hits;
    sums[2] += counted;
}

/* Bytes of a row that stay in shared memory: a row that fits half of it leaves room for another
 * block, for whose barriers it works in the meantime. */
static int64_t kept_bytes(struct stream *s, int64_t row_bytes)
{
    const int64_t reserved = 1024; /* by CUDA, and for what is static here */
    int64_t most = cuda_shared_bytes(s) - reserved;
    if (row_bytes <= most)
        most = most / 2 - reserved;
    return row_bytes < most ? row_bytes : most / 32 * 32;
}

void cuda_cross_entropy(struct stream *s, enum dtype t, void *dlogits, double *sums,
                        const void *logits, const int32_t *target, float scale, int64_t rows,
                        int64_t V, int64_t stride)
{
    assert(V >= 1 && V < INT32_MAX / 2 && stride >= V);
    struct row_sums *partials = (struct row_sums *)cuda_scratch(s, (size_t)rows * sizeof *partials);
    if (rows == 0 || !partials)
        return;
    bool wide =
        is_aligned(logits) && is_aligned(dlogits) && is_aligned(stride * (int64_t)dtype_bytes(t));
    for_dtype(t, wide, [&](auto element, auto count) {
        using T = decltype(element);
        constexpr int N = decltype(count)::value;
        int64_t items = (V + N - 1) / N, row_bytes = items * N * (int64_t)sizeof(T);
        int threads = (int)cuda_blocks(items, 32, MOST_THREADS / 32) * 32;
        int64_t kept = dlogits ? kept_bytes(s, row_bytes) / (int64_t)sizeof(T) : 0;
        CUDA_LAUNCH(s, (cross_entropy<T, N>), (unsigned)rows, threads, (size_t)kept * sizeof(T),
                    (T *)dlogits, partials, (const T *)logits, target, scale, (int)V, stride,
                    (int)(kept / N), cuda_data_fault(s));
    });
    CUDA_LAUNCH(s, add_rows, 1, SUM_THREADS, 0, sums, partials, rows);
}
