/* Attention forward for any head width: see attention_general.h. */
#include "kernels/cuda/attention_general.h"

/* Scores become probabilities but for their sum, of which `sum` has this lane's part; the output
 * and the sum are brought to the new largest score. */
__device__ static void online_softmax(float &x, float (&y)[SLICE / 32], float &largest, float &sum)
{
    float before = largest;
    largest = fmaxf(before, warp_max(x));
    float rescale = matrix_exp2(before - largest);
    x = matrix_exp2(x - largest);
    sum = sum * rescale + x;
#pragma unroll
    for (int c = 0; c < SLICE / 32; c++)
        y[c] *= rescale;
}

template <typename T>
__global__ void __launch_bounds__(THREADS) attention_general_forward(struct attention_args a)
{
    CUDA_SHARED(struct general_shared, shared);
    const struct attention_shape &z = a.shape;
    struct attention_work work = attention_work_of(a, a.query_heads, blockIdx.x);
    int64_t tiles = (z.T_q + TILE - 1) / TILE, slice = work.tile / tiles * SLICE;
    int64_t q0 = (tiles - 1 - work.tile % tiles) * TILE; /* the last see the most keys */
    int64_t end = attention_seen(z, work, q0 + TILE), hd = z.hd;
    struct general_rows<T> q =
        general_rows_of<T>(a.q, z.q_stride, work.b, z.T_q, work.h, hd, z.T_q);
    struct general_rows<T> k =
        general_rows_of<T>(a.k, z.k_stride, work.b, z.T_k, work.kv, hd, work.keys);
    struct general_rows<T> v =
        general_rows_of<T>(a.v, z.v_stride, work.b, z.T_k, work.kv, hd, work.keys);
    int lane = (int)threadIdx.x % 32;
    int64_t row = q0 + threadIdx.x / 32 * ROWS;
    float x[ROWS], y[ROWS][SLICE / 32] = {}, largest[ROWS], sum[ROWS] = {};
    for (int r = 0; r < ROWS; r++)
        largest[r] = -INFINITY;
    for (int64_t k0 = 0; k0 < end; k0 += TILE) {
        general_qk(x, shared, q, q0, k, k0);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            x[r] = general_score(a, work, work.h, row + r, k0 + lane, x[r]);
            online_softmax(x[r], y[r], largest[r], sum[r]);
            x[r] *= general_dropped(z, work.b, work.h, row + r, k0 + lane);
        }
        general_pv(y, x, shared, v, k0, slice);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float whole = warp_sum(sum[r]);
        if (lane == 0 && slice == 0 && row + r < z.T_q)
            a.lse[(work.b * z.heads + work.h) * z.T_q + row + r] =
                (largest[r] + log2f(whole)) * LN_2;
#pragma unroll
        for (int c = 0; c < SLICE / 32; c++)
            y[r][c] *= 1 / whole;
    }
    general_store(general_rows_of<T>(a.y, z.heads * hd, work.b, z.T_q, work.h, hd, z.T_q), q0,
                  slice, y, 1);
}

void attention_general_forward(struct stream *s, enum dtype t, const struct attention_args *a)
{
    const struct attention_shape *z = &a->shape;
    int64_t blocks = z->B * z->heads * general_tiles(z->T_q) * general_slices(z);
    CUDA_FOR_DTYPE(t, T,
                   CUDA_LAUNCH(s, attention_general_forward<T>, (unsigned)blocks, THREADS,
                               sizeof(struct general_shared), *a));
}
