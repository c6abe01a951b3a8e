/* Linear layers: each shape in both layouts of the weight, both dtypes, on one and two threads. */
#include "tests/kernels/op_check.h"

enum { X, W, BIAS };

struct linear_row {
    const char *name;
    struct linear_shape shape;
    bool bias, accumulate, fp32_y;
};

static const struct linear_row rows[] = {
    {"one of everything", {1, 1, 1, 1, false, false}, true, false, false},
    {"no rows", {0, 3, 5, 5, false, false}, true, true, false},
    {"no rows, written", {0, 3, 5, 5, false, false}, true, false, false},
    {"odd sizes", {7, 33, 5, 5, false, false}, true, true, false},
    {"one row", {1, 64, 48, 48, false, false}, true, false, true},
    {"one output", {9, 17, 1, 1, false, false}, false, true, false},
    {"wide rows", {6, 40, 24, 57, false, false}, true, true, true},
    {"hidden layer", {8, 1030, 128, 128, false, false}, true, false, false},
    {"over a strip of columns", {17, 257, 513, 513, false, false}, false, true, false},
    {"one of everything, in_out", {1, 1, 1, 1, true, false}, true, false, false},
    {"odd sizes, in_out", {7, 33, 5, 5, true, false}, true, true, false},
    {"one row, in_out", {1, 64, 48, 48, true, false}, true, false, true},
    {"wide rows, in_out", {6, 40, 24, 57, true, false}, true, true, true},
    {"over a strip, in_out", {17, 513, 257, 257, true, false}, false, true, false},
    {"a bias in any order", {24, 64, 48, 48, false, true}, true, false, false},
    {"a bias in any order, in_out", {24, 64, 48, 48, true, true}, true, false, false},
    {"a bias in any order, added to", {24, 64, 48, 48, false, true}, true, true, false},
};

static bool is_used(const void *shape, int which, int64_t i)
{
    const struct linear_row *l = shape;
    return which != OUTPUT || i % l->shape.y_stride < l->shape.out;
}

WITHOUT_TSAN static void reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct linear_row *l = shape;
    const struct linear_shape *z = &l->shape;
    for (int64_t r = 0; r < z->rows; r++)
        for (int64_t o = 0; o < z->y_stride; o++) {
            double sum = l->bias && o < z->out ? in[BIAS][o] : 0;
            for (int64_t i = 0; o < z->out && i < z->in; i++)
                sum += in[X][r * z->in + i] * in[W][z->in_out ? i * z->out + o : o * z->in + i];
            *y++ = sum;
        }
}

static void forward(struct world *world, enum dtype t, const void *shape, void *y, float *saved,
                    void *const in[MAX_INPUTS])
{
    const struct linear_row *l = shape;
    (void)saved;
    world->ops->linear_forward(world->stream, t, l->fp32_y ? DTYPE_F32 : t, y, in[X], in[W],
                               l->bias ? in[BIAS] : NULL, false, &l->shape);
}

static void backward(struct world *world, enum dtype t, const void *shape,
                     void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                     const float *saved, void *const in[MAX_INPUTS])
{
    const struct linear_row *l = shape;
    (void)y, (void)saved;
    world->ops->linear_backward_data(world->stream, t, gradient[X], dy, in[W], &l->shape, false);
    world->ops->linear_backward_weights(world->stream, t, gradient[W],
                                        l->bias ? gradient[BIAS] : NULL, in[X], dy, &l->shape,
                                        l->accumulate);
}

static void test_linear(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct linear_row *l = &rows[i];
        const struct linear_shape *z = &l->shape;
        struct op_row row = {
            .name = l->name,
            .shape = l,
            .inputs = l->bias ? 3 : 2,
            .in_count = {z->rows * z->in, z->in * z->out, z->out},
            .y_count = z->rows * z->y_stride,
            .parameter = {false, true, true},
            .accumulate = l->accumulate,
            .fp32_y = l->fp32_y,
            .reference = reference,
            .used = is_used,
            .forward = forward,
            .backward = backward,
        };
        check_op(*state, &row);
    }
}

/* dx is added to: with what was there it is more by exactly that, but for its rounding. */
static void check_accumulated_dx(struct world *world, const struct linear_row *l, enum dtype t)
{
    const struct linear_shape *z = &l->shape;
    int64_t dx_count = z->rows * z->in, dy_count = z->rows * z->y_stride;
    float *host = round_to(t, host_random(world, dx_count, -1, 1), dx_count);
    void *dy = to_device_as(world, t, host_random(world, dy_count, -1, 1), dy_count);
    void *w = to_device_as(world, t, host_random(world, z->in * z->out, -1, 1), z->in * z->out);
    void *alone = to_device_as(world, t, host, dx_count);
    void *added = to_device_as(world, t, host, dx_count);
    world->ops->linear_backward_data(world->stream, t, alone, dy, w, z, false);
    world->ops->linear_backward_data(world->stream, t, added, dy, w, z, true);
    float *want = from_device_as(world, t, alone, dx_count);
    for (int64_t j = 0; j < dx_count; j++)
        want[j] += host[j];
    const float *got = from_device_as(world, t, added, dx_count);
    if (t == DTYPE_F32)
        assert_near(got, to_double(world, want, dx_count), dx_count, 2e-5, l->name);
    else
        assert_near_bf16(got, want, dx_count, 2, 4, l->name);
    from_device_as(world, t, dy, dy_count);
    from_device_as(world, t, w, z->in * z->out);
}

static void test_accumulated_dx(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        check_accumulated_dx(*state, &rows[i], DTYPE_F32);
        check_accumulated_dx(*state, &rows[i], DTYPE_BF16);
    }
}

/* The gradient of the bias alone is that which is made beside the weights'. */
static void check_bias_alone(struct world *world, const struct linear_row *l, enum dtype t)
{
    struct linear_shape in_order = l->shape, *z = &in_order;
    in_order.nondeterministic = false; /* else cuBLASLt may add it up */
    int64_t dy_count = z->rows * z->y_stride;
    const float *before = host_random(world, z->out, -1, 1);
    void *dy = to_device_as(world, t, host_random(world, dy_count, -1, 1), dy_count);
    void *x = to_device_as(world, t, host_random(world, z->rows * z->in, -1, 1), z->rows * z->in);
    float *dw = to_device(world, host_zeros(world, z->in * z->out), z->in * z->out);
    float *alone = to_device(world, before, z->out), *beside = to_device(world, before, z->out);
    world->ops->linear_backward_bias(world->stream, t, alone, dy, z, l->accumulate);
    world->ops->linear_backward_weights(world->stream, t, dw, beside, x, dy, z, l->accumulate);
    const float *got = from_device(world, alone, z->out),
                *want = from_device(world, beside, z->out);
    assert_memory_equal(got, want, (size_t)z->out * sizeof *got);
    from_device_as(world, t, dy, dy_count);
    from_device_as(world, t, x, z->rows * z->in);
    from_device(world, dw, z->in * z->out);
}

static void test_bias_alone(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        check_bias_alone(*state, &rows[i], DTYPE_F32);
        check_bias_alone(*state, &rows[i], DTYPE_BF16);
    }
}

/* relu changes nothing but what is below 0. */
static void check_relu(struct world *world, const struct linear_row *l, enum dtype t)
{
    const struct linear_shape *z = &l->shape;
    enum dtype t_y = l->fp32_y ? DTYPE_F32 : t;
    int64_t y_count = z->rows * z->y_stride;
    const float *zeros = host_zeros(world, y_count);
    void *x = to_device_as(world, t, host_random(world, z->rows * z->in, -1, 1), z->rows * z->in);
    void *w = to_device_as(world, t, host_random(world, z->in * z->out, -1, 1), z->in * z->out);
    void *bias = to_device_as(world, t, host_random(world, z->out, -1, 1), z->out);
    void *plain = to_device_as(world, t_y, zeros, y_count);
    void *relu = to_device_as(world, t_y, zeros, y_count);
    const void *added = l->bias ? bias : NULL;
    world->ops->linear_forward(world->stream, t, t_y, plain, x, w, added, false, z);
    world->ops->linear_forward(world->stream, t, t_y, relu, x, w, added, true, z);
    const float *want = from_device_as(world, t_y, plain, y_count);
    const float *got = from_device_as(world, t_y, relu, y_count);
    for (int64_t i = 0; i < y_count; i++)
        assert_true(got[i] == (want[i] < 0 ? 0 : want[i]));
    from_device_as(world, t, x, z->rows * z->in);
    from_device_as(world, t, w, z->in * z->out);
    from_device_as(world, t, bias, z->out);
}

static void test_relu(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        check_relu(*state, &rows[i], DTYPE_F32);
        check_relu(*state, &rows[i], DTYPE_BF16);
    }
}

/* More shapes than products are kept of: each is right, and the first is when it comes
 * back. */
static void test_many_shapes(void **state)
{
    struct world *world = *state;
    enum { MOST = 130 };
    float *host = host_zeros(world, MOST * MOST);
    for (int i = 0; i < MOST * MOST; i++)
        host[i] = 1;
    for (int64_t n = 1; n <= MOST + 1; n++) {
        int64_t out = n <= MOST ? n : 1;
        const struct linear_shape shape = linear_dense(1, MOST, out);
        void *x = to_device_as(world, DTYPE_BF16, host, MOST);
        void *w = to_device_as(world, DTYPE_BF16, host, MOST * out);
        float *y = to_device(world, host, out);
        world->ops->linear_forward(world->stream, DTYPE_BF16, DTYPE_F32, y, x, w, NULL, false,
                                   &shape);
        const float *got = from_device(world, y, out);
        for (int64_t i = 0; i < out; i++)
            assert_true(got[i] == MOST);
        from_device_as(world, DTYPE_BF16, x, MOST);
        from_device_as(world, DTYPE_BF16, w, MOST * out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_linear, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_linear, world_setup_two_threads, world_teardown),
        cmocka_unit_test_setup_teardown(test_accumulated_dx, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_bias_alone, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_relu, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_many_shapes, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
