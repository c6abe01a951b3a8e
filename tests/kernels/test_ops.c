/* The ops of images and of their loss: each with its table of sizes. */
#include "tests/kernels/ops_fixture.h"

#include <math.h>

/* Sizes around the vector width and the piece that a thread takes. */
static const int64_t counts[] = {0, 1, 7, 8, 31, 8192, 20001};

static void test_normalize(void **state)
{
    struct world *world = *state;
    uint8_t bytes[256];
    double want[256];
    float zeros[256] = {0};
    for (int i = 0; i < 256; i++) {
        bytes[i] = (uint8_t)i;
        want[i] = (i / 255.0 - 0.1307) / 0.3081;
    }
    uint8_t *x = to_device_bytes(world, bytes, sizeof bytes);
    float *y = to_device(world, zeros, 256);
    world->ops->normalize(world->stream, y, x, 256, 0.1307f, 0.3081f);
    assert_near(from_device(world, y, 256), want, 256, 1e-6, "normalize");
    from_device_bytes(world, bytes, x, sizeof bytes);
}

struct image_row {
    int64_t B, H, W, C;
};
static const struct image_row images[] = {{1, 2, 2, 1},    {2, 4, 6, 8},  {3, 5, 7, 3},
                                          {1, 24, 24, 64}, {2, 3, 2, 33}, {2, 1, 5, 4}};

static void pool_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct image_row *r = shape;
    for (int64_t b = 0; b < r->B; b++)
        for (int64_t h = 0; h < r->H / 2; h++)
            for (int64_t w = 0; w < r->W / 2; w++)
                for (int64_t c = 0; c < r->C; c++) {
                    double best = -INFINITY;
                    for (int64_t k = 0; k < 4; k++)
                        best = fmax(
                            best,
                            in[0][((b * r->H + 2 * h + k / 2) * r->W + 2 * w + k % 2) * r->C + c]);
                    *y++ = best;
                }
}

static void test_max_pool2d(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < array_length(images); i++) {
        const struct image_row *r = &images[i];
        int64_t x_count = r->B * r->H * r->W * r->C,
                y_count = r->B * (r->H / 2) * (r->W / 2) * r->C;
        struct reference reference = {.forward = pool_reference, .shape = r, .y_count = y_count};
        float *host_x = host_random(world, x_count, -1, 1);
        float *host_dy = host_random(world, y_count, -1, 1);
        reference.in[0] = to_double(world, host_x, x_count);
        reference.in_count[0] = x_count;
        float *x = to_device(world, host_x, x_count), *dx = to_device(world, host_x, x_count);
        float *y = to_device(world, host_dy, y_count), *dy = to_device(world, host_dy, y_count);
        uint8_t *bytes = arena_alloc(world->arena, (size_t)y_count + 1);
        uint8_t *index = to_device_bytes(world, bytes, (size_t)y_count);
        world->ops->max_pool2d_forward(world->stream, y, index, x, r->B, r->H, r->W, r->C);
        world->ops->max_pool2d_backward(world->stream, dx, index, dy, r->B, r->H, r->W, r->C);
        assert_near(from_device(world, y, y_count), reference_run(world, &reference), y_count, 0,
                    "max_pool2d");
        assert_gradient(world, &reference, 0, host_dy, from_device(world, dx, x_count),
                        "max_pool2d");
        from_device_bytes(world, bytes, index, (size_t)y_count);
        from_device(world, x, x_count);
        from_device(world, dy, y_count);
    }
}

/* Of equal values the first has the gradient. */
static void test_max_pool2d_ties(void **state)
{
    struct world *world = *state;
    static const struct {
        float x[4];
        uint8_t index;
    } rows[] = {
        {{1, 1, 1, 1}, 0}, {{0, 1, 1, 1}, 1}, {{0, 0, 1, 1}, 2},
        {{0, 0, 0, 1}, 3}, {{0, 1, 1, 0}, 1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        uint8_t got = 9;
        float one = 1;
        float *x = to_device(world, rows[i].x, 4), *y = to_device(world, &one, 1);
        uint8_t *index = to_device_bytes(world, &got, 1);
        world->ops->max_pool2d_forward(world->stream, y, index, x, 1, 2, 2, 1);
        from_device_bytes(world, &got, index, 1);
        assert_int_equal(got, rows[i].index);
        from_device(world, x, 4);
        from_device(world, y, 1);
    }
}

static void test_layouts(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < array_length(images); i++) {
        const struct image_row *r = &images[i];
        int64_t count = r->B * r->H * r->W * r->C, places = r->H * r->W;
        float *host = host_random(world, count, -1, 1);
        float *last = to_device(world, host, count), *first = to_device(world, host, count);
        float *back = to_device(world, host, count);
        world->ops->channels_first(world->stream, first, last, r->B, r->H, r->W, r->C);
        world->ops->channels_last(world->stream, back, first, r->B, r->H, r->W, r->C);
        float *got = from_device(world, first, count);
        for (int64_t j = 0; j < count; j++) {
            int64_t b = j / (r->C * places), c = j / places % r->C, place = j % places;
            assert_true(got[j] == host[(b * places + place) * r->C + c]);
        }
        assert_memory_equal(from_device(world, back, count), host, (size_t)count * sizeof *host);
        from_device(world, last, count);
    }
}

struct loss_row {
    const char *name;
    int64_t rows, cols;
    float size; /* of the inputs */
};
static const struct loss_row losses[] = {
    {"one class", 3, 1, 1},
    {"digits", 64, 10, 5},
    {"one row", 1, 33, 1},
    {"huge inputs", 4, 7, 1e38f},
};

static const int32_t *targets_of(struct world *world, const struct loss_row *r)
{
    int32_t *target = arena_array(world->arena, int32_t, r->rows);
    for (int64_t i = 0; i < r->rows; i++)
        target[i] = (int32_t)(i * 7 % r->cols);
    return target;
}

static void log_softmax_reference(const struct loss_row *r, double *y, const double *x)
{
    for (int64_t i = 0; i < r->rows; i++, x += r->cols, y += r->cols) {
        double best = x[0], sum = 0;
        for (int64_t c = 1; c < r->cols; c++)
            best = fmax(best, x[c]);
        for (int64_t c = 0; c < r->cols; c++)
            sum += exp(x[c] - best);
        for (int64_t c = 0; c < r->cols; c++)
            y[c] = x[c] - best - log(sum);
    }
}

static void check_loss(struct world *world, const struct loss_row *r)
{
    const struct ops *ops = world->ops;
    int64_t count = r->rows * r->cols;
    const int32_t *host_target = targets_of(world, r);
    float *host_x = host_random(world, count, -r->size, r->size);
    double sums[3] = {100, 10, 1}, want_sums[3] = {100, 10, 1}; /* added to */
    double *want = arena_array(world->arena, double, count);
    log_softmax_reference(r, want, to_double(world, host_x, count));
    double *want_dx = arena_array(world->arena, double, count);
    for (int64_t i = 0; i < r->rows; i++) {
        int64_t best = 0;
        for (int64_t c = 0; c < r->cols; c++) {
            best = want[i * r->cols + c] > want[i * r->cols + best] ? c : best;
            want_dx[i * r->cols + c] =
                0.5 * (exp(want[i * r->cols + c]) - (c == host_target[i] ? 1 : 0));
        }
        want_sums[0] -= want[i * r->cols + host_target[i]];
        want_sums[1] += best == host_target[i];
        want_sums[2]++;
    }
    float *y = to_device(world, host_x, count), *dx = to_device(world, host_x, count);
    int32_t *target = to_device_bytes(world, host_target, (size_t)r->rows * sizeof *target);
    double *device_sums = to_device_bytes(world, sums, sizeof sums);
    ops->log_softmax(world->stream, y, y, r->rows, r->cols);
    ops->nll_loss(world->stream, device_sums, y, target, r->rows, r->cols);
    ops->nll_log_softmax_backward(world->stream, dx, y, target, 0.5f, r->rows, r->cols);
    assert_near(from_device(world, y, count), want, count, 1e-6, r->name);
    assert_near(from_device(world, dx, count), want_dx, count, 1e-6, r->name);
    from_device_bytes(world, sums, device_sums, sizeof sums);
    assert_true(fabs(sums[0] - want_sums[0]) <= 1e-6 * fabs(want_sums[0]));
    assert_true(sums[1] == want_sums[1] && sums[2] == want_sums[2]);
    from_device_bytes(world, arena_array(world->arena, int32_t, r->rows), target,
                      (size_t)r->rows * sizeof *target);
}

static void test_loss(void **state)
{
    for (size_t i = 0; i < array_length(losses); i++)
        check_loss(*state, &losses[i]);
}

static void test_sum_of_squares(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < array_length(counts); i++) {
        int64_t n = counts[i];
        double sum = 3, want = 3;
        float *host = host_random(world, n, -1, 1);
        for (int64_t j = 0; j < n; j++)
            want += (double)host[j] * host[j];
        float *x = to_device(world, host, n);
        double *device_sum = to_device_bytes(world, &sum, sizeof sum);
        world->ops->sum_of_squares(world->stream, device_sum, x, n);
        from_device_bytes(world, &sum, device_sum, sizeof sum);
        assert_true(fabs(sum - want) <= 1e-12 * want);
        from_device(world, x, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_normalize, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_max_pool2d, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_max_pool2d_ties, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_layouts, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_loss, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_sum_of_squares, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
