/* Matrix products whose algorithm is chosen by its time, on a GPU: which one is kept, how often it
 * is timed, and that the results are the products' all the same. The emulated library lists five
 * algorithms: the second is of no use, the third does not run, the last one is the fastest. */
#include "base/log.h"
#include "tests/kernels/ops_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, IN = 300, OUT = 40 };

/* y = x w' on the device, in the world's arena. */
static float *forward(struct world *world, const float *x, const float *w, int64_t rows)
{
    const struct linear_shape shape = linear_dense(rows, IN, OUT);
    float *on_x = to_device(world, x, rows * IN), *on_w = to_device(world, w, OUT * IN);
    float *y = to_device(world, host_zeros(world, rows * OUT), rows * OUT);
    world->ops->linear_forward(world->stream, DTYPE_F32, DTYPE_F32, y, on_x, on_w, NULL, false,
                               &shape);
    from_device(world, on_x, rows * IN);
    from_device(world, on_w, OUT * IN);
    return from_device(world, y, rows * OUT);
}

static void assert_product(struct world *world, const float *y, const float *x, const float *w,
                           int64_t rows)
{
    double *want = arena_alloc(world->arena, (size_t)(rows * OUT) * sizeof *want);
    for (int64_t i = 0; i < rows * OUT; i++) {
        want[i] = 0;
        for (int64_t k = 0; k < IN; k++)
            want[i] += (double)x[i / OUT * IN + k] * (double)w[i % OUT * IN + k];
    }
    assert_near(y, want, rows * OUT, 1e-5, "y"); /* fp32's rounding of 300 terms */
}

static struct product_tuning tuning_of(const struct world *world)
{
    struct product_tuning tuning;
    device_product_tuning(world->device, &tuning);
    return tuning;
}

static void test_untuned(void **state)
{
    struct world *world = *state;
    const float *x = host_random(world, ROWS * IN, -1, 1), *w = host_random(world, OUT * IN, -1, 1);
    assert_product(world, forward(world, x, w, ROWS), x, w, ROWS);
    assert_int_equal(tuning_of(world).products, 0);
}

/* The CPU has one algorithm for each product. */
static void test_nothing_to_choose(void **state)
{
    struct world *world = *state;
    device_tune_products(world->device);
    test_untuned(state);
}

/* The fastest one is taken, once per shape. */
static void test_timed_once(void **state)
{
    struct world *world = *state;
    const float *x = host_random(world, 2 * ROWS * IN, -1, 1);
    const float *w = host_random(world, OUT * IN, -1, 1);
    const float *before = forward(world, x, w, 2 * ROWS);
    device_tune_products(world->device);
    for (int i = 0; i < 3; i++)
        assert_product(world, forward(world, x, w, ROWS), x, w, ROWS);
    struct product_tuning tuning = tuning_of(world);
    assert_int_equal(tuning.products, 1);
    assert_int_equal(tuning.untimed, 0);
    assert_true(tuning.fastest_ns > 0 && tuning.fastest_ns <= tuning.first_ns);
    /* what has its algorithm keeps it */
    assert_memory_equal(forward(world, x, w, 2 * ROWS), before, 2 * ROWS * OUT * sizeof *before);
    assert_int_equal(tuning_of(world).products, 1);
    if (!support_is_emulated())
        return;
    assert_int_equal(tuning.candidates, 4);
    assert_int_equal(tuning.failed, 1);
    assert_int_equal(tuning.changed, 1);
    assert_int_equal(tuning.first_ns, 30000);
    assert_int_equal(tuning.fastest_ns, 10000);
    /* the rows of a shape that was not timed are sums of another order */
    assert_memory_not_equal(forward(world, x, w, ROWS), before, ROWS * OUT * sizeof *before);
}

static void test_told(void **state)
{
    char text[2048];
    struct world *world = *state;
    const float *x = host_random(world, ROWS * IN, -1, 1), *w = host_random(world, OUT * IN, -1, 1);
    device_tune_products(world->device);
    support_stderr_begin();
    forward(world, x, w, ROWS);
    support_stderr_end(text, sizeof text);
    assert_non_null(strstr(text, "cuBLASLt: fp32 product, m 6, n 40, k 300: algorithm "));
    if (support_is_emulated())
        assert_non_null(strstr(text,
                               "algorithm 4 of 4 takes 10.0 us, the heuristic's first 30.0 us "
                               "(1 failed)"));
}

/* dw, and dw added to what is there: that is done once. */
static float *backward(struct world *world, const float *x, const float *dy, bool accumulate)
{
    const struct linear_shape shape = linear_dense(ROWS, IN, OUT);
    float *on_x = to_device(world, x, ROWS * IN), *on_dy = to_device(world, dy, ROWS * OUT);
    float *dw = to_device(world, host_zeros(world, OUT * IN), OUT * IN);
    world->ops->linear_backward_weights(world->stream, DTYPE_F32, dw, NULL, on_x, on_dy, &shape,
                                        accumulate);
    from_device(world, on_x, ROWS * IN);
    from_device(world, on_dy, ROWS * OUT);
    return from_device(world, dw, OUT * IN);
}

static void assert_gradient_of_weights(struct world *world, const float *dw, const float *x,
                                       const float *dy)
{
    double *want = arena_alloc(world->arena, (size_t)(OUT * IN) * sizeof *want);
    for (int64_t i = 0; i < OUT * IN; i++) {
        want[i] = 0;
        for (int64_t r = 0; r < ROWS; r++)
            want[i] += (double)dy[r * OUT + i / IN] * (double)x[r * IN + i % IN];
    }
    assert_near(dw, want, OUT * IN, 1e-6, "dw");
}

static void test_sums_are_added_once(void **state)
{
    struct world *world = *state;
    const float *x = host_random(world, ROWS * IN, -1, 1);
    const float *dy = host_random(world, ROWS * OUT, -1, 1);
    device_tune_products(world->device);
    assert_gradient_of_weights(world, backward(world, x, dy, true), x, dy);
    assert_int_equal(tuning_of(world).products, 0);
    assert_int_equal(tuning_of(world).untimed, 1);
    assert_gradient_of_weights(world, backward(world, x, dy, false), x, dy);
    assert_int_equal(tuning_of(world).products, 1);
}

static void test_the_twin_is_taken(void **state)
{
    struct world *world = *state;
    const float *x = host_random(world, ROWS * IN, -1, 1);
    const float *dy = host_random(world, ROWS * OUT, -1, 1);
    device_tune_products(world->device);
    assert_gradient_of_weights(world, backward(world, x, dy, false), x, dy);
    assert_gradient_of_weights(world, backward(world, x, dy, true), x, dy);
    assert_int_equal(tuning_of(world).products, 1);
    assert_int_equal(tuning_of(world).untimed, 0);
}

/* Between graph_begin() and graph_end(): what is timed is in no graph, and ends the one before. In
 * the third step, which is captured, a product is new. */
static void test_in_graphs(void **state)
{
    enum { STEPS = 5, NEW_AT = 2 };
    struct world *world = *state;
    const float *x = host_random(world, ROWS * IN, -1, 1), *w = host_random(world, OUT * IN, -1, 1);
    float *on_x = to_device(world, x, ROWS * IN), *on_w = to_device(world, w, OUT * IN);
    float *y = to_device(world, host_zeros(world, ROWS * OUT), ROWS * OUT);
    struct graph *graph;
    struct graph_use use;
    struct error err;
    device_tune_products(world->device);
    assert_ok(graph_open(world->stream, &graph, &err), &err);
    for (int step = 0; step < STEPS; step++) {
        graph_begin(graph);
        for (int i = 0; i < 12; i++) {
            const bool is_other = i == 8 && step >= NEW_AT;
            const struct linear_shape shape = linear_dense(is_other ? ROWS / 2 : ROWS, IN, OUT);
            world->ops->linear_forward(world->stream, DTYPE_F32, DTYPE_F32, y, on_x, on_w, NULL,
                                       true, &shape);
        }
        graph_end(graph);
        assert_ok(stream_sync(world->stream, &err), &err);
        assert_int_equal(tuning_of(world).products, step < NEW_AT ? 1 : 2);
        graph_get_use(graph, &use);
        assert_true(step == 0 || use.launched >= step);
    }
    graph_close(graph);
    from_device(world, on_x, ROWS * IN);
    from_device(world, on_w, OUT * IN);
    from_device(world, y, ROWS * OUT);
}

#define ON_A_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_WORLD(test_untuned),
        ON_A_WORLD(test_timed_once),
        ON_A_WORLD(test_told),
        ON_A_WORLD(test_sums_are_added_once),
        ON_A_WORLD(test_the_twin_is_taken),
        ON_A_WORLD(test_in_graphs),
    };
    const struct CMUnitTest on_cpu[] = {ON_A_WORLD(test_nothing_to_choose)};
    if (strcmp(support_device(), "cpu") == 0)
        return cmocka_run_group_tests(on_cpu, NULL, NULL);
    /* what events tell is what the products cost */
    auto_free char *settings = NULL;
    const char *given = getenv("SHOAL_EMULATION");
    settings = xasprintf("%s,clock=work", given ? given : "");
    setenv("SHOAL_EMULATION", settings, 1);
    log_set_level(LOG_DEBUG);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
