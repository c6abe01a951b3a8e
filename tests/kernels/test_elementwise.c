/* Ops in which each element is on its own, in both dtypes. */
#include "tests/kernels/op_check.h"

#include <math.h>

/* Sizes around the vector width, a strip and the piece that a thread takes. */
static const int64_t counts[] = {0, 1, 7, 8, 31, 512, 8192, 20001};
static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};

static void test_fill_and_scale(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < array_length(counts); i++) {
        int64_t n = counts[i];
        float *host = host_random(world, n, -1, 1);
        float *scaled = to_device(world, host, n), *filled = to_device(world, host, n);
        world->ops->scale(world->stream, scaled, -3, n);
        world->ops->fill(world->stream, filled, 2.5f, n);
        const float *got = from_device(world, scaled, n), *fill = from_device(world, filled, n);
        for (int64_t j = 0; j < n; j++)
            assert_true(got[j] == -3 * host[j] && fill[j] == 2.5f);
    }
}

static void check_add(struct world *world, enum dtype t, int64_t n)
{
    float *host_x = round_to(t, host_random(world, n, -1, 1), n);
    float *host_y = round_to(t, host_random(world, n, -1, 1), n);
    if (n > 2)
        host_x[1] = NAN;
    void *x = to_device_as(world, t, host_x, n), *y = to_device_as(world, t, host_y, n);
    world->ops->add(world->stream, t, y, x, n);
    const float *got = from_device_as(world, t, y, n);
    for (int64_t j = 0; j < n; j++)
        host_y[j] += host_x[j];
    round_to(t, host_y, n);
    for (int64_t j = 0; j < n; j++)
        assert_true(got[j] == host_y[j] || (isnan(got[j]) && isnan(host_y[j])));
    from_device_as(world, t, x, n);
}

static void check_cast(struct world *world, enum dtype t_y, enum dtype t_x, int64_t n,
                       bool in_place)
{
    float *host = round_to(t_x, host_random(world, n, -9, 9), n);
    if (n > 2)
        host[1] = NAN;
    void *x = to_device_as(world, t_x, host, n);
    void *y = in_place ? x : to_device_as(world, t_y, host_zeros(world, n), n);
    world->ops->cast(world->stream, t_y, y, t_x, x, n);
    const float *got = from_device_as(world, t_y, y, n);
    round_to(t_y, host, n);
    for (int64_t j = 0; j < n; j++)
        assert_true(got[j] == host[j] || (isnan(got[j]) && isnan(host[j])));
    if (!in_place)
        from_device_as(world, t_x, x, n);
}

static void check_relu(struct world *world, enum dtype t, int64_t n, bool in_place)
{
    float *host_y = round_to(t, host_random(world, n, -1, 1), n);
    float *host_dy = round_to(t, host_random(world, n, -1, 1), n);
    for (int64_t j = 0; j < n; j++)
        host_y[j] = host_y[j] < 0 ? 0 : host_y[j]; /* the gradient at 0 is 0 */
    void *y = to_device_as(world, t, host_y, n), *dy = to_device_as(world, t, host_dy, n);
    void *dx = in_place ? dy : to_device_as(world, t, host_y, n);
    world->ops->relu_backward(world->stream, t, dx, y, dy, n);
    const float *got = from_device_as(world, t, dx, n);
    for (int64_t j = 0; j < n; j++)
        assert_true(got[j] == (host_y[j] > 0 ? host_dy[j] : 0));
    from_device_as(world, t, y, n);
    if (!in_place)
        from_device_as(world, t, dy, n);
}

static void test_typed(void **state)
{
    for (size_t i = 0; i < array_length(counts); i++)
        for (size_t t = 0; t < array_length(dtypes); t++) {
            check_add(*state, dtypes[t], counts[i]);
            for (size_t from = 0; from < array_length(dtypes); from++)
                check_cast(*state, dtypes[t], dtypes[from], counts[i], false);
            check_cast(*state, dtypes[t], dtypes[t], counts[i], true);
            check_relu(*state, dtypes[t], counts[i], false);
            check_relu(*state, dtypes[t], counts[i], true);
        }
}

/* torch.nn.utils.clip_grad_norm_ */
static void test_clip(void **state)
{
    struct world *world = *state;
    static const struct {
        double squares;
        float max_norm, factor;
    } rows[] = {{16, 1, 0.25f},   {0.25, 1, 1}, {1, 1, 0.999999f}, {0, 1, 1},
                {INFINITY, 1, 0}, {4, 0, 0},    {NAN, 1, NAN}};
    for (size_t i = 0; i < array_length(rows); i++)
        for (size_t c = 0; c < array_length(counts); c++) {
            int64_t n = counts[c];
            double squares = rows[i].squares;
            float *host = host_random(world, n, -1, 1);
            float *y = to_device(world, host, n);
            double *device_squares = to_device_bytes(world, &squares, sizeof squares);
            world->ops->clip(world->stream, y, device_squares, rows[i].max_norm, n);
            const float *got = from_device(world, y, n);
            for (int64_t j = 0; j < n; j++)
                assert_true(isnan(rows[i].factor)
                                ? isnan(got[j])
                                : fabs(got[j] - rows[i].factor * (double)host[j]) <= 1e-6);
            from_device_bytes(world, &squares, device_squares, sizeof squares);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fill_and_scale, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_typed, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_clip, world_setup_two_threads, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
