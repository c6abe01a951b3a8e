/* dQ of attention on tensor cores: dQ = dS K with dS = P * (dP - delta), dP = dO V^T. A block takes
 * a tile of queries over the keys, as forward does. P = exp(S - lse) is recomputed from the
 * log-sum-exp that forward kept (FlashAttention-2, algorithm 2). The block also writes delta =
 * rowsum(dO * O) for attention_keys.cu and, with a bias, the diagonals of its gradient: a bias by
 * relative position gets the sum of dS over each diagonal. */
#include "kernels/cuda/attention_tile.h"

/* How wide heads are cut up, for what registers and shared memory hold. */
template <int HD, bool EXTRAS> struct tile_config {
    enum {
        WARPS = 4,
        THREADS = 32 * WARPS,
        ROWS = HD == 128 && EXTRAS ? 1 : 2,
        QUERIES = 16 * ROWS * WARPS,
        KEYS = HD == 128 ? 32 : 64,
        /* Elements: two tiles of queries, two stages of keys and values. */
        TILES = (2 * QUERIES + 2 * 2 * KEYS) * HD,
        SCORES = EXTRAS ? QUERIES * KEYS : 0, /* floats, for the diagonals */
    };
};

/* Of the lane's rows 16 r + 8 i + lane / 4. */
template <int ROWS> struct row_stats {
    float lse[ROWS][2], delta[ROWS][2]; /* lse: times log2 e, infinite past the last query */
};

__device__ static float dot8(const bf16 *x, const bf16 *y)
{
    float left[8], right[8], sum = 0;
    numbers_load(left, x);
    numbers_load(right, y);
#pragma unroll
    for (int i = 0; i < 8; i++)
        sum += left[i] * right[i];
    return sum;
}

/* What the warp's queries from at.q0 on know of their rows; dy: their gradients, in a tile. */
template <int HD, int ROWS>
__device__ static void load_row_stats(const struct attention_args &a,
                                      const struct tile_position &at, bf16 *dy,
                                      struct row_stats<ROWS> &values)
{
    const struct attention_shape &z = a.shape;
    int64_t head = (at.b * z.heads + at.h) * z.T_q, quarter = (int)threadIdx.x % 4;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = tile_row(r, 2 * half);
            int64_t q = at.q0 + row;
            bool inside = q < z.T_q;
            const bf16 *y =
                (const bf16 *)a.kept_y + ((at.b * z.T_q + (inside ? q : 0)) * z.heads + at.h) * HD;
            float sum = 0;
            for (int chunk = (int)quarter; chunk < HD / 8; chunk += 4)
                sum += dot8(y + 8 * chunk, tile_chunk<HD>(dy, row, chunk));
            sum += __shfl_xor_sync(CUDA_WARP, sum, 1);
            sum += __shfl_xor_sync(CUDA_WARP, sum, 2);
            values.delta[r][half] = inside ? sum : 0;
            values.lse[r][half] = inside ? a.kept_lse[head + q] * LOG2_E : INFINITY;
            if (inside && quarter == 0)
                a.delta[head + q] = sum;
        }
}

/* x: the scores, becomes their gradient, with dx that of the probabilities. */
template <bool EXTRAS, int ROWS, int KEYS>
__device__ static void
softmax_backward(const struct attention_args &a, const struct tile_position &at,
                 const struct row_stats<ROWS> &values, float (&x)[ROWS][KEYS / 8][4],
                 const float (&dx)[ROWS][KEYS / 8][4])
{
    float factor = a.shape.scale * LOG2_E;
    uint32_t kept[ROWS] = {};
    bool drops = EXTRAS && a.shape.dropout > 0;
    if (EXTRAS) {
        tile_add_bias<false>(x, a, at, factor);
        factor = 1;
    }
    if (tile_is_masked(a.shape, at, KEYS))
        tile_mask<false>(x, a.shape, at);
    if (drops)
        tile_dropout_bits<false, ROWS, KEYS / 8>(kept, a.shape, at);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float dp = dx[r][n][i];
                if (drops)
                    dp *= tile_dropped(kept[r], n, i, 1 / (1 - a.shape.dropout));
                float p = matrix_exp2(x[r][n][i] * factor - values.lse[r][i / 2]);
                x[r][n][i] = p * (dp - values.delta[r][i / 2]);
            }
}

/* The warp's scores to shared memory, for their diagonals. Those of the stage before are read: a
 * stage begins with a barrier. */
template <int ROWS, int KEYS>
__device__ static void stage_scores(float *scores, const float (&x)[ROWS][KEYS / 8][4])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                scores[attention_score_offset<KEYS>(tile_row(r, i), tile_col(n, i))] = x[r][n][i];
    __syncwarp();
}

template <int HD, bool EXTRAS>
__global__ void __launch_bounds__(128) attention_queries(struct attention_args a)
{
    using size = tile_config<HD, EXTRAS>;
    constexpr int ROWS = size::ROWS, KEYS = size::KEYS;
    CUDA_SHARED(bf16, shared);
    bf16 *q_tile = shared, *dy_tile = shared + size::QUERIES * HD;
    bf16 *stages = dy_tile + size::QUERIES * HD;
    const struct attention_shape &z = a.shape;
    struct attention_work work = attention_work_of(z, z.heads, blockIdx.x);
    /* The last queries see the most keys. */
    int64_t first = ((z.T_q - 1) / size::QUERIES - work.tile) * size::QUERIES;
    int64_t end = attention_seen(z, work, first + size::QUERIES);
    struct tile_rows q = tile_rows_of<HD>(a.q, z.q_stride, work.b, z.T_q, work.h, z.T_q);
    struct tile_rows dy = tile_rows_of<HD>(a.dy, z.heads * HD, work.b, z.T_q, work.h, z.T_q);
    struct tile_rows k = tile_rows_of<HD>(a.k, z.k_stride, work.b, z.T_k, work.kv, work.keys);
    struct tile_rows v = tile_rows_of<HD>(a.v, z.v_stride, work.b, z.T_k, work.kv, work.keys);
    int row = (int)threadIdx.x / 32 * 16 * ROWS;
    struct tile_position at = {work.b, work.h, first + row, 0, work.keys};
    int64_t seen = attention_seen(z, work, at.q0 + 16 * ROWS); /* by this warp */
    float *scores = (float *)(void *)(shared + size::TILES) + row * KEYS;
    bool sums_diagonals = EXTRAS && a.diagonals && at.q0 < z.T_q;
    struct attention_diagonals<16 * ROWS, KEYS> diagonals(a, work, at.q0);
    struct row_stats<ROWS> values;
    struct matrix_copies copies;
    float dq[ROWS][HD / 8][4];
    tile_zero(dq);
    tile_fetch<HD, size::QUERIES, size::THREADS>(copies, q_tile, q, first);
    tile_fetch<HD, size::QUERIES, size::THREADS>(copies, dy_tile, dy, first);
    tile_fetch<HD, KEYS, size::THREADS>(copies, stages, k, 0);
    tile_fetch<HD, KEYS, size::THREADS>(copies, stages + KEYS * HD, v, 0);
    for (int stage = 0; at.k0 < end; at.k0 += KEYS, stage ^= 1) {
        bf16 *now = stages + stage * 2 * KEYS * HD, *next = stages + (stage ^ 1) * 2 * KEYS * HD;
        copies.wait();
        __syncthreads(); /* all have come, and nobody reads the other stage any more */
        if (at.k0 + KEYS < end) {
            tile_fetch<HD, KEYS, size::THREADS>(copies, next, k, at.k0 + KEYS);
            tile_fetch<HD, KEYS, size::THREADS>(copies, next + KEYS * HD, v, at.k0 + KEYS);
        }
        if (at.k0 == 0)
            load_row_stats<HD, ROWS>(a, at, dy_tile + row * HD, values);
        if (at.k0 >= seen)
            continue;
        float x[ROWS][KEYS / 8][4], dx[ROWS][KEYS / 8][4];
        tile_zero(x);
        tile_zero(dx);
        tile_mma_qk<HD, ROWS, KEYS>(x, q_tile + row * HD, now);
        tile_mma_qk<HD, ROWS, KEYS>(dx, dy_tile + row * HD, now + KEYS * HD);
        softmax_backward<EXTRAS, ROWS, KEYS>(a, at, values, x, dx);
        tile_mma_pv<HD, ROWS, KEYS>(dq, x, now);
        if (sums_diagonals) {
            stage_scores<ROWS, KEYS>(scores, x);
            diagonals.add(scores, at.k0);
        }
    }
    struct tile_rows to = tile_rows_of<HD>(a.dq, z.q_stride, work.b, z.T_q, work.h, z.T_q);
    tile_store<HD, ROWS>(to, at.q0, q_tile + row * HD, dq, z.scale);
    if (sums_diagonals)
        diagonals.finish((seen + KEYS - 1) / KEYS * KEYS, a.diagonal_length);
}

template <int HD, bool EXTRAS> static void launch(struct stream *s, const struct attention_args *a)
{
    using size = tile_config<HD, EXTRAS>;
    const struct attention_shape *z = &a->shape;
    int64_t blocks = z->B * z->heads * ((z->T_q + size::QUERIES - 1) / size::QUERIES);
    int bytes = size::TILES * (int)sizeof(bf16) + size::SCORES * (int)sizeof(float);
    if (blocks > 0)
        CUDA_LAUNCH(s, (attention_queries<HD, EXTRAS>), (unsigned)blocks, (int)size::THREADS, bytes,
                    *a);
}

int attention_matrix_queries(int64_t hd)
{
    return 16 * (hd == 64 ? (int)tile_config<64, true>::ROWS : (int)tile_config<128, true>::ROWS);
}

int attention_matrix_keys(int64_t hd)
{
    return hd == 64 ? (int)tile_config<64, true>::KEYS : (int)tile_config<128, true>::KEYS;
}

void attention_matrix_queries_backward(struct stream *s, const struct attention_args *a)
{
    assert(cuda_has_matrix_units(s));
    bool extras = a->bias || a->shape.dropout > 0;
    if (a->shape.hd == 64)
        extras ? launch<64, true>(s, a) : launch<64, false>(s, a);
    else
        extras ? launch<128, true>(s, a) : launch<128, false>(s, a);
}
