/* A linear layer beside a GELU, and the gradient of a bias in any order: what a GPU's library does
 * in a product's epilogue, where it does. Each op is judged by its reference; on the CPU its bits
 * are those of two ops; and kernels are counted, so that what should be one is one. */
#include "kernels/trace.h"
#include "tests/kernels/op_check.h"

#include <math.h>
#include <string.h>

enum { MOST_EVENTS = 256 };

/* In bf16 what stands between the two steps is rounded, or not: as large a number as that. */
#define MIDDLE 4

struct gelu_row {
    const char *name;
    struct linear_shape shape;
};

/* 300 terms: the emulated library adds them up in parts. */
static const struct gelu_row rows[] = {
    {"one row", {1, 16, 8, 8, false, false}},
    {"odd sizes", {7, 33, 5, 5, false, false}},
    {"no rows", {0, 8, 16, 16, true, false}},
    {"long sums", {9, 300, 24, 24, true, false}},
    {"in_out", {12, 64, 40, 40, true, false}},
    {"one row, any order", {1, 16, 8, 8, false, true}},
    {"odd sizes, any order", {7, 33, 5, 5, true, true}},
    {"long sums, any order", {9, 304, 24, 24, false, true}},
    {"in_out, any order", {12, 64, 40, 40, true, true}},
};

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static double weight(const struct linear_shape *z, const double *w, int64_t i, int64_t o)
{
    return w[z->in_out ? i * z->out + o : o * z->in + i];
}

/* ---- forward: y = gelu(x w' + bias) ---- */

enum { X, W, BIAS };

WITHOUT_TSAN static void up_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct linear_shape *z = shape;
    for (int64_t r = 0; r < z->rows; r++)
        for (int64_t o = 0; o < z->out; o++) {
            double sum = in[BIAS][o];
            for (int64_t i = 0; i < z->in; i++)
                sum += in[X][r * z->in + i] * weight(z, in[W], i, o);
            *y++ = gelu(sum);
        }
}

static void up_forward(struct world *world, enum dtype t, const void *shape, void *y, float *saved,
                       void *const in[MAX_INPUTS])
{
    const struct linear_shape *z = shape;
    int64_t count = z->rows * z->out;
    (void)saved;
    void *before = to_device_as(world, t, host_zeros(world, count), count);
    world->ops->linear_gelu_forward(world->stream, t, y, before, in[X], in[W], in[BIAS], z);
    from_device_as(world, t, before, count);
}

static void test_forward(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct linear_shape *z = &rows[i].shape;
        const struct op_row row = {
            .name = rows[i].name,
            .shape = z,
            .inputs = 3,
            .in_count = {z->rows * z->in, z->in * z->out, z->out},
            .y_count = z->rows * z->out,
            .y_floor = MIDDLE,
            .reference = up_reference,
            .forward = up_forward,
        };
        check_op(*state, &row);
    }
}

/* ---- backward: of y = gelu(z) w' with respect to z ---- */

WITHOUT_TSAN static void down_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct linear_shape *z = shape;
    for (int64_t r = 0; r < z->rows; r++)
        for (int64_t o = 0; o < z->out; o++) {
            double sum = 0;
            for (int64_t i = 0; i < z->in; i++)
                sum += gelu(in[X][r * z->in + i]) * weight(z, in[W], i, o);
            *y++ = sum;
        }
}

static void down_forward(struct world *world, enum dtype t, const void *shape, void *y,
                         float *saved, void *const in[MAX_INPUTS])
{
    const struct linear_shape *z = shape;
    int64_t count = z->rows * z->in;
    (void)saved;
    void *middle = to_device_as(world, t, host_zeros(world, count), count);
    world->ops->gelu_forward(world->stream, t, middle, in[X], count, true);
    world->ops->linear_forward(world->stream, t, t, y, middle, in[W], NULL, false, z);
    from_device_as(world, t, middle, count);
}

static void down_backward(struct world *world, enum dtype t, const void *shape,
                          void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                          const float *saved, void *const in[MAX_INPUTS])
{
    const struct linear_shape *z = shape;
    int64_t count = z->rows * z->in;
    (void)y, (void)saved;
    world->ops->linear_gelu_backward_data(world->stream, t, gradient[X], dy, in[W], in[X], z);
    void *middle = to_device_as(world, t, host_zeros(world, count), count);
    world->ops->gelu_forward(world->stream, t, middle, in[X], count, true);
    world->ops->linear_backward_weights(world->stream, t, gradient[W], NULL, middle, dy, z, false);
    from_device_as(world, t, middle, count);
}

static void test_backward(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct linear_shape *z = &rows[i].shape;
        const struct op_row row = {
            .name = rows[i].name,
            .shape = z,
            .inputs = 2,
            .in_count = {z->rows * z->in, z->in * z->out},
            .y_count = z->rows * z->out,
            .parameter = {false, true},
            .y_floor = MIDDLE,
            .floor = MIDDLE,
            .reference = down_reference,
            .forward = down_forward,
            .backward = down_backward,
        };
        check_op(*state, &row);
    }
}

/* ---- bits and kernels ---- */

static void count_kernel(void *ctx, const struct trace_event *event)
{
    *(int *)ctx += event->kind == TRACE_OP;
}

static void begin_count(struct world *world)
{
    struct error err;
    assert_true(device_trace_begin(world->device, MOST_EVENTS, true, &err));
}

static int end_count(struct world *world)
{
    struct error err;
    int kernels = 0;
    assert_ok(stream_sync(world->stream, &err), &err);
    assert_int_equal(device_trace_end(world->device, count_kernel, &kernels), 0);
    return kernels;
}

/* Tensors of a layer: [rows, in] or [rows, out], a weight, a bias. */
struct layer {
    void *x, *w, *bias, *y, *z, *dx;
    int64_t x_count, y_count, w_count;
};

static struct layer layer_open(struct world *world, enum dtype t, const struct linear_shape *s)
{
    struct layer l = {
        .x_count = s->rows * s->in, .y_count = s->rows * s->out, .w_count = s->in * s->out};
    l.x = to_device_as(world, t, host_random(world, l.x_count, -1, 1), l.x_count);
    l.w = to_device_as(world, t, host_random(world, l.w_count, -1, 1), l.w_count);
    l.bias = to_device_as(world, t, host_random(world, s->out, -1, 1), s->out);
    l.y = to_device_as(world, t, host_random(world, l.y_count, -1, 1), l.y_count);
    l.z = to_device_as(world, t, host_random(world, l.y_count, -1, 1), l.y_count);
    l.dx = to_device_as(world, t, host_random(world, l.x_count, -1, 1), l.x_count);
    return l;
}

static void layer_close(struct world *world, enum dtype t, const struct linear_shape *s,
                        const struct layer *l, float *ret[3])
{
    from_device_as(world, t, l->x, l->x_count);
    from_device_as(world, t, l->w, l->w_count);
    from_device_as(world, t, l->bias, s->out);
    ret[0] = from_device_as(world, t, l->y, l->y_count);
    ret[1] = from_device_as(world, t, l->z, l->y_count);
    ret[2] = from_device_as(world, t, l->dx, l->x_count);
}

/* y = gelu(z) of x, then the gradient of x as another GELU's z; by the ops of two steps if
 * apart. Returns how many kernels ran. */
static int run(struct world *world, enum dtype t, const struct linear_shape *s, bool apart,
               float *ret[3])
{
    const struct ops *ops = world->ops;
    world->next_key = 1; /* the same values */
    struct layer l = layer_open(world, t, s);
    begin_count(world);
    if (apart) {
        ops->linear_forward(world->stream, t, t, l.z, l.x, l.w, l.bias, false, s);
        ops->gelu_forward(world->stream, t, l.y, l.z, l.y_count, true);
        ops->linear_backward_data(world->stream, t, l.dx, l.y, l.w, s, false);
        ops->gelu_backward(world->stream, t, l.dx, l.dx, l.x, l.x_count, true);
    } else {
        ops->linear_gelu_forward(world->stream, t, l.y, l.z, l.x, l.w, l.bias, s);
        ops->linear_gelu_backward_data(world->stream, t, l.dx, l.y, l.w, l.x, s);
    }
    int kernels = end_count(world);
    layer_close(world, t, s, &l, ret);
    return kernels;
}

static void test_steps(void **state)
{
    struct world *world = *state;
    const bool is_host = device_is_host(world->device);
    const bool fuses = device_compute_capability(world->device) >= 90;
    for (size_t i = 0; i < 2 * array_length(rows); i++) {
        const struct gelu_row *row = &rows[i / 2];
        const struct linear_shape *s = &row->shape;
        const enum dtype t = i % 2 ? DTYPE_BF16 : DTYPE_F32;
        float *one[3], *two[3];
        if (s->rows == 0)
            continue;
        int with = run(world, t, s, false, one), apart = run(world, t, s, true, two);
        const size_t y_bytes = (size_t)(s->rows * s->out) * sizeof(float);
        if (!fuses || !s->nondeterministic) { /* forward is that of two steps */
            assert_memory_equal(one[0], two[0], y_bytes);
            assert_memory_equal(one[1], two[1], y_bytes);
        }
        if (is_host || !fuses)
            assert_memory_equal(one[2], two[2], (size_t)(s->rows * s->in) * sizeof(float));
        if (is_host || !support_is_emulated())
            continue; /* which kernels there are is the library's matter */
        int saved = s->in % 8 == 0;
        saved += s->out % 8 == 0 && s->nondeterministic;
        assert_int_equal(apart - with, fuses ? saved : 0);
    }
}

/* ---- the gradient of a bias ---- */

static int run_bias(struct world *world, const struct linear_shape *s, bool accumulate)
{
    world->next_key = 1;
    struct layer l = layer_open(world, DTYPE_BF16, s);
    float *dw = to_device(world, host_zeros(world, l.w_count), l.w_count);
    float *dbias = to_device(world, host_zeros(world, s->out), s->out);
    float *unused[3];
    begin_count(world);
    world->ops->linear_backward_weights(world->stream, DTYPE_BF16, dw, dbias, l.x, l.y, s,
                                        accumulate);
    int kernels = end_count(world);
    from_device(world, dw, l.w_count);
    from_device(world, dbias, s->out);
    layer_close(world, DTYPE_BF16, s, &l, unused);
    return kernels;
}

static void test_bias_in_the_product(void **state)
{
    struct world *world = *state;
    if (!support_is_emulated())
        return;
    for (int in_out = 0; in_out < 2; in_out++) {
        struct linear_shape s = {12, 64, 40, 40, in_out, true};
        assert_int_equal(run_bias(world, &s, false), 1);
        assert_int_equal(run_bias(world, &s, true), 2); /* cuBLASLt's cannot be added to */
        s.nondeterministic = false;
        assert_int_equal(run_bias(world, &s, false), 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_forward, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_backward, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_steps, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_bias_in_the_product, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
