/* Who does attention: what is measured, what is published, and what is never cuDNN's. */
#include "kernels/attention_choice.h"
#include "tests/kernels/attention_rows.h"

#define PLAIN(t, width)                                                                            \
    {                                                                                              \
        PACKED(2, t, 4, 2, width)                                                                  \
    }
static const float some_bias;
static const int32_t some_counts;

/* In no order: what the compiler was given is not what a search may lean on. */
static const struct attention_measured measured[] = {
    {90, ATTENTION_FORWARD, 64, ATTENTION_CAUSAL, 4096, 2, 1},
    {90, ATTENTION_FORWARD, 64, ATTENTION_CAUSAL, 512, 2, 1},
    {90, ATTENTION_FORWARD, 64, ATTENTION_CAUSAL, 1024, 1, 0.96}, /* that is chance */
    {90, ATTENTION_BACKWARD, 64, ATTENTION_CAUSAL, 512, 1, 2},
    {90, ATTENTION_FORWARD, 128, ATTENTION_FULL, 512, 1, 0.94},
    {100, ATTENTION_BACKWARD, 64, ATTENTION_CAUSAL, 1, 2, 1},
    {0},
};

static const struct attention_published published[] = {
    {{90, ATTENTION_FORWARD, 64, ATTENTION_CAUSAL, 256, 2, 1}, "of a kind that was measured"},
    {{90, ATTENTION_BACKWARD_NONDETERMINISTIC, 64, ATTENTION_CAUSAL, 2048, 2, 1}, "faster"},
    {{90, ATTENTION_BACKWARD, 128, ATTENTION_CAUSAL, 2048, 0.97, 1}, "too close"},
    {{0}, NULL},
};

static struct attention_choice choice(enum attention_mode mode, int architecture)
{
    return (struct attention_choice){mode, architecture, measured, published};
}

static bool tries_cudnn(const struct attention_choice *at, enum attention_direction direction,
                        enum dtype t, const struct attention_shape *shape)
{
    return attention_choose(at, direction, t, shape) != ATTENTION_BY_US;
}

/* Who is asked for what cuDNN can do. */
static void test_choice(void **state)
{
    (void)state;
    const struct {
        struct attention_shape shape;
        bool possible;
    } rows[] = {{PLAIN(8192, 64), true}, {PLAIN(100, 128), true}, {PLAIN(8192, 96), false}};
    const struct attention_choice ours = choice(ATTENTION_OURS, 90);
    const struct attention_choice cudnns = choice(ATTENTION_CUDNN, 80);
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct attention_shape *shape = &rows[i].shape;
        assert_false(tries_cudnn(&ours, ATTENTION_FORWARD, DTYPE_BF16, shape));
        assert_false(tries_cudnn(&cudnns, ATTENTION_FORWARD, DTYPE_F32, shape));
        assert_int_equal(tries_cudnn(&cudnns, ATTENTION_FORWARD, DTYPE_BF16, shape),
                         rows[i].possible);
    }
}

/* What was measured decides, else what was published, unless somebody else has. */
static void test_tables(void **state)
{
    (void)state;
    const enum attention_doer faster = ATTENTION_CUDNN_MEASURED, others = ATTENTION_CUDNN_PUBLISHED;
    const struct {
        const char *name;
        int architecture;
        enum attention_direction direction;
        int64_t T, hd;
        bool causal;
        enum attention_doer doer;
    } rows[] = {
        {"shorter than any row", 90, ATTENTION_FORWARD, 511, 64, true, ATTENTION_BY_US},
        {"a row's own length", 90, ATTENTION_FORWARD, 512, 64, true, faster},
        {"up to the next row", 90, ATTENTION_FORWARD, 1023, 64, true, faster},
        {"the next row, too close", 90, ATTENTION_FORWARD, 1024, 64, true, ATTENTION_BY_US},
        {"the last row", 90, ATTENTION_FORWARD, 4096, 64, true, faster},
        {"longer than any row", 90, ATTENTION_FORWARD, 100000, 64, true, faster},
        {"slower backward", 90, ATTENTION_BACKWARD, 512, 64, true, ATTENTION_BY_US},
        {"another width", 90, ATTENTION_FORWARD, 512, 128, true, ATTENTION_BY_US},
        {"without a mask", 90, ATTENTION_FORWARD, 512, 128, false, faster},
        {"the other width without", 90, ATTENTION_FORWARD, 512, 64, false, ATTENTION_BY_US},
        {"another architecture", 100, ATTENTION_BACKWARD, 512, 64, true, faster},
        {"its other direction", 100, ATTENTION_FORWARD, 512, 64, true, ATTENTION_BY_US},
        {"one between the two", 89, ATTENTION_FORWARD, 512, 64, true, ATTENTION_BY_US},
        {"measured only in order", 90, ATTENTION_BACKWARD_NONDETERMINISTIC, 2048, 64, true, others},
        {"shorter than published", 90, ATTENTION_BACKWARD_NONDETERMINISTIC, 2047, 64, true,
         ATTENTION_BY_US},
        {"published, too close", 90, ATTENTION_BACKWARD, 4096, 128, true, ATTENTION_BY_US},
        {"published of another", 100, ATTENTION_BACKWARD_NONDETERMINISTIC, 4096, 64, true,
         ATTENTION_BY_US},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        bool forward = rows[i].direction == ATTENTION_FORWARD;
        struct attention_shape shape = {PACKED(1, rows[i].T, 2, 2, rows[i].hd)};
        const struct attention_choice at = choice(ATTENTION_AUTO, rows[i].architecture);
        shape.causal = rows[i].causal;
        shape.nondeterministic = rows[i].direction == ATTENTION_BACKWARD_NONDETERMINISTIC;
        if (attention_choose(&at, forward ? ATTENTION_FORWARD : ATTENTION_BACKWARD, DTYPE_BF16,
                             &shape) != rows[i].doer)
            fail_msg("%s", rows[i].name);
        assert_int_equal(attention_is_known(&at), rows[i].architecture != 89);
    }
}

/* What an H100 gets of this build, as long as it was not measured: cuDNN where others found it
 * faster, and never for a backward with equal bits. */
static void test_published(void **state)
{
    (void)state;
    static const struct {
        int64_t T, hd;
        bool causal, forward, backward_in_any_order;
    } rows[] = {{8192, 64, true, true, true},
                {8192, 128, true, true, true},
                {2048, 128, true, true, true},
                {2047, 128, true, false, false},
                {8192, 128, false, false, false}};
    static const struct attention_measured nothing[] = {{0}};
    struct attention_choice at = attention_choice_here(ATTENTION_AUTO, 90);
    at.table = nothing;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct attention_shape shape = {PACKED(1, rows[i].T, 2, 2, rows[i].hd)};
        shape.causal = rows[i].causal;
        assert_int_equal(tries_cudnn(&at, ATTENTION_FORWARD, DTYPE_BF16, &shape), rows[i].forward);
        assert_false(tries_cudnn(&at, ATTENTION_BACKWARD, DTYPE_BF16, &shape));
        shape.nondeterministic = true;
        assert_int_equal(tries_cudnn(&at, ATTENTION_BACKWARD, DTYPE_BF16, &shape),
                         rows[i].backward_in_any_order);
    }
    for (const struct attention_published *row = attention_published; row->row.compute_capability;
         row++)
        assert_true(row->source[0] && row->row.ours_ms > 0 && row->row.cudnn_ms > 0);
    at.compute_capability = 80;
    assert_false(attention_is_known(&at));
}

/* Ours for 9.0: only who asks gets it, and only for what it can do. */
static void test_hopper(void **state)
{
    (void)state;
    static const struct {
        struct attention_shape shape;
        bool is_possible;
    } rows[] = {{{PACKED(2, 8192, 4, 2, 64), .causal = true}, true},
                {PLAIN(100, 128), true},
                {PLAIN(8192, 96), false},
                {{PACKED(2, 8192, 4, 2, 64), .dropout = 0.1f}, false},
                {{PACKED(2, 8192, 4, 2, 64), .bias = &some_bias}, false},
                {{PACKED(2, 8192, 4, 2, 64), .key_counts = &some_counts}, false},
                {{.B = 1,
                  .T_q = 64,
                  .T_k = 64,
                  .heads = 1,
                  .kv_heads = 1,
                  .hd = 64,
                  .q_stride = 72,
                  .k_stride = 64,
                  .v_stride = 64},
                 false}};
    const struct attention_choice hopper = choice(ATTENTION_HOPPER, 90);
    const struct attention_choice older = choice(ATTENTION_HOPPER, 80);
    const struct attention_choice newer = choice(ATTENTION_HOPPER, 100);
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct attention_shape *shape = &rows[i].shape;
        for (int direction = ATTENTION_FORWARD; direction <= ATTENTION_BACKWARD; direction++)
            assert_int_equal(attention_choose(&hopper, direction, DTYPE_BF16, shape),
                             rows[i].is_possible ? ATTENTION_BY_HOPPER : ATTENTION_BY_US);
        assert_false(tries_cudnn(&hopper, ATTENTION_FORWARD, DTYPE_F32, shape));
        assert_int_equal(attention_choose(&hopper, ATTENTION_BACKWARD, DTYPE_F32, shape),
                         ATTENTION_BY_US);
        assert_false(tries_cudnn(&older, ATTENTION_FORWARD, DTYPE_BF16, shape));
        assert_false(tries_cudnn(&newer, ATTENTION_FORWARD, DTYPE_BF16, shape));
        for (int mode = ATTENTION_AUTO; mode <= ATTENTION_CUDNN; mode++) {
            const struct attention_choice here = attention_choice_here(mode, 90);
            assert_int_not_equal(attention_choose(&here, ATTENTION_FORWARD, DTYPE_BF16, shape),
                                 ATTENTION_BY_HOPPER);
        }
    }
    assert_false(attention_is_cudnns(ATTENTION_BY_HOPPER));
}

/* The table of this build: one row a kind and length, all of them times. */
static void test_table(void **state)
{
    (void)state;
    for (const struct attention_measured *row = attention_table; row->compute_capability; row++) {
        assert_true(row->compute_capability >= 80 && (row->hd == 64 || row->hd == 128) &&
                    row->T > 0);
        assert_true(row->ours_ms > 0 && row->cudnn_ms > 0);
        for (const struct attention_measured *other = attention_table; other != row; other++)
            assert_false(other->compute_capability == row->compute_capability &&
                         other->direction == row->direction && other->hd == row->hd &&
                         other->mask == row->mask && other->T == row->T);
    }
}

/* What is never cuDNN's. */
static void test_never(void **state)
{
    (void)state;
    const struct attention_choice cudnns = choice(ATTENTION_CUDNN, 90);
    struct attention_shape shapes[] = {PLAIN(64, 64), PLAIN(64, 64), PLAIN(64, 64), PLAIN(64, 64)};
    shapes[0].bias = &some_bias;
    shapes[1].dropout = 0.1f;
    shapes[2].key_counts = &some_counts;
    shapes[3].k_stride = 516;
    for (size_t i = 0; i < array_length(shapes); i++)
        assert_false(tries_cudnn(&cudnns, ATTENTION_FORWARD, DTYPE_BF16, &shapes[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),    cmocka_unit_test(test_tables),
        cmocka_unit_test(test_table),     cmocka_unit_test(test_never),
        cmocka_unit_test(test_published), cmocka_unit_test(test_hopper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
