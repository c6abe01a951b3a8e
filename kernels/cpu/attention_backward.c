/* Attention's gradients (FlashAttention, Dao et al. 2022): with P = exp(S - lse), dP = dO V^T and
 * delta = rowsum(dO * O), dS = P * (dP - delta), and then dV = P^T dO, dQ = dS K, dK = dS^T Q. P is
 * recomputed from the log-sum-exp that forward kept.
 *
 * A thread owns a key-value head of a sequence with all query heads that read it. So every sum has
 * one order, whatever the thread count: head by head, keys by keys, queries by queries; the bias's
 * gradient at last, sequence by sequence. */
#include "kernels/cpu/attention_amx.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vector_math.h"

#include <omp.h>
#include <string.h>

/* A thread's matrices. */
struct backward_block {
    float *dk, *dv;     /* [T_k, hd], sums over the query heads */
    float *q, *dy, *dq; /* [T_q, hd] of the head at hand */
    float *delta;  /* [T_q]: row sums of dy * y, which are those of p * dp (FlashAttention's D) */
    float *k, *v;  /* [ATTENTION_BLOCK, hd] */
    float *p, *dp; /* [ATTENTION_BLOCK, ATTENTION_BLOCK] */
    float *bias;   /* [2 * ATTENTION_BLOCK]: attention_load_bias() */
    float *dbias;  /* [distances] of the head at hand, not the thread's; NULL: no bias */
};

enum { MATRICES = ATTENTION_BLOCK * ATTENTION_BLOCK };

static int64_t room_of(const struct attention_shape *z)
{
    return (2 * z->T_k + 3 * z->T_q + 2 * ATTENTION_BLOCK) * z->hd + z->T_q + 2 * MATRICES +
           2 * ATTENTION_BLOCK;
}

static struct backward_block divide(const struct attention_shape *z, float *room)
{
    struct backward_block f = {.dk = room};
    f.dv = f.dk + z->T_k * z->hd;
    f.q = f.dv + z->T_k * z->hd;
    f.dy = f.q + z->T_q * z->hd;
    f.dq = f.dy + z->T_q * z->hd;
    f.k = f.dq + z->T_q * z->hd;
    f.v = f.k + ATTENTION_BLOCK * z->hd;
    f.p = f.v + ATTENTION_BLOCK * z->hd;
    f.dp = f.p + MATRICES;
    f.bias = f.dp + MATRICES;
    f.delta = f.bias + 2 * ATTENTION_BLOCK;
    return f;
}

/* A row's scores become probabilities p as they met v, and dp, the gradient of p, that of the
 * scores. */
CPU_HOT static void softmax_backward_row(const struct attention_args *a,
                                         const struct attention_block *block,
                                         const struct backward_block *f, int64_t row)
{
    const struct attention_shape *z = &a->shape;
    int64_t count = attention_visible(z, block, row);
    float *p = f->p + row * block->k_count, *dp = f->dp + row * block->k_count;
    float lse = a->kept_lse[(block->b * z->heads + block->h) * z->T_q + block->q + row];
    float delta = f->delta[block->q + row];
    if (z->bias) {
        const float *bias = f->bias + block->q_count - 1 - row;
        for (int64_t i = 0; i < count; i++)
            p[i] += bias[i];
    }
    if (z->dropout > 0) {
        float mask[ATTENTION_BLOCK];
        attention_mask(mask, z, block, row, count);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            float whole = vector_exp(p[i] - lse);
            dp[i] = whole * (dp[i] * mask[i] - delta);
            p[i] = whole * mask[i];
        }
    } else {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            p[i] = vector_exp(p[i] - lse);
            dp[i] = p[i] * (dp[i] - delta);
        }
    }
    memset(p + count, 0, (size_t)(block->k_count - count) * sizeof *p);
    memset(dp + count, 0, (size_t)(block->k_count - count) * sizeof *dp);
    if (z->bias) {
        float *dbias = f->dbias + attention_distance(z, block, row);
        for (int64_t i = 0; i < count; i++)
            dbias[i] += dp[i];
    }
}

static void backward_queries(const struct attention_args *a, const struct attention_block *block,
                             const struct backward_block *f)
{
    int64_t hd = a->shape.hd, q_count = block->q_count, k_count = block->k_count;
    const float *q = f->q + block->q * hd, *dy = f->dy + block->q * hd;
    cpu_gemm('N', 'T', q_count, k_count, hd, q, f->k, 0, f->p, k_count);
    cpu_gemm('N', 'T', q_count, k_count, hd, dy, f->v, 0, f->dp, k_count);
    if (a->shape.bias)
        attention_load_bias(f->bias, a->t, &a->shape, block);
    for (int64_t row = 0; row < q_count; row++)
        softmax_backward_row(a, block, f, row);
    cpu_gemm('T', 'N', k_count, hd, q_count, f->p, dy, 1, f->dv + block->k * hd, hd);
    cpu_gemm('T', 'N', k_count, hd, q_count, f->dp, q, 1, f->dk + block->k * hd, hd);
    cpu_gemm('N', 'N', q_count, hd, k_count, f->dp, f->k, 1, f->dq + block->q * hd, hd);
}

CPU_HOT static void multiply_rows(float *sums, const float *x, const float *y, int64_t rows,
                                  int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < cols; i++)
            sum += x[r * cols + i] * y[r * cols + i];
        sums[r] = sum;
    }
}

static void backward_head(const struct attention_args *a, struct attention_block *block,
                          const struct backward_block *f)
{
    const struct attention_shape *z = &a->shape;
    int64_t hd = z->hd, kv = block->h / (z->heads / z->kv_heads), y_stride = z->heads * hd;
    int64_t q_offset = attention_offset(block->b, z->T_q, 0, z->q_stride, block->h, hd);
    int64_t y_offset = attention_offset(block->b, z->T_q, 0, y_stride, block->h, hd);
    attention_load(f->dq, a->t, a->kept_y, y_offset, y_stride, z->T_q, hd, 1);
    attention_load(f->dy, a->t, a->dy, y_offset, y_stride, z->T_q, hd, 1);
    multiply_rows(f->delta, f->dy, f->dq, z->T_q, hd);
    attention_load(f->q, a->t, a->q, q_offset, z->q_stride, z->T_q, hd, z->scale);
    memset(f->dq, 0, (size_t)(z->T_q * hd) * sizeof *f->dq);
    for (block->k = 0; block->k < block->keys; block->k += ATTENTION_BLOCK) {
        block->k_count = attention_min(block->keys - block->k, ATTENTION_BLOCK);
        attention_load(f->k, a->t, a->k,
                       attention_offset(block->b, z->T_k, block->k, z->k_stride, kv, hd),
                       z->k_stride, block->k_count, hd, 1);
        attention_load(f->v, a->t, a->v,
                       attention_offset(block->b, z->T_k, block->k, z->v_stride, kv, hd),
                       z->v_stride, block->k_count, hd, 1);
        for (block->q = z->causal ? block->k : 0; block->q < z->T_q; block->q += ATTENTION_BLOCK) {
            block->q_count = attention_min(z->T_q - block->q, ATTENTION_BLOCK);
            backward_queries(a, block, f);
        }
    }
    attention_store(a->t, a->dq, q_offset, z->q_stride, f->dq, z->T_q, hd, z->scale);
}

void attention_backward_run(void *args)
{
    const struct attention_args *a = args;
    const struct attention_shape *z = &a->shape;
    if (a->t == DTYPE_BF16 && attention_amx_available()) {
        attention_amx_backward(a);
        return;
    }
    int64_t room = room_of(z), hd = z->hd, group = z->heads / z->kv_heads;
    int64_t threads = omp_get_max_threads(), distances = attention_distances(z);
    int64_t sums = z->bias ? z->B * z->heads * distances : 0;
    float *scratch = cpu_scratch(a->s, (size_t)(threads * room + sums) * sizeof *scratch);
    float *dbias = scratch + threads * room;
    memset(dbias, 0, (size_t)sums * sizeof *dbias);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < z->B * z->kv_heads; i++) {
        struct backward_block f = divide(z, scratch + omp_get_thread_num() * room);
        struct attention_block block = {.b = i / z->kv_heads};
        int64_t kv = i % z->kv_heads;
        block.keys = attention_keys(z, block.b);
        memset(f.dk, 0, (size_t)(2 * z->T_k * hd) * sizeof *f.dk); /* and dv */
        for (block.h = kv * group; block.h < (kv + 1) * group; block.h++) {
            f.dbias = z->bias ? dbias + (block.b * z->heads + block.h) * distances : NULL;
            backward_head(a, &block, &f);
        }
        attention_store(a->t, a->dk, attention_offset(block.b, z->T_k, 0, z->k_stride, kv, hd),
                        z->k_stride, f.dk, z->T_k, hd, 1);
        attention_store(a->t, a->dv, attention_offset(block.b, z->T_k, 0, z->v_stride, kv, hd),
                        z->v_stride, f.dv, z->T_k, hd, 1);
    }
    if (z->bias)
        attention_store_dbias(a->dbias, dbias, z);
}
