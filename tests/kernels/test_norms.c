/* RMSNorm and LayerNorm, in both dtypes, alone and together with the sum of a residual stream. */
#include "tests/kernels/op_check.h"

#include <math.h>

struct norm_row {
    const char *name;
    int64_t rows, D;
    bool accumulate, dx_is_dy;
    float size;
};

/* Widths around a strip and the threads that share a row, and one whose sums are too many for a
 * GPU's shared memory; rows around the parts that sums are made in. */
static const struct norm_row norm_rows[] = {
    {"one of everything", 1, 1, false, false, 1},
    {"no rows", 0, 5, true, false, 1},
    {"odd", 3, 7, true, true, 1},
    {"a strip", 17, 512, false, true, 0.01f},
    {"over a strip", 33, 1031, true, false, 3},
    {"many rows", 130, 24, false, false, 1},
    {"a model's", 9, 2048, true, true, 1},
    {"wide", 2, 20008, true, false, 1},
};

enum { X, W, BIAS };
static const double EPS = 1e-5;

WITHOUT_TSAN static void rms_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct norm_row *r = shape;
    const double *x = in[X];
    for (int64_t i = 0; i < r->rows; i++, x += r->D, y += r->D) {
        double squares = 0;
        for (int64_t c = 0; c < r->D; c++)
            squares += x[c] * x[c];
        for (int64_t c = 0; c < r->D; c++)
            y[c] = in[W][c] * x[c] / sqrt(squares / (double)r->D + EPS);
    }
}

static void rms_forward(struct world *world, enum dtype t, const void *shape, void *y, float *saved,
                        void *const in[MAX_INPUTS])
{
    const struct norm_row *r = shape;
    world->ops->rms_norm_forward(world->stream, t, y, saved, in[X], NULL, in[W], r->rows, r->D,
                                 (float)EPS);
}

static void rms_backward(struct world *world, enum dtype t, const void *shape,
                         void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                         const float *saved, void *const in[MAX_INPUTS])
{
    const struct norm_row *r = shape;
    (void)y;
    world->ops->rms_norm_backward(world->stream, t, gradient[X], false, gradient[W], dy, in[X],
                                  in[W], saved, r->rows, r->D, r->accumulate);
}

WITHOUT_TSAN static void layer_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct norm_row *r = shape;
    const double *x = in[X];
    for (int64_t i = 0; i < r->rows; i++, x += r->D, y += r->D) {
        double mean = 0, variance = 0;
        for (int64_t c = 0; c < r->D; c++)
            mean += x[c] / (double)r->D;
        for (int64_t c = 0; c < r->D; c++)
            variance += (x[c] - mean) * (x[c] - mean) / (double)r->D;
        for (int64_t c = 0; c < r->D; c++)
            y[c] = in[W][c] * (x[c] - mean) / sqrt(variance + EPS) + in[BIAS][c];
    }
}

static void layer_forward(struct world *world, enum dtype t, const void *shape, void *y,
                          float *saved, void *const in[MAX_INPUTS])
{
    const struct norm_row *r = shape;
    world->ops->layer_norm_forward(world->stream, t, y, saved, in[X], NULL, in[W], in[BIAS],
                                   r->rows, r->D, (float)EPS);
}

static void layer_backward(struct world *world, enum dtype t, const void *shape,
                           void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                           const float *saved, void *const in[MAX_INPUTS])
{
    const struct norm_row *r = shape;
    (void)y;
    world->ops->layer_norm_backward(world->stream, t, gradient[X], false, gradient[W],
                                    gradient[BIAS], dy, in[X], in[W], saved, r->rows, r->D,
                                    r->accumulate);
}

static void test_norms(void **state)
{
    for (size_t i = 0; i < array_length(norm_rows); i++) {
        const struct norm_row *r = &norm_rows[i];
        struct op_row row = {
            .name = r->name,
            .shape = r,
            .inputs = 2,
            .in_count = {r->rows * r->D, r->D, r->D},
            .y_count = r->rows * r->D,
            .saved_count = 2 * r->rows,
            .parameter = {false, true, true},
            .accumulate = r->accumulate,
            .dx_is_dy = r->dx_is_dy,
            .size = r->size,
            .floor = 4, /* backward multiplies by what forward has rounded */
            .reference = rms_reference,
            .forward = rms_forward,
            .backward = rms_backward,
        };
        check_op(*state, &row);
        row.inputs = 3;
        row.reference = layer_reference;
        row.forward = layer_forward;
        row.backward = layer_backward;
        check_op(*state, &row);
    }
}

/* ---- with a residual ---- */

/* What a norm and the sums around it leave on the device. */
struct left {
    enum dtype t;
    void *sum, *y, *dx;
    float *saved, *dw;
};

/* Either kind; RMSNorm's have no use for the bias. */
static void forward(struct world *world, const struct norm_row *r, const struct left *l, bool rms,
                    const void *residual, const void *w, const void *bias)
{
    if (rms)
        world->ops->rms_norm_forward(world->stream, l->t, l->y, l->saved, l->sum, residual, w,
                                     r->rows, r->D, (float)EPS);
    else
        world->ops->layer_norm_forward(world->stream, l->t, l->y, l->saved, l->sum, residual, w,
                                       bias, r->rows, r->D, (float)EPS);
}

static void backward(struct world *world, const struct norm_row *r, const struct left *l, bool rms,
                     void *dx, bool add_dx, const void *dy, const void *w)
{
    if (rms)
        world->ops->rms_norm_backward(world->stream, l->t, dx, add_dx, l->dw, dy, l->sum, w,
                                      l->saved, r->rows, r->D, false);
    else
        world->ops->layer_norm_backward(world->stream, l->t, dx, add_dx, l->dw, l->dw + r->D, dy,
                                        l->sum, w, l->saved, r->rows, r->D, false);
}

/* Host values, rounded to the dtype. */
struct values {
    float *x, *residual, *dy, *later; /* later: the gradient that the residual stream has already */
    float *w, *bias;
};

static struct left run(struct world *world, const struct norm_row *r, enum dtype t, bool rms,
                       const struct values *v, bool at_once)
{
    int64_t count = r->rows * r->D;
    float *poison = host_zeros(world, count + 2 * (r->rows + r->D));
    for (int64_t i = 0; i < count + 2 * (r->rows + r->D); i++)
        poison[i] = NAN;
    struct left l = {.t = t,
                     .sum = to_device_as(world, t, v->x, count),
                     .y = to_device_as(world, t, poison, count),
                     .dx = to_device_as(world, t, v->later, count),
                     .saved = to_device(world, poison, 2 * r->rows),
                     .dw = to_device(world, poison, 2 * r->D)};
    void *residual = to_device_as(world, t, v->residual, count);
    void *dy = to_device_as(world, t, v->dy, count), *w = to_device_as(world, t, v->w, r->D);
    void *bias = to_device_as(world, t, v->bias, r->D);
    if (at_once) {
        forward(world, r, &l, rms, residual, w, bias);
        backward(world, r, &l, rms, l.dx, true, dy, w);
    } else {
        world->ops->add(world->stream, t, l.sum, t, residual, count);
        forward(world, r, &l, rms, NULL, w, bias);
        backward(world, r, &l, rms, dy, false, dy, w);
        world->ops->add(world->stream, t, l.dx, t, dy, count);
    }
    void *inputs[] = {residual, dy};
    for (size_t i = 0; i < array_length(inputs); i++)
        from_device_as(world, t, inputs[i], count);
    from_device_as(world, t, w, r->D);
    from_device_as(world, t, bias, r->D);
    return l;
}

static void assert_same(struct world *world, const char *what, enum dtype t, void *a, void *b,
                        int64_t count)
{
    const float *x = from_device_as(world, t, a, count), *y = from_device_as(world, t, b, count);
    for (int64_t i = 0; i < count; i++)
        if (x[i] != y[i] && !(isnan(x[i]) && isnan(y[i]))) {
            print_error("%s: element %lld is %.9g at once and %.9g apart\n", what, (long long)i,
                        (double)x[i], (double)y[i]);
            fail();
        }
}

/* The sum in one op with the norm, and backward's, have the bits of add() before and after it. */
static void test_residual(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < 4 * array_length(norm_rows); i++) {
        const struct norm_row *r = &norm_rows[i / 4];
        enum dtype t = i % 2 ? DTYPE_BF16 : DTYPE_F32;
        bool rms = i / 2 % 2;
        int64_t count = r->rows * r->D;
        struct values v;
        float **of_rows[] = {&v.x, &v.residual, &v.dy, &v.later}, **of_columns[] = {&v.w, &v.bias};
        for (int k = 0; k < 4; k++)
            *of_rows[k] = round_to(t, host_random(world, count, -r->size, r->size), count);
        for (int k = 0; k < 2; k++)
            *of_columns[k] = round_to(t, host_random(world, r->D, -1, 1), r->D);
        struct left a = run(world, r, t, rms, &v, true), b = run(world, r, t, rms, &v, false);
        assert_same(world, r->name, t, a.sum, b.sum, count);
        assert_same(world, r->name, t, a.y, b.y, count);
        assert_same(world, r->name, t, a.dx, b.dx, count);
        assert_same(world, r->name, DTYPE_F32, a.saved, b.saved, 2 * r->rows);
        assert_same(world, r->name, DTYPE_F32, a.dw, b.dw, 2 * r->D);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_norms, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_norms, world_setup_two_threads, world_teardown),
        cmocka_unit_test_setup_teardown(test_residual, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_residual, world_setup_two_threads, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
