/* dK and dV of attention on tensor cores (FlashAttention-2, algorithm 2, with the loops split in
 * two kernels): dV = P^T dO, dS = P * (dP - delta), dK = dS^T Q. The paper adds dQ of all key tiles
 * with atomics; here attention_queries.cu makes dQ in a pass of its own, so sums have one order and
 * two runs give the same bits.
 *
 * A block takes a tile of keys through all queries that see it, head by head of those that share
 * the keys. It makes scores transposed, keys by queries: then P^T and dS^T are in registers as the
 * first factors of the products with dO and Q. */
#include "kernels/cuda/attention_tile.h"

/* How wide heads are cut up, for what registers hold: dk and dv. */
template <int HD> struct tile_config {
    enum {
        ROWS = HD == 128 ? 1 : 2,
        WARPS = 8 / ROWS,
        THREADS = 32 * WARPS,
        KEYS = 16 * ROWS * WARPS,
        QUERIES = 32,
        STAGE = 2 * QUERIES * HD, /* elements of queries and their dy */
        BYTES =
            (2 * KEYS * HD + 2 * STAGE) * (int)sizeof(bf16) + 2 * 2 * QUERIES * (int)sizeof(float),
    };
};

/* A stage of queries: lse and delta are 0 past the last, as q and dy are, so nothing comes of
 * them. */
template <int HD>
__device__ static void fetch(const struct attention_args &a, struct matrix_copies &copies,
                             bf16 *tile, float *values, const struct tile_position &at)
{
    using size = tile_config<HD>;
    const struct attention_shape &z = a.shape;
    struct tile_rows q = tile_rows_of<HD>(a.q, z.q_stride, at.b, z.T_q, at.h, z.T_q);
    struct tile_rows dy = tile_rows_of<HD>(a.dy, z.heads * HD, at.b, z.T_q, at.h, z.T_q);
    tile_fetch<HD, size::QUERIES, size::THREADS>(copies, tile, q, at.q0);
    tile_fetch<HD, size::QUERIES, size::THREADS>(copies, tile + size::QUERIES * HD, dy, at.q0);
    int thread = matrix_thread(), row = at.q0 + thread % size::QUERIES;
    if (thread < 2 * size::QUERIES) {
        const float *from = thread < size::QUERIES ? a.kept_lse : a.delta;
        from += (at.b * z.heads + at.h) * z.T_q + row;
        copies.copy<4>(values + thread, from, row < z.T_q);
    }
}

/* x: the scores, become the probabilities as they met the values; dx: the gradient of those,
 * becomes the scores'. values: of the queries, lse and then delta. */
template <bool EXTRAS, int ROWS, int QUERIES>
__device__ static void
softmax_backward(const struct attention_args &a, const struct tile_position &at,
                 const float *values, const struct tile_dropout<true, ROWS, QUERIES / 8> &dropout,
                 float (&x)[ROWS][QUERIES / 8][4], float (&dx)[ROWS][QUERIES / 8][4])
{
    float factor = a.shape.scale * LOG2_E;
    if (EXTRAS) {
        tile_scale<true>(x, a, at, factor);
        factor = 1;
    }
    if (tile_is_masked(a.shape, at, 16 * ROWS))
        tile_mask<true>(x, a.shape, at);
    int lane = matrix_lane();
#pragma unroll
    for (int n = 0; n < QUERIES / 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float lse = values[tile_col(lane, n, i)] * LOG2_E;
            float delta = values[QUERIES + tile_col(lane, n, i)];
#pragma unroll
            for (int j = i; j < 2 * 2 * ROWS; j += 2) {
                float &p = x[j / 4][n][j % 4], &dp = dx[j / 4][n][j % 4];
                float kept = EXTRAS ? dropout.factor(a, j / 4, n, j % 4) : 1;
                p = matrix_exp2(p * factor - lse);
                dp = p * (dp * kept - delta);
                p *= kept;
            }
        }
}

template <int HD, bool EXTRAS>
__global__ void __launch_bounds__(tile_config<HD>::THREADS) attention_keys(struct attention_args a)
{
    using size = tile_config<HD>;
    constexpr int ROWS = size::ROWS, QUERIES = size::QUERIES;
    CUDA_SHARED(bf16, shared);
    bf16 *k_tile = shared, *v_tile = shared + size::KEYS * HD, *stages = v_tile + size::KEYS * HD;
    float *values = (float *)(void *)(stages + 2 * size::STAGE);
    const struct attention_shape &z = a.shape;
    /* The first keys are seen by the most queries. */
    struct attention_work work = attention_work_of(a, a.key_heads, blockIdx.x);
    int group = (int)(z.heads / z.kv_heads), k0 = work.tile * size::KEYS;
    int row = (int)threadIdx.x / 32 * 16 * ROWS;
    struct tile_rows k = tile_rows_of<HD>(a.k, z.k_stride, work.b, z.T_k, work.kv, work.keys);
    struct tile_rows v = tile_rows_of<HD>(a.v, z.v_stride, work.b, z.T_k, work.kv, work.keys);
    int first = z.causal ? k0 : 0; /* query */
    struct tile_position at = {work.b, work.kv * group, first, k0 + row, work.keys};
    int end = k0 < work.keys && first < z.T_q ? at.h + group : at.h; /* of the heads */
    struct tile_position next = at;
    struct matrix_copies copies;
    float dk[ROWS][HD / 8][4], dv[ROWS][HD / 8][4];
    tile_zero(dk);
    tile_zero(dv);
    if (at.h < end) {
        tile_fetch<HD, size::KEYS, size::THREADS>(copies, k_tile, k, k0);
        tile_fetch<HD, size::KEYS, size::THREADS>(copies, v_tile, v, k0);
        fetch<HD>(a, copies, stages, values, at);
    }
    for (int stage = 0; at.h < end; stage ^= 1, at = next) {
        bf16 *q_tile = stages + stage * size::STAGE, *dy_tile = q_tile + QUERIES * HD;
        next.q0 += QUERIES;
        if (next.q0 >= z.T_q) {
            next.q0 = first;
            next.h++;
        }
        copies.wait();
        __syncthreads(); /* all have come, and nobody reads the other stage any more */
        if (next.h < end)
            fetch<HD>(a, copies, stages + (stage ^ 1) * size::STAGE,
                      values + (stage ^ 1) * 2 * QUERIES, next);
        if (z.causal && at.q0 + QUERIES <= at.k0)
            continue;
        float x[ROWS][QUERIES / 8][4], dx[ROWS][QUERIES / 8][4];
        struct tile_dropout<true, ROWS, QUERIES / 8> dropout;
        if (EXTRAS && z.dropout > 0)
            dropout.draw(a, at);
        else
            dropout.keep_all();
        tile_zero(x);
        tile_zero(dx);
        tile_mma_qk<HD, ROWS, QUERIES>(x, k_tile, q_tile);
        tile_mma_qk<HD, ROWS, QUERIES>(dx, v_tile, dy_tile);
        softmax_backward<EXTRAS, ROWS, QUERIES>(a, at, values + stage * 2 * QUERIES, dropout, x,
                                                dx);
        tile_mma_pv<HD, ROWS, QUERIES>(dv, x, dy_tile);
        tile_mma_pv<HD, ROWS, QUERIES>(dk, dx, q_tile);
    }
    /* Padding has gradients too: 0. */
    k = tile_rows_of<HD>(a.dk, z.k_stride, work.b, z.T_k, work.kv, z.T_k);
    v = tile_rows_of<HD>(a.dv, z.v_stride, work.b, z.T_k, work.kv, z.T_k);
    tile_store<HD, ROWS>(k, k0 + row, k_tile + row * HD, dk, z.scale);
    tile_store<HD, ROWS>(v, k0 + row, v_tile + row * HD, dv, 1);
}

template <int HD, bool EXTRAS> static void launch(struct stream *s, const struct attention_args *a)
{
    const struct attention_shape *z = &a->shape;
    int64_t blocks =
        z->B * z->kv_heads * ((z->T_k + tile_config<HD>::KEYS - 1) / tile_config<HD>::KEYS);
    if (blocks > 0)
        CUDA_LAUNCH(s, (attention_keys<HD, EXTRAS>), (unsigned)blocks,
                    (int)tile_config<HD>::THREADS, (int)tile_config<HD>::BYTES, *a);
}

void attention_matrix_keys_backward(struct stream *s, const struct attention_args *a)
{
    assert(cuda_has_matrix_units(s) && tile_places_suffice(&a->shape));
    bool extras = a->bias || a->shape.dropout > 0;
    if (a->shape.hd == 64)
        extras ? launch<64, true>(s, a) : launch<64, false>(s, a);
    else
        extras ? launch<128, true>(s, a) : launch<128, false>(s, a);
}
