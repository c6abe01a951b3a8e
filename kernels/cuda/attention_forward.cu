/* Attention forward on tensor cores: FlashAttention-2 (Dao 2023), algorithm 1. A block holds a tile
 * of queries and walks over the keys with the online softmax (Milakov and Gimelshein 2018): m' =
 * max(m, rowmax(S))    l' = exp(m - m') l + rowsum(exp(S - m')) O' = exp(m - m') O + exp(S - m') V
 * and divides by l once, at the end. The rules of that paper that matter here:
 *  - each warp has query rows of its own and sees all keys, so warps exchange nothing
 * (section 3.3);
 *  - the output is scaled at the end instead of at each tile (section 3.1.1);
 *  - exponents are exp2 of scores times log2 e: one multiply-add and one ex2;
 *  - O is rescaled only when some row of the warp has a new largest score.
 * cp.async brings the next tile of keys and values while one is worked on (two stages). */
#include "kernels/cuda/attention_tile.h"

enum { WARPS = 4, THREADS = 32 * WARPS, KEYS = 64 };

/* How many queries, for what registers hold. */
template <int HD, bool EXTRAS> struct tile_config {
    enum {
        ROWS = HD == 128 && EXTRAS ? 1 : 2,
        QUERIES = 16 * ROWS * WARPS,
        /* Tiles in shared memory: queries, then two stages of keys and values. */
        BYTES = (QUERIES + 2 * 2 * KEYS) * HD * (int)sizeof(bf16),
    };
};

/* A lane's part of the softmax: of its rows 16 r + 8 i + lane / 4. */
template <int ROWS> struct softmax {
    float largest[ROWS][2], sum[ROWS][2]; /* largest: times the factor; sum: this lane's columns */
};

/* Scores x become exp2(factor * x - largest); y and the sums are rescaled to the new largest. A row
 * is spread over the four lanes of a quad, so its maximum takes two shuffles; its sum stays apart
 * in the lanes until finish(). A masked score is -infinity, whose exp2 is 0: each row sees a key in
 * its first tile, so largest is finite from then on. */
template <int HD, int ROWS>
__device__ static void online_softmax(float (&x)[ROWS][KEYS / 8][4], float (&y)[ROWS][HD / 8][4],
                                      struct softmax<ROWS> &state, float factor)
{
    float rescale[ROWS][2];
    bool grew = false;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float largest = -INFINITY, before = state.largest[r][half];
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
                largest = fmaxf(largest, fmaxf(x[r][n][2 * half], x[r][n][2 * half + 1]));
            largest = fmaxf(before, quad_max(largest) * factor);
            grew |= largest != before;
            rescale[r][half] = matrix_exp2(before - largest);
            state.largest[r][half] = largest;
            state.sum[r][half] *= rescale[r][half];
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int i = 2 * half; i < 2 * half + 2; i++) {
                    x[r][n][i] = matrix_exp2(x[r][n][i] * factor - largest);
                    state.sum[r][half] += x[r][n][i];
                }
        }
    if (!__any_sync(CUDA_WARP, grew))
        return;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < HD / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                y[r][n][i] *= rescale[r][i / 2];
}

/* A tile of keys k and values v for the warp's queries of the tile q. */
template <int HD, bool EXTRAS, int ROWS>
__device__ static void process_kv_tile(const struct attention_args &a,
                                       const struct tile_position &at, bf16 *q, bf16 *k, bf16 *v,
                                       float (&y)[ROWS][HD / 8][4], struct softmax<ROWS> &state)
{
    float x[ROWS][KEYS / 8][4], factor = a.shape.scale * LOG2_E;
    bool drops = EXTRAS && a.shape.dropout > 0;
    struct tile_dropout<false, ROWS, KEYS / 8> dropout;
    if (drops)
        dropout.draw(a, at);
    tile_zero(x);
    tile_mma_qk<HD, ROWS, KEYS>(x, q, k);
    if (EXTRAS) {
        tile_scale<false>(x, a, at, factor);
        factor = 1;
    }
    if (tile_is_masked(a.shape, at, KEYS))
        tile_mask<false>(x, a.shape, at);
    online_softmax<HD, ROWS>(x, y, state, factor);
    if (drops) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    x[r][n][i] *= dropout.factor(a, r, n, i);
    }
    tile_mma_pv<HD, ROWS, KEYS>(y, x, v);
}

/* Divides by the sums, leaves their logarithms and the output. */
template <int HD, int ROWS>
__device__ static void finish(const struct attention_args &a, const struct tile_position &at,
                              bf16 *tile, float (&y)[ROWS][HD / 8][4],
                              const struct softmax<ROWS> &state)
{
    const struct attention_shape &z = a.shape;
    float *lse = a.lse + (at.b * z.heads + at.h) * z.T_q;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float sum = quad_sum(state.sum[r][half]), inverse = 1 / sum;
            int q = at.q0 + tile_row((int)threadIdx.x % 32, r, 2 * half);
            if (q < z.T_q && threadIdx.x % 4 == 0)
                lse[q] = (state.largest[r][half] + log2f(sum)) * LN_2;
#pragma unroll
            for (int n = 0; n < HD / 8; n++) {
                y[r][n][2 * half] *= inverse;
                y[r][n][2 * half + 1] *= inverse;
            }
        }
    struct tile_rows to = tile_rows_of<HD>(a.y, z.heads * HD, at.b, z.T_q, at.h, z.T_q);
    tile_store<HD, ROWS>(to, at.q0, tile, y, 1);
}

template <int HD, bool EXTRAS>
__global__ void __launch_bounds__(THREADS) attention_forward(struct attention_args a)
{
    using size = tile_config<HD, EXTRAS>;
    constexpr int ROWS = size::ROWS, QUERIES = size::QUERIES;
    CUDA_SHARED(bf16, shared);
    bf16 *q_tile = shared, *stages = shared + QUERIES * HD;
    const struct attention_shape &z = a.shape;
    struct attention_work work = attention_work_of(a, a.query_heads, blockIdx.x);
    /* The last queries see the most keys. */
    int first = ((int)(z.T_q - 1) / QUERIES - work.tile) * QUERIES;
    int end = (int)attention_seen(z, work, first + QUERIES);
    struct tile_rows q = tile_rows_of<HD>(a.q, z.q_stride, work.b, z.T_q, work.h, z.T_q);
    struct tile_rows k = tile_rows_of<HD>(a.k, z.k_stride, work.b, z.T_k, work.kv, work.keys);
    struct tile_rows v = tile_rows_of<HD>(a.v, z.v_stride, work.b, z.T_k, work.kv, work.keys);
    struct matrix_copies copies;
    struct softmax<ROWS> state;
    float y[ROWS][HD / 8][4];
    tile_zero(y);
#pragma unroll
    for (int i = 0; i < 2 * ROWS; i++) {
        state.largest[i / 2][i % 2] = -INFINITY;
        state.sum[i / 2][i % 2] = 0;
    }
    tile_fetch<HD, QUERIES, THREADS>(copies, q_tile, q, first);
    tile_fetch<HD, KEYS, THREADS>(copies, stages, k, 0);
    tile_fetch<HD, KEYS, THREADS>(copies, stages + KEYS * HD, v, 0);
    for (int k0 = 0; k0 < end; k0 += KEYS) {
        int stage = k0 / KEYS % 2;
        bf16 *now = stages + stage * 2 * KEYS * HD, *next = stages + (stage ^ 1) * 2 * KEYS * HD;
        copies.wait();
        __syncthreads(); /* all have come, and nobody reads the other stage any more */
        if (k0 + KEYS < end) {
            tile_fetch<HD, KEYS, THREADS>(copies, next, k, k0 + KEYS);
            tile_fetch<HD, KEYS, THREADS>(copies, next + KEYS * HD, v, k0 + KEYS);
        }
        struct tile_position at = {work.b, work.h, first + tile_warp_row<ROWS>(), k0, work.keys};
        if (!z.causal || at.k0 < at.q0 + 16 * ROWS)
            process_kv_tile<HD, EXTRAS, ROWS>(a, at, q_tile, now, now + KEYS * HD, y, state);
    }
    int row = tile_warp_row<ROWS>();
    struct tile_position at = {work.b, work.h, first + row, 0, work.keys};
    finish<HD, ROWS>(a, at, q_tile + row * HD, y, state);
}

template <int HD, bool EXTRAS> static void launch(struct stream *s, const struct attention_args *a)
{
    using size = tile_config<HD, EXTRAS>;
    const struct attention_shape *z = &a->shape;
    int64_t blocks = z->B * z->heads * ((z->T_q + size::QUERIES - 1) / size::QUERIES);
    CUDA_LAUNCH(s, (attention_forward<HD, EXTRAS>), (unsigned)blocks, THREADS, (int)size::BYTES,
                *a);
}

void attention_matrix_forward(struct stream *s, const struct attention_args *a)
{
    assert(cuda_has_matrix_units(s) && tile_places_suffice(&a->shape));
    bool extras = a->bias || a->shape.dropout > 0;
    if (a->shape.hd == 64)
        extras ? launch<64, true>(s, a) : launch<64, false>(s, a);
    else
        extras ? launch<128, true>(s, a) : launch<128, false>(s, a);
}
