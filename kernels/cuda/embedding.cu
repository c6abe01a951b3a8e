/* Rows of a table, and their gradient without atomics: the rows of dy are sorted by id and, of the
 * same id, by row, and then added up in that order by whom the table's row belongs to. */
#include "kernels/cuda/data_fault.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/wide.h"

enum {
    THREADS = 128,
    CHUNK = 4096, /* keys that a block sorts in shared memory */
    SORT_THREADS = 1024,
    ROWS_PER_THREAD = 32, /* sorted rows that a thread adds up: one id may have all rows */
    BATCH = 4,            /* of them on their way at once */
};

template <class T, int N>
static __global__ void embedding_forward(T *__restrict__ y, const T *__restrict__ w,
                                         const int32_t *ids, int64_t rows, int64_t V, int64_t D,
                                         struct data_fault *fault)
{
    int64_t column = grid_thread() * N;
    for (int64_t row = blockIdx.y; column < D && row < rows; row += gridDim.y) {
        int64_t id = ids[row];
        if (id < 0 || id >= V)
            data_fault_stop(fault, DATA_ID, row, id, V);
        float a[N];
        load(a, w + id * D + column);
        store(y + row * D + column, a);
    }
}

void cuda_embedding_forward(struct stream *s, enum dtype t, void *y, const void *w,
                            const int32_t *ids, int64_t rows, int64_t V, int64_t D)
{
    assert(D >= 1);
    bool wide = is_aligned(y) && is_aligned(w) && is_aligned(D * (int64_t)dtype_bytes(t));
    for_dtype(t, wide, [&](auto element, auto count) {
        using T = decltype(element);
        constexpr int N = decltype(count)::value;
        const struct rows_grid grid = rows_grid_of(rows, D / N, THREADS);
        CUDA_LAUNCH(s, (embedding_forward<T, N>), grid.blocks, grid.threads, 0, (T *)y,
                    (const T *)w, ids, rows, V, D, cuda_data_fault(s));
    });
}

/* ---- sorted keys: id, then row ---- */

static __device__ inline int64_t id_of(uint64_t key)
{
    return (int64_t)(key >> 32);
}

static __device__ inline int64_t row_of(uint64_t key)
{
    return (int64_t)(uint32_t)key;
}

/* A block sorts `length` keys (a power of two; what is missing is large) by Batcher's bitonic
 * network. */
static __global__ void sort_chunks(uint64_t *keys, const int32_t *ids, int64_t rows, int64_t V,
                                   int length, struct data_fault *fault)
{
    CUDA_BLOCK(uint64_t, chunk, [CHUNK]);
    int64_t first = (int64_t)blockIdx.x * length;
    for (int i = (int)threadIdx.x; i < length; i += (int)blockDim.x) {
        int64_t row = first + i;
        if (row < rows && (ids[row] < 0 || ids[row] >= V))
            data_fault_stop(fault, DATA_ID, row, ids[row], V);
        chunk[i] = row < rows ? (uint64_t)ids[row] << 32 | (uint64_t)row : UINT64_MAX;
    }
    for (int run = 2; run <= length; run *= 2)
        for (int distance = run / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (int pair = (int)threadIdx.x; pair < length / 2; pair += (int)blockDim.x) {
                int low = pair / distance * 2 * distance + pair % distance, high = low + distance;
                uint64_t a = chunk[low], b = chunk[high];
                bool rises = (low & run) == 0;
                if ((a > b) == rises) {
                    chunk[low] = b;
                    chunk[high] = a;
                }
            }
        }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < length; i += (int)blockDim.x)
        if (first + i < rows)
            keys[first + i] = chunk[i];
}

/* Chunks of sorted keys become one: a key's position is how many are smaller, in all chunks. */
static __global__ void merge_chunks(uint64_t *merged, const uint64_t *__restrict__ keys,
                                    int64_t rows)
{
    int64_t i = grid_thread(), position = i % CHUNK;
    if (i >= rows)
        return;
    uint64_t key = keys[i];
    for (int64_t first = 0; first < rows; first += CHUNK) {
        if (first == i / CHUNK * CHUNK)
            continue;
        int64_t low = first, high = first + CHUNK < rows ? first + CHUNK : rows;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (keys[middle] < key)
                low = middle + 1;
            else
                high = middle;
        }
        position += low - first;
    }
    merged[position] = key;
}

/* ---- sums ---- */

/* Whether sorted row `row` has the id of the one before it. */
static __device__ inline bool goes_on(const uint64_t *keys, int64_t row, int64_t rows)
{
    return row > 0 && row < rows && id_of(keys[row - 1]) == id_of(keys[row]);
}

/* x[b] = row i + b of dy by the sorted keys, N columns of it; rows from `last` on are left. */
template <class T, int N>
static __device__ inline void load_rows(float (&x)[BATCH][N], const T *__restrict__ dy,
                                        const uint64_t *__restrict__ keys, int64_t i, int64_t last,
                                        int64_t D)
{
#pragma unroll
    for (int b = 0; b < BATCH; b++)
        if (i + b < last)
            load(x[b], dy + row_of(keys[i + b]) * D);
}

/* Adds up the runs of the same id in a range of the sorted rows. A run that is all in the range is
 * added to dw. Of others, the sum is left in `edges`, [ranges, 2, D]: of the one that began in an
 * earlier range, and of the one that begins here and goes on in the next. */
template <class T, int N>
static __global__ void add_ranges(float *dw, float *edges, const T *__restrict__ dy,
                                  const uint64_t *__restrict__ keys, int64_t rows, int64_t D)
{
    int64_t column = grid_thread() * N, ranges = (rows + ROWS_PER_THREAD - 1) / ROWS_PER_THREAD;
    for (int64_t range = blockIdx.y; column < D && range < ranges; range += gridDim.y) {
        int64_t first = range * ROWS_PER_THREAD,
                last = first + ROWS_PER_THREAD < rows ? first + ROWS_PER_THREAD : rows;
        float sum[N] = {0}, *head = edges + 2 * range * D + column, *tail = head + D;
        bool began_before = goes_on(keys, first, rows);
        for (int64_t i = first; i < last; i += BATCH) {
            float x[BATCH][N] = {};
            load_rows(x, dy + column, keys, i, last, D);
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                int64_t row = i + b;
#pragma unroll
                for (int j = 0; j < N; j++)
                    sum[j] += x[b][j];
                bool more = goes_on(keys, row + 1, rows);
                if (row >= last || (more && row + 1 < last))
                    continue;
                if (began_before || more)
                    store(began_before ? head : tail, sum);
                else
                    add_to(dw + id_of(keys[row]) * D + column, sum);
                began_before = false;
#pragma unroll
                for (int j = 0; j < N; j++)
                    sum[j] = 0;
            }
        }
    }
}

/* Adds the runs that begin in one range and end in a later one to dw. */
template <int N>
static __global__ void add_edges(float *dw, const float *__restrict__ edges,
                                 const uint64_t *__restrict__ keys, int64_t rows, int64_t D)
{
    int64_t column = grid_thread() * N;
    int64_t ranges = (rows + ROWS_PER_THREAD - 1) / ROWS_PER_THREAD;
    for (int64_t range = blockIdx.y; column < D && range < ranges; range += gridDim.y) {
        int64_t end = (range + 1) * ROWS_PER_THREAD;
        if (!goes_on(keys, end, rows))
            continue;
        int64_t id = id_of(keys[end]), first = range * ROWS_PER_THREAD;
        if (first > 0 && id_of(keys[first - 1]) == id)
            continue; /* it began before this range */
        float sum[N], other[N];
        load(sum, edges + (2 * range + 1) * D + column);
        for (int64_t next = range + 1; next < ranges && id_of(keys[next * ROWS_PER_THREAD]) == id;
             next++) {
            load(other, edges + 2 * next * D + column);
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[j] += other[j];
            if (!goes_on(keys, (next + 1) * ROWS_PER_THREAD, rows))
                break;
        }
        add_to(dw + id * D + column, sum);
    }
}

/* Returns the sorted keys: one of two arrays of `rows`. */
static const uint64_t *sort(struct stream *s, uint64_t *keys[2], const int32_t *ids, int64_t rows,
                            int64_t V)
{
    int length = 2;
    while (length < CHUNK && length < rows)
        length *= 2;
    int threads = (int)cuda_blocks(length / 2, 32, SORT_THREADS / 32) * 32;
    CUDA_LAUNCH(s, sort_chunks, cuda_blocks(rows, length, INT32_MAX), threads, 0, keys[0], ids,
                rows, V, length, cuda_data_fault(s));
    if (rows <= length)
        return keys[0];
    CUDA_LAUNCH(s, merge_chunks, cuda_blocks(rows, THREADS, INT32_MAX), THREADS, 0, keys[1],
                keys[0], rows);
    return keys[1];
}

void cuda_embedding_backward(struct stream *s, enum dtype t, float *dw, const void *dy,
                             const int32_t *ids, int64_t rows, int64_t V, int64_t D,
                             bool accumulate)
{
    assert(D >= 1 && rows < UINT32_MAX);
    if (!accumulate)
        cuda_check(s, cudaMemsetAsync(dw, 0, (size_t)(V * D) * sizeof *dw, cuda_captured(s)),
                   "embedding_backward");
    int64_t ranges = (rows + ROWS_PER_THREAD - 1) / ROWS_PER_THREAD,
            edges_bytes = ranges * 2 * D * (int64_t)sizeof *dw;
    int64_t keys_bytes = (rows + 1) / 2 * 2 * (int64_t)sizeof(uint64_t);
    char *scratch = (char *)cuda_scratch(s, (size_t)(2 * keys_bytes + edges_bytes));
    if (!scratch || rows == 0)
        return;
    uint64_t *both[2] = {(uint64_t *)scratch, (uint64_t *)(scratch + keys_bytes)};
    const uint64_t *keys = sort(s, both, ids, rows, V);
    float *edges = (float *)(scratch + 2 * keys_bytes);
    bool wide = is_aligned(dw) && is_aligned(dy) && is_aligned(D * (int64_t)dtype_bytes(t));
    for_dtype(t, wide, [&](auto element, auto count) {
        using T = decltype(element);
        constexpr int N = decltype(count)::value;
        const struct rows_grid grid = rows_grid_of(ranges, D / N, THREADS);
        CUDA_LAUNCH(s, (add_ranges<T, N>), grid.blocks, grid.threads, 0, dw, edges, (const T *)dy,
                    keys, rows, D);
        CUDA_LAUNCH(s, add_edges<N>, grid.blocks, grid.threads, 0, dw, (const float *)edges, keys,
                    rows, D);
    });
}
