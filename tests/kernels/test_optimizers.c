/* Optimizer steps against the papers' formulas in double precision, several steps in a row. */
#include "kernels/random.h"
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

/* What a step is taken over, on the device. */
struct tensors {
    enum dtype t;
    int64_t count;
    void *w, *a, *b;
    const float *g;
    uint64_t key, first; /* of the rounding */
    const struct update_extras *extras;
};

static void queue_step(struct world *world, const struct row *r, int step, const struct tensors *x)
{
    const struct ops *ops = world->ops;
    struct stream *s = world->stream;
    const struct adadelta_step adadelta = {r->lr, r->beta1, r->eps, r->decay};
    const struct sgd_step sgd = {r->lr, r->beta1, r->decay, r->flag};
    const struct adam_step adam = {r->lr, r->beta1, r->beta2, r->eps, r->decay, r->flag, step};
    if (r->rule == ADADELTA)
        ops->adadelta(s, x->t, x->w, x->g, x->a, x->b, x->count, &adadelta, x->extras, x->key,
                      x->first);
    else if (r->rule == SGD)
        ops->sgd(s, x->t, x->w, x->g, r->beta1 > 0 ? x->a : NULL, x->count, &sgd, x->extras, x->key,
                 x->first);
    else
        ops->adam(s, x->t, x->w, x->g, x->a, x->b, x->count, &adam, x->extras, x->key, x->first);
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
        queue_step(world, r, step,
                   &(struct tensors){DTYPE_F32, r->count, w, state_a, state_b, g, 0, 0, NULL});
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

/* ---- bf16 ---- */

enum { KEY = 77, PLACE = 1000 }; /* of the first element's random number */

static const struct row bf16_rows[] = {
    {"adadelta, bf16", ADADELTA, 9000, 2e-3f, 0.1f, 0.95f, 0, 1e-6f, false},
    {"sgd, bf16", SGD, 9000, 1e-3f, 0.1f, 0, 0, 0, false},
    {"sgd, momentum, bf16", SGD, 9000, 1e-3f, 0, 0.9f, 0, 0, false},
    {"sgd, nesterov, decay, bf16", SGD, 9000, 1e-3f, 0.1f, 0.9f, 0, 0, true},
    {"adam, decay, bf16", ADAM, 9000, 1e-3f, 0.1f, 0.9f, 0.99f, 1e-8f, false},
    {"adamw, bf16", ADAM, 9000, 1e-3f, 0.1f, 0.9f, 0.99f, 1e-8f, true},
};

/* One step of elements [first, first + count), where w and all state begin as `host`. Returns w, a
 * and b behind each other. */
static float *step_from(struct world *world, const struct row *r, enum dtype t, const float *host,
                        const float *host_g, int64_t first, int64_t count)
{
    void *tensors[3];
    float *g = to_device(world, host_g + first, count), *got = host_zeros(world, 3 * count);
    for (int i = 0; i < 3; i++)
        tensors[i] = to_device_as(world, t, host + first, count);
    queue_step(world, r, 3,
               &(struct tensors){t, count, tensors[0], tensors[1], tensors[2], g, KEY,
                                 PLACE + (uint64_t)first, NULL});
    for (int i = 0; i < 3; i++)
        memcpy(got + i * count, from_device_as(world, t, tensors[i], count),
               (size_t)count * sizeof *got);
    from_device(world, g, count);
    return got;
}

/* The mean of what rounding added, in units of each number's last place: within 4 standard errors
 * of 0, 0.5 being the most that one number's can be. */
static void assert_unbiased(const float *rounded, const float *exact, int64_t count,
                            const char *name)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        int exponent;
        frexp(exact[i], &exponent);
        sum += ldexp((double)rounded[i] - (double)exact[i], 8 - exponent);
    }
    if (fabs(sum / (double)count) > 4 * 0.5 / sqrt((double)count))
        fail_msg("%s: rounding adds %g of a last place on average", name, sum / (double)count);
}

/* w and the state after the step are fp32's, rounded by the element's random number; a piece of the
 * tensor gets what the whole one gets there. */
static void check_bf16(struct world *world, const struct row *r)
{
    enum { FIRST = 45, PIECE = 700 };
    int64_t count = r->count;
    float *host = round_to(DTYPE_BF16, host_random(world, count, 0.1f, 1), count);
    float *host_g = host_random(world, count, -1, 1);
    const float *exact = step_from(world, r, DTYPE_F32, host, host_g, 0, count);
    const float *whole = step_from(world, r, DTYPE_BF16, host, host_g, 0, count);
    const float *piece = step_from(world, r, DTYPE_BF16, host, host_g, FIRST, PIECE);
    int states = r->rule == SGD ? r->beta1 > 0 : 2;
    for (int i = 0; i < 3; i++) {
        const float *got = whole + i * count, *want = exact + i * count;
        int moved = 0;
        for (int64_t j = 0; j < count; j++) {
            float u = random_uniform(KEY, PLACE + (uint64_t)j);
            assert_true(got[j] == bf16_to_float(bf16_stochastic(want[j], u)));
            moved += got[j] != host[j];
        }
        if (i <= states)
            assert_true(moved > count / 20); /* steps below half a unit are not lost */
        else
            assert_int_equal(moved, 0);
        assert_unbiased(got, want, count, r->name);
        assert_memory_equal(piece + i * PIECE, got + FIRST, PIECE * sizeof *piece);
    }
}

static void test_bf16(void **state)
{
    for (size_t i = 0; i < array_length(bf16_rows); i++)
        check_bf16(*state, &bf16_rows[i]);
}

/* ---- what a step does beside ---- */

/* A step that clips is a step with gradients multiplied before, bit for bit; its copy is w, rounded
 * to the nearest. */
static void check_extras(struct world *world, const struct row *r, enum dtype t, double squares,
                         float factor)
{
    enum { COUNT = 9003 };
    float *host = round_to(DTYPE_BF16, host_random(world, COUNT, 0.1f, 1), COUNT);
    float *host_g = host_random(world, COUNT, -1, 1), *clipped = host_zeros(world, COUNT);
    for (int i = 0; i < COUNT; i++)
        clipped[i] = host_g[i] * factor;
    bf16 *copied = arena_array(world->arena, bf16, COUNT);
    float *got[2][3];
    for (int fused = 0; fused <= 1; fused++) {
        void *tensors[3];
        float *g = to_device(world, fused ? host_g : clipped, COUNT);
        double *sum = to_device_bytes(world, &squares, sizeof squares);
        bf16 *copy = to_device_bytes(world, copied, COUNT * sizeof *copy);
        const struct update_extras extras = {sum, 1, t == DTYPE_F32 ? copy : NULL};
        for (int i = 0; i < 3; i++)
            tensors[i] = to_device_as(world, t, host, COUNT);
        queue_step(world, r, 3,
                   &(struct tensors){t, COUNT, tensors[0], tensors[1], tensors[2], g, KEY, PLACE,
                                     fused ? &extras : NULL});
        for (int i = 0; i < 3; i++)
            got[fused][i] = from_device_as(world, t, tensors[i], COUNT);
        from_device_bytes(world, copied, copy, COUNT * sizeof *copy);
        from_device_bytes(world, &squares, sum, sizeof squares);
        const float *left = from_device(world, g, COUNT);
        for (int i = 0; i < COUNT; i++)
            assert_true(left[i] == (fused ? host_g[i] : clipped[i]) || isnan(factor));
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < COUNT; j++)
            if (memcmp(&got[0][i][j], &got[1][i][j], sizeof(float)) != 0 && !isnan(factor))
                fail_msg("%s, %g: tensor %d, element %d: %a, not %a", r->name, squares, i, j,
                         got[1][i][j], got[0][i][j]);
    for (int j = 0; j < COUNT; j++) {
        assert_true(!isnan(factor) || isnan(got[1][0][j]));
        assert_true(t != DTYPE_F32 || isnan(factor) || copied[j] == bf16_from_float(got[1][0][j]));
    }
}

static void test_extras(void **state)
{
    /* torch.nn.utils.clip_grad_norm_ to a norm of 1 */
    static const struct {
        double squares;
        float factor;
    } norms[] = {{16, (float)(1 / (4 + 1e-6))},
                 {2, (float)(1 / (M_SQRT2 + 1e-6))},
                 {0.25, 1},
                 {0, 1},
                 {INFINITY, 0},
                 {NAN, NAN}};
    for (size_t i = 0; i < array_length(bf16_rows); i++)
        for (size_t k = 0; k < array_length(norms); k++) {
            check_extras(*state, &bf16_rows[i], DTYPE_F32, norms[k].squares, norms[k].factor);
            check_extras(*state, &bf16_rows[i], DTYPE_BF16, norms[k].squares, norms[k].factor);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_optimizers, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_bf16, world_setup_two_threads, world_teardown),
        cmocka_unit_test_setup_teardown(test_extras, world_setup_two_threads, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
