/* dQ of attention for compute capability 9.0, as attention_queries.cu makes it for older GPUs: a
 * block takes 128 queries through the keys that they see, and P is recomputed from the log-sum-exp
 * that forward kept (FlashAttention-2, algorithm 2).
 *
 *   S  = Q K^T                Q, K: tiles by TMA, read by their rows
 *   P  = exp(scale S - lse)   in registers; what is masked is 0
 *   dP = dO V^T               dO, V: tiles by TMA, read by their rows
 *   dS = P * (dP - delta)     in registers, where delta = rowsum(dO * O)
 *   dQ = scale dS K           dS: rounded, from registers; K: the same tile, its rows summed over
 *
 * A product's result lies in registers as a first factor does (wgmma's "Register Fragments"), so dS
 * need not go through shared memory. K is read as it lies for both products: in the last one its
 * descriptor is of a matrix whose rows are summed over (imm-trans-b, MN-major).
 *
 * While a tile's scores become probabilities, the tensor cores make dQ of the tile before and dP of
 * this one. Barriers are as in attention_hopper.cu. The kernel leaves lse and delta of each query
 * for attention_hopper_keys.cu. Sums have one order: two runs give the same bits. */
#include "kernels/cuda/attention_hopper.h"
#include "kernels/cuda/hopper.h"

/* KEYS: with 128, scores and their gradients would leave registers no room for the products under
 * way. */
enum { QUERIES = WARPGROUP_ROWS, KEYS = 64, STAGES = 4 };

template <int HD> struct queries_room {
    bf16 q[QUERIES * HD], dy[QUERIES * HD];
    bf16 k[STAGES][KEYS * HD], v[STAGES][KEYS * HD];
    bf16 dq[QUERIES * HD];
    uint64_t q_full, k_full[STAGES], v_full[STAGES], free[STAGES];
};

struct queries_maps {
    struct tensor_map q, dy, k, v;
};

/* Of a lane's rows lane / 4 and lane / 4 + 8. lse: times log2 e, infinite past the last query. */
struct lane_stats {
    float lse[2], delta[2];
};

/* A quad's lanes add up the row's products. dy: the block's tile. */
template <int HD> __device__ static float delta_of(const bf16 *y, const bf16 *dy, int row)
{
    float sum = 0;
#pragma unroll
    for (int chunk = matrix_lane() % 4; chunk < HD / 8; chunk += 4) {
        const bf16 *tile = dy + chunk / 8 * QUERIES * HOPPER_COLUMNS;
        tile += tile_offset<HOPPER_COLUMNS>(row, chunk % 8);
        sum += tile_dot8(y + 8 * chunk, hopper_brought(tile, 8 * (int)sizeof *tile));
    }
    return quad_sum(sum);
}

/* What the warp's queries know of their rows; they are left for the other kernel, too. */
template <int HD>
__device__ static struct lane_stats load_lane_stats(const struct attention_args &a,
                                                    const struct tile_position &at, const bf16 *dy)
{
    const struct attention_shape &z = a.shape;
    struct lane_stats values;
    int64_t head = at.b * z.heads + at.h;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = tile_row(matrix_lane(), 0, 2 * half), q = at.q0 + row;
        bool inside = q < z.T_q;
        const bf16 *y =
            (const bf16 *)a.kept_y + ((at.b * z.T_q + (inside ? q : 0)) * z.heads + at.h) * HD;
        float delta = delta_of<HD>(y, dy, 16 * warpgroup_warp() + row);
        values.delta[half] = inside ? delta : 0;
        values.lse[half] = inside ? a.kept_lse[head * z.T_q + q] * LOG2_E : INFINITY;
        if (matrix_lane() % 4 == 0) {
            struct attention_stats &left = a.stats[attention_stats_index(z.T_q, head, q)];
            left.lse[q % ATTENTION_STATS_QUERIES] = values.lse[half];
            left.delta[q % ATTENTION_STATS_QUERIES] = values.delta[half];
        }
    }
    return values;
}

/* What the thread does that asks for copies. */
template <int HD>
__device__ static void bring_all(const struct queries_maps &maps, queries_room<HD> &r,
                                 const struct attention_work &work, int first, int tiles)
{
    hopper_expect(&r.q_full, 2 * (int)sizeof r.q);
    warpgroup_copy<HD, QUERIES>(r.q, &maps.q, work.h, first, work.b, &r.q_full);
    warpgroup_copy<HD, QUERIES>(r.dy, &maps.dy, work.h, first, work.b, &r.q_full);
    for (int i = 0; i < tiles; i++) {
        int stage = i % STAGES, phase = i / STAGES;
        hopper_wait(&r.free[stage], phase + 1);
        warpgroup_bring<HD, KEYS>(r.k[stage], &maps.k, work.kv, i * KEYS, work.b, &r.k_full[stage]);
        warpgroup_bring<HD, KEYS>(r.v[stage], &maps.v, work.kv, i * KEYS, work.b, &r.v_full[stage]);
    }
}

/* The scores of tile i, done, become probabilities. */
__device__ static void probabilities(const struct attention_args &a, struct tile_position at, int i,
                                     const struct lane_stats &values, float (&x)[1][KEYS / 8][4])
{
    float factor = a.shape.scale * LOG2_E;
    at.k0 = i * KEYS;
    if (tile_is_masked(a.shape, at, KEYS))
        tile_mask<false>(x, a.shape, at);
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            x[0][n][j] = matrix_exp2(x[0][n][j] * factor - values.lse[j / 2]);
}

/* ds: the gradient of the scores, rounded, of probabilities x and their gradient dx. */
__device__ static void softmax_backward(uint32_t (&ds)[KEYS / HOPPER_DEPTH][4],
                                        const struct lane_stats &values, float (&x)[1][KEYS / 8][4],
                                        const float (&dx)[KEYS / 8][4])
{
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            x[0][n][j] *= dx[n][j] - values.delta[j / 2];
    warpgroup_round(ds, x[0]);
}

/* What a warp does that multiplies: `at` says which queries are its own. A stage is free when the
 * second product with its keys is made. */
template <int HD>
__device__ static void attend(const struct attention_args &a, queries_room<HD> &r,
                              const struct tile_position &at, int tiles)
{
    int stage = 0;
    float x[1][KEYS / 8][4], dx[KEYS / 8][4], dq[1][HD / 8][4];
    uint32_t ds[KEYS / HOPPER_DEPTH][4];
    tile_zero(dq);
    hopper_wait(&r.q_full, 0);
    struct lane_stats values = load_lane_stats<HD>(a, at, r.dy);
    hopper_wait(&r.k_full[0], 0);
    warpgroup_ask_scores<HD, QUERIES, KEYS>(x[0], warpgroup_rows(r.q), r.k[0]);
    hopper_wait(&r.v_full[0], 0);
    warpgroup_ask_scores<HD, QUERIES, KEYS>(dx, warpgroup_rows(r.dy), r.v[0]);
    hopper_wait_products<1>();
    hopper_hold(x[0]);
    probabilities(a, at, 0, values, x);
    for (int i = 1; i < tiles; i++) {
        int last = stage;
        stage = i % STAGES;
        hopper_wait_products<0>();
        hopper_hold(dx);
        softmax_backward(ds, values, x, dx);
        hopper_wait(&r.k_full[stage], i / STAGES);
        hopper_hold(ds);
        hopper_hold(x[0]);
        hopper_hold(dq[0]);
        warpgroup_ask_scores<HD, QUERIES, KEYS>(x[0], warpgroup_rows(r.q), r.k[stage]);
        warpgroup_ask_sums<HD, KEYS>(dq[0], ds, r.k[last]);
        hopper_wait(&r.v_full[stage], i / STAGES);
        hopper_hold(dx);
        warpgroup_ask_scores<HD, QUERIES, KEYS>(dx, warpgroup_rows(r.dy), r.v[stage]);
        hopper_wait_products<2>();
        hopper_hold(x[0]);
        probabilities(a, at, i, values, x);
        hopper_wait_products<1>();
        hopper_hold(ds);
        hopper_hold(dq[0]);
        warpgroup_give_back(&r.free[last]);
    }
    hopper_wait_products<0>();
    hopper_hold(dx);
    softmax_backward(ds, values, x, dx);
    hopper_hold(ds);
    hopper_hold(dq[0]);
    warpgroup_ask_sums<HD, KEYS>(dq[0], ds, r.k[stage]);
    hopper_wait_products<0>();
    hopper_hold(dq[0]);
    const struct attention_shape &z = a.shape;
    struct tile_rows to = tile_rows_of<HD>(a.dq, z.q_stride, at.b, z.T_q, at.h, z.T_q);
    tile_store<HD, 1>(to, at.q0, r.dq + 16 * warpgroup_warp() * HD, dq, z.scale);
}

template <int HD>
__global__ void __launch_bounds__(WARPGROUP_THREADS, 1)
    attention_hopper_queries(struct attention_args a, HOPPER_PARAMETER struct queries_maps maps)
{
    CUDA_SHARED(unsigned char, shared);
    auto &r = warpgroup_room<queries_room<HD>>(shared);
    struct attention_work work = attention_work_of(a, a.query_heads, blockIdx.x);
    /* The last queries see the most keys. */
    int first = ((int)(a.shape.T_q - 1) / QUERIES - work.tile) * QUERIES;
    int tiles = ((int)attention_seen(a.shape, work, first + QUERIES) + KEYS - 1) / KEYS;
    if (matrix_thread() == 0) {
        hopper_barrier_init(&r.q_full, 1);
        for (int i = 0; i < STAGES; i++) {
            hopper_barrier_init(&r.k_full[i], 1);
            hopper_barrier_init(&r.v_full[i], 1);
            hopper_barrier_init(&r.free[i], WARPGROUPS * WARPGROUP_WARPS);
        }
        hopper_barriers_made();
    }
    __syncthreads();
    if (matrix_thread() < HOPPER_GROUP) {
        hopper_set_registers<false, REGISTERS_TO_COPY>();
        if (matrix_thread() == 0)
            bring_all<HD>(maps, r, work, first, tiles);
    } else {
        hopper_set_registers<true, REGISTERS_TO_MULTIPLY>();
        struct tile_position at = {work.b, work.h, first + 16 * warpgroup_warp(), 0, work.keys};
        attend<HD>(a, r, at, tiles);
    }
}

template <int HD> static void launch(struct stream *s, const struct attention_args *a)
{
    constexpr int BYTES = warpgroup_room_bytes<queries_room<HD>>();
    const struct attention_shape *z = &a->shape;
    int64_t blocks = z->B * z->heads * ((z->T_q + QUERIES - 1) / QUERIES);
    struct queries_maps maps;
    const struct warpgroup_map all[] = {
        {&maps.q, a->q, z->T_q, z->heads, z->q_stride, QUERIES},
        {&maps.dy, a->dy, z->T_q, z->heads, z->heads * HD, QUERIES},
        {&maps.k, a->k, z->T_k, z->kv_heads, z->k_stride, KEYS},
        {&maps.v, a->v, z->T_k, z->kv_heads, z->v_stride, KEYS},
    };
    if (warpgroup_make_maps(s, z->B, HD, all))
        CUDA_LAUNCH(s, (attention_hopper_queries<HD>), (unsigned)blocks, WARPGROUP_THREADS, BYTES,
                    *a, maps);
}

void attention_hopper_queries_backward(struct stream *s, const struct attention_args *a)
{
    assert(attention_hopper_is_built() && tile_places_suffice(&a->shape));
    if (a->shape.hd == 64)
        launch<64>(s, a);
    else
        launch<128>(s, a);
}
