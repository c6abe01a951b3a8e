#include "tests/kernels/op_check.h"

#include <math.h>
#include <string.h>

float *round_to(enum dtype t, float *host, int64_t count)
{
    for (int64_t i = 0; t == DTYPE_BF16 && i < count; i++)
        host[i] = bf16_to_float(bf16_from_float(host[i]));
    return host;
}

void *to_device_as(struct world *world, enum dtype t, const float *host, int64_t count)
{
    if (t == DTYPE_F32)
        return to_device(world, host, count);
    bf16 *image = arena_array(world->arena, bf16, count);
    for (int64_t i = 0; i < count; i++)
        image[i] = bf16_from_float(host[i]);
    return to_device_bytes(world, image, (size_t)count * sizeof *image);
}

float *from_device_as(struct world *world, enum dtype t, void *memory, int64_t count)
{
    if (t == DTYPE_F32)
        return from_device(world, (float *)memory, count);
    bf16 *image = arena_array(world->arena, bf16, count);
    float *host = host_zeros(world, count);
    from_device_bytes(world, image, memory, (size_t)count * sizeof *image);
    for (int64_t i = 0; i < count; i++)
        host[i] = bf16_to_float(image[i]);
    return host;
}

void assert_near_bf16(const float *got, const float *want, int64_t count, double units,
                      double floor, const char *what)
{
    for (int64_t i = 0; i < count; i++) {
        double unit = ldexp(1, ilogb(fmax(fabs((double)want[i]), floor)) - 7);
        if (fabs((double)got[i] - want[i]) <= units * unit)
            continue;
        print_error("%s: bf16 element %lld is %.9g, fp32 says %.9g\n", what, (long long)i,
                    (double)got[i], (double)want[i]);
        fail();
    }
}

/* What a run leaves, as floats; elements that are not the op's are 0 here. */
struct outcome {
    float *y, *gradient[MAX_INPUTS];
};

static int64_t count_of(const struct op_row *row, int which)
{
    return which == OUTPUT ? row->y_count : row->in_count[which];
}

static enum dtype dtype_of(const struct op_row *row, enum dtype t, int which)
{
    return which != OUTPUT && row->fp32[which] ? DTYPE_F32 : t;
}

/* Sets what is not the op's to `value`, in a copy. */
static float *fill_gaps(struct world *world, const struct op_row *row, int which, const float *host,
                        float value)
{
    int64_t count = count_of(row, which);
    float *copy = host_zeros(world, count);
    for (int64_t i = 0; i < count; i++)
        copy[i] = row->used && !row->used(row->shape, which, i) ? value : host[i];
    return copy;
}

/* Takes an output back: gaps must still be NaN. */
static float *take_back(struct world *world, const struct op_row *row, enum dtype t, int which,
                        void *memory)
{
    int64_t count = count_of(row, which);
    float *host = from_device_as(world, t, memory, count);
    for (int64_t i = 0; row->used && i < count; i++)
        if (!row->used(row->shape, which, i) && !isnan(host[i])) {
            print_error("%s: wrote element %lld between the rows of tensor %d\n", row->name,
                        (long long)i, which);
            fail();
        }
    return fill_gaps(world, row, which, host, 0);
}

static void *poisoned(struct world *world, enum dtype t, int64_t count)
{
    float *host = host_zeros(world, count);
    for (int64_t i = 0; i < count; i++)
        host[i] = NAN;
    return to_device_as(world, t, host, count);
}

static void run_backward(struct world *world, const struct op_row *row, enum dtype t,
                         float *const host[MAX_INPUTS], const float *host_dy, const void *y,
                         const float *saved, void *const in[MAX_INPUTS], struct outcome *outcome)
{
    void *gradient[MAX_INPUTS] = {NULL};
    void *dy = to_device_as(world, t, fill_gaps(world, row, OUTPUT, host_dy, NAN), row->y_count);
    for (int i = 0; i < row->inputs; i++) {
        bool add = row->accumulate && row->parameter[i];
        enum dtype t_gradient = row->parameter[i] ? DTYPE_F32 : t;
        if (row->fp32[i])
            continue;
        gradient[i] = i == 0 && row->dx_is_dy  ? dy
                      : i == 0 && row->dx_is_x ? in[0]
                      : add                    ? to_device(world, host[i], row->in_count[i])
                                               : poisoned(world, t_gradient, row->in_count[i]);
    }
    row->backward(world, t, row->shape, gradient, dy, y, saved, in);
    for (int i = 0; i < row->inputs; i++) {
        if (!gradient[i])
            continue;
        outcome->gradient[i] =
            take_back(world, row, row->parameter[i] ? DTYPE_F32 : t, i, gradient[i]);
        for (int64_t j = 0; row->accumulate && row->parameter[i] && j < row->in_count[i]; j++)
            outcome->gradient[i][j] -= host[i][j];
    }
    if (!row->dx_is_dy)
        from_device_as(world, t, dy, row->y_count);
}

static struct outcome run_op(struct world *world, const struct op_row *row, enum dtype t,
                             float *const host[MAX_INPUTS], const float *host_dy)
{
    struct outcome outcome = {0};
    const float *over_x = NULL;
    void *in[MAX_INPUTS] = {NULL};
    for (int i = 0; i < row->inputs; i++)
        in[i] = to_device_as(world, dtype_of(row, t, i), fill_gaps(world, row, i, host[i], NAN),
                             row->in_count[i]);
    float *saved = poisoned(world, DTYPE_F32, row->saved_count);
    enum dtype t_y = row->fp32_y ? DTYPE_F32 : t;
    void *y = poisoned(world, t_y, row->y_count);
    if (row->y_is_x) {
        void *x = to_device_as(world, t, host[0], row->y_count);
        row->forward(world, t, row->shape, x, saved, (void *[MAX_INPUTS]){x, in[1], in[2]});
        over_x = take_back(world, row, t, OUTPUT, x);
    }
    row->forward(world, t, row->shape, y, saved, in);
    if (row->backward)
        run_backward(world, row, t, host, host_dy, y, saved, in, &outcome);
    outcome.y = take_back(world, row, t_y, OUTPUT, y);
    if (over_x)
        assert_memory_equal(over_x, outcome.y, (size_t)row->y_count * sizeof *over_x);
    for (int i = row->dx_is_x ? 1 : 0; i < row->inputs; i++)
        from_device_as(world, dtype_of(row, t, i), in[i], row->in_count[i]);
    from_device(world, saved, row->saved_count);
    return outcome;
}

static void assert_same(const struct op_row *row, const struct outcome *a, const struct outcome *b)
{
    assert_memory_equal(a->y, b->y, (size_t)row->y_count * sizeof *a->y);
    for (int i = 0; i < row->inputs; i++)
        if (a->gradient[i])
            assert_memory_equal(a->gradient[i], b->gradient[i],
                                (size_t)row->in_count[i] * sizeof *a->gradient[i]);
}

/* Sums of up to a few thousand terms of size 1 in single precision, in any order. */
static const double TOLERANCE = 2e-5;

static void check_fp32(struct world *world, const struct op_row *row, float *const host[MAX_INPUTS],
                       const float *dy, const struct outcome *outcome)
{
    struct reference reference = {
        .forward = row->reference, .shape = row->shape, .y_count = row->y_count};
    for (int i = 0; i < row->inputs; i++) {
        reference.in[i] = to_double(world, host[i], row->in_count[i]);
        reference.in_count[i] = row->in_count[i];
    }
    assert_near(outcome->y, reference_run(world, &reference), row->y_count, TOLERANCE, row->name);
    for (int i = 0; i < row->inputs; i++)
        if (outcome->gradient[i])
            assert_gradient(world, &reference, i, dy, outcome->gradient[i], row->name);
}

static void check_dtype(struct world *world, const struct op_row *row, enum dtype t)
{
    float *host[MAX_INPUTS] = {NULL}, size = row->size > 0 ? row->size : 1;
    for (int i = 0; i < row->inputs; i++) {
        host[i] = round_to(t, host_random(world, row->in_count[i], -size, size), row->in_count[i]);
        host[i] = fill_gaps(world, row, i, host[i], 0);
    }
    float *dy = round_to(t, host_random(world, row->y_count, -1, 1), row->y_count);
    dy = fill_gaps(world, row, OUTPUT, dy, 0);
    struct outcome once = run_op(world, row, t, host, dy), twice = run_op(world, row, t, host, dy);
    if (!row->may_differ || t == DTYPE_F32)
        assert_same(row, &once, &twice);
    struct outcome exact = run_op(world, row, DTYPE_F32, host, dy);
    if (t == DTYPE_F32) {
        check_fp32(world, row, host, dy, &exact);
        return;
    }
    if (row->fp32_y)
        assert_near(once.y, to_double(world, exact.y, row->y_count), row->y_count, TOLERANCE,
                    row->name);
    else
        assert_near_bf16(once.y, exact.y, row->y_count, 2, row->y_floor > 0 ? row->y_floor : 0.01,
                         row->name);
    for (int i = 0; i < row->inputs; i++)
        if (exact.gradient[i])
            assert_near_bf16(once.gradient[i], exact.gradient[i], row->in_count[i], 2,
                             row->floor > 0 ? row->floor : 0.1, row->name);
}

void check_op(struct world *world, const struct op_row *row)
{
    check_dtype(world, row, row->bf16_first ? DTYPE_BF16 : DTYPE_F32);
    check_dtype(world, row, row->bf16_first ? DTYPE_F32 : DTYPE_BF16);
}
