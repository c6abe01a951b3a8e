/* Attention's gradients in bf16 with AMX, in attention_backward.c's order of work. A second factor
 * is stored as pairs of rows, a first factor as it lies, and changing a layout is work of its own.
 * So products are arranged such that P is only ever a second factor, and dS also a first one: dK^T
 * = Q^T dS and dV^T = dO^T P are summed transposed, and stored transposed back once. */
#include "kernels/cpu/attention_amx.h"

#ifndef __x86_64__

void attention_amx_backward(const struct attention_args *a)
{
    (void)a;
    assert(false);
}

#else

#include "kernels/cpu/vector_math.h"

#include <omp.h>
#include <string.h>

enum { BLOCK = ATTENTION_BLOCK };

/* A thread's matrices. _transposed, _columns and _pairs are the forms of attention_amx.h. */
struct backward_scratch {
    uint32_t *k_columns, *v_columns, *k_pairs;
    float *dk, *dv; /* [padded, BLOCK] a block of keys, sums over the query heads */
    bf16 *q, *dy, *q_transposed, *dy_transposed; /* of the head at hand */
    float *dq;                                   /* [T_q, padded] */
    float *delta;                                /* [T_q]: sum of dy * y */
    float *scores, *dp;                          /* [BLOCK, BLOCK] */
    bf16 *ds;                                    /* the same */
    uint32_t *p_pairs, *ds_pairs;                /* [BLOCK / 2, BLOCK] */
    bf16 *rows;                                  /* of keys */
    float *bias;  /* [2 * BLOCK]: attention_load_bias(); zeros without one */
    float *dbias; /* [distances] of the head at hand, not the thread's; NULL: no bias */
};

static void *share(char *start, int64_t *used, int64_t bytes)
{
    char *memory = start ? start + *used : NULL;
    *used += (bytes + 63) / 64 * 64;
    return memory;
}

/* Divides what starts at `start`; with NULL it only counts. Returns the bytes. */
static int64_t divide(const struct attention_shape *z, char *start, struct backward_scratch *f)
{
    int64_t used = 0;
    int64_t padded = attention_padded(z->hd);
    int64_t keys = attention_blocks(z->T_k) * BLOCK * padded;
    int64_t queries = attention_blocks(z->T_q) * BLOCK * padded;
    f->k_columns = share(start, &used, 2 * keys);
    f->v_columns = share(start, &used, 2 * keys);
    f->k_pairs = share(start, &used, 2 * keys);
    f->rows = share(start, &used, 2 * keys);
    f->dk = share(start, &used, 4 * keys);
    f->dv = share(start, &used, 4 * keys);
    f->q = share(start, &used, 2 * queries);
    f->dy = share(start, &used, 2 * queries);
    f->q_transposed = share(start, &used, 2 * queries);
    f->dy_transposed = share(start, &used, 2 * queries);
    f->dq = share(start, &used, 4 * queries);
    f->delta = share(start, &used, 4 * queries / padded);
    f->scores = share(start, &used, 4 * BLOCK * BLOCK);
    f->dp = share(start, &used, 4 * BLOCK * BLOCK);
    f->ds = share(start, &used, 2 * BLOCK * BLOCK);
    f->p_pairs = share(start, &used, 2 * BLOCK * BLOCK);
    f->ds_pairs = share(start, &used, 2 * BLOCK * BLOCK);
    f->bias = share(start, &used, 4 * 2 * BLOCK);
    return used;
}

/* A row's scores become probabilities as they met v, and dp the gradient of the scores; both 0
 * where the query does not see. */
AMX static void softmax_backward_row(const struct attention_args *a,
                                     const struct attention_block *block,
                                     const struct backward_scratch *f, int64_t row)
{
    const struct attention_shape *z = &a->shape;
    int64_t count = row < block->q_count ? attention_visible(z, block, row) : 0;
    float *p = f->scores + row * BLOCK, *dp = f->dp + row * BLOCK, scale = z->scale;
    if (count > 0) {
        float lse = a->kept_lse[(block->b * z->heads + block->h) * z->T_q + block->q + row];
        float delta = f->delta[block->q + row], mask[BLOCK];
        const float *bias = f->bias + block->q_count - 1 - row;
        for (int64_t i = 0; i < BLOCK; i++)
            mask[i] = 1;
        if (z->dropout > 0)
            attention_mask(mask, z, block, row, count);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            float whole = vector_exp(p[i] * scale + bias[i] - lse);
            dp[i] = whole * (dp[i] * mask[i] - delta);
            p[i] = whole * mask[i];
        }
    }
    memset(p + count, 0, (size_t)(BLOCK - count) * sizeof *p);
    memset(dp + count, 0, (size_t)(BLOCK - count) * sizeof *dp);
    if (z->bias && count > 0) {
        float *dbias = f->dbias + attention_distance(z, block, row);
        for (int64_t i = 0; i < count; i++)
            dbias[i] += dp[i];
    }
}

AMX static void softmax_backward(const struct attention_args *a,
                                 const struct attention_block *block,
                                 const struct backward_scratch *f)
{
    for (int64_t row = 0; row < BLOCK; row += 2) {
        const float *p = f->scores + row * BLOCK, *dp = f->dp + row * BLOCK;
        bf16 *ds = f->ds + row * BLOCK;
        uint32_t *p_pairs = f->p_pairs + row / 2 * BLOCK, *ds_pairs = f->ds_pairs + row / 2 * BLOCK;
        softmax_backward_row(a, block, f, row);
        softmax_backward_row(a, block, f, row + 1);
        for (int64_t i = 0; i < BLOCK; i++)
            p_pairs[i] = bf16_from_float(p[i]) | (uint32_t)bf16_from_float(p[BLOCK + i]) << 16;
        for (int64_t i = 0; i < 2 * BLOCK; i++)
            ds[i] = bf16_from_float(dp[i]);
        for (int64_t i = 0; i < BLOCK; i++)
            ds_pairs[i] = ds[i] | (uint32_t)ds[BLOCK + i] << 16;
    }
}

AMX static void backward_block(const struct attention_args *a, const struct attention_block *block,
                               const struct backward_scratch *f)
{
    int64_t padded = attention_padded(a->shape.hd), q = block->q * padded, k = block->k * padded;
    amx_multiply(f->scores, BLOCK, f->q + q, padded, f->k_columns + k / 2, BLOCK, BLOCK, BLOCK,
                 padded, false);
    amx_multiply(f->dp, BLOCK, f->dy + q, padded, f->v_columns + k / 2, BLOCK, BLOCK, BLOCK, padded,
                 false);
    if (a->shape.bias)
        attention_load_bias(f->bias, DTYPE_BF16, &a->shape, block);
    softmax_backward(a, block, f);
    amx_multiply(f->dv + k, BLOCK, f->dy_transposed + q, BLOCK, f->p_pairs, BLOCK, padded, BLOCK,
                 BLOCK, true);
    amx_multiply(f->dk + k, BLOCK, f->q_transposed + q, BLOCK, f->ds_pairs, BLOCK, padded, BLOCK,
                 BLOCK, true);
    amx_multiply(f->dq + q, padded, f->ds, BLOCK, f->k_pairs + k / 2, padded, BLOCK, padded, BLOCK,
                 true);
}

AMX static void load_head(const struct attention_args *a, int64_t b, int64_t h,
                          const struct backward_scratch *f)
{
    const struct attention_shape *z = &a->shape;
    int64_t padded = attention_padded(z->hd), blocks = attention_blocks(z->T_q);
    int64_t y_stride = z->heads * z->hd,
            offset = attention_offset(b, z->T_q, 0, y_stride, h, z->hd);
    const bf16 *y = (const bf16 *)a->kept_y + offset, *dy = (const bf16 *)a->dy + offset;
    for (int64_t t = 0; t < z->T_q; t++, y += y_stride, dy += y_stride) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < z->hd; i++)
            sum += bf16_to_float(y[i]) * bf16_to_float(dy[i]);
        f->delta[t] = sum;
    }
    attention_amx_rows(f->dy, a->dy, offset, y_stride, z->T_q, z->hd);
    attention_amx_transpose(f->dy_transposed, f->dy, blocks, padded);
    attention_amx_rows(f->q, a->q, attention_offset(b, z->T_q, 0, z->q_stride, h, z->hd),
                       z->q_stride, z->T_q, z->hd);
    attention_amx_transpose(f->q_transposed, f->q, blocks, padded);
}

AMX static void backward_head(const struct attention_args *a, int64_t b, int64_t h,
                              const struct backward_scratch *f)
{
    const struct attention_shape *z = &a->shape;
    int64_t padded = attention_padded(z->hd);
    struct attention_block block = {.b = b, .h = h, .keys = attention_keys(z, b)};
    load_head(a, b, h, f);
    memset(f->dq, 0, (size_t)(attention_blocks(z->T_q) * BLOCK * padded) * sizeof *f->dq);
    for (block.k = 0; block.k < block.keys; block.k += BLOCK) {
        block.k_count = attention_min(block.keys - block.k, BLOCK);
        for (block.q = z->causal ? block.k : 0; block.q < z->T_q; block.q += BLOCK) {
            block.q_count = attention_min(z->T_q - block.q, BLOCK);
            backward_block(a, &block, f);
        }
    }
    bf16 *dq = (bf16 *)a->dq + attention_offset(b, z->T_q, 0, z->q_stride, h, z->hd);
    for (int64_t t = 0; t < z->T_q; t++, dq += z->q_stride)
        for (int64_t i = 0; i < z->hd; i++)
            dq[i] = bf16_from_float(f->dq[t * padded + i] * z->scale);
}

/* x = transposed * scale, transposed back. */
AMX static void store_transposed(bf16 *x, int64_t stride, const float *transposed, int64_t T,
                                 int64_t hd, float scale)
{
    int64_t padded = attention_padded(hd);
    for (int64_t t = 0; t < T; t++, x += stride) {
        const float *column = transposed + t / BLOCK * BLOCK * padded + t % BLOCK;
        for (int64_t i = 0; i < hd; i++)
            x[i] = bf16_from_float(column[i * BLOCK] * scale);
    }
}

/* A key-value head and all query heads that read it. dbias: [B, heads, distances], or NULL. */
AMX static void backward_group(const struct attention_args *a, int64_t b, int64_t kv, char *room,
                               float *dbias)
{
    const struct attention_shape *z = &a->shape;
    struct backward_scratch f;
    divide(z, room, &f);
    int64_t padded = attention_padded(z->hd), blocks = attention_blocks(z->T_k);
    int64_t group = z->heads / z->kv_heads;
    int64_t k_offset = attention_offset(b, z->T_k, 0, z->k_stride, kv, z->hd);
    int64_t v_offset = attention_offset(b, z->T_k, 0, z->v_stride, kv, z->hd);
    attention_amx_rows(f.rows, a->v, v_offset, z->v_stride, z->T_k, z->hd);
    attention_amx_transpose_pairs(f.v_columns, f.rows, blocks, padded);
    attention_amx_rows(f.rows, a->k, k_offset, z->k_stride, z->T_k, z->hd);
    attention_amx_transpose_pairs(f.k_columns, f.rows, blocks, padded);
    attention_amx_pair(f.k_pairs, f.rows, blocks, padded);
    memset(f.dk, 0, (size_t)(blocks * BLOCK * padded) * sizeof *f.dk);
    memset(f.dv, 0, (size_t)(blocks * BLOCK * padded) * sizeof *f.dv);
    memset(f.bias, 0, 2 * BLOCK * sizeof *f.bias);
    amx_open();
    for (int64_t h = kv * group; h < (kv + 1) * group; h++) {
        f.dbias = dbias ? dbias + (b * z->heads + h) * attention_distances(z) : NULL;
        backward_head(a, b, h, &f);
    }
    amx_close();
    store_transposed((bf16 *)a->dk + k_offset, z->k_stride, f.dk, z->T_k, z->hd, z->scale);
    store_transposed((bf16 *)a->dv + v_offset, z->v_stride, f.dv, z->T_k, z->hd, 1);
}

void attention_amx_backward(const struct attention_args *a)
{
    const struct attention_shape *z = &a->shape;
    struct backward_scratch unused;
    int64_t room = divide(z, NULL, &unused), threads = omp_get_max_threads();
    size_t sums = (size_t)(z->B * z->heads * attention_distances(z)) * sizeof(float);
    char *scratch = cpu_scratch(a->s, (size_t)(threads * room) + (z->bias ? sums : 0));
    float *dbias = z->bias ? (float *)(scratch + threads * room) : NULL;
    if (dbias)
        memset(dbias, 0, sums);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < z->B * z->kv_heads; i++)
        backward_group(a, i / z->kv_heads, i % z->kv_heads, scratch + omp_get_thread_num() * room,
                       dbias);
    if (dbias)
        attention_store_dbias(a->dbias, dbias, z);
}

#endif
