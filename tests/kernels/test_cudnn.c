/* cuDNN's attention: who is asked for what; the rows of attention_rows.c with it, and with
 * each way in which it can be unusable, on the emulated GPU (whose cuDNN computes what the graph's
 * descriptors say), the former on a real one, too. */
#include "base/contract.h"
#include "base/log.h"
#include "kernels/attention_choice.h"
#include "tests/kernels/attention_rows.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the choice ---- */

/* Columns of one packed tensor. */
#define PACKED(b, t, h, kv, width)                                                                 \
    .B = b, .T_q = t, .T_k = t, .heads = h, .kv_heads = kv, .hd = width,                           \
    .q_stride = (h + 2 * kv) * width, .k_stride = (h + 2 * kv) * width,                            \
    .v_stride = (h + 2 * kv) * width, .scale = 0.125f
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

static void test_mode(void **state)
{
    (void)state;
    enum attention_mode mode;
    struct error err;
    assert_ok(attention_mode_read(NULL, &mode, &err), &err);
    assert_int_equal(mode, ATTENTION_AUTO);
    assert_ok(attention_mode_read("ours", &mode, &err), &err);
    assert_int_equal(mode, ATTENTION_OURS);
    assert_ok(attention_mode_read("cudnn", &mode, &err), &err);
    assert_int_equal(mode, ATTENTION_CUDNN);
    assert_fails(attention_mode_read("fast", &mode, &err), &err, ERR_CONFIG,
                 "SHOAL_ATTENTION is \"fast\": auto, ours or cudnn is meant");
}

/* ---- on a GPU ---- */

/* A world whose attention and emulation are set; NULL: as they are. */
static struct world *open_world(const char *attention, const char *emulation)
{
    void *world;
    if (attention)
        setenv(ENV_ATTENTION, attention, 1);
    if (emulation)
        setenv("SHOAL_EMULATION", emulation, 1);
    assert_int_equal(world_setup(&world), 0);
    return world;
}

static void close_world(struct world *world)
{
    void *state = world;
    world_teardown(&state);
    unsetenv(ENV_ATTENTION);
    unsetenv("SHOAL_EMULATION");
}

/* Plans that the emulated cuDNN has been given to run; -1: it is a real one. */
static int64_t runs(void)
{
    if (!support_is_emulated())
        return -1;
    void *library = dlopen(getenv("SHOAL_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    int64_t (*count)(void);
    *(void **)&count = dlsym(library, "emulation_cudnn_runs");
    assert_non_null(count);
    int64_t result = count();
    dlclose(library);
    return result;
}

static bool is_for_cudnn(const struct attention_row *row)
{
    const struct attention_choice cudnns = choice(ATTENTION_CUDNN, 90);
    return !row->bias && !row->key_counts[0] && row->shape.B > 0 &&
           tries_cudnn(&cudnns, ATTENTION_FORWARD, DTYPE_BF16, &row->shape);
}

/* Shapes that the other rows have not. */
static const struct attention_row more_rows[] = {
    {"groups of four, strides of their own",
     {.B = 2,
      .T_q = 5,
      .T_k = 19,
      .heads = 4,
      .kv_heads = 1,
      .hd = 64,
      .q_stride = 264,
      .k_stride = 72,
      .v_stride = 64,
      .scale = 0.2f},
     1,
     false,
     {0}},
    {"128 wide, one head, two sequences",
     {.B = 2,
      .T_q = 17,
      .T_k = 17,
      .heads = 1,
      .kv_heads = 1,
      .hd = 128,
      .q_stride = 384,
      .k_stride = 384,
      .v_stride = 384,
      .causal = true,
      .scale = 0.09f},
     1,
     false,
     {0}},
};

/* bf16 is run twice, forward and backward; fp32 is never cuDNN's. */
static void check_row(struct world *world, const struct attention_row *row, bool with_cudnn)
{
    int64_t before = runs(), counted = device_library_attentions(world->device);
    check_attention(world, row);
    assert_int_equal(device_library_attentions(world->device) - counted, with_cudnn ? 4 : 0);
    if (before >= 0)
        assert_int_equal(runs() - before, with_cudnn ? 4 : 0);
}

static void test_rows(void **state)
{
    (void)state;
    struct world *world = open_world("cudnn", NULL);
    int checked = 0;
    for (size_t i = 0; i < attention_row_count; i++)
        if (is_for_cudnn(&attention_rows[i]) && ++checked)
            check_row(world, &attention_rows[i], true);
    assert_true(checked >= 3);
    for (size_t i = 0; i < array_length(more_rows); i++)
        check_row(world, &more_rows[i], true);
    close_world(world);
}

/* The same rows with a backward that adds up in any order: within the tolerance of the other, since
 * fp32 sums in another order differ by less than bf16's rounding. */
static void test_nondeterministic_rows(void **state)
{
    (void)state;
    struct world *world = open_world("cudnn", NULL);
    for (size_t i = 0; i < attention_row_count; i++) {
        struct attention_row row = attention_rows[i];
        row.shape.nondeterministic = true;
        if (is_for_cudnn(&row))
            check_row(world, &row, true);
    }
    for (size_t i = 0; i < array_length(more_rows); i++) {
        struct attention_row row = more_rows[i];
        row.shape.nondeterministic = true;
        check_row(world, &row, true);
    }
    close_world(world);
}

enum { ORDER_T = 200, ORDER_HEADS = 4, ORDER_HD = 64, ORDER_WIDTH = 3 * ORDER_HEADS * ORDER_HD };

/* A backward of [1, ORDER_T] tokens with packed tensors: all three gradients. */
static const float *gradients(struct world *world, const float *qkv, const float *dy, bool differ)
{
    const int64_t count = (int64_t)ORDER_T * ORDER_WIDTH, y_count = count / 3;
    const struct attention_shape shape = {PACKED(1, ORDER_T, ORDER_HEADS, ORDER_HEADS, ORDER_HD),
                                          .causal = true, .nondeterministic = differ};
    bf16 *x = to_device_as(world, DTYPE_BF16, qkv, count);
    bf16 *dx = to_device_as(world, DTYPE_BF16, qkv, count);
    bf16 *g = to_device_as(world, DTYPE_BF16, dy, y_count);
    bf16 *y = to_device_as(world, DTYPE_BF16, dy, y_count);
    float *lse = to_device(world, dy, (int64_t)ORDER_HEADS * ORDER_T);
    const int64_t k = (int64_t)ORDER_HEADS * ORDER_HD, v = 2 * k;
    world->ops->attention_forward(world->stream, DTYPE_BF16, y, lse, x, x + k, x + v, &shape);
    world->ops->attention_backward(world->stream, DTYPE_BF16, dx, dx + k, dx + v, NULL, g, y, lse,
                                   x, x + k, x + v, &shape);
    from_device_as(world, DTYPE_BF16, x, count);
    from_device_as(world, DTYPE_BF16, g, y_count);
    from_device_as(world, DTYPE_BF16, y, y_count);
    from_device(world, lse, (int64_t)ORDER_HEADS * ORDER_T);
    return from_device_as(world, DTYPE_BF16, dx, count);
}

/* Elements that differ; of q's gradient, and of the others. */
static void count_differences(const float *a, const float *b, int64_t *ret_of_q, int64_t *ret_other)
{
    *ret_of_q = *ret_other = 0;
    for (int64_t i = 0; i < (int64_t)ORDER_T * ORDER_WIDTH; i++)
        if (a[i] != b[i])
            ++*(i % ORDER_WIDTH < ORDER_WIDTH / 3 ? ret_of_q : ret_other);
}

/* Who asks for it gets runs that differ, in q's gradient; nobody else does. */
static void test_order(void **state)
{
    (void)state;
    struct world *world = open_world("cudnn", NULL);
    const int64_t count = (int64_t)ORDER_T * ORDER_WIDTH;
    const float *qkv = host_random(world, count, -1, 1);
    const float *dy = host_random(world, count / 3, -1, 1);
    int64_t of_q, others;
    count_differences(gradients(world, qkv, dy, false), gradients(world, qkv, dy, false), &of_q,
                      &others);
    assert_int_equal(of_q + others, 0);
    count_differences(gradients(world, qkv, dy, true), gradients(world, qkv, dy, true), &of_q,
                      &others);
    assert_true(of_q > 0);
    assert_int_equal(others, 0);
    close_world(world);
}

static const struct {
    const char *emulation, *reason;
} failures[] = {
    {"cudnn=absent", "libcudnn.so.9 is not emulated"},
    {"cudnn=old", "cuDNN 9.9 is too old: 9.10 is needed"},
    {"cudnn=half", "installed by half: libcudnn_graph.so.9 is not emulated"},
    {"cudnn=no start", "it does not start: CUDNN_STATUS_NOT_INITIALIZED"},
    {"cudnn=no engine", "a plan: no engine can do it"},
    {"cudnn=no plan", "a plan: emulated: it has no wish to"},
    {"cudnn=hungry", "a plan: 1048576 MiB of workspace are needed, at most 256 are given"},
    {"cudnn=no run", "its plan does not run: CUDNN_STATUS_EXECUTION_FAILED"},
};

/* Our own kernels do it, and a line for each direction says why. */
static void test_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(failures); i++) {
        char text[2048], line[256];
        struct world *world = open_world("cudnn", failures[i].emulation);
        support_stderr_begin();
        check_row(world, &more_rows[1], false);
        support_stderr_end(text, sizeof text);
        for (int backward = 0; backward < 2; backward++) {
            snprintf(line, sizeof line,
                     "attention: %s is done by our own kernels, not by cuDNN: %s",
                     backward ? "backward" : "forward", failures[i].reason);
            const char *first = strstr(text, line);
            if (!first || strstr(first + 1, line))
                fail_msg("%s: not told once: %s\nbut: %s", failures[i].emulation, line, text);
        }
        close_world(world);
    }
}

static void assert_told_once(const char *text, const char *line)
{
    const char *first = strstr(text, line);
    if (!first || strstr(first + 1, line))
        fail_msg("not told once: %s\nbut: %s", line, text);
}

/* Results that are not those of our kernels: ours are taken, also of shapes that come later, and a
 * line for each direction says so. */
static void test_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *emulation, *reasons[2];
    } rows[] = {
        {"cudnn=wrong", {"y is off by 50 % of its size", "dq is off by"}},
        {"cudnn=nan", {"a row of y is not finite", "a row of dq is not finite"}},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char text[2048], line[256];
        struct world *world = open_world("cudnn", rows[i].emulation);
        struct attention_row in_any_order = more_rows[1];
        in_any_order.shape.nondeterministic = true;
        int64_t before = runs();
        support_stderr_begin();
        check_attention(world, &more_rows[1]); /* within the tolerance */
        check_attention(world, &more_rows[0]);
        assert_int_equal(runs() - before, 2); /* a forward and a backward, once */
        check_attention(world, &in_any_order);
        check_attention(world, &in_any_order);
        support_stderr_end(text, sizeof text);
        assert_int_equal(runs() - before, 3); /* that backward was not refused yet */
        assert_int_equal(device_library_attentions(world->device), 0);
        assert_told_once(text, "attention: nondeterministic backward is done by our own kernels");
        for (int backward = 0; backward < 2; backward++) {
            snprintf(line, sizeof line,
                     "attention: %s is done by our own kernels, not by cuDNN: its result is far "
                     "from theirs: %s",
                     backward ? "backward" : "forward", rows[i].reasons[backward]);
            assert_told_once(text, line);
        }
        close_world(world);
    }
}

/* Of a run that has diverged nothing can be said: the next result is compared instead. */
static void test_not_finite(void **state)
{
    (void)state;
    enum { T = 3, HD = 64 };
    const struct attention_shape shape = {PACKED(1, T, 1, 1, HD)};
    const int64_t count = (int64_t)T * 3 * HD;
    struct world *world = open_world("cudnn", "cudnn=wrong");
    float *host = host_random(world, count, -1, 1);
    bf16 *y = to_device_as(world, DTYPE_BF16, host_zeros(world, T * HD), T * HD);
    float *lse = to_device(world, host_zeros(world, T), T);
    int64_t before = runs();
    char text[2048];
    support_stderr_begin();
    for (int i = 0; i < 3; i++) {
        host[2 * HD] = i == 0 ? NAN : 1;
        bf16 *x = to_device_as(world, DTYPE_BF16, host, count);
        world->ops->attention_forward(world->stream, DTYPE_BF16, y, lse, x, x + HD, x + 2 * HD,
                                      &shape);
        from_device_as(world, DTYPE_BF16, x, count);
        assert_int_equal(runs() - before, i == 0 ? 1 : 2);
    }
    from_device_as(world, DTYPE_BF16, y, T * HD);
    from_device(world, lse, T);
    close_world(world);
    support_stderr_end(text, sizeof text);
    assert_non_null(strstr(text, "its result is far from theirs: y is off by 50 %"));
}

/* A version whose backward is wrong where the keys are no multiple of 128: ours do that. */
static void test_before_9_16(void **state)
{
    (void)state;
    char text[2048];
    struct world *world = open_world("cudnn", "cudnn=9.15");
    struct attention_row row = more_rows[1];
    row.shape.T_q = row.shape.T_k = 128;
    check_row(world, &row, true);
    support_stderr_begin();
    int64_t before = runs();
    for (int differ = 0; differ < 2; differ++) {
        row.shape.T_q = row.shape.T_k = 127;
        row.shape.nondeterministic = differ;
        check_attention(world, &row);
    }
    support_stderr_end(text, sizeof text);
    assert_int_equal(runs() - before, 4); /* each forward */
    assert_told_once(text, "attention: backward is done by our own kernels, not by cuDNN: before "
                           "9.16 it needs a multiple of 128 keys");
    assert_told_once(text, "attention: nondeterministic backward is done by our own kernels");
    close_world(world);
}

/* A backward whose workspace for the whole batch is too large is done in parts. */
static void test_parts(void **state)
{
    (void)state;
    struct world *world = open_world("cudnn", "cudnn=greedy");
    for (int differ = 0; differ < 2; differ++) {
        struct attention_row row = more_rows[1]; /* of two sequences, each of 68 bytes of lse */
        row.shape.nondeterministic = differ;
        row.shape.T_q = row.shape.T_k = 16;
        int64_t before = runs();
        check_attention(world, &row);
        assert_int_equal(runs() - before, 2 + 2 * 2);
    }
    char text[2048];
    support_stderr_begin();
    int64_t before = runs();
    check_attention(world, &more_rows[1]); /* its second lse is not aligned */
    assert_int_equal(runs() - before, 2);
    support_stderr_end(text, sizeof text);
    assert_non_null(strstr(text, "a plan: 260 MiB of workspace are needed, at most 256 are given"));
    close_world(world);
}

/* A tensor at another place than cuDNN takes is ours, and told. */
static void test_unaligned(void **state)
{
    (void)state;
    enum { T = 3, HD = 64 };
    const struct attention_shape shape = {PACKED(1, T, 1, 1, HD)};
    const int64_t count = (int64_t)T * 3 * HD + 8;
    char text[2048];
    struct world *world = open_world("cudnn", NULL);
    bf16 *x = to_device_as(world, DTYPE_BF16, host_random(world, count, -1, 1), count);
    bf16 *y = to_device_as(world, DTYPE_BF16, host_zeros(world, T * HD), T * HD);
    float *lse = to_device(world, host_zeros(world, T), T);
    int64_t before = runs();
    support_stderr_begin();
    for (int i = 0; i < 2; i++)
        world->ops->attention_forward(world->stream, DTYPE_BF16, y, lse, x + 4, x + HD, x + 2 * HD,
                                      &shape);
    from_device_as(world, DTYPE_BF16, x, count);
    from_device_as(world, DTYPE_BF16, y, T * HD);
    from_device(world, lse, T);
    support_stderr_end(text, sizeof text);
    assert_int_equal(runs() - before, 0);
    const char *line = "attention: forward is done by our own kernels, not by cuDNN: a tensor does "
                       "not begin at a multiple of 16 bytes";
    const char *first = strstr(text, line);
    if (!first || strstr(first + 1, line))
        fail_msg("not told once: %s", text);
    close_world(world);
}

/* Who looks for it finds why auto is ours: in one line a device, at level debug. */
static void test_unmeasured(void **state)
{
    (void)state;
    const char *line = "attention: cuDNN's was not measured on compute capability 8.8: our own";
    for (enum log_level level = LOG_DEBUG; level <= LOG_INFO; level++) {
        char text[2048];
        support_stderr_begin();
        log_set_level(level);
        struct world *world = open_world("auto", "capability=88");
        check_row(world, &more_rows[1], false);
        close_world(world);
        log_set_level(LOG_INFO);
        support_stderr_end(text, sizeof text);
        const char *first = strstr(text, line);
        if (!first != (level > LOG_DEBUG) || (first && strstr(first + 1, line)))
            fail_msg("level %d: %s", level, text);
    }
}

/* Unasked: cuDNN where others have found it faster, which is told once, and not where it cannot be
 * used. */
static void test_unasked(void **state)
{
    (void)state;
    enum { T = 2048, HD = 64, WIDTH = 3 * HD };
    static const struct {
        const char *emulation;
        int64_t runs;
        const char *told, *untold;
    } rows[] = {{NULL, 2,
                 "cuDNN does it on compute capability 9.0, by published figures, not measured",
                 "by our own kernels"},
                {"cudnn=absent", 0, "attention: forward is done by our own kernels, not by cuDNN",
                 "by published figures"}};
    const struct attention_shape shape = {PACKED(1, T, 1, 1, HD), .causal = true};
    const struct attention_choice here = attention_choice_here(ATTENTION_AUTO, 90);
    if (attention_choose(&here, ATTENTION_FORWARD, DTYPE_BF16, &shape) != ATTENTION_CUDNN_PUBLISHED)
        skip(); /* it has been measured by now */
    for (size_t row = 0; row < array_length(rows); row++) {
        char text[2048];
        support_stderr_begin();
        struct world *world = open_world("auto", rows[row].emulation);
        bf16 *x = to_device_as(world, DTYPE_BF16, host_random(world, (int64_t)T * WIDTH, -1, 1),
                               (int64_t)T * WIDTH);
        bf16 *y = to_device_as(world, DTYPE_BF16, host_zeros(world, T * HD), T * HD);
        float *lse = to_device(world, host_zeros(world, T), T);
        int64_t before = runs();
        for (int i = 0; i < 2; i++)
            world->ops->attention_forward(world->stream, DTYPE_BF16, y, lse, x, x + HD, x + 2 * HD,
                                          &shape);
        assert_int_equal(runs() - before, rows[row].runs);
        from_device_as(world, DTYPE_BF16, x, (int64_t)T * WIDTH);
        from_device_as(world, DTYPE_BF16, y, T * HD);
        from_device(world, lse, T);
        close_world(world);
        support_stderr_end(text, sizeof text);
        const char *first = strstr(text, rows[row].told);
        if (!first || strstr(first + 1, rows[row].told) || strstr(text, rows[row].untold))
            fail_msg("row %zu: %s", row, text);
    }
}

/* More shapes than plans are kept, all queued at once: one that is forgotten has run before. In a
 * graph of ops, which each call parts. */
static void test_many_shapes(void **state)
{
    (void)state;
    enum { SHAPES = 40, MOST = 20, KEYS = 3, HD = 64 };
    struct world *world = open_world("cudnn", NULL);
    const float *zeros = host_zeros(world, MOST * HD);
    void *q = to_device_as(world, DTYPE_BF16, zeros, MOST * HD);
    void *y = to_device_as(world, DTYPE_BF16, zeros, MOST * HD);
    float *lse = to_device(world, zeros, MOST);
    int64_t before = runs();
    struct graph *graph;
    struct error err;
    assert_ok(graph_open(world->stream, &graph, &err), &err);
    for (int i = 0; i < SHAPES; i++) {
        struct attention_shape shape = {PACKED(1, 1 + i % MOST, 1, 1, HD)};
        if (i % MOST == 0)
            graph_begin(graph);
        world->ops->fill(world->stream, lse, -1, MOST);
        shape.T_k = KEYS;
        shape.q_stride = shape.k_stride = shape.v_stride = HD;
        world->ops->attention_forward(world->stream, DTYPE_BF16, y, lse, q, q, q, &shape);
        if (i % MOST == MOST - 1)
            graph_end(graph);
    }
    struct graph_use use;
    graph_get_use(graph, &use);
    assert_int_equal(use.launched, MOST); /* the fills of the second round */
    graph_close(graph);
    const float *host = from_device(world, lse, MOST);
    for (int i = 0; i < MOST; i++)
        assert_true(fabsf(host[i] - logf(KEYS)) < 1e-5f);
    from_device_as(world, DTYPE_BF16, q, MOST * HD);
    from_device_as(world, DTYPE_BF16, y, MOST * HD);
    if (before >= 0)
        assert_int_equal(runs() - before, SHAPES);
    close_world(world);
}

static void test_bad_variable(void **state)
{
    (void)state;
    struct device *device;
    struct error err;
    setenv(ENV_ATTENTION, "fast", 1);
    assert_fails(device_open(support_device(), 1, &device, &err), &err, ERR_CONFIG,
                 "SHOAL_ATTENTION is \"fast\"");
    unsetenv(ENV_ATTENTION);
}

int main(void)
{
    const struct CMUnitTest anywhere[] = {
        cmocka_unit_test(test_choice), cmocka_unit_test(test_tables),
        cmocka_unit_test(test_table),  cmocka_unit_test(test_never),
        cmocka_unit_test(test_mode),   cmocka_unit_test(test_published),
    };
    const struct CMUnitTest gpu[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_nondeterministic_rows),
        cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_bad_variable),
    };
    const struct CMUnitTest emulated_gpu[] = {
        cmocka_unit_test(test_rows),         cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_bad_variable), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_unmeasured),   cmocka_unit_test(test_nondeterministic_rows),
        cmocka_unit_test(test_order),        cmocka_unit_test(test_unasked),
        cmocka_unit_test(test_wrong),        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_unaligned),    cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_before_9_16),
    };
    if (support_is_emulated())
        return cmocka_run_group_tests(emulated_gpu, NULL, NULL);
    if (strcmp(support_device(), "cuda") == 0)
        return cmocka_run_group_tests(gpu, NULL, NULL);
    return cmocka_run_group_tests(anywhere, NULL, NULL);
}
