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
        UNROLL = HD == 64 && EXTRAS ? 2 : HD / 16, /* of tile_mma_qk */
        /* Elements: two tiles of queries, two stages of keys and values. */
        TILES = (2 * QUERIES + 2 * 2 * KEYS) * HD,
        SCORES = EXTRAS ? QUERIES * (KEYS + ATTENTION_SCORE_PAD) : 0, /* floats, for diagonals */
    };
};

/* Of the lane's rows 16 r + 8 i + lane / 4. */
template <int ROWS> struct row_stats {
    float lse[ROWS][2], delta[ROWS][2]; /* lse: times log2 e, infinite past the last query */
};

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
            int row = tile_row((int)threadIdx.x % 32, r, 2 * half);
            int q = at.q0 + row;
            bool inside = q < z.T_q;
            const bf16 *y =
                (const bf16 *)a.kept_y + ((at.b * z.T_q + (inside ? q : 0)) * z.heads + at.h) * HD;
            float sum = 0;
            for (int chunk = (int)quarter; chunk < HD / 8; chunk += 4)
                sum += tile_dot8(y + 8 * chunk, tile_chunk<HD>(dy, row, chunk));
            sum += __shfl_xor_sync(CUDA_WARP, sum, 1);
            sum += __shfl_xor_sync(CUDA_WARP, sum, 2);
            values.delta[r][half] = inside ? sum : 0;
            values.lse[r][half] = inside ? a.kept_lse[head + q] * LOG2_E : INFINITY;
            if (inside && quarter == 0)
                a.delta[head + q] = sum;
        }
}

/* Scores become probabilities. */
template <bool EXTRAS, int ROWS, int KEYS>
__device__ static void probabilities(const struct attention_args &a, const struct tile_position &at,
                                     const struct row_stats<ROWS> &values,
                                     float (&x)[ROWS][KEYS / 8][4])
{
    float factor = a.shape.scale * LOG2_E;
    if (EXTRAS) {
        tile_scale<false>(x, a, at, factor);
        factor = 1;
    }
    if (tile_is_masked(a.shape, at, KEYS))
        tile_mask<false>(x, a.shape, at);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[r][n][i] = matrix_exp2(x[r][n][i] * factor - values.lse[r][i / 2]);
}

/* x: the probabilities, become the gradient of the scores, with dx that of what met the values. */
template <int ROWS, int KEYS>
__device__ static void softmax_backward(const struct attention_args &a, bool drops,
                                        const struct tile_dropout<false, ROWS, KEYS / 8> &dropout,
                                        const struct row_stats<ROWS> &values,
                                        float (&x)[ROWS][KEYS / 8][4],
                                        float (&dx)[ROWS][KEYS / 8][4])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (drops) /* not one operation with what follows */
                    dx[r][n][i] = __fmul_rn(dx[r][n][i], dropout.factor(a, r, n, i));
                x[r][n][i] *= dx[r][n][i] - values.delta[r][i / 2];
            }
}

/* The warp's scores to shared memory, for their diagonals. Those of the stage before are read: a
 * stage begins with a barrier. */
template <int ROWS, int KEYS>
__device__ static void stage_scores(float *scores, const float (&x)[ROWS][KEYS / 8][4])
{
    int lane = matrix_lane();
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                int at = attention_score_offset<KEYS>(tile_row(lane, r, i), tile_col(lane, n, i));
                *(float2 *)(void *)(scores + at) = make_float2(x[r][n][i], x[r][n][i + 1]);
            }
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
    struct attention_work work = attention_work_of(a, a.query_heads, blockIdx.x);
    /* The last queries see the most keys. */
    int first = ((int)(z.T_q - 1) / size::QUERIES - work.tile) * size::QUERIES;
    int end = (int)attention_seen(z, work, first + size::QUERIES);
    struct tile_rows q = tile_rows_of<HD>(a.q, z.q_stride, work.b, z.T_q, work.h, z.T_q);
    struct tile_rows dy = tile_rows_of<HD>(a.dy, z.heads * HD, work.b, z.T_q, work.h, z.T_q);
    struct tile_rows k = tile_rows_of<HD>(a.k, z.k_stride, work.b, z.T_k, work.kv, work.keys);
    struct tile_rows v = tile_rows_of<HD>(a.v, z.v_stride, work.b, z.T_k, work.kv, work.keys);
    struct tile_position at = {work.b, work.h, first + tile_warp_row<ROWS>(), 0, work.keys};
    float *scores = (float *)(void *)(shared + size::TILES); /* of the block */
    bool drops = EXTRAS && z.dropout > 0;
    struct attention_diagonals<16 * ROWS, KEYS> diagonals;
    struct row_stats<ROWS> values;
    struct matrix_copies copies;
    float dq[ROWS][HD / 8][4];
    tile_zero(dq);
    tile_fetch<HD, size::QUERIES, size::THREADS>(copies, q_tile, q, first);
    tile_fetch<HD, size::QUERIES, size::THREADS>(copies, dy_tile, dy, first);
    tile_fetch<HD, KEYS, size::THREADS>(copies, stages, k, 0);
    tile_fetch<HD, KEYS, size::THREADS>(copies, stages + KEYS * HD, v, 0);
    copies.wait();
    __syncthreads(); /* all have come */
    load_row_stats<HD, ROWS>(a, at, dy_tile + tile_warp_row<ROWS>() * HD, values);
    for (int k0 = 0; k0 < end; k0 += KEYS) {
        int stage = k0 / KEYS % 2;
        bf16 *now = stages + stage * 2 * KEYS * HD, *next = stages + (stage ^ 1) * 2 * KEYS * HD;
        if (k0 > 0) {
            copies.wait();
            __syncthreads(); /* all have come, and nobody reads the other stage any more */
        }
        if (k0 + KEYS < end) {
            tile_fetch<HD, KEYS, size::THREADS>(copies, next, k, k0 + KEYS);
            tile_fetch<HD, KEYS, size::THREADS>(copies, next + KEYS * HD, v, k0 + KEYS);
        }
        at.q0 = first + tile_warp_row<ROWS>();
        at.k0 = k0;
        if (k0 >= attention_seen(z, work, at.q0 + 16 * ROWS)) /* by this warp */
            continue;
        float x[ROWS][KEYS / 8][4], dx[ROWS][KEYS / 8][4];
        struct tile_dropout<false, ROWS, KEYS / 8> dropout;
        if (drops)
            dropout.draw(a, at);
        tile_zero(x);
        tile_mma_qk<HD, ROWS, KEYS, size::UNROLL>(x, q_tile, now);
        probabilities<EXTRAS, ROWS, KEYS>(a, at, values, x);
        tile_zero(dx);
        tile_mma_qk<HD, ROWS, KEYS, size::UNROLL>(dx, dy_tile, now + KEYS * HD);
        softmax_backward<ROWS, KEYS>(a, drops, dropout, values, x, dx);
        tile_mma_pv<HD, ROWS, KEYS>(dq, x, now);
        if (EXTRAS && a.diagonals && at.q0 < z.T_q) {
            float *mine = scores + attention_score_offset<KEYS>(at.q0 - first, 0);
            stage_scores<ROWS, KEYS>(mine, x);
            diagonals.add(attention_diagonals_to(a, work, at.q0, 16 * ROWS), mine, k0);
        }
    }
    int row = tile_warp_row<ROWS>();
    struct tile_rows to = tile_rows_of<HD>(a.dq, z.q_stride, work.b, z.T_q, work.h, z.T_q);
    tile_store<HD, ROWS>(to, first + row, q_tile + row * HD, dq, z.scale);
    int64_t seen = attention_seen(z, work, first + row + 16 * ROWS);
    if (EXTRAS && a.diagonals && first + row < z.T_q)
        diagonals.finish(attention_diagonals_to(a, work, first + row, 16 * ROWS),
                         (seen + KEYS - 1) / KEYS * KEYS, a.diagonal_length);
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
    assert(cuda_has_matrix_units(s) && tile_places_suffice(&a->shape));
    bool extras = a->bias || a->shape.dropout > 0;
    if (a->shape.hd == 64)
        extras ? launch<64, true>(s, a) : launch<64, false>(s, a);
    else
        extras ? launch<128, true>(s, a) : launch<128, false>(s, a);
}
