/* Ops in which each element is on its own, in both dtypes. */
#include "tests/kernels/op_check.h"

#include <math.h>

/* Sizes around the vector width, a strip and the chunk that a thread takes. */
static const int64_t counts[] = {0, 1, 7, 8, 31, 512, 8192, 20001};
static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};

static void test_fill(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < array_length(counts); i++) {
        int64_t n = counts[i];
        float *host = host_random(world, n, -1, 1);
        float *filled = to_device(world, host, n);
        world->ops->fill(world->stream, filled, 2.5f, n);
        const float *fill = from_device(world, filled, n);
        for (int64_t j = 0; j < n; j++)
            assert_true(fill[j] == 2.5f);
    }
}

static void check_scale(struct world *world, enum dtype t, int64_t n)
{
    float *host = round_to(t, host_random(world, n, -1, 1), n);
    if (n > 2)
        host[1] = NAN;
    void *y = to_device_as(world, t, host, n);
    world->ops->scale(world->stream, t, y, -3, n);
    const float *got = from_device_as(world, t, y, n);
    for (int64_t j = 0; j < n; j++)
        host[j] *= -3;
    round_to(t, host, n);
    for (int64_t j = 0; j < n; j++)
        assert_true(got[j] == host[j] || (isnan(got[j]) && isnan(host[j])));
}

/* To y's elements from `first` on: where they start there is no wide load. */
static void check_add(struct world *world, enum dtype t_y, enum dtype t_x, int64_t n, int64_t first)
{
    float *host_x = round_to(t_x, host_random(world, n, -1, 1), n);
    float *host_y = round_to(t_y, host_random(world, n, -1, 1), n);
    if (n > 2)
        host_x[1] = NAN;
    void *x = to_device_as(world, t_x, host_x, n), *y = to_device_as(world, t_y, host_y, n);
    world->ops->add(world->stream, t_y, (char *)y + (size_t)first * dtype_bytes(t_y), t_x, x,
                    n - first);
    const float *got = from_device_as(world, t_y, y, n);
    for (int64_t j = first; j < n; j++)
        host_y[j] += host_x[j - first];
    round_to(t_y, host_y, n);
    for (int64_t j = 0; j < n; j++)
        assert_true(got[j] == host_y[j] || (isnan(got[j]) && isnan(host_y[j])));
    from_device_as(world, t_x, x, n);
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
            check_scale(*state, dtypes[t], counts[i]);
            for (size_t from = 0; from < array_length(dtypes); from++) {
                check_add(*state, dtypes[t], dtypes[from], counts[i], 0);
                check_add(*state, dtypes[t], dtypes[from], counts[i], counts[i] / 7);
                check_cast(*state, dtypes[t], dtypes[from], counts[i], false);
            }
            check_cast(*state, dtypes[t], dtypes[t], counts[i], true);
            check_relu(*state, dtypes[t], counts[i], false);
            check_relu(*state, dtypes[t], counts[i], true);
        }
}

/* ---- memory that starts one element behind where it may ---- */

enum { ANYWHERE = 1003 };

/* y: [3, ANYWHERE], x: [ANYWHERE], of dtype t. */
struct unaligned {
    struct world *world;
    enum dtype t;
    void *y;
    const void *x;
    const float *g;
    const double *squares;
};

static void run_gelu(const struct unaligned *p)
{
    p->world->ops->gelu_forward(p->world->stream, p->t, p->y, p->x, ANYWHERE, true);
    p->world->ops->relu_backward(p->world->stream, p->t, p->y, p->x, p->y, ANYWHERE);
}

static void run_dropout(const struct unaligned *p)
{
    p->world->ops->dropout(p->world->stream, p->t, p->y, p->x, 1, ANYWHERE, 0.5f, 1, 0, 1);
}

static void run_adam(const struct unaligned *p)
{
    const struct adam_step step = {1e-3f, 0.9f, 0.99f, 1e-8f, 0.1f, true, 3};
    char *w = p->y, *m = w + ANYWHERE * dtype_bytes(p->t), *v = m + ANYWHERE * dtype_bytes(p->t);
    p->world->ops->adam(p->world->stream, p->t, w, p->g, m, v, ANYWHERE, &step, NULL, 1, 8);
}

static void run_adadelta(const struct unaligned *p)
{
    const struct adadelta_step step = {1, 0.9f, 1e-6f, 0.1f};
    char *w = p->y, *v = w + ANYWHERE * dtype_bytes(p->t), *u = v + ANYWHERE * dtype_bytes(p->t);
    p->world->ops->adadelta(p->world->stream, p->t, w, p->g, v, u, ANYWHERE, &step, NULL, 1, 8);
}

static void run_sgd(const struct unaligned *p)
{
    const struct sgd_step step = {1e-3f, 0.9f, 0.1f, true}, plain = {1e-3f, 0, 0.1f, false};
    char *w = p->y, *m = w + ANYWHERE * dtype_bytes(p->t), *w2 = m + ANYWHERE * dtype_bytes(p->t);
    p->world->ops->sgd(p->world->stream, p->t, w, p->g, m, ANYWHERE, &step, NULL, 1, 8);
    p->world->ops->sgd(p->world->stream, p->t, w2, p->g, NULL, ANYWHERE, &plain, NULL, 1, 8);
}

/* What is in y then. */
static const float *run_shifted(struct world *world, void (*run)(const struct unaligned *p),
                                enum dtype t, const float *host, int shift)
{
    double squares = 4;
    float *image = host_zeros(world, 3 * ANYWHERE + 1);
    for (int i = 0; i < 3 * ANYWHERE; i++)
        image[i + shift] = host[i];
    char *y = to_device_as(world, t, image, 3 * ANYWHERE + 1);
    char *x = to_device_as(world, t, image, ANYWHERE + 1);
    float *g = to_device(world, image, ANYWHERE + 1);
    double *device_squares = to_device_bytes(world, &squares, sizeof squares);
    size_t bytes = (size_t)shift * dtype_bytes(t);
    run(&(struct unaligned){world, t, y + bytes, x + bytes, g + shift, device_squares});
    from_device_as(world, t, x, ANYWHERE + 1);
    from_device(world, g, ANYWHERE + 1);
    from_device_bytes(world, &squares, device_squares, sizeof squares);
    return from_device_as(world, t, y, 3 * ANYWHERE + 1) + shift;
}

static void test_starts_anywhere(void **state)
{
    void (*const runs[])(const struct unaligned *p) = {run_gelu, run_dropout, run_adam,
                                                       run_adadelta, run_sgd};
    for (size_t i = 0; i < array_length(runs); i++)
        for (size_t t = 0; t < array_length(dtypes); t++) {
            const float *host = host_random(*state, 3 * ANYWHERE, 0.5f, 1);
            const float *straight = run_shifted(*state, runs[i], dtypes[t], host, 0);
            const float *shifted = run_shifted(*state, runs[i], dtypes[t], host, 1);
            assert_memory_equal(straight, shifted, 3 * ANYWHERE * sizeof *straight);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fill, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_typed, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_starts_anywhere, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
