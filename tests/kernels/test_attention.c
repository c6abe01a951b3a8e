/* Attention against the plain formula, whole rows of scores at once. */
#include "tests/kernels/op_check.h"

#include <math.h>

static bool is_used(const void *shape, int which, int64_t i)
{
    const struct attention_shape *z = shape;
    if (which == OUTPUT)
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

/* One query of one head. */
static void attend(const struct attention_shape *z, double *y, double *const in[MAX_INPUTS],
                   int64_t b, int64_t h, int64_t t)
{
    int64_t kv = h / (z->heads / z->kv_heads), seen = z->causal ? t + 1 : z->T_k;
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
    const struct attention_shape *z = shape;
    for (int64_t b = 0; b < z->B; b++)
        for (int64_t t = 0; t < z->T_q; t++)
            for (int64_t h = 0; h < z->heads; h++, y += z->hd)
                attend(z, y, in, b, h, t);
}

static void forward(struct world *world, enum dtype t, const void *shape, void *y, float *saved,
                    void *const in[MAX_INPUTS])
{
    world->ops->attention_forward(world->stream, t, y, saved, in[0], in[1], in[2], shape);
}

static void backward(struct world *world, enum dtype t, const void *shape,
                     void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                     const float *saved, void *const in[MAX_INPUTS])
{
    world->ops->attention_backward(world->stream, t, gradient[0], gradient[1], gradient[2], NULL,
                                   dy, y, saved, in[0], in[1], in[2], shape);
}

struct attention_row {
    const char *name;
    struct attention_shape shape;
    float size;
};

#define SHAPE(B, T_q, T_k, heads, kv_heads, hd) B, T_q, T_k, heads, kv_heads, hd
static const struct attention_row rows[] = {
    {"one of everything", {SHAPE(1, 1, 1, 1, 1, 1), 1, 1, 1, true, 1, 0, 0, 0, 0, NULL, NULL}, 1},
    {"two tokens", {SHAPE(2, 2, 2, 1, 1, 3), 3, 3, 3, true, 0.5f, 0, 0, 0, 0, NULL, NULL}, 1},
    {"one short of a block",
     {SHAPE(1, 63, 63, 3, 3, 8), 24, 24, 24, true, 0.35f, 0, 0, 0, 0, NULL, NULL},
     1},
    {"a block", {SHAPE(1, 64, 64, 2, 1, 16), 32, 16, 16, true, 0.25f, 0, 0, 0, 0, NULL, NULL}, 1},
    {"one over, wide",
     {SHAPE(2, 65, 65, 2, 2, 12), 72, 72, 80, true, 0.3f, 0, 0, 0, 0, NULL, NULL},
     1},
    {"three blocks",
     {SHAPE(1, 129, 129, 4, 1, 32), 128, 32, 40, true, 0.2f, 0, 0, 0, 0, NULL, NULL},
     2},
    {"no mask", {SHAPE(2, 65, 65, 8, 1, 4), 32, 4, 4, false, 0.5f, 0, 0, 0, 0, NULL, NULL}, 1},
    {"few queries",
     {SHAPE(2, 3, 130, 6, 3, 5), 31, 15, 15, false, 0.5f, 0, 0, 0, 0, NULL, NULL},
     1},
    {"few keys", {SHAPE(1, 130, 2, 5, 5, 7), 35, 40, 35, false, 0.4f, 0, 0, 0, 0, NULL, NULL}, 1},
    {"one key",
     {SHAPE(2, 4, 1, 2, 2, 600), 1200, 1200, 1200, false, 0.04f, 0, 0, 0, 0, NULL, NULL},
     1},
    {"dropout", {SHAPE(2, 70, 70, 2, 1, 8), 16, 8, 8, true, 0.35f, 0.25f, 7, 3, 5, NULL, NULL}, 1},
    {"dropout, T differ",
     {SHAPE(1, 5, 67, 3, 3, 8), 24, 24, 24, false, 0.35f, 0.5f, 7, 1, 1, NULL, NULL},
     1},
    {"large scores", {SHAPE(1, 66, 66, 2, 2, 16), 32, 32, 32, true, 1, 0, 0, 0, 0, NULL, NULL}, 3},
    {"over 256 keys",
     {SHAPE(1, 300, 300, 2, 1, 16), 32, 16, 16, true, 0.5f, 0, 0, 0, 0, NULL, NULL},
     2},
    {"many keys",
     {SHAPE(1, 33, 500, 2, 2, 8), 16, 16, 16, false, 0.5f, 0.1f, 3, 0, 1, NULL, NULL},
     2},
    {"no sequence", {SHAPE(0, 9, 9, 2, 2, 4), 8, 8, 8, true, 1, 0, 0, 0, 0, NULL, NULL}, 1},
};

static void test_attention(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct attention_shape *z = &rows[i].shape;
        struct op_row row = {
            .name = rows[i].name,
            .shape = z,
            .inputs = 3,
            .in_count = {z->B * z->T_q * z->q_stride, z->B * z->T_k * z->k_stride,
                         z->B * z->T_k * z->v_stride},
            .y_count = z->B * z->T_q * z->heads * z->hd,
            .saved_count = z->B * z->heads * z->T_q,
            .size = rows[i].size,
            .y_floor = rows[i].size / 2, /* probabilities may be rounded before they meet v */
            .floor = rows[i].size *
                     rows[i].size, /* backward sees y rounded, and takes differences with it */
            .reference = attention_reference,
            .used = is_used,
            .forward = forward,
            .backward = backward,
        };
        check_op(*state, &row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_attention, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_attention, world_setup_two_threads, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
