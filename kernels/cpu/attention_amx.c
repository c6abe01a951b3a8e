/* Attention forward in bf16 with AMX. It follows attention.c with two differences, both for the
 * matrix unit's sake. Keys and values of a head are laid out once as second factors (pairs of rows,
 * amx.h) and serve all query heads that read them. A block of queries meets KEYS keys at once
 * instead of 64, so that the softmax's vector loops are longer. */
#include "kernels/cpu/attention_amx.h"
#include "kernels/cpu/vector_math.h"

#include <dnnl.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#ifndef __x86_64__

bool attention_amx_available(void)
{
    return false;
}

void attention_amx_forward(const struct attention_args *a)
{
    (void)a;
    assert(false);
}

#else

bool attention_amx_available(void)
{
    int isa = (int)dnnl_get_effective_cpu_isa(), needed = dnnl_cpu_isa_avx512_core_amx;
    return (isa & needed) == needed;
}

void attention_amx_rows(bf16 *rows, const bf16 *x, int64_t first, int64_t stride, int64_t T,
                        int64_t hd)
{
    int64_t padded = attention_padded(hd), all = attention_blocks(T) * ATTENTION_BLOCK;
    for (int64_t r = 0; r < T; r++) {
        memcpy(rows + r * padded, x + first + r * stride, (size_t)hd * sizeof *rows);
        memset(rows + r * padded + hd, 0, (size_t)(padded - hd) * sizeof *rows);
    }
    memset(rows + T * padded, 0, (size_t)((all - T) * padded) * sizeof *rows);
}

AMX void attention_amx_transpose(bf16 *transposed, const bf16 *rows, int64_t blocks, int64_t padded)
{
    for (int64_t b = 0; b < blocks; b++, rows += ATTENTION_BLOCK * padded)
        for (int64_t i = 0; i < padded; i++)
            for (int64_t r = 0; r < ATTENTION_BLOCK; r++)
                *transposed++ = rows[r * padded + i];
}

AMX void attention_amx_transpose_pairs(uint32_t *transposed, const bf16 *rows, int64_t blocks,
                                       int64_t padded)
{
    for (int64_t b = 0; b < blocks; b++, rows += ATTENTION_BLOCK * padded)
        for (int64_t i = 0; i < padded; i += 2, transposed += ATTENTION_BLOCK)
            for (int64_t r = 0; r < ATTENTION_BLOCK; r++)
                memcpy(&transposed[r], &rows[r * padded + i], sizeof *transposed);
}

AMX void attention_amx_pair(uint32_t *pairs, const bf16 *rows, int64_t blocks, int64_t padded)
{
    for (int64_t r = 0; r < blocks * ATTENTION_BLOCK; r += 2, rows += 2 * padded, pairs += padded)
        for (int64_t i = 0; i < padded; i++)
            pairs[i] = rows[i] | (uint32_t)rows[padded + i] << 16;
}

enum { KEYS = 4 * ATTENTION_BLOCK }; /* that a block of queries sees at once */

/* A thread's matrices. */
struct forward_scratch {
    uint32_t *k, *v; /* of the head: columns of a second factor, rows of one */
    bf16 *rows;      /* what they are made of; then the block of queries */
    float *scores;   /* [ATTENTION_BLOCK, KEYS] */
    bf16 *p;         /* the same, probabilities but for their sum */
    float *y;        /* [ATTENTION_BLOCK, padded] */
    float largest[ATTENTION_BLOCK], sum[ATTENTION_BLOCK];
    float bias[ATTENTION_BLOCK + KEYS]; /* attention_load_bias() */
};

static int64_t scratch_bytes(const struct attention_shape *z)
{
    int64_t padded = attention_padded(z->hd);
    int64_t keys = attention_blocks(z->T_k) * ATTENTION_BLOCK;
    return keys * padded * 6 + ATTENTION_BLOCK * (padded * 6 + KEYS * 6);
}

static struct forward_scratch divide(const struct attention_shape *z, char *room)
{
    int64_t padded = attention_padded(z->hd);
    int64_t keys = attention_blocks(z->T_k) * ATTENTION_BLOCK;
    struct forward_scratch f = {.k = (uint32_t *)room};
    f.v = f.k + keys * padded / 2;
    f.y = (float *)(f.v + keys * padded / 2);
    f.scores = f.y + ATTENTION_BLOCK * padded;
    f.p = (bf16 *)(f.scores + ATTENTION_BLOCK * KEYS);
    f.rows = f.p + ATTENTION_BLOCK * KEYS;
    return f;
}

/* As softmax_row in attention.c; the probabilities go to p. */
AMX static void softmax_row(const struct attention_shape *z, const struct attention_block *block,
                            struct forward_scratch *f, int64_t row)
{
    int64_t count = attention_visible(z, block, row), padded = attention_padded(z->hd);
    float *x = f->scores + row * KEYS, *y = f->y + row * padded;
    bf16 *p = f->p + row * KEYS;
    float largest = f->largest[row], sum = 0, scale = z->scale;
    const float *bias = f->bias + block->q_count - 1 - row; /* zeros without one */
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < count; i++) {
        x[i] = x[i] * scale + bias[i];
        largest = x[i] > largest ? x[i] : largest;
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) {
        x[i] = vector_exp(x[i] - largest);
        sum += x[i];
    }
    if (z->dropout > 0) {
        float mask[KEYS];
        attention_mask(mask, z, block, row, count);
        for (int64_t i = 0; i < count; i++)
            x[i] *= mask[i];
    }
    for (int64_t i = 0; i < count; i++)
        p[i] = bf16_from_float(x[i]);
    memset(p + count, 0, (size_t)(KEYS - count) * sizeof *p);
    float rescale = block->k > 0 ? vector_exp(f->largest[row] - largest) : 0;
    for (int64_t i = 0; block->k > 0 && i < padded; i++)
        y[i] *= rescale;
    f->sum[row] = f->sum[row] * rescale + sum;
    f->largest[row] = largest;
}

/* All keys for a block of queries. */
AMX static void forward_queries(const struct attention_args *a, struct attention_block *block,
                                struct forward_scratch *f)
{
    const struct attention_shape *z = &a->shape;
    int64_t padded = attention_padded(z->hd), seen = block->keys;
    if (z->causal)
        seen = attention_min(seen, block->q + block->q_count);
    attention_amx_rows(f->rows, a->q,
                       attention_offset(block->b, z->T_q, block->q, z->q_stride, block->h, z->hd),
                       z->q_stride, block->q_count, z->hd);
    for (int64_t row = 0; row < block->q_count; row++) {
        f->largest[row] = -INFINITY;
        f->sum[row] = 0;
    }
    for (block->k = 0; block->k < seen; block->k += KEYS) {
        block->k_count = attention_min(seen - block->k, KEYS);
        for (int64_t k = 0; k < block->k_count; k += ATTENTION_BLOCK)
            amx_multiply(f->scores + k, KEYS, f->rows, padded, f->k + (block->k + k) * padded / 2,
                         ATTENTION_BLOCK, ATTENTION_BLOCK, ATTENTION_BLOCK, padded, false);
        if (z->bias)
            attention_load_bias(f->bias, DTYPE_BF16, z, block);
        for (int64_t row = 0; row < block->q_count; row++)
            softmax_row(z, block, f, row);
        amx_multiply(f->y, padded, f->p, KEYS, f->v + block->k * padded / 2, padded,
                     ATTENTION_BLOCK, padded, attention_blocks(block->k_count) * ATTENTION_BLOCK,
                     block->k > 0);
    }
    float *lse = a->lse + (block->b * z->heads + block->h) * z->T_q + block->q;
    bf16 *y = (bf16 *)a->y +
              attention_offset(block->b, z->T_q, block->q, z->heads * z->hd, block->h, z->hd);
    for (int64_t row = 0; row < block->q_count; row++, y += z->heads * z->hd) {
        lse[row] = f->largest[row] + logf(f->sum[row]);
        float inverse = 1 / f->sum[row];
        for (int64_t i = 0; i < z->hd; i++)
            y[i] = bf16_from_float(f->y[row * padded + i] * inverse);
    }
}

/* A key-value head and all query heads that read it. */
AMX static void forward_head(const struct attention_args *a, int64_t b, int64_t kv, char *room)
{
    const struct attention_shape *z = &a->shape;
    struct forward_scratch f = divide(z, room);
    int64_t padded = attention_padded(z->hd), blocks = attention_blocks(z->T_k);
    int64_t group = z->heads / z->kv_heads;
    attention_amx_rows(f.rows, a->k, attention_offset(b, z->T_k, 0, z->k_stride, kv, z->hd),
                       z->k_stride, z->T_k, z->hd);
    attention_amx_transpose_pairs(f.k, f.rows, blocks, padded);
    attention_amx_rows(f.rows, a->v, attention_offset(b, z->T_k, 0, z->v_stride, kv, z->hd),
                       z->v_stride, z->T_k, z->hd);
    attention_amx_pair(f.v, f.rows, blocks, padded);
    memset(f.p, 0, ATTENTION_BLOCK * KEYS * sizeof *f.p); /* rows that are no queries */
    memset(f.bias, 0, sizeof f.bias);
    amx_open();
    for (int64_t h = kv * group; h < (kv + 1) * group; h++)
        for (int64_t q = 0; q < z->T_q; q += ATTENTION_BLOCK) {
            struct attention_block block = {.b = b,
                                            .h = h,
                                            .q = q,
                                            .q_count = attention_min(z->T_q - q, ATTENTION_BLOCK),
                                            .keys = attention_keys(z, b)};
            forward_queries(a, &block, &f);
        }
    amx_close();
}

void attention_amx_forward(const struct attention_args *a)
{
    const struct attention_shape *z = &a->shape;
    int64_t room = scratch_bytes(z);
    char *scratch = cpu_scratch(a->s, (size_t)(omp_get_max_threads() * room));
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < z->B * z->kv_heads; i++)
        forward_head(a, i / z->kv_heads, i % z->kv_heads, scratch + omp_get_thread_num() * room);
}

#endif
