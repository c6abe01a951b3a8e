/* Attention forward for compute capability 9.0: the online softmax of attention_forward.cu, with
 * products by whole warpgroups and copies by TMA. What FlashAttention-3 (Shah et al. 2024) found
 * there decides the shape:
 *  - one thread of the first warpgroup only asks for copies, into two stages of keys and two of
 *    values; the other warpgroups work on 64 queries each, all keys of a tile (their section 3.1);
 *  - while a tile's scores become probabilities, the tensor cores multiply the ones before with
 *    their values (section 3.2): scores of tile i + 1 are asked for before values of tile i.
 * Copies go through tensor maps: only they write the swizzle that products need to read shared
 * memory at full speed; plain bulk copies bring rows as they are.
 *
 * Barriers: a stage is `full` when its bytes have come, and `free` when each warp that multiplies
 * says that it needs it no more. Nothing is added up in an order that depends on who was first. */
#include "kernels/cuda/attention_hopper.h"
#include "kernels/cuda/hopper.h"

enum { QUERIES = WARPGROUP_ROWS, KEYS = 128, STAGES = 2 };

/* Shared memory, from a multiple of 1024 on. Heads 128 wide are two tiles, one behind the other. */
template <int HD> struct room {
    bf16 q[QUERIES * HD];
    bf16 k[STAGES][KEYS * HD], v[STAGES][KEYS * HD];
    bf16 y[QUERIES * HD];
    uint64_t q_full, k_full[STAGES], v_full[STAGES], k_free[STAGES], v_free[STAGES];
};

struct attention_maps {
    struct tensor_map q, k, v;
};

/* A lane's part of the softmax, of its rows lane / 4 and lane / 4 + 8. */
struct softmax {
    float largest[2], sum[2]; /* largest: times the factor; sum: this lane's columns */
};

/* Scores x become exp2(factor * x - largest); the sums so far, and what was added up with them, are
 * to be multiplied by `rescale`. */
__device__ static void online_softmax(float (&x)[KEYS / 8][4], float (&rescale)[2],
                                      struct softmax &state, float factor)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float largest = -INFINITY, before = state.largest[half], sum = 0;
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
            largest = fmaxf(largest, fmaxf(x[n][2 * half], x[n][2 * half + 1]));
        largest = fmaxf(before, quad_max(largest) * factor);
        rescale[half] = matrix_exp2(before - largest);
        state.largest[half] = largest;
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                x[n][i] = matrix_exp2(x[n][i] * factor - largest);
                sum += x[n][i];
            }
        state.sum[half] = state.sum[half] * rescale[half] + sum;
    }
}

/* What the thread does that asks for copies. Phase n of a stage's barriers is of its n-th tile:
 * stages are free at first, as after a phase -1. */
template <int HD>
__device__ static void bring_all(const struct attention_maps &maps, room<HD> &r,
                                 const struct attention_work &work, int first, int tiles)
{
    warpgroup_bring<HD, QUERIES>(r.q, &maps.q, work.h, first, work.b, &r.q_full);
    for (int i = 0; i < tiles; i++) {
        int stage = i % STAGES, phase = i / STAGES;
        hopper_wait(&r.k_free[stage], phase + 1);
        warpgroup_bring<HD, KEYS>(r.k[stage], &maps.k, work.kv, i * KEYS, work.b, &r.k_full[stage]);
        hopper_wait(&r.v_free[stage], phase + 1);
        warpgroup_bring<HD, KEYS>(r.v[stage], &maps.v, work.kv, i * KEYS, work.b, &r.v_full[stage]);
    }
}

/* Divides by the sums, leaves their logarithms and the output. tile: the warp's room. */
template <int HD>
__device__ static void finish(const struct attention_args &a, const struct tile_position &at,
                              bf16 *tile, float (&y)[1][HD / 8][4], const struct softmax &state)
{
    const struct attention_shape &z = a.shape;
    float *lse = a.lse + (at.b * z.heads + at.h) * z.T_q;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = quad_sum(state.sum[half]), inverse = 1 / sum;
        int q = at.q0 + tile_row(matrix_lane(), 0, 2 * half);
        if (q < z.T_q && matrix_lane() % 4 == 0)
            lse[q] = (state.largest[half] + log2f(sum)) * LN_2;
#pragma unroll
        for (int n = 0; n < HD / 8; n++) {
            y[0][n][2 * half] *= inverse;
            y[0][n][2 * half + 1] *= inverse;
        }
    }
    struct tile_rows to = tile_rows_of<HD>(a.y, z.heads * HD, at.b, z.T_q, at.h, z.T_q);
    tile_store<HD, 1>(to, at.q0, tile, y, 1);
}

/* The scores of tile i, done, become probabilities. */
__device__ static void softmax_of_tile(const struct attention_args &a, struct tile_position at,
                                       int i, float (&x)[1][KEYS / 8][4], float (&rescale)[2],
                                       struct softmax &state)
{
    at.k0 = i * KEYS;
    if (tile_is_masked(a.shape, at, KEYS))
        tile_mask<false>(x, a.shape, at);
    online_softmax(x[0], rescale, state, a.shape.scale * LOG2_E);
}

/* What a warp does that multiplies: `at` says which queries are its own. */
template <int HD>
__device__ static void attend(const struct attention_args &a, room<HD> &r,
                              const struct tile_position &at, int tiles)
{
    int warp = warpgroup_warp();
    const bf16 *q = r.q + warp / WARPGROUP_WARPS * HOPPER_ROWS * HOPPER_COLUMNS;
    float x[1][KEYS / 8][4], y[1][HD / 8][4], rescale[2];
    uint32_t p[KEYS / HOPPER_DEPTH][4];
    struct softmax state = {{-INFINITY, -INFINITY}, {0, 0}};
    tile_zero(y);
    hopper_wait(&r.q_full, 0);
    hopper_wait(&r.k_full[0], 0);
    hopper_hold(y[0]);
    warpgroup_ask_scores<HD, QUERIES, KEYS>(x[0], q, r.k[0]);
    hopper_wait_products<0>();
    hopper_hold(x[0]);
    warpgroup_give_back(&r.k_free[0]);
    softmax_of_tile(a, at, 0, x, rescale, state);
    warpgroup_round(p, x[0]);
    for (int i = 1; i < tiles; i++) {
        int stage = i % STAGES, last = (i - 1) % STAGES;
        hopper_wait(&r.k_full[stage], i / STAGES);
        hopper_hold(p);
        hopper_hold(x[0]);
        hopper_hold(y[0]);
        warpgroup_ask_scores<HD, QUERIES, KEYS>(x[0], q, r.k[stage]);
        hopper_wait(&r.v_full[last], (i - 1) / STAGES);
        warpgroup_ask_sums<HD, KEYS>(y[0], p, r.v[last]);
        hopper_wait_products<1>();
        hopper_hold(x[0]);
        warpgroup_give_back(&r.k_free[stage]);
        softmax_of_tile(a, at, i, x, rescale, state);
        hopper_wait_products<0>();
        hopper_hold(p);
        hopper_hold(y[0]);
        warpgroup_give_back(&r.v_free[last]);
#pragma unroll
        for (int n = 0; n < HD / 8; n++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                y[0][n][j] *= rescale[j / 2];
        warpgroup_round(p, x[0]);
    }
    hopper_wait(&r.v_full[(tiles - 1) % STAGES], (tiles - 1) / STAGES);
    hopper_hold(p);
    hopper_hold(y[0]);
    warpgroup_ask_sums<HD, KEYS>(y[0], p, r.v[(tiles - 1) % STAGES]);
    hopper_wait_products<0>();
    hopper_hold(y[0]);
    finish<HD>(a, at, r.y + 16 * warp * HD, y, state);
}

template <int HD>
__global__ void __launch_bounds__(WARPGROUP_THREADS, 1)
    attention_hopper(struct attention_args a, HOPPER_PARAMETER struct attention_maps maps)
{
    CUDA_SHARED(unsigned char, shared);
    auto &r = warpgroup_room<room<HD>>(shared);
    struct attention_work work = attention_work_of(a, a.query_heads, blockIdx.x);
    /* The last queries see the most keys. */
    int first = ((int)(a.shape.T_q - 1) / QUERIES - work.tile) * QUERIES;
    int tiles = ((int)attention_seen(a.shape, work, first + QUERIES) + KEYS - 1) / KEYS;
    int group = matrix_thread() / HOPPER_GROUP;
    if (matrix_thread() == 0) {
        hopper_barrier_init(&r.q_full, 1);
        for (int i = 0; i < STAGES; i++) {
            hopper_barrier_init(&r.k_full[i], 1);
            hopper_barrier_init(&r.v_full[i], 1);
            hopper_barrier_init(&r.k_free[i], WARPGROUPS * WARPGROUP_WARPS);
            hopper_barrier_init(&r.v_free[i], WARPGROUPS * WARPGROUP_WARPS);
        }
        hopper_barriers_made();
    }
    __syncthreads();
    if (group == 0) {
        hopper_set_registers<false, REGISTERS_TO_COPY>();
        if (matrix_thread() == 0)
            bring_all<HD>(maps, r, work, first, tiles);
    } else {
        hopper_set_registers<true, REGISTERS_TO_MULTIPLY>();
        int row = 16 * warpgroup_warp();
        struct tile_position at = {work.b, work.h, first + row, 0, work.keys};
        attend<HD>(a, r, at, tiles);
    }
}

template <int HD> static void launch(struct stream *s, const struct attention_args *a)
{
    const struct attention_shape *z = &a->shape;
    int64_t blocks = z->B * z->heads * ((z->T_q + QUERIES - 1) / QUERIES);
    constexpr int BYTES = warpgroup_room_bytes<room<HD>>();
    struct attention_maps maps;
    const struct warpgroup_map all[] = {
        {&maps.q, a->q, z->T_q, z->heads, z->q_stride, QUERIES},
        {&maps.k, a->k, z->T_k, z->kv_heads, z->k_stride, KEYS},
        {&maps.v, a->v, z->T_k, z->kv_heads, z->v_stride, KEYS},
    };
    if (warpgroup_make_maps(s, z->B, HD, all))
        CUDA_LAUNCH(s, (attention_hopper<HD>), (unsigned)blocks, WARPGROUP_THREADS, BYTES, *a,
                    maps);
}

bool attention_hopper_is_built()
{
#if defined(SHOAL_EMULATION) || defined(SHOAL_SM_90A)
    return true;
#else
    return false;
#endif
}

void attention_hopper_forward(struct stream *s, const struct attention_args *a)
{
    assert(attention_hopper_is_built() && tile_places_suffice(&a->shape));
    if (a->shape.hd == 64)
        launch<64>(s, a);
    else
        launch<128>(s, a);
}
