/* The ops of images and of their loss: each with its table of sizes, in both dtypes. */
#include "tests/kernels/op_check.h"

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
    void *rounded = to_device_as(world, DTYPE_BF16, zeros, 256);
    world->ops->normalize(world->stream, DTYPE_F32, y, x, 256, 0.1307f, 0.3081f);
    world->ops->normalize(world->stream, DTYPE_BF16, rounded, x, 256, 0.1307f, 0.3081f);
    float *got = from_device(world, y, 256);
    assert_near(got, want, 256, 1e-6, "normalize");
    assert_near_bf16(from_device_as(world, DTYPE_BF16, rounded, 256), got, 256, 0.5, 1e-3,
                     "normalize");
    from_device_bytes(world, bytes, x, sizeof bytes);
}

struct image_row {
    int64_t B, H, W, C;
};
static const struct image_row images[] = {{0, 2, 2, 1}, {1, 2, 2, 1},    {2, 4, 6, 8},
                                          {3, 5, 7, 3}, {1, 24, 24, 64}, {2, 3, 2, 33},
                                          {2, 1, 5, 4}, {1, 4, 3, 517}};

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

/* y and dx of x and dy. What they are before does not matter. */
static void run_max_pool2d(struct world *world, const struct image_row *r, enum dtype t,
                           const float *host_x, const float *host_dy, float **ret_y, float **ret_dx)
{
    int64_t x_count = r->B * r->H * r->W * r->C, y_count = r->B * (r->H / 2) * (r->W / 2) * r->C;
    void *x = to_device_as(world, t, host_x, x_count);
    void *dx = to_device_as(world, t, host_x, x_count);
    void *y = to_device_as(world, t, host_dy, y_count);
    void *dy = to_device_as(world, t, host_dy, y_count);
    uint8_t *bytes = arena_alloc(world->arena, (size_t)y_count + 1);
    uint8_t *index = to_device_bytes(world, bytes, (size_t)y_count);
    world->ops->max_pool2d_forward(world->stream, t, y, index, x, r->B, r->H, r->W, r->C);
    world->ops->max_pool2d_backward(world->stream, t, dx, index, dy, r->B, r->H, r->W, r->C);
    *ret_y = from_device_as(world, t, y, y_count);
    *ret_dx = from_device_as(world, t, dx, x_count);
    from_device_bytes(world, bytes, index, (size_t)y_count);
    from_device_as(world, t, x, x_count);
    from_device_as(world, t, dy, y_count);
}

/* Nothing is rounded: what comes out is what one of the inputs is, in bf16 as in fp32. */
static void test_max_pool2d(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < array_length(images); i++) {
        const struct image_row *r = &images[i];
        int64_t x_count = r->B * r->H * r->W * r->C,
                y_count = r->B * (r->H / 2) * (r->W / 2) * r->C;
        struct reference reference = {.forward = pool_reference, .shape = r, .y_count = y_count};
        float *host_x = host_random(world, x_count, -1, 1), *y, *dx, *narrow_y, *narrow_dx;
        float *host_dy = host_random(world, y_count, -1, 1);
        reference.in[0] = to_double(world, host_x, x_count);
        reference.in_count[0] = x_count;
        run_max_pool2d(world, r, DTYPE_F32, host_x, host_dy, &y, &dx);
        assert_near(y, reference_run(world, &reference), y_count, 0, "max_pool2d");
        assert_gradient(world, &reference, 0, host_dy, dx, "max_pool2d");
        round_to(DTYPE_BF16, host_x, x_count);
        round_to(DTYPE_BF16, host_dy, y_count);
        run_max_pool2d(world, r, DTYPE_F32, host_x, host_dy, &y, &dx);
        run_max_pool2d(world, r, DTYPE_BF16, host_x, host_dy, &narrow_y, &narrow_dx);
        assert_memory_equal(narrow_y, y, (size_t)y_count * sizeof *y);
        assert_memory_equal(narrow_dx, dx, (size_t)x_count * sizeof *dx);
    }
}

/* Of equal values the first has the gradient; one that is no number wins, as in torch. */
static void test_max_pool2d_ties(void **state)
{
    struct world *world = *state;
    static const struct {
        float x[4];
        uint8_t index;
    } rows[] = {
        {{1, 1, 1, 1}, 0},   {{0, 1, 1, 1}, 1},          {{0, 0, 1, 1}, 2},   {{0, 0, 0, 1}, 3},
        {{0, 1, 1, 0}, 1},   {{NAN, 1, 0, 0}, 0},        {{1, NAN, 0, 2}, 1}, {{1, 0, NAN, 2}, 2},
        {{2, 1, 0, NAN}, 3}, {{NAN, 2, INFINITY, 1}, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        uint8_t got = 9;
        float one = 1;
        float *x = to_device(world, rows[i].x, 4), *y = to_device(world, &one, 1);
        uint8_t *index = to_device_bytes(world, &got, 1);
        world->ops->max_pool2d_forward(world->stream, DTYPE_F32, y, index, x, 1, 2, 2, 1);
        from_device_bytes(world, &got, index, 1);
        assert_int_equal(got, rows[i].index);
        from_device(world, x, 4);
        const float largest = *from_device(world, y, 1), wanted = rows[i].x[rows[i].index];
        assert_true(largest == wanted || (isnan(largest) && isnan(wanted)));
    }
}

static void check_layouts(struct world *world, const struct image_row *r, enum dtype t)
{
    int64_t count = r->B * r->H * r->W * r->C, places = r->H * r->W;
    float *host = round_to(t, host_random(world, count, -1, 1), count);
    void *last = to_device_as(world, t, host, count), *first = to_device_as(world, t, host, count);
    void *back = to_device_as(world, t, host, count);
    world->ops->channels_first(world->stream, t, first, last, r->B, r->H, r->W, r->C);
    world->ops->channels_last(world->stream, t, back, first, r->B, r->H, r->W, r->C);
    float *got = from_device_as(world, t, first, count);
    for (int64_t j = 0; j < count; j++) {
        int64_t b = j / (r->C * places), c = j / places % r->C, place = j % places;
        assert_true(got[j] == host[(b * places + place) * r->C + c]);
    }
    assert_memory_equal(from_device_as(world, t, back, count), host, (size_t)count * sizeof *host);
    from_device_as(world, t, last, count);
}

static void test_layouts(void **state)
{
    for (size_t i = 0; i < array_length(images); i++) {
        check_layouts(*state, &images[i], DTYPE_F32);
        check_layouts(*state, &images[i], DTYPE_BF16);
    }
}

struct loss_row {
    const char *name;
    int64_t rows, cols;
    float size; /* of the inputs */
};
static const struct loss_row losses[] = {
    {"no rows", 0, 3, 1},  {"one class", 3, 1, 1},       {"digits", 64, 10, 5},
    {"one row", 1, 33, 1}, {"huge inputs", 4, 7, 1e38f},
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

/* Log-probabilities are fp32 whatever they are made of, and in place where that is fp32. */
static void check_loss(struct world *world, const struct loss_row *r, enum dtype t)
{
    const struct ops *ops = world->ops;
    int64_t count = r->rows * r->cols;
    const int32_t *host_target = targets_of(world, r);
    float *host_x = round_to(t, host_random(world, count, -r->size, r->size), count);
    double sums[3] = {100, 10, 1}, want_sums[3] = {100, 10, 1}; /* added to */
    double *want = arena_array(world->arena, double, count);
    log_softmax_reference(r, want, to_double(world, host_x, count));
    float *want_dx = host_zeros(world, count);
    for (int64_t i = 0; i < r->rows; i++) {
        int64_t best = 0;
        for (int64_t c = 0; c < r->cols; c++) {
            best = want[i * r->cols + c] > want[i * r->cols + best] ? c : best;
            want_dx[i * r->cols + c] =
                (float)(0.5 * (exp(want[i * r->cols + c]) - (c == host_target[i] ? 1 : 0)));
        }
        want_sums[0] -= want[i * r->cols + host_target[i]];
        want_sums[1] += best == host_target[i];
        want_sums[2]++;
    }
    void *x = to_device_as(world, t, host_x, count), *dx = to_device_as(world, t, host_x, count);
    float *y = t == DTYPE_F32 ? x : to_device(world, host_x, count);
    int32_t *target = to_device_bytes(world, host_target, (size_t)r->rows * sizeof *target);
    double *device_sums = to_device_bytes(world, sums, sizeof sums);
    ops->log_softmax(world->stream, t, y, x, r->rows, r->cols);
    ops->nll_loss(world->stream, device_sums, y, target, r->rows, r->cols);
    ops->nll_log_softmax_backward(world->stream, t, dx, y, target, 0.5f, r->rows, r->cols);
    float *got_dx = from_device_as(world, t, dx, count);
    if (t == DTYPE_F32)
        assert_near(got_dx, to_double(world, want_dx, count), count, 1e-6, r->name);
    else
        assert_near_bf16(got_dx, want_dx, count, 1, 1e-3, r->name);
    if (t != DTYPE_F32)
        from_device_as(world, t, x, count);
    assert_near(from_device(world, y, count), want, count, 1e-6, r->name);
    from_device_bytes(world, sums, device_sums, sizeof sums);
    assert_true(fabs(sums[0] - want_sums[0]) <= 1e-6 * fabs(want_sums[0]));
    assert_true(sums[1] == want_sums[1] && sums[2] == want_sums[2]);
    from_device_bytes(world, arena_array(world->arena, int32_t, r->rows), target,
                      (size_t)r->rows * sizeof *target);
}

static void test_loss(void **state)
{
    for (size_t i = 0; i < array_length(losses); i++) {
        check_loss(*state, &losses[i], DTYPE_F32);
        check_loss(*state, &losses[i], DTYPE_BF16);
    }
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

/* The norm of these numbers, in `cuts` ranges that are summed last to first. */
static double exact_sum(struct world *world, const float *x, int64_t count, int cuts)
{
    double zeros[EXACT_DIGITS] = {0}, sum;
    double *digits = to_device_bytes(world, zeros, sizeof zeros);
    double *ret_sum = to_device_bytes(world, zeros, sizeof sum);
    int64_t blocks = count / EXACT_BLOCK;
    for (int cut = cuts - 1; cut >= 0; cut--) {
        int64_t first = blocks * cut / cuts * EXACT_BLOCK;
        int64_t last = blocks * (cut + 1) / cuts * EXACT_BLOCK;
        world->ops->exact_squares(world->stream, digits, x + first, last - first);
    }
    world->ops->exact_sum(world->stream, ret_sum, digits);
    from_device_bytes(world, &sum, ret_sum, sizeof sum);
    from_device_bytes(world, zeros, digits, sizeof zeros);
    return sum;
}

/* Sizes from the smallest to the largest number: in any order and in any cut the same bits. */
static void exact_squares_know_no_order(void **state)
{
    enum { COUNT = 3 * 65536 + 8 * 11 };
    struct world *world = *state;
    float *host = host_random(world, COUNT, -1, 1);
    double want = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        host[i] = ldexpf(host[i], (int)(i % 97) - 70);
        want += (double)host[i] * host[i];
    }
    float *x = to_device(world, host, COUNT);
    double whole = exact_sum(world, x, COUNT, 1);
    assert_true(fabs(whole - want) <= 1e-12 * want);
    for (int cuts = 2; cuts < 9; cuts++)
        assert_true(exact_sum(world, x, COUNT, cuts) == whole);
    from_device(world, x, COUNT);
}

static void exact_squares_keep_their_range(void **state)
{
    static const struct {
        float x;
        double sum; /* of 8 such squares */
    } rows[] = {
        {0, 0},
        {1.5F, 18},
        {0x1p-40F, 0x1p-77},
        {0x1p-111F, 0x1p-219},
        {0x1p-126F, 0}, /* below the last digit */
        {0x1p127F, 0x1p257},
        {INFINITY, (double)INFINITY},
        {NAN, (double)NAN},
        {-NAN, (double)NAN},
    };
    struct world *world = *state;
    for (size_t i = 0; i < array_length(rows); i++) {
        float *host = host_zeros(world, EXACT_BLOCK);
        for (int j = 0; j < EXACT_BLOCK; j++)
            host[j] = rows[i].x;
        float *x = to_device(world, host, EXACT_BLOCK);
        double sum = exact_sum(world, x, EXACT_BLOCK, 1);
        if (sum != rows[i].sum && !(isnan(sum) && isnan(rows[i].sum)))
            fail_msg("%g: %g, not %g", (double)rows[i].x, sum, rows[i].sum);
        from_device(world, x, EXACT_BLOCK);
    }
}

/* Digits as large as all cuts of a rank may make them, of so many ranks that doubles would round
 * their sum if nothing carried. Both counts are no digits. */
static void exact_digits_are_carried_before_ranks_add_them(void **state)
{
    enum { LARGE = 15, INFINITE = LARGE + 1 };
    const double most = 0x1p53 - 1;
    struct world *world = *state;
    double digits[EXACT_DIGITS] = {0};
    for (int d = 0; d < LARGE; d++)
        digits[d] = most - d;
    digits[INFINITE] = 0x1p40, digits[INFINITE + 1] = 0x1p41;
    double *there = to_device_bytes(world, digits, sizeof digits);
    world->ops->exact_carry(world->stream, there);
    from_device_bytes(world, digits, there, sizeof digits);
    uint64_t over = 0;
    for (int d = 0; d < LARGE; d++) {
        uint64_t whole = (uint64_t)most - (uint64_t)d + over;
        assert_true(digits[d] == (double)(whole & UINT32_MAX));
        over = whole >> 32;
    }
    assert_true(digits[LARGE] == (double)over);
    assert_true(digits[INFINITE] == 0x1p40 && digits[INFINITE + 1] == 0x1p41);
}

/* Losses of batches, added up forwards and backwards. */
static void exact_parts_know_no_order(void **state)
{
    enum { PARTS = 100 };
    struct world *world = *state;
    double zeros[2] = {0}, ends[2][2], parts[2];
    for (int way = 0; way < 2; way++) {
        double *sums = to_device_bytes(world, zeros, sizeof zeros);
        double *device_parts = to_device_bytes(world, zeros, sizeof zeros);
        for (int i = 0; i < PARTS; i++) {
            int part = way ? PARTS - 1 - i : i;
            parts[0] = 1e5 / (3 + part), parts[1] = -1.0 / (7 + part);
            stream_copy(world->stream, device_parts, parts, sizeof parts);
            world->ops->exact_add(world->stream, sums, device_parts, 2);
            from_device_bytes(world, parts, device_parts, sizeof parts);
            assert_true(parts[0] == 0 && parts[1] == 0);
            device_parts = to_device_bytes(world, zeros, sizeof zeros);
        }
        from_device_bytes(world, ends[way], sums, sizeof ends[way]);
        from_device_bytes(world, parts, device_parts, sizeof parts);
    }
    assert_memory_equal(ends[0], ends[1], sizeof ends[0]);
    double want = 0;
    for (int i = 0; i < PARTS; i++)
        want += 1e5 / (3 + i);
    assert_true(fabs(ends[0][0] - want) < PARTS * 0x1p-20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exact_squares_know_no_order, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(exact_squares_keep_their_range, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(exact_digits_are_carried_before_ranks_add_them, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(exact_parts_know_no_order, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_normalize, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_max_pool2d, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_max_pool2d_ties, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_layouts, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_loss, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_sum_of_squares, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
