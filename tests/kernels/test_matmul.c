/* Convolutions: each shape in both dtypes, on one and on two threads. */
#include "tests/kernels/op_check.h"

#include <math.h>

enum { X, W, BIAS };

struct conv_row {
    const char *name;
    struct conv2d_shape shape;
    bool bias, relu, accumulate;
};

static const struct conv_row conv_rows[] = {
    {"one of everything", {1, 1, 1, 1, 1, 1, 1}, true, false, false},
    {"one output place", {2, 3, 3, 4, 5, 3, 3}, true, true, false},
    {"first layer", {3, 12, 12, 1, 32, 3, 3}, true, true, false},
    {"second layer", {2, 10, 10, 32, 64, 3, 3}, true, true, true},
    {"many tiles", {2, 20, 20, 8, 8, 3, 3}, true, true, false},
    {"one tile, cut", {2, 3, 3, 8, 8, 3, 3}, true, true, false},
    {"odd output", {2, 9, 7, 8, 16, 3, 3}, true, false, true},
    {"odd channels", {2, 8, 11, 5, 7, 3, 3}, false, true, false},
    {"wide kernel", {3, 9, 9, 3, 4, 5, 2}, false, false, true},
    {"pointwise", {3, 5, 4, 16, 8, 1, 1}, true, false, false},
};

WITHOUT_TSAN static void conv_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct conv_row *r = shape;
    const struct conv2d_shape *s = &r->shape;
    for (int64_t b = 0; b < s->B; b++)
        for (int64_t h = 0; h + s->KH <= s->H; h++)
            for (int64_t w = 0; w + s->KW <= s->W; w++)
                for (int64_t o = 0; o < s->C_out; o++) {
                    double sum = r->bias ? in[BIAS][o] : 0;
                    for (int64_t i = 0; i < s->C_in; i++)
                        for (int64_t kh = 0; kh < s->KH; kh++)
                            for (int64_t kw = 0; kw < s->KW; kw++)
                                sum += in[X][((b * s->H + h + kh) * s->W + w + kw) * s->C_in + i] *
                                       in[W][((o * s->C_in + i) * s->KH + kh) * s->KW + kw];
                    *y++ = r->relu && sum < 0 ? 0 : sum;
                }
}

static void conv_forward(struct world *world, enum dtype t, const void *shape, void *y,
                         float *saved, void *const in[MAX_INPUTS])
{
    const struct conv_row *r = shape;
    (void)saved;
    world->ops->conv2d_forward(world->stream, t, y, in[X], in[W], r->bias ? in[BIAS] : NULL,
                               r->relu, &r->shape);
}

static void conv_backward(struct world *world, enum dtype t, const void *shape,
                          void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                          const float *saved, void *const in[MAX_INPUTS])
{
    const struct conv_row *r = shape;
    const struct conv2d_shape *s = &r->shape;
    int64_t y_count = s->B * (s->H - s->KH + 1) * (s->W - s->KW + 1) * s->C_out;
    (void)saved;
    void *d = to_device_as(world, t, host_zeros(world, y_count), y_count); /* dy is only read */
    world->ops->cast(world->stream, t, d, t, dy, y_count);
    if (r->relu)
        world->ops->relu_backward(world->stream, t, d, y, d, y_count);
    world->ops->conv2d_backward_data(world->stream, t, gradient[X], d, in[W], s);
    world->ops->conv2d_backward_weights(
        world->stream, t, gradient[W], r->bias ? gradient[BIAS] : NULL, in[X], d, s, r->accumulate);
    from_device_as(world, t, d, y_count);
}

static void test_conv2d(void **state)
{
    for (size_t i = 0; i < array_length(conv_rows); i++) {
        const struct conv_row *r = &conv_rows[i];
        const struct conv2d_shape *s = &r->shape;
        struct op_row row = {
            .name = r->name,
            .shape = r,
            .inputs = r->bias ? 3 : 2,
            .in_count = {s->B * s->H * s->W * s->C_in, s->C_out * s->C_in * s->KH * s->KW,
                         s->C_out},
            .y_count = s->B * (s->H - s->KH + 1) * (s->W - s->KW + 1) * s->C_out,
            .parameter = {false, true, true},
            .accumulate = r->accumulate,
            .reference = conv_reference,
            .forward = conv_forward,
            .backward = conv_backward,
        };
        check_op(*state, &row);
    }
}

/* A run that has diverged must show it: relu does not turn NaN into 0. */
static void check_nan(struct world *world, enum dtype t, int64_t channels)
{
    const struct conv2d_shape shape = {1, 3, 3, channels, channels, 3, 3};
    const struct linear_shape dense = linear_dense(1, channels, channels);
    const int64_t count = 9 * 8 * 8;
    float *host = host_zeros(world, count);
    host[0] = NAN;
    void *x = to_device_as(world, t, host, count), *w = to_device_as(world, t, host, count);
    void *y = to_device_as(world, t, host + 1, 8);
    world->ops->conv2d_forward(world->stream, t, y, x, w, NULL, true, &shape);
    assert_true(isnan(from_device_as(world, t, y, 8)[0]));
    y = to_device_as(world, t, host + 1, 8);
    world->ops->linear_forward(world->stream, t, t, y, x, w, NULL, true, &dense);
    assert_true(isnan(from_device_as(world, t, y, 8)[0]));
    from_device_as(world, t, x, count);
    from_device_as(world, t, w, count);
}

static void test_nan_passes_relu(void **state)
{
    for (int64_t channels = 1; channels <= 8; channels += 7) {
        check_nan(*state, DTYPE_F32, channels);
        check_nan(*state, DTYPE_BF16, channels);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_conv2d, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_conv2d, world_setup_two_threads, world_teardown),
        cmocka_unit_test_setup_teardown(test_nan_passes_relu, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
