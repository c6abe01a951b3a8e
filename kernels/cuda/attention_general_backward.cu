/* Attention's gradients for any head width: see attention_general.h. First those of the queries,
 * which leave what those of the keys and values need. */
#include "kernels/cuda/attention_general.h"

/* Sum of dy * y over the warp's rows. */
template <typename T>
__device__ static void multiply_rows(float (&delta)[ROWS], const struct general_rows<T> &dy,
                                     const struct general_rows<T> &y, int64_t row)
{
    for (int r = 0; r < ROWS; r++) {
        float sum = 0;
        for (int64_t i = threadIdx.x % 32; i < y.hd && row + r < y.count; i += 32) {
            int64_t offset = (row + r) * y.stride + i;
            sum += number_load(dy.x + offset) * number_load(y.x + offset);
        }
        delta[r] = warp_sum(sum);
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS) attention_general_queries(struct attention_args a)
{
    CUDA_SHARED(struct general_shared, shared);
    const struct attention_shape &z = a.shape;
    struct attention_work work = attention_work_of(a, a.query_heads, blockIdx.x);
    int64_t tiles = (z.T_q + TILE - 1) / TILE, slice = work.tile / tiles * SLICE, hd = z.hd;
    int64_t q0 = (tiles - 1 - work.tile % tiles) * TILE; /* the last see the most keys */
    int64_t end = attention_seen(z, work, q0 + TILE), head = (work.b * z.heads + work.h) * z.T_q;
    struct general_rows<T> q =
        general_rows_of<T>(a.q, z.q_stride, work.b, z.T_q, work.h, hd, z.T_q);
    struct general_rows<T> dy =
        general_rows_of<T>(a.dy, z.heads * hd, work.b, z.T_q, work.h, hd, z.T_q);
    struct general_rows<T> k =
        general_rows_of<T>(a.k, z.k_stride, work.b, z.T_k, work.kv, hd, work.keys);
    struct general_rows<T> v =
        general_rows_of<T>(a.v, z.v_stride, work.b, z.T_k, work.kv, hd, work.keys);
    int lane = (int)threadIdx.x % 32;
    int64_t row = q0 + threadIdx.x / 32 * ROWS;
    bool sums_diagonals = a.diagonals && slice == 0 && threadIdx.x < 32;
    struct attention_diagonals<TILE, TILE> diagonals;
    float *to = attention_diagonals_to(a, work, q0, TILE);
    float x[ROWS], dx[ROWS], dq[ROWS][SLICE / 32] = {}, lse[ROWS], delta[ROWS];
    multiply_rows(delta, dy,
                  general_rows_of<T>(a.kept_y, z.heads * hd, work.b, z.T_q, work.h, hd, z.T_q),
                  row);
    for (int r = 0; r < ROWS; r++) {
        lse[r] = row + r < z.T_q ? a.kept_lse[head + row + r] * LOG2_E : INFINITY;
        if (lane == 0 && slice == 0 && row + r < z.T_q)
            a.delta[head + row + r] = delta[r];
    }
    for (int64_t k0 = 0; k0 < end; k0 += TILE) {
        general_qk(x, shared, q, q0, k, k0);
        general_qk(dx, shared, dy, q0, v, k0);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float p =
                matrix_exp2(general_score(a, work, work.h, row + r, k0 + lane, x[r]) - lse[r]);
            /* dS = P * (mask dP - delta): dropout's mask is of the probabilities, so it multiplies
             * their gradient. */
            x[r] = p * (dx[r] * general_dropped(z, work.b, work.h, row + r, k0 + lane) - delta[r]);
        }
        general_pv(dq, x, shared, k, k0, slice);
        if (sums_diagonals)
            diagonals.add(to, shared->x, k0);
    }
    general_store(general_rows_of<T>(a.dq, z.q_stride, work.b, z.T_q, work.h, hd, z.T_q), q0, slice,
                  dq, z.scale);
    if (sums_diagonals)
        diagonals.finish(to, (end + TILE - 1) / TILE * TILE, a.diagonal_length);
}

/* A tile of queries of head h for the block's keys: rows of x are keys, lanes queries. */
template <typename T>
__device__ static void process_q_tile(const struct attention_args &a,
                                      const struct attention_work &work, int64_t h, int64_t q0,
                                      int64_t k0, int64_t slice, struct general_shared *shared,
                                      float (&dk)[ROWS][SLICE / 32], float (&dv)[ROWS][SLICE / 32])
{
    const struct attention_shape &z = a.shape;
    int64_t hd = z.hd, query = q0 + threadIdx.x % 32, key = k0 + threadIdx.x / 32 * ROWS;
    struct general_rows<T> q = general_rows_of<T>(a.q, z.q_stride, work.b, z.T_q, h, hd, z.T_q);
    struct general_rows<T> dy = general_rows_of<T>(a.dy, z.heads * hd, work.b, z.T_q, h, hd, z.T_q);
    struct general_rows<T> k =
        general_rows_of<T>(a.k, z.k_stride, work.b, z.T_k, work.kv, hd, work.keys);
    struct general_rows<T> v =
        general_rows_of<T>(a.v, z.v_stride, work.b, z.T_k, work.kv, hd, work.keys);
    bool inside = query < z.T_q;
    int64_t offset = (work.b * z.heads + h) * z.T_q + (inside ? query : 0);
    float lse = inside ? a.kept_lse[offset] * LOG2_E : INFINITY,
          delta = inside ? a.delta[offset] : 0;
    float x[ROWS], dx[ROWS];
    general_qk(x, shared, k, k0, q, q0);
    general_qk(dx, shared, v, k0, dy, q0);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float p = matrix_exp2(general_score(a, work, h, query, key + r, x[r]) - lse);
        float mask = general_dropped(z, work.b, h, query, key + r);
        x[r] = p * mask;
        dx[r] = p * (dx[r] * mask - delta);
    }
    general_pv(dv, x, shared, dy, q0, slice);
    general_pv(dk, dx, shared, q, q0, slice);
}

template <typename T>
__global__ void __launch_bounds__(THREADS) attention_general_keys(struct attention_args a)
{
    CUDA_SHARED(struct general_shared, shared);
    const struct attention_shape &z = a.shape;
    /* The first keys are seen by the most queries. */
    struct attention_work work = attention_work_of(a, a.key_heads, blockIdx.x);
    int64_t tiles = (z.T_k + TILE - 1) / TILE, slice = work.tile / tiles * SLICE;
    int64_t k0 = work.tile % tiles * TILE, group = z.heads / z.kv_heads;
    float dk[ROWS][SLICE / 32] = {}, dv[ROWS][SLICE / 32] = {};
    if (k0 < work.keys)
        for (int64_t h = work.kv * group; h < (work.kv + 1) * group; h++)
            for (int64_t q0 = z.causal ? k0 : 0; q0 < z.T_q; q0 += TILE)
                process_q_tile<T>(a, work, h, q0, k0, slice, shared, dk, dv);
    /* Padding has gradients too: 0. */
    general_store(general_rows_of<T>(a.dk, z.k_stride, work.b, z.T_k, work.kv, z.hd, z.T_k), k0,
                  slice, dk, z.scale);
    general_store(general_rows_of<T>(a.dv, z.v_stride, work.b, z.T_k, work.kv, z.hd, z.T_k), k0,
                  slice, dv, 1);
}

void attention_general_backward(struct stream *s, enum dtype t, const struct attention_args *a)
{
    const struct attention_shape *z = &a->shape;
    int64_t queries = z->B * z->heads * general_tiles(z->T_q) * general_slices(z);
    int64_t keys = z->B * z->kv_heads * general_tiles(z->T_k) * general_slices(z);
    if (queries > 0)
        CUDA_FOR_DTYPE(t, T,
                       CUDA_LAUNCH(s, attention_general_queries<T>, (unsigned)queries, THREADS,
                                   sizeof(struct general_shared), *a));
    if (keys > 0)
        CUDA_FOR_DTYPE(t, T,
                       CUDA_LAUNCH(s, attention_general_keys<T>, (unsigned)keys, THREADS,
                                   sizeof(struct general_shared), *a));
}
