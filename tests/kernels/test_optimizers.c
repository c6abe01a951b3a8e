/* Optimizer steps against the papers' formulas in double precision, several steps in a row. */
#include "tests/kernels/op_check.h"

#include <math.h>
#include <string.h>

enum { STEPS = 6 };

enum rule { ADADELTA, SGD, ADAM };

struct row {
    const char *name;
    enum rule rule;
    int64_t count;
    float lr, decay;
    float beta1; /* adam's, sgd's momentum, adadelta's rho */
    float beta2, eps;
    bool flag; /* adam: decoupled; sgd: nesterov */
};

static const struct row rows[] = {
    {"adadelta", ADADELTA, 33, 1.0f, 0, 0.9f, 0, 1e-6f, false},
    {"adadelta, decay, long", ADADELTA, 20001, 0.5f, 0.1f, 0.95f, 0, 1e-6f, false},
    {"sgd", SGD, 1, 0.1f, 0, 0, 0, 0, false},
    {"sgd, decay", SGD, 9, 0.1f, 0.1f, 0, 0, 0, false},
    {"sgd, momentum", SGD, 9000, 0.1f, 0, 0.9f, 0, 0, false},
    {"sgd, nesterov, decay", SGD, 17, 0.1f, 0.1f, 0.9f, 0, 0, true},
    {"adam", ADAM, 20000, 0.01f, 0, 0.9f, 0.999f, 1e-8f, false},
    {"adam, decay", ADAM, 5, 0.01f, 0.1f, 0.9f, 0.99f, 1e-8f, false},
    {"adamw", ADAM, 5, 0.01f, 0.1f, 0.9f, 0.999f, 1e-6f, true},
};

/* One element, one step. a, b: the state (v and u, m, m and v). */
static void step_reference(const struct row *r, int step, double g, double *w, double *a, double *b)
{
    double lr = r->lr, decay = r->decay, beta1 = r->beta1, beta2 = r->beta2, eps = r->eps;
    if (r->rule == ADAM && r->flag)
        *w -= lr * decay * *w;
    else
        g += decay * *w;
    if (r->rule == ADADELTA) {
        *a = beta1 * *a + (1 - beta1) * g * g;
        double update = sqrt(*b + eps) / sqrt(*a + eps) * g;
        *b = beta1 * *b + (1 - beta1) * update * update;
        *w -= lr * update;
    } else if (r->rule == SGD) {
        *a = step == 1 ? g : beta1 * *a + g;
        *w -= lr * (r->flag ? g + beta1 * *a : *a);
    } else {
        *a = beta1 * *a + (1 - beta1) * g;
        *b = beta2 * *b + (1 - beta2) * g * g;
        double m = *a / (1 - pow(beta1, step)), v = *b / (1 - pow(beta2, step));
        *w -= lr * m / (sqrt(v) + eps);
    }
}

static void queue_step(struct world *world, const struct row *r, int step, float *w, const float *g,
                       float *a, float *b)
{
    const struct ops *ops = world->ops;
    struct stream *s = world->stream;
    const struct adam_step adam = {r->lr, r->beta1, r->beta2, r->eps, r->decay, r->flag, step};
    if (r->rule == ADADELTA)
        ops->adadelta(s, w, g, a, b, r->count, r->lr, r->beta1, r->eps, r->decay);
    else if (r->rule == SGD)
        ops->sgd(s, w, g, r->beta1 > 0 ? a : NULL, r->count, r->lr, r->beta1, r->flag, r->decay,
                 step);
    else
        ops->adam(s, DTYPE_F32, w, g, a, b, r->count, &adam, 0, 0);
}

static void check_optimizer(struct world *world, const struct row *r)
{
    float *start = host_random(world, r->count, -1, 1), *zeros = host_zeros(world, r->count);
    double *want = to_double(world, start, r->count);
    double *a = to_double(world, zeros, r->count), *b = to_double(world, zeros, r->count);
    float *w = to_device(world, start, r->count);
    float *state_a = to_device(world, zeros, r->count),
          *state_b = to_device(world, zeros, r->count);
    for (int step = 1; step <= STEPS; step++) {
        float *host_g = host_random(world, r->count, -1, 1);
        host_g[0] = 0; /* an element that never gets a gradient must stay a number */
        float *g = to_device(world, host_g, r->count);
        queue_step(world, r, step, w, g, state_a, state_b);
        device_free(world->device, g);
        for (int64_t i = 0; i < r->count; i++)
            step_reference(r, step, host_g[i], &want[i], &a[i], &b[i]);
    }
    assert_near(from_device(world, w, r->count), want, r->count, 1e-5, r->name);
    from_device(world, state_a, r->count);
    from_device(world, state_b, r->count);
}

static void test_optimizers(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++)
        check_optimizer(*state, &rows[i]);
}

/* One step of AdamW in bf16 from element `first` on, `count` of all. Returns w, m and v behind each
 * other. */
static float *bf16_step(struct world *world, const float *host, const float *host_g, int64_t first,
                        int64_t count)
{
    const struct adam_step step = {1e-3f, 0.9f, 0.99f, 1e-8f, 0.1f, true, 3};
    void *tensors[3];
    float *g = to_device(world, host_g + first, count), *got = host_zeros(world, 3 * count);
    for (int i = 0; i < 3; i++)
        tensors[i] = to_device_as(world, DTYPE_BF16, host + first, count);
    world->ops->adam(world->stream, DTYPE_BF16, tensors[0], g, tensors[1], tensors[2], count, &step,
                     77, 1000 + (uint64_t)first);
    for (int i = 0; i < 3; i++)
        memcpy(got + i * count, from_device_as(world, DTYPE_BF16, tensors[i], count),
               (size_t)count * sizeof *got);
    from_device(world, g, count);
    return got;
}

/* w, m and v after the step are fp32's, rounded by the element's random number; a piece of the
 * tensor gets what the whole one gets there. */
static void test_adam_bf16(void **state)
{
    struct world *world = *state;
    enum { COUNT = 9000, FIRST = 45, PIECE = 700 };
    float *host = round_to(DTYPE_BF16, host_random(world, COUNT, 0.1f, 1), COUNT);
    float *host_g = host_random(world, COUNT, -1, 1), *exact[3];
    const struct adam_step step = {1e-3f, 0.9f, 0.99f, 1e-8f, 0.1f, true, 3};
    float *g = to_device(world, host_g, COUNT), *tensors[3];
    for (int i = 0; i < 3; i++)
        tensors[i] = to_device(world, host, COUNT);
    world->ops->adam(world->stream, DTYPE_F32, tensors[0], g, tensors[1], tensors[2], COUNT, &step,
                     0, 0);
    for (int i = 0; i < 3; i++)
        exact[i] = from_device(world, tensors[i], COUNT);
    from_device(world, g, COUNT);
    const float *whole = bf16_step(world, host, host_g, 0, COUNT);
    const float *piece = bf16_step(world, host, host_g, FIRST, PIECE);
    for (int i = 0; i < 3; i++) {
        int moved = 0;
        for (int64_t j = 0; j < COUNT; j++) {
            float u = random_uniform(77, 1000 + (uint64_t)j);
            assert_true(whole[i * COUNT + j] == bf16_to_float(bf16_stochastic(exact[i][j], u)));
            moved += whole[i * COUNT + j] != host[j];
        }
        assert_true(moved > COUNT / 20); /* steps below half a unit are not lost */
        assert_memory_equal(piece + i * PIECE, whole + i * COUNT + FIRST, PIECE * sizeof *piece);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_optimizers, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_adam_bf16, world_setup_two_threads, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
