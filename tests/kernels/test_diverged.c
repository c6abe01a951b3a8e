/* A run that has diverged must show it: a NaN that goes into an op comes out of it, in both dtypes,
 * and where rows are apart only in its own. */
#include "tests/kernels/op_check.h"

#include <math.h>

static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};

enum { ROWS = 3, D = 8, COUNT = ROWS * D, BAD = D + 3 }; /* the NaN lies in the second row */

/* x has the NaN, w has not; y: [ROWS, D]. */
struct tensors {
    enum dtype t;
    void *x, *w, *y;
    float *saved;
};

static void rms_norm(struct world *world, const struct tensors *k)
{
    world->ops->rms_norm_forward(world->stream, k->t, k->y, k->saved, k->x, NULL, k->w, ROWS, D,
                                 1e-5f);
}

static void layer_norm(struct world *world, const struct tensors *k)
{
    world->ops->layer_norm_forward(world->stream, k->t, k->y, k->saved, k->x, NULL, k->w, k->w,
                                   ROWS, D, 1e-5f);
}

static void gelu(struct world *world, const struct tensors *k)
{
    world->ops->gelu_forward(world->stream, k->t, k->y, k->x, COUNT, false);
}

static void gelu_tanh(struct world *world, const struct tensors *k)
{
    world->ops->gelu_forward(world->stream, k->t, k->y, k->x, COUNT, true);
}

static void dropout(struct world *world, const struct tensors *k)
{
    world->ops->dropout(world->stream, k->t, k->y, k->x, ROWS, D, 0, 1, 0, 1);
}

/* One head of D elements, one key for each query. */
static void attend(struct world *world, const struct tensors *k, const void *q, const void *key,
                   const void *v)
{
    const struct attention_shape shape = {.B = ROWS,
                                          .T_q = 1,
                                          .T_k = 1,
                                          .heads = 1,
                                          .kv_heads = 1,
                                          .hd = D,
                                          .q_stride = D,
                                          .k_stride = D,
                                          .v_stride = D,
                                          .scale = 1};
    world->ops->attention_forward(world->stream, k->t, k->y, k->saved, q, key, v, &shape);
}

static void attention_q(struct world *world, const struct tensors *k)
{
    attend(world, k, k->x, k->w, k->w);
}

static void attention_k(struct world *world, const struct tensors *k)
{
    attend(world, k, k->w, k->x, k->w);
}

static void attention_v(struct world *world, const struct tensors *k)
{
    attend(world, k, k->w, k->w, k->x);
}

static const struct {
    const char *name;
    void (*run)(struct world *world, const struct tensors *k);
    bool element; /* only the element itself; else its whole row */
} rows[] = {
    {"rms_norm", rms_norm, false},
    {"layer_norm", layer_norm, false},
    {"gelu", gelu, true},
    {"gelu, tanh", gelu_tanh, true},
    {"dropout", dropout, true},
    {"attention, q", attention_q, false},
    {"attention, k", attention_k, false},
    {"attention, v", attention_v, true},
};

static struct tensors tensors_open(struct world *world, enum dtype t)
{
    float *host = host_random(world, COUNT, 0.5f, 1);
    struct tensors k = {.t = t};
    k.w = to_device_as(world, t, host, COUNT);
    k.y = to_device_as(world, t, host, COUNT);
    k.saved = to_device(world, host, COUNT);
    host[BAD] = NAN;
    k.x = to_device_as(world, t, host, COUNT);
    return k;
}

static const float *tensors_close(struct world *world, const struct tensors *k)
{
    from_device_as(world, k->t, k->x, COUNT);
    from_device_as(world, k->t, k->w, COUNT);
    from_device(world, k->saved, COUNT);
    return from_device_as(world, k->t, k->y, COUNT);
}

static void test_nan_comes_out(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < array_length(rows); i++)
        for (size_t d = 0; d < array_length(dtypes); d++) {
            enum dtype t = dtypes[d];
            struct tensors k = tensors_open(world, t);
            rows[i].run(world, &k);
            const float *y = tensors_close(world, &k);
            for (int j = 0; j < COUNT; j++) {
                bool bad = rows[i].element ? j == BAD : j / D == BAD / D;
                if (!!isnan(y[j]) != bad) {
                    print_error("%s, %s: element %d is %g\n", rows[i].name, dtype_name(t), j,
                                (double)y[j]);
                    fail();
                }
            }
        }
}

/* Ops whose y has another shape: one row of x, and as many of y as it gives. */
static void test_nan_passes_gates(void **state)
{
    struct world *world = *state;
    const struct linear_shape shape = linear_dense(ROWS, D, 1);
    for (size_t d = 0; d < array_length(dtypes); d++) {
        enum dtype t = dtypes[d];
        struct tensors k = tensors_open(world, t);
        world->ops->swiglu_forward(world->stream, t, k.y, k.x, 1, D);
        const float *y = tensors_close(world, &k);
        for (int j = 0; j < D; j++)
            assert_true(!!isnan(y[j]) == (j == BAD - D));
        k = tensors_open(world, t);
        world->ops->linear_forward(world->stream, t, t, k.y, k.x, k.w, NULL, true, &shape);
        y = tensors_close(world, &k);
        for (int j = 0; j < ROWS; j++)
            assert_true(!!isnan(y[j]) == (j == BAD / D));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nan_comes_out, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_nan_passes_gates, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
