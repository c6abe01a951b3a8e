/* Cross-entropy from logits: losses, hits, gradients, and what is ignored. */
#include "tests/kernels/op_check.h"

#include <math.h>

struct row {
    const char *name;
    int64_t rows, V, stride;
    float size;
    int ignore_every; /* every so many-th target is -100; 0: none; 1: all */
    bool in_place;    /* dlogits is logits */
};

static const struct row rows[] = {
    {"one of everything", 1, 1, 1, 1, 0, false},
    {"no rows", 0, 5, 5, 1, 0, false},
    {"two classes", 9, 2, 2, 3, 0, true},
    {"a strip", 3, 512, 512, 1, 2, false},
    {"over a strip", 5, 1027, 1027, 20, 3, true},
    {"vocabulary", 7, 32000, 32000, 2, 0, false},
    {"a row longer than a block keeps of it", 2, 64000, 64000, 2, 0, true},
    {"all ignored", 4, 33, 33, 1, 1, true},
    {"huge logits", 6, 40, 40, 3e4f, 0, true},
    {"rows apart", 5, 1027, 1088, 20, 3, true},
    {"rows apart, no item whole", 4, 3, 64, 2, 2, true},
    {"rows apart, one logit in the last item", 4, 1025, 1032, 2, 0, false},
    {"rows at odd places", 3, 1000, 1003, 2, 0, true},
    {"GPT-2's", 3, 50257, 50304, 2, 0, true},
};

static int32_t *targets_of(struct world *world, const struct row *r)
{
    int32_t *target = arena_array(world->arena, int32_t, r->rows);
    for (int64_t i = 0; i < r->rows; i++)
        target[i] = r->ignore_every && i % r->ignore_every == 0 ? -100 : (int32_t)(i * i % r->V);
    return target;
}

static const float SCALE = 0.5f;

/* sums are added to; dlogits written. */
static void reference(const struct row *r, double *sums, double *dlogits, const float *x,
                      const int32_t *target)
{
    for (int64_t i = 0; i < r->rows; i++, x += r->stride, dlogits += r->V) {
        double largest = -INFINITY, sum = 0;
        int64_t best = 0;
        for (int64_t c = 0; c < r->V; c++)
            best = x[c] > x[best] ? c : best;
        largest = x[best];
        for (int64_t c = 0; c < r->V; c++)
            sum += exp(x[c] - largest);
        for (int64_t c = 0; c < r->V; c++)
            dlogits[c] =
                target[i] < 0 ? 0 : SCALE * (exp(x[c] - largest) / sum - (c == target[i] ? 1 : 0));
        if (target[i] < 0)
            continue;
        sums[0] += largest + log(sum) - x[target[i]];
        sums[1] += best == target[i];
        sums[2]++;
    }
}

static void check(struct world *world, const struct row *r, enum dtype t)
{
    int64_t count = r->rows * r->V, taken = r->rows * r->stride;
    float *host = host_random(world, taken, -r->size, r->size);
    for (int64_t i = 0; i < r->rows && r->V > 1; i += 2) /* the right one first of equals, or not */
        host[i * r->stride + i * i % r->V] = host[i * r->stride + (i + 1) % r->V] = r->size * 1.5f;
    for (int64_t i = 0; i < taken; i++) /* what is between rows is nobody's */
        host[i] = i % r->stride < r->V ? host[i] : NAN;
    round_to(t, host, taken);
    int32_t *host_target = targets_of(world, r);
    double sums[3] = {100, 10, 1}, want_sums[3] = {100, 10, 1};
    double *want = arena_array(world->arena, double, count);
    reference(r, want_sums, want, host, host_target);
    void *logits = to_device_as(world, t, host, taken);
    void *dlogits = r->in_place ? logits : to_device_as(world, t, host, taken);
    int32_t *target = to_device_bytes(world, host_target, (size_t)r->rows * sizeof *target);
    double *device_sums = to_device_bytes(world, sums, sizeof sums);
    world->ops->cross_entropy(world->stream, t, NULL, device_sums, logits, target, 0, r->rows, r->V,
                              r->stride);
    world->ops->cross_entropy(world->stream, t, dlogits, device_sums, logits, target, SCALE,
                              r->rows, r->V, r->stride);
    from_device_bytes(world, sums, device_sums, sizeof sums);
    assert_true(fabs(sums[0] + 100 - 2 * want_sums[0]) <= 1e-6 * fabs(want_sums[0]));
    for (int i = 1; i < 3; i++)
        assert_true(sums[i] + (i == 1 ? 10 : 1) == 2 * want_sums[i]);
    float *got = from_device_as(world, t, dlogits, taken);
    for (int64_t i = 0; i < count; i++)
        got[i] = got[i / r->V * r->stride + i % r->V];
    float *rounded = host_zeros(world, count);
    for (int64_t i = 0; i < count; i++)
        rounded[i] = (float)want[i];
    if (t == DTYPE_F32)
        assert_near(got, want, count, 1e-6, r->name);
    else
        assert_near_bf16(got, rounded, count, 1, 1e-6, r->name);
    if (!r->in_place)
        from_device_as(world, t, logits, taken);
    from_device_bytes(world, host_target, target, (size_t)r->rows * sizeof *target);
}

static void test_cross_entropy(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        check(*state, &rows[i], DTYPE_F32);
        check(*state, &rows[i], DTYPE_BF16);
    }
}

/* A run that has diverged must show it. */
static void check_nan(struct world *world, enum dtype t)
{
    float host[6] = {1, NAN, 2, 0, 0, 0};
    double sums[3] = {0};
    int32_t host_target[2] = {0, 1};
    void *logits = to_device_as(world, t, host, 6);
    int32_t *target = to_device_bytes(world, host_target, sizeof host_target);
    double *device_sums = to_device_bytes(world, sums, sizeof sums);
    world->ops->cross_entropy(world->stream, t, logits, device_sums, logits, target, 1, 2, 3, 3);
    from_device_bytes(world, sums, device_sums, sizeof sums);
    assert_true(isnan(sums[0]) && sums[2] == 2);
    const float *got = from_device_as(world, t, logits, 6);
    for (int i = 0; i < 3; i++)
        assert_true(isnan(got[i]) && !isnan(got[3 + i]));
    from_device_bytes(world, host_target, target, sizeof host_target);
}

static void test_nan_stays(void **state)
{
    check_nan(*state, DTYPE_F32);
    check_nan(*state, DTYPE_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cross_entropy, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_cross_entropy, world_setup_two_threads,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_nan_stays, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
