/* dK and dV of attention for compute capability 9.0, as attention_keys.cu makes them for older
 * GPUs: a block takes 128 keys through all queries that see them, head by head of those that share
 * the keys. Scores are made transposed, keys by queries:
 *
 *   S^T  = K Q^T                    K, Q: tiles by TMA, read by their rows
 *   P^T  = exp(scale S^T - lse)     in registers; what is masked is 0
 *   dV   = sum P^T dO               P^T: rounded, from registers; dO: its rows are summed over
 *   dP^T = V dO^T                   V, dO: tiles by TMA, read by their rows
 *   dS^T = P^T * (dP^T - delta)     in registers
 *   dK   = scale sum dS^T Q         dS^T: rounded, from registers; Q: its rows are summed over
 *
 * So nothing is transposed on the way: P^T and dS^T lie in registers as first factors do (wgmma's
 * "Register Fragments"), and the tiles of Q and dO are read as they lie for both of their products,
 * for the second one by a descriptor of a matrix whose rows are summed over (imm-trans-b,
 * MN-major).
 *
 * lse and delta are of the columns here. attention_hopper_queries.cu, which runs first, leaves them
 * in tiles of 64 queries: a plain bulk copy brings them with Q. Past the last query lse is infinite
 * and Q and dO are zeros, so nothing comes of those.
 *
 * While P^T is made the tensor cores make dP^T; while dS^T is made, dV. Barriers are as in
 * attention_hopper.cu. Sums have one order: two runs give the same bits. */
#include "kernels/cuda/attention_hopper.h"
#include "kernels/cuda/hopper.h"

enum { KEYS = WARPGROUP_ROWS, QUERIES = ATTENTION_STATS_QUERIES, STAGES = 3 };

template <int HD> struct keys_room {
    bf16 k[KEYS * HD], v[KEYS * HD];
    bf16 q[STAGES][QUERIES * HD], dy[STAGES][QUERIES * HD];
    struct attention_stats stats[STAGES];
    bf16 out[KEYS * HD];
    uint64_t kv_full, q_full[STAGES], dy_full[STAGES], q_free[STAGES], dy_free[STAGES];
};

struct keys_maps {
    struct tensor_map k, v, q, dy;
};

/* The tiles that a block takes: of each head that shares its keys, those from `first` on. */
struct query_tiles {
    int first, count; /* count: of all heads */
};

__device__ static struct query_tiles query_tiles_of(const struct attention_shape &z, int k0)
{
    int first = z.causal ? k0 : 0;
    int of_head = ((int)z.T_q - first + QUERIES - 1) / QUERIES;
    return {first, of_head * (int)(z.heads / z.kv_heads)};
}

/* From a tile that begins at query q0 to the next one, perhaps of another head. */
__device__ static int next_tile(const struct attention_shape &z, const struct query_tiles &tiles,
                                int q0)
{
    return q0 + QUERIES < z.T_q ? q0 + QUERIES : tiles.first;
}

/* What the thread does that asks for copies: first for that which is free first. */
template <int HD>
__device__ static void bring_all(const struct attention_args &a, const struct keys_maps &maps,
                                 keys_room<HD> &r, const struct attention_work &work, int k0,
                                 const struct query_tiles &tiles)
{
    const struct attention_shape &z = a.shape;
    int h = work.kv * (int)(z.heads / z.kv_heads), q0 = tiles.first;
    hopper_expect(&r.kv_full, 2 * (int)sizeof r.k);
    warpgroup_copy<HD, KEYS>(r.k, &maps.k, work.kv, k0, work.b, &r.kv_full);
    warpgroup_copy<HD, KEYS>(r.v, &maps.v, work.kv, k0, work.b, &r.kv_full);
    for (int i = 0; i < tiles.count; i++) {
        int stage = i % STAGES, phase = i / STAGES;
        uint64_t *q_full = &r.q_full[stage];
        const struct attention_stats *stats =
            &a.stats[attention_stats_index(z.T_q, work.b * z.heads + h, q0)];
        hopper_wait(&r.dy_free[stage], phase + 1);
        warpgroup_bring<HD, QUERIES>(r.dy[stage], &maps.dy, h, q0, work.b, &r.dy_full[stage]);
        hopper_wait(&r.q_free[stage], phase + 1);
        hopper_expect(q_full, (int)(sizeof r.q[0] + sizeof *stats));
        warpgroup_copy<HD, QUERIES>(r.q[stage], &maps.q, h, q0, work.b, q_full);
        hopper_copy_plain(&r.stats[stage], stats, (int)sizeof *stats, q_full);
        q0 = next_tile(z, tiles, q0);
        if (q0 == tiles.first)
            h++;
    }
}

/* Scores, done, become probabilities. lse: of the tile's queries. */
__device__ static void probabilities(const struct attention_args &a, const struct tile_position &at,
                                     const float *lse, float (&x)[1][QUERIES / 8][4])
{
    float factor = a.shape.scale * LOG2_E;
    if (tile_is_masked(a.shape, at, 16))
        tile_mask<true>(x, a.shape, at);
    lse += tile_col(matrix_lane(), 0, 0);
#pragma unroll
    for (int n = 0; n < QUERIES / 8; n++) {
        float2 of = *(const float2 *)(const void *)hopper_brought(lse + 8 * n, sizeof of);
#pragma unroll
        for (int j = 0; j < 4; j++)
            x[0][n][j] = matrix_exp2(x[0][n][j] * factor - (j % 2 ? of.y : of.x));
    }
}

/* ds: the gradient of the scores, rounded, of probabilities x and their gradient dx. */
__device__ static void softmax_backward(uint32_t (&ds)[QUERIES / HOPPER_DEPTH][4],
                                        const float *delta, float (&x)[1][QUERIES / 8][4],
                                        const float (&dx)[QUERIES / 8][4])
{
    delta += tile_col(matrix_lane(), 0, 0);
#pragma unroll
    for (int n = 0; n < QUERIES / 8; n++) {
        float2 of = *(const float2 *)(const void *)hopper_brought(delta + 8 * n, sizeof of);
#pragma unroll
        for (int j = 0; j < 4; j++)
            x[0][n][j] *= dx[n][j] - (j % 2 ? of.y : of.x);
    }
    warpgroup_round(ds, x[0]);
}

/* What a warp does that multiplies: `at` says which keys are its own, and the first queries. Only
 * dx is under way from one iteration to the next: with sums, the compiler would have products wait
 * for each other. */
template <int HD>
__device__ static void attend(const struct attention_args &a, keys_room<HD> &r,
                              struct tile_position at, const struct query_tiles &tiles)
{
    const struct attention_shape &z = a.shape;
    int stage = 0;
    float x[1][QUERIES / 8][4], dx[QUERIES / 8][4], dk[1][HD / 8][4], dv[1][HD / 8][4];
    uint32_t p[QUERIES / HOPPER_DEPTH][4], ds[QUERIES / HOPPER_DEPTH][4];
    tile_zero(dk);
    tile_zero(dv);
    hopper_wait(&r.kv_full, 0);
    hopper_wait(&r.q_full[0], 0);
    warpgroup_ask_scores<HD, KEYS, QUERIES>(x[0], warpgroup_rows(r.k), r.q[0]);
    hopper_wait(&r.dy_full[0], 0);
    warpgroup_ask_scores<HD, KEYS, QUERIES>(dx, warpgroup_rows(r.v), r.dy[0]);
    hopper_wait_products<1>();
    hopper_hold(x[0]);
    probabilities(a, at, r.stats[0].lse, x);
    for (int i = 1;; i++) {
        warpgroup_round(p, x[0]);
        hopper_hold(p);
        hopper_hold(dv[0]);
        warpgroup_ask_sums<HD, QUERIES>(dv[0], p, r.dy[stage]);
        hopper_wait_products<1>();
        hopper_hold(dx);
        softmax_backward(ds, r.stats[stage].delta, x, dx);
        hopper_wait_products<0>();
        hopper_hold(p);
        hopper_hold(dv[0]);
        warpgroup_give_back(&r.dy_free[stage]);
        hopper_hold(ds);
        hopper_hold(dk[0]);
        warpgroup_ask_sums<HD, QUERIES>(dk[0], ds, r.q[stage]);
        if (i == tiles.count)
            break;
        int last = stage, phase = i / STAGES;
        stage = i % STAGES;
        at.q0 = next_tile(z, tiles, at.q0);
        hopper_wait(&r.q_full[stage], phase);
        hopper_hold(x[0]);
        warpgroup_ask_scores<HD, KEYS, QUERIES>(x[0], warpgroup_rows(r.k), r.q[stage]);
        hopper_wait(&r.dy_full[stage], phase);
        hopper_hold(dx);
        warpgroup_ask_scores<HD, KEYS, QUERIES>(dx, warpgroup_rows(r.v), r.dy[stage]);
        hopper_wait_products<1>();
        hopper_hold(x[0]);
        hopper_hold(ds);
        hopper_hold(dk[0]);
        warpgroup_give_back(&r.q_free[last]);
        probabilities(a, at, r.stats[stage].lse, x);
    }
    hopper_wait_products<0>();
    hopper_hold(dk[0]);
    bf16 *out = r.out + 16 * warpgroup_warp() * HD;
    struct tile_rows to = tile_rows_of<HD>(a.dk, z.k_stride, at.b, z.T_k, at.h, z.T_k);
    tile_store<HD, 1>(to, at.k0, out, dk, z.scale);
    to = tile_rows_of<HD>(a.dv, z.v_stride, at.b, z.T_k, at.h, z.T_k);
    tile_store<HD, 1>(to, at.k0, out, dv, 1);
}

template <int HD>
__global__ void __launch_bounds__(WARPGROUP_THREADS, 1)
    attention_hopper_keys(struct attention_args a, HOPPER_PARAMETER struct keys_maps maps)
{
    CUDA_SHARED(unsigned char, shared);
    auto &r = warpgroup_room<keys_room<HD>>(shared);
    /* The first keys are seen by the most queries. */
    struct attention_work work = attention_work_of(a, a.key_heads, blockIdx.x);
    int k0 = work.tile * KEYS;
    if (matrix_thread() == 0) {
        hopper_barrier_init(&r.kv_full, 1);
        for (int i = 0; i < STAGES; i++) {
            hopper_barrier_init(&r.q_full[i], 1);
            hopper_barrier_init(&r.dy_full[i], 1);
            hopper_barrier_init(&r.q_free[i], WARPGROUPS * WARPGROUP_WARPS);
            hopper_barrier_init(&r.dy_free[i], WARPGROUPS * WARPGROUP_WARPS);
        }
        hopper_barriers_made();
    }
    __syncthreads();
    struct query_tiles tiles = query_tiles_of(a.shape, k0);
    if (matrix_thread() < HOPPER_GROUP) {
        hopper_set_registers<false, REGISTERS_TO_COPY>();
        if (matrix_thread() == 0)
            bring_all<HD>(a, maps, r, work, k0, tiles);
    } else {
        hopper_set_registers<true, REGISTERS_TO_MULTIPLY>();
        struct tile_position at = {work.b, work.kv, tiles.first, k0 + 16 * warpgroup_warp(),
                                   work.keys};
        attend<HD>(a, r, at, tiles);
    }
}

template <int HD> static void launch(struct stream *s, const struct attention_args *a)
{
    constexpr int BYTES = warpgroup_room_bytes<keys_room<HD>>();
    const struct attention_shape *z = &a->shape;
    int64_t blocks = z->B * z->kv_heads * ((z->T_k + KEYS - 1) / KEYS);
    struct keys_maps maps;
    const struct warpgroup_map all[] = {
        {&maps.k, a->k, z->T_k, z->kv_heads, z->k_stride, KEYS},
        {&maps.v, a->v, z->T_k, z->kv_heads, z->v_stride, KEYS},
        {&maps.q, a->q, z->T_q, z->heads, z->q_stride, QUERIES},
        {&maps.dy, a->dy, z->T_q, z->heads, z->heads * HD, QUERIES},
    };
    if (warpgroup_make_maps(s, z->B, HD, all))
        CUDA_LAUNCH(s, (attention_hopper_keys<HD>), (unsigned)blocks, WARPGROUP_THREADS, BYTES, *a,
                    maps);
}

void attention_hopper_keys_backward(struct stream *s, const struct attention_args *a)
{
    assert(attention_hopper_is_built() && tile_places_suffice(&a->shape));
    if (a->shape.hd == 64)
        launch<64>(s, a);
    else
        launch<128>(s, a);
}
