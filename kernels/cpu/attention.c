/* Attention in blocks of queries and keys (FlashAttention, Dao et al. 2022): T x T scores would not
 * fit a cache, 64 x 64 of them do. Forward walks over the keys of a block of queries once, with the
 * online softmax (Milakov and Gimelshein 2018; attention_forward.cu has the formulas). Blocks are
 * computed in fp32; oneDNN multiplies them. */
#include "kernels/attention_shape.h"
#include "kernels/cpu/attention_amx.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/random_run.h"
#include "kernels/cpu/strip.h"
#include "kernels/cpu/vector_math.h"

#include <math.h>
#include <omp.h>
#include <string.h>

CPU_HOT void attention_load(float *rows, enum dtype t, const void *x, int64_t first, int64_t stride,
                            int64_t count, int64_t hd, float scale)
{
    float buffer[STRIP];
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = 0, n; i < hd; i += n) {
            n = strip_length(hd - i);
            const float *from = strip_read(t, x, first + r * stride + i, n, buffer);
            for (int64_t j = 0; j < n; j++)
                rows[r * hd + i + j] = from[j] * scale;
        }
}

CPU_HOT void attention_store(enum dtype t, void *x, int64_t first, int64_t stride,
                             const float *rows, int64_t count, int64_t hd, float scale)
{
    float buffer[STRIP];
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = 0, n; i < hd; i += n) {
            n = strip_length(hd - i);
            float *to = strip_target(t, x, first + r * stride + i, buffer);
            for (int64_t j = 0; j < n; j++)
                to[j] = rows[r * hd + i + j] * scale;
            strip_write(t, x, first + r * stride + i, n, to);
        }
}

/* An element is named by sequence, head, query and key in the whole batch: backward draws the same
 * mask again, in blocks of any size and on any rank. */
CPU_HOT void attention_mask(float *mask, const struct attention_shape *shape,
                            const struct attention_block *block, int64_t row, int64_t count)
{
    uint64_t g = shape->first_row + (uint64_t)block->b * shape->row_stride;
    uint64_t line = (g * (uint64_t)shape->heads + (uint64_t)block->h) * (uint64_t)shape->T_q +
                    (uint64_t)(block->q + row);
    uint64_t index = line * (uint64_t)shape->T_k + (uint64_t)block->k;
    float p = shape->dropout, scale = 1 / (1 - p), buffer[RANDOM_GROUP];
    const float *numbers;
    for (int64_t i = 0, n; i < count; i += n) {
        n = random_run(buffer, shape->key, index + (uint64_t)i, count - i, &numbers);
        for (int64_t j = 0; j < n; j++)
            mask[i + j] = numbers[j] < p ? 0 : scale;
    }
}

/* T5's bias depends only on the distance from query to key: a block needs q_count + k_count - 1
 * values, and each row reads a window of them. */
void attention_load_bias(float *bias, enum dtype t, const struct attention_shape *shape,
                         const struct attention_block *block)
{
    int64_t offset = attention_distance(shape, block, block->q_count - 1) * shape->heads + block->h;
    for (int64_t i = 0; i < block->q_count + block->k_count - 1; i++, offset += shape->heads)
        bias[i] = t == DTYPE_F32 ? ((const float *)shape->bias)[offset]
                                 : bf16_to_float(((const bf16 *)shape->bias)[offset]);
}

void attention_store_dbias(float *dbias, const float *sums, const struct attention_shape *shape)
{
    int64_t distances = attention_distances(shape), heads = shape->heads;
    memset(dbias, 0, (size_t)(distances * heads) * sizeof *dbias);
    for (int64_t i = 0; i < shape->B * heads; i++, sums += distances)
        for (int64_t d = 0; d < distances; d++)
            dbias[d * heads + i % heads] += sums[d];
}

/* A thread's matrices. */
struct forward_block {
    float *q, *k, *v, *y; /* [ATTENTION_BLOCK, hd] */
    float *scores;        /* [ATTENTION_BLOCK, ATTENTION_BLOCK], then probabilities */
    float largest[ATTENTION_BLOCK], sum[ATTENTION_BLOCK];
    float bias[2 * ATTENTION_BLOCK]; /* attention_load_bias() */
};

/* A row's scores become exp(score - largest), what came before is brought to the new largest. */
CPU_HOT static void softmax_row(const struct attention_shape *shape,
                                const struct attention_block *block, struct forward_block *f,
                                int64_t row)
{
    int64_t count = attention_visible(shape, block, row), hd = shape->hd;
    float *p = f->scores + row * block->k_count, *y = f->y + row * hd;
    float largest = f->largest[row], sum = 0;
    if (shape->bias) {
        const float *bias = f->bias + block->q_count - 1 - row;
        for (int64_t i = 0; i < count; i++)
            p[i] += bias[i];
    }
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < count; i++)
        largest = p[i] > largest ? p[i] : largest;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) {
        p[i] = vector_exp(p[i] - largest);
        sum += p[i];
    }
    /* The product below reads whole blocks: keys that this query may not see must add nothing. */
    memset(p + count, 0, (size_t)(block->k_count - count) * sizeof *p);
    float rescale = block->k > 0 ? vector_exp(f->largest[row] - largest) : 0;
    for (int64_t i = 0; i < hd; i++)
        y[i] *= rescale;
    f->sum[row] = f->sum[row] * rescale + sum;
    f->largest[row] = largest;
    /* After the sum: dropout falls on probabilities, whose divisor counts all keys. */
    if (shape->dropout > 0) {
        float mask[ATTENTION_BLOCK];
        attention_mask(mask, shape, block, row, count);
        for (int64_t i = 0; i < count; i++)
            p[i] *= mask[i];
    }
}

static void forward_keys(const struct attention_args *a, const struct attention_block *block,
                         struct forward_block *f)
{
    const struct attention_shape *z = &a->shape;
    int64_t hd = z->hd, kv = block->h / (z->heads / z->kv_heads);
    attention_load(f->k, a->t, a->k,
                   attention_offset(block->b, z->T_k, block->k, z->k_stride, kv, hd), z->k_stride,
                   block->k_count, hd, 1);
    attention_load(f->v, a->t, a->v,
                   attention_offset(block->b, z->T_k, block->k, z->v_stride, kv, hd), z->v_stride,
                   block->k_count, hd, 1);
    cpu_gemm('N', 'T', block->q_count, block->k_count, hd, f->q, f->k, 0, f->scores,
             block->k_count);
    if (z->bias)
        attention_load_bias(f->bias, a->t, z, block);
    for (int64_t row = 0; row < block->q_count; row++)
        softmax_row(z, block, f, row);
    cpu_gemm('N', 'N', block->q_count, hd, block->k_count, f->scores, f->v, 1, f->y, hd);
}

/* All keys for a block of queries. */
static void forward_queries(const struct attention_args *a, struct attention_block *block,
                            struct forward_block *f)
{
    const struct attention_shape *z = &a->shape;
    int64_t hd = z->hd, seen = block->keys;
    /* Blocks of keys behind the last query of the block are all masked: they are not computed. */
    if (z->causal)
        seen = attention_min(seen, block->q + block->q_count);
    attention_load(f->q, a->t, a->q,
                   attention_offset(block->b, z->T_q, block->q, z->q_stride, block->h, hd),
                   z->q_stride, block->q_count, hd, z->scale);
    memset(f->y, 0, (size_t)(block->q_count * hd) * sizeof *f->y);
    for (int64_t row = 0; row < block->q_count; row++) {
        f->largest[row] = -INFINITY;
        f->sum[row] = 0;
    }
    for (block->k = 0; block->k < seen; block->k += ATTENTION_BLOCK) {
        block->k_count = attention_min(seen - block->k, ATTENTION_BLOCK);
        forward_keys(a, block, f);
    }
    float *lse = a->lse + (block->b * z->heads + block->h) * z->T_q + block->q;
    for (int64_t row = 0; row < block->q_count; row++) {
        /* All that backward needs of the scores: P = exp(S - lse). */
        lse[row] = f->largest[row] + logf(f->sum[row]);
        float inverse = 1 / f->sum[row];
        for (int64_t i = 0; i < hd; i++)
            f->y[row * hd + i] *= inverse;
    }
    attention_store(a->t, a->y,
                    attention_offset(block->b, z->T_q, block->q, z->heads * hd, block->h, hd),
                    z->heads * hd, f->y, block->q_count, hd, 1);
}

static void forward_run(void *args)
{
    const struct attention_args *a = args;
    const struct attention_shape *z = &a->shape;
    if (a->t == DTYPE_BF16 && attention_amx_available()) {
        attention_amx_forward(a);
        return;
    }
    int64_t blocks = (z->T_q + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK;
    int64_t matrix = ATTENTION_BLOCK * z->hd, room = 4 * matrix + ATTENTION_BLOCK * ATTENTION_BLOCK;
    float *scratch = cpu_scratch(a->s, (size_t)(omp_get_max_threads() * room) * sizeof *scratch);
    /* Not static: under a causal mask the later blocks see more. */
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < z->B * z->heads * blocks; i++) {
        float *mine = scratch + omp_get_thread_num() * room;
        struct forward_block f = {.q = mine,
                                  .k = mine + matrix,
                                  .v = mine + 2 * matrix,
                                  .y = mine + 3 * matrix,
                                  .scores = mine + 4 * matrix};
        struct attention_block block = {.b = i / blocks / z->heads,
                                        .h = i / blocks % z->heads,
                                        .q = i % blocks * ATTENTION_BLOCK};
        block.q_count = attention_min(z->T_q - block.q, ATTENTION_BLOCK);
        block.keys = attention_keys(z, block.b);
        forward_queries(a, &block, &f);
    }
}

void cpu_attention_forward(struct stream *s, enum dtype t, void *y, float *lse, const void *q,
                           const void *k, const void *v, const struct attention_shape *shape)
{
    attention_shape_check(shape);
    cpu_call(s, forward_run, struct attention_args, .s = s, .t = t, .shape = *shape, .q = q, .k = k,
             .v = v, .y = y, .lse = lse);
}

void cpu_attention_backward(struct stream *s, enum dtype t, void *dq, void *dk, void *dv,
                            float *dbias, const void *dy, const void *y, const float *lse,
                            const void *q, const void *k, const void *v,
                            const struct attention_shape *shape)
{
    attention_shape_check(shape);
    assert(!dbias == !shape->bias);
    cpu_call(s, attention_backward_run, struct attention_args, .s = s, .t = t, .shape = *shape,
             .q = q, .k = k, .v = v, .dy = dy, .kept_y = y, .kept_lse = lse, .dq = dq, .dk = dk,
             .dv = dv, .dbias = dbias);
}
