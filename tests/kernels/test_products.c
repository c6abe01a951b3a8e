/* Convolutions: outputs and gradients of each shape in one table, on one and on two threads. */
#include "tests/kernels/ops_fixture.h"

#include <math.h>

/* Sums of up to a few thousand terms of size 1 in single precision, in any order. */
static const double TOLERANCE = 2e-5;

/* What the two have in common: y = relu(f(x, w) + bias), inputs in this order. */
enum { X, W, BIAS };
struct product {
    const char *name;
    bool bias, relu, accumulate;
    int64_t in_count[MAX_INPUTS], y_count;
    const void *shape; /* for the functions below */
    void (*reference)(const void *shape, double *y, double *const in[MAX_INPUTS]);
    /* bias and dbias: NULL for none. */
    void (*forward)(struct world *world, const void *shape, float *y, float *const in[MAX_INPUTS]);
    void (*backward)(struct world *world, const void *shape, float *const gradient[MAX_INPUTS],
                     const float *dy, float *const in[MAX_INPUTS]);
};

/* Runs forward and backward on fresh copies of what is on the host. Gradients start as copies of
 * the inputs, to be added to or overwritten. */
static void run_product(struct world *world, const struct product *p, float *const host[MAX_INPUTS],
                        const float *host_dy, float **ret_y, float *ret_gradient[MAX_INPUTS])
{
    float *in[MAX_INPUTS], *gradient[MAX_INPUTS];
    for (int i = 0; i < MAX_INPUTS; i++) {
        bool used = i != BIAS || p->bias;
        in[i] = used ? to_device(world, host[i], p->in_count[i]) : NULL;
        gradient[i] = used ? to_device(world, host[i], p->in_count[i]) : NULL;
    }
    float *y = to_device(world, host_dy, p->y_count), *dy = to_device(world, host_dy, p->y_count);
    p->forward(world, p->shape, y, in);
    if (p->relu)
        world->ops->relu_backward(world->stream, DTYPE_F32, dy, y, dy, p->y_count);
    p->backward(world, p->shape, gradient, dy, in);
    *ret_y = from_device(world, y, p->y_count);
    from_device(world, dy, p->y_count);
    for (int i = 0; i < MAX_INPUTS; i++) {
        if (!in[i])
            continue;
        from_device(world, in[i], p->in_count[i]);
        ret_gradient[i] = from_device(world, gradient[i], p->in_count[i]);
        for (int64_t j = 0; i != X && p->accumulate && j < p->in_count[i]; j++)
            ret_gradient[i][j] -= host[i][j];
    }
}

static void check_product(struct world *world, const struct product *p)
{
    struct reference reference = {
        .forward = p->reference, .shape = p->shape, .y_count = p->y_count};
    float *host[MAX_INPUTS], *y[2], *gradient[2][MAX_INPUTS];
    for (int i = 0; i < MAX_INPUTS; i++) {
        float size = i == BIAS && !p->bias ? 0 : 1;
        host[i] = host_random(world, p->in_count[i], -size, size);
        reference.in[i] = to_double(world, host[i], p->in_count[i]);
        reference.in_count[i] = p->in_count[i];
    }
    float *dy = host_random(world, p->y_count, -1, 1);
    for (int run = 0; run < 2; run++)
        run_product(world, p, host, dy, &y[run], gradient[run]);
    assert_near(y[0], reference_run(world, &reference), p->y_count, TOLERANCE, p->name);
    assert_memory_equal(y[0], y[1], (size_t)p->y_count * sizeof(float)); /* deterministic */
    for (int i = 0; i < MAX_INPUTS; i++) {
        if (i == BIAS && !p->bias)
            continue;
        assert_gradient(world, &reference, i, dy, gradient[0][i], p->name);
        assert_memory_equal(gradient[0][i], gradient[1][i], (size_t)p->in_count[i] * sizeof(float));
    }
}

struct conv_row {
    const char *name;
    struct conv2d_shape shape;
    bool bias, relu, accumulate;
};

static const struct conv_row conv_rows[] = {
    {"one of everything", {1, 1, 1, 1, 1, 1, 1}, true, false, false},
    {"one output place", {2, 3, 3, 4, 5, 3, 3}, true, true, false},
    {"first layer", {3, 12, 12, 1, 32, 3, 3}, true, true, false},
    {"second layer", {3, 10, 10, 32, 64, 3, 3}, true, true, true},
    {"many tiles", {2, 26, 26, 8, 8, 3, 3}, true, true, false},
    {"one tile, cut", {2, 3, 3, 8, 8, 3, 3}, true, true, false},
    {"odd output", {2, 9, 7, 8, 16, 3, 3}, true, false, true},
    {"odd channels", {2, 8, 11, 5, 7, 3, 3}, false, true, false},
    {"wide kernel", {3, 9, 9, 3, 4, 5, 2}, false, false, true},
    {"pointwise", {3, 5, 4, 16, 8, 1, 1}, true, false, false},
};

static void conv_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct conv_row *r = shape;
    const struct conv2d_shape *s = &r->shape;
    for (int64_t b = 0; b < s->B; b++)
        for (int64_t h = 0; h + s->KH <= s->H; h++)
            for (int64_t w = 0; w + s->KW <= s->W; w++)
                for (int64_t o = 0; o < s->C_out; o++) {
                    double sum = in[BIAS][o];
                    for (int64_t i = 0; i < s->C_in; i++)
                        for (int64_t kh = 0; kh < s->KH; kh++)
                            for (int64_t kw = 0; kw < s->KW; kw++)
                                sum += in[X][((b * s->H + h + kh) * s->W + w + kw) * s->C_in + i] *
                                       in[W][((o * s->C_in + i) * s->KH + kh) * s->KW + kw];
                    *y++ = r->relu && sum < 0 ? 0 : sum;
                }
}

static void conv_forward(struct world *world, const void *shape, float *y,
                         float *const in[MAX_INPUTS])
{
    const struct conv_row *r = shape;
    world->ops->conv2d_forward(world->stream, y, in[X], in[W], in[BIAS], r->relu, &r->shape);
}

static void conv_backward(struct world *world, const void *shape, float *const gradient[MAX_INPUTS],
                          const float *dy, float *const in[MAX_INPUTS])
{
    const struct conv_row *r = shape;
    world->ops->conv2d_backward_data(world->stream, gradient[X], dy, in[W], &r->shape);
    world->ops->conv2d_backward_weights(world->stream, gradient[W], gradient[BIAS], in[X], dy,
                                        &r->shape, r->accumulate);
}

static void test_conv2d(void **state)
{
    for (size_t i = 0; i < array_length(conv_rows); i++) {
        const struct conv_row *r = &conv_rows[i];
        const struct conv2d_shape *s = &r->shape;
        struct product p = {.name = r->name,
                            .bias = r->bias,
                            .relu = r->relu,
                            .accumulate = r->accumulate,
                            .shape = r,
                            .reference = conv_reference,
                            .forward = conv_forward,
                            .backward = conv_backward};
        p.in_count[X] = s->B * s->H * s->W * s->C_in;
        p.in_count[W] = s->C_out * s->C_in * s->KH * s->KW;
        p.in_count[BIAS] = s->C_out;
        p.y_count = s->B * (s->H - s->KH + 1) * (s->W - s->KW + 1) * s->C_out;
        check_product(*state, &p);
    }
}

/* A run that has diverged must show it: relu does not turn NaN into 0. */
static void test_nan_passes_relu(void **state)
{
    struct world *world = *state;
    for (int64_t channels = 1; channels <= 8; channels += 7) {
        struct conv2d_shape shape = {1, 3, 3, channels, channels, 3, 3};
        float *host = host_zeros(world, 9 * 8 * 8);
        host[0] = NAN;
        float *x = to_device(world, host, 9 * 8 * 8), *w = to_device(world, host, 9 * 8 * 8);
        float *y = to_device(world, host + 1, 8);
        world->ops->conv2d_forward(world->stream, y, x, w, NULL, true, &shape);
        assert_true(isnan(from_device(world, y, 8)[0]));
        y = to_device(world, host + 1, 8);
        const struct linear_shape dense = linear_dense(1, channels, channels);
        world->ops->linear_forward(world->stream, DTYPE_F32, DTYPE_F32, y, x, w, NULL, true,
                                   &dense);
        assert_true(isnan(from_device(world, y, 8)[0]));
        from_device(world, x, 9 * 8 * 8);
        from_device(world, w, 9 * 8 * 8);
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
