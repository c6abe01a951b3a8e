#include "tests/kernels/attention_rows.h"
#include "kernels/random.h"

#include <math.h>

enum { BIAS = 3 };

/* A row, and its key counts on the device. */
struct attention_case {
    const struct attention_row *row;
    const int32_t *key_counts; /* NULL: none */
};

static bool is_used(const void *shape, int which, int64_t i)
{
    const struct attention_case *c = shape;
    const struct attention_shape *z = &c->row->shape;
    if (which == OUTPUT || which == BIAS)
        return true;
    int64_t stride = which == 0 ? z->q_stride : which == 1 ? z->k_stride : z->v_stride;
    return i % stride < (which == 0 ? z->heads : z->kv_heads) * z->hd;
}

static double mask_of(const struct attention_shape *z, int64_t b, int64_t h, int64_t q, int64_t k)
{
    uint64_t g = z->first_row + (uint64_t)b * z->row_stride;
    uint64_t row = (g * (uint64_t)z->heads + (uint64_t)h) * (uint64_t)z->T_q + (uint64_t)q;
    float u = random_uniform(z->key, row * (uint64_t)z->T_k + (uint64_t)k);
    return u < z->dropout ? 0 : 1 / (1 - (double)z->dropout);
}

static int64_t keys_of(const struct attention_row *row, int64_t b)
{
    return row->key_counts[b] ? row->key_counts[b] : row->shape.T_k;
}

/* One query of one head. */
WITHOUT_TSAN static void attend(const struct attention_row *row, double *y,
                                double *const in[MAX_INPUTS], int64_t b, int64_t h, int64_t t)
{
    const struct attention_shape *z = &row->shape;
    int64_t kv = h / (z->heads / z->kv_heads), seen = keys_of(row, b);
    if (z->causal && t + 1 < seen)
        seen = t + 1;
    const double *q = in[0] + (b * z->T_q + t) * z->q_stride + h * z->hd;
    double largest = -INFINITY, sum = 0, scores[512];
    assert_true(seen <= 512);
    for (int64_t i = 0; i < z->hd; i++)
        y[i] = 0;
    for (int64_t s = 0; s < seen; s++) {
        const double *k = in[1] + (b * z->T_k + s) * z->k_stride + kv * z->hd;
        scores[s] = 0;
        for (int64_t i = 0; i < z->hd; i++)
            scores[s] += z->scale * q[i] * k[i];
        scores[s] += row->bias ? in[BIAS][(s - t + z->T_q - 1) * z->heads + h] : 0;
        largest = fmax(largest, scores[s]);
    }
    for (int64_t s = 0; s < seen; s++)
        sum += exp(scores[s] - largest);
    for (int64_t s = 0; s < seen; s++) {
        const double *v = in[2] + (b * z->T_k + s) * z->v_stride + kv * z->hd;
        double p = exp(scores[s] - largest) / sum;
        p *= z->dropout > 0 ? mask_of(z, b, h, t, s) : 1;
        for (int64_t i = 0; i < z->hd; i++)
            y[i] += p * v[i];
    }
}

static void attention_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct attention_row *row = ((const struct attention_case *)shape)->row;
    const struct attention_shape *z = &row->shape;
    for (int64_t b = 0; b < z->B; b++)
        for (int64_t t = 0; t < z->T_q; t++)
            for (int64_t h = 0; h < z->heads; h++, y += z->hd)
                attend(row, y, in, b, h, t);
}

static struct attention_shape shape_of(const void *shape, void *const in[MAX_INPUTS])
{
    const struct attention_case *c = shape;
    struct attention_shape z = c->row->shape;
    z.bias = c->row->bias ? in[BIAS] : NULL;
    z.key_counts = c->key_counts;
    return z;
}

static void forward(struct world *world, enum dtype t, const void *shape, void *y, float *saved,
                    void *const in[MAX_INPUTS])
{
    struct attention_shape z = shape_of(shape, in);
    world->ops->attention_forward(world->stream, t, y, saved, in[0], in[1], in[2], &z);
}

static void backward(struct world *world, enum dtype t, const void *shape,
                     void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                     const float *saved, void *const in[MAX_INPUTS])
{
    struct attention_shape z = shape_of(shape, in);
    world->ops->attention_backward(world->stream, t, gradient[0], gradient[1], gradient[2],
                                   z.bias ? gradient[BIAS] : NULL, dy, y, saved, in[0], in[1],
                                   in[2], &z);
}

#define SHAPE(B, T_q, T_k, heads, kv_heads, hd) B, T_q, T_k, heads, kv_heads, hd
const struct attention_row attention_rows[] = {
    {"one of everything",
     {SHAPE(1, 1, 1, 1, 1, 1), 1, 1, 1, true, 1, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    /* What a GPU's matrix units take, at the borders of their tiles of 32, 64 and 128;
     * early, so that a test of their barriers is short. */
    {"64 wide",
     {SHAPE(1, 64, 64, 2, 1, 64), 128, 64, 64, true, 0.125f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"64 wide, over two tiles, packed",
     {SHAPE(1, 131, 131, 4, 2, 64), 512, 512, 512, true, 0.125f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"64 wide, few queries, padding",
     {SHAPE(2, 3, 129, 2, 2, 64), 128, 136, 128, false, 0.125f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {63, 129}},
    {"64 wide, bias, dropout, padding",
     {SHAPE(2, 70, 97, 1, 1, 64), 64, 64, 64, false, 0.125f, 0.25f, false, 7, 3, 5, NULL, NULL},
     1,
     true,
     {97, 65}},
    {"64 wide, bias, causal",
     {SHAPE(1, 140, 140, 1, 1, 64), 64, 64, 64, true, 0.125f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     true,
     {0}},
    {"64 wide, dropout, causal",
     {SHAPE(1, 96, 96, 2, 2, 64), 128, 128, 128, true, 0.125f, 0.1f, false, 7, 0, 1, NULL, NULL},
     1,
     false,
     {0}},
    {"64 wide, at odd places",
     {SHAPE(1, 33, 40, 1, 1, 64), 67, 64, 65, false, 0.125f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"128 wide",
     {SHAPE(1, 130, 130, 1, 1, 128), 128, 128, 128, true, 0.09f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"128 wide, bias, dropout, padding",
     {SHAPE(2, 35, 65, 1, 1, 128), 128, 136, 128, false, 0.09f, 0.2f, false, 4, 1, 2, NULL, NULL},
     1,
     true,
     {33, 64}},
    {"128 wide, bias, causal",
     {SHAPE(1, 80, 80, 2, 1, 128), 256, 128, 128, true, 0.09f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     true,
     {0}},
    {"128 wide, dropout, keys by the group of numbers",
     {SHAPE(1, 40, 64, 2, 1, 128), 256, 128, 128, false, 0.09f, 0.2f, false, 5, 2, 3, NULL, NULL},
     1,
     false,
     {0}},
    {"64 wide, bias, dropout, keys by the group of numbers",
     {SHAPE(2, 70, 96, 2, 1, 64), 128, 64, 64, false, 0.125f, 0.25f, false, 7, 3, 5, NULL, NULL},
     1,
     true,
     {96, 65}},
    {"two tokens",
     {SHAPE(2, 2, 2, 1, 1, 3), 3, 3, 3, true, 0.5f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"one short of a block",
     {SHAPE(1, 63, 63, 3, 3, 8), 24, 24, 24, true, 0.35f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"a block",
     {SHAPE(1, 64, 64, 2, 1, 16), 32, 16, 16, true, 0.25f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"one over, wide",
     {SHAPE(2, 65, 65, 2, 2, 12), 72, 72, 80, true, 0.3f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"three blocks",
     {SHAPE(1, 129, 129, 2, 1, 32), 64, 32, 40, true, 0.2f, 0, false, 0, 0, 0, NULL, NULL},
     2,
     false,
     {0}},
    {"no mask",
     {SHAPE(2, 65, 65, 4, 1, 4), 16, 4, 4, false, 0.5f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"few queries",
     {SHAPE(2, 3, 130, 6, 3, 5), 31, 15, 15, false, 0.5f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"few keys",
     {SHAPE(1, 130, 2, 5, 5, 7), 35, 40, 35, false, 0.4f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"one key",
     {SHAPE(2, 2, 1, 1, 1, 600), 600, 600, 600, false, 0.04f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"dropout",
     {SHAPE(2, 70, 70, 2, 1, 8), 16, 8, 8, true, 0.35f, 0.25f, false, 7, 3, 5, NULL, NULL},
     1,
     false,
     {0}},
    {"dropout, T differ",
     {SHAPE(1, 5, 67, 3, 3, 8), 24, 24, 24, false, 0.35f, 0.5f, false, 7, 1, 1, NULL, NULL},
     1,
     false,
     {0}},
    {"large scores",
     {SHAPE(1, 66, 66, 2, 2, 16), 32, 32, 32, true, 1, 0, false, 0, 0, 0, NULL, NULL},
     3,
     false,
     {0}},
    {"over 256 keys",
     {SHAPE(1, 270, 270, 1, 1, 16), 16, 16, 16, true, 0.5f, 0, false, 0, 0, 0, NULL, NULL},
     2,
     false,
     {0}},
    {"many keys",
     {SHAPE(1, 33, 500, 1, 1, 8), 8, 8, 8, false, 0.5f, 0.1f, false, 3, 0, 1, NULL, NULL},
     2,
     false,
     {0}},
    {"no sequence",
     {SHAPE(0, 9, 9, 2, 2, 4), 8, 8, 8, true, 1, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {0}},
    {"bias",
     {SHAPE(2, 5, 5, 3, 3, 4), 12, 12, 12, false, 1, 0, false, 0, 0, 0, NULL, NULL},
     1,
     true,
     {0}},
    {"bias, causal",
     {SHAPE(1, 130, 130, 2, 1, 8), 16, 8, 8, true, 0.35f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     true,
     {0}},
    {"bias, dropout",
     {SHAPE(1, 65, 65, 2, 2, 8), 16, 16, 16, false, 0.35f, 0.2f, false, 9, 1, 2, NULL, NULL},
     1,
     true,
     {0}},
    {"bias, T differ",
     {SHAPE(2, 3, 70, 4, 2, 8), 32, 16, 16, false, 0.35f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     true,
     {0}},
    {"bias, over 256 keys",
     {SHAPE(1, 70, 300, 1, 1, 8), 8, 8, 8, false, 0.35f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     true,
     {0}},
    {"bias, one query",
     {SHAPE(2, 1, 9, 2, 2, 4), 8, 8, 8, false, 1, 0, false, 0, 0, 0, NULL, NULL},
     1,
     true,
     {0}},
    {"padding",
     {SHAPE(2, 9, 9, 2, 1, 4), 8, 4, 4, false, 0.5f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {4, 9}},
    {"one key is none",
     {SHAPE(2, 5, 6, 2, 2, 4), 8, 8, 8, false, 0.5f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {1, 5}},
    {"padding from a block on",
     {SHAPE(2, 130, 130, 2, 2, 4), 8, 8, 8, false, 0.5f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     false,
     {64, 65}},
    {"padding, causal",
     {SHAPE(2, 70, 70, 2, 2, 4), 8, 8, 8, true, 0.5f, 0.1f, false, 2, 0, 1, NULL, NULL},
     1,
     false,
     {3, 66}},
    {"padding over 256 keys, bias",
     {SHAPE(2, 20, 400, 2, 1, 8), 16, 8, 8, false, 0.5f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     true,
     {255, 300}},
    {"padding, bias, causal",
     {SHAPE(2, 66, 66, 2, 2, 8), 16, 16, 16, true, 0.5f, 0, false, 0, 0, 0, NULL, NULL},
     1,
     true,
     {66, 40}},
    {"no sequence, bias",
     {SHAPE(0, 9, 9, 2, 2, 4), 8, 8, 8, true, 1, 0, false, 0, 0, 0, NULL, NULL},
     1,
     true,
     {0}},
};

const size_t attention_row_count = array_length(attention_rows);

void check_attention(struct world *world, const struct attention_row *it)
{
    const struct attention_shape *z = &it->shape;
    struct attention_case c = {it, NULL};
    void *key_counts = to_device_bytes(world, it->key_counts, sizeof it->key_counts);
    if (it->key_counts[0])
        c.key_counts = key_counts;
    struct op_row row = {
        .name = it->name,
        .shape = &c,
        .inputs = it->bias ? 4 : 3,
        .in_count = {z->B * z->T_q * z->q_stride, z->B * z->T_k * z->k_stride,
                     z->B * z->T_k * z->v_stride, (z->T_q + z->T_k - 1) * z->heads},
        .parameter = {[BIAS] = true}, /* as for these, its gradient is fp32 */
        .y_count = z->B * z->T_q * z->heads * z->hd,
        .saved_count = z->B * z->heads * z->T_q,
        .size = it->size,
        .may_differ = z->nondeterministic,
        .bf16_first = true,
        .y_floor = it->size / 2,      /* probabilities may be rounded before they meet v */
        .floor = it->size * it->size, /* backward sees y rounded, and takes differences with it */
        .reference = attention_reference,
        .used = is_used,
        .forward = forward,
        .backward = backward,
    };
    check_op(world, &row);
    int32_t after[ATTENTION_MAX_BATCH];
    from_device_bytes(world, after, key_counts, sizeof after);
}
