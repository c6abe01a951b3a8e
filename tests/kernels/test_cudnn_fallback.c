/* Attention that cuDNN was asked for and does not do, or not yet: each way in which it can be
 * unusable, on the emulated GPU. Our own kernels do it, and it is told why. */
#include "base/contract.h"
#include "base/log.h"
#include "kernels/attention_choice.h"
#include "tests/kernels/cudnn_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    assert_ok(attention_mode_read("hopper", &mode, &err), &err);
    assert_int_equal(mode, ATTENTION_HOPPER);
    assert_fails(attention_mode_read("fast", &mode, &err), &err, ERR_CONFIG,
                 "SHOAL_ATTENTION is \"fast\": auto, ours, cudnn or hopper is meant");
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
        struct world *world = cudnn_world_open("cudnn", failures[i].emulation);
        support_stderr_begin();
        cudnn_world_check(world, &cudnn_world_rows[1], false);
        support_stderr_end(text, sizeof text);
        for (int backward = 0; backward < 2; backward++) {
            snprintf(line, sizeof line,
                     "attention: %s is done by our own kernels, not by cuDNN: %s",
                     backward ? "backward" : "forward", failures[i].reason);
            cudnn_world_told_once(text, line);
        }
        cudnn_world_close(world);
    }
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
        struct world *world = cudnn_world_open("cudnn", rows[i].emulation);
        struct attention_row in_any_order = cudnn_world_rows[1];
        in_any_order.shape.nondeterministic = true;
        int64_t before = cudnn_world_runs();
        support_stderr_begin();
        check_attention(world, &cudnn_world_rows[1]); /* within the tolerance */
        check_attention(world, &cudnn_world_rows[0]);
        assert_int_equal(cudnn_world_runs() - before, 2); /* a forward and a backward, once */
        check_attention(world, &in_any_order);
        check_attention(world, &in_any_order);
        support_stderr_end(text, sizeof text);
        assert_int_equal(cudnn_world_runs() - before, 3); /* that backward was not refused yet */
        assert_int_equal(device_library_attentions(world->device), 0);
        cudnn_world_told_once(text,
                              "attention: nondeterministic backward is done by our own kernels");
        for (int backward = 0; backward < 2; backward++) {
            snprintf(line, sizeof line,
                     "attention: %s is done by our own kernels, not by cuDNN: its result is far "
                     "from theirs: %s",
                     backward ? "backward" : "forward", rows[i].reasons[backward]);
            cudnn_world_told_once(text, line);
        }
        cudnn_world_close(world);
    }
}

/* Of a run that has diverged nothing can be said: the next result is compared instead. */
static void test_not_finite(void **state)
{
    (void)state;
    enum { T = 3, HD = 64 };
    const struct attention_shape shape = {PACKED(1, T, 1, 1, HD)};
    const int64_t count = (int64_t)T * 3 * HD;
    struct world *world = cudnn_world_open("cudnn", "cudnn=wrong");
    float *host = host_random(world, count, -1, 1);
    bf16 *y = to_device_as(world, DTYPE_BF16, host_zeros(world, T * HD), T * HD);
    float *lse = to_device(world, host_zeros(world, T), T);
    int64_t before = cudnn_world_runs();
    char text[2048];
    support_stderr_begin();
    for (int i = 0; i < 3; i++) {
        host[2 * HD] = i == 0 ? NAN : 1;
        bf16 *x = to_device_as(world, DTYPE_BF16, host, count);
        world->ops->attention_forward(world->stream, DTYPE_BF16, y, lse, x, x + HD, x + 2 * HD,
                                      &shape);
        from_device_as(world, DTYPE_BF16, x, count);
        assert_int_equal(cudnn_world_runs() - before, i == 0 ? 1 : 2);
    }
    from_device_as(world, DTYPE_BF16, y, T * HD);
    from_device(world, lse, T);
    cudnn_world_close(world);
    support_stderr_end(text, sizeof text);
    assert_non_null(strstr(text, "its result is far from theirs: y is off by 50 %"));
}

/* A version whose backward is wrong where the keys are no multiple of 128: ours do that. */
static void test_before_9_16(void **state)
{
    (void)state;
    char text[2048];
    struct world *world = cudnn_world_open("cudnn", "cudnn=9.15");
    struct attention_row row = cudnn_world_rows[1];
    row.shape.T_q = row.shape.T_k = 128;
    cudnn_world_check(world, &row, true);
    support_stderr_begin();
    int64_t before = cudnn_world_runs();
    for (int differ = 0; differ < 2; differ++) {
        row.shape.T_q = row.shape.T_k = 127;
        row.shape.nondeterministic = differ;
        check_attention(world, &row);
    }
    support_stderr_end(text, sizeof text);
    assert_int_equal(cudnn_world_runs() - before, 4); /* each forward */
    cudnn_world_told_once(text,
                          "attention: backward is done by our own kernels, not by cuDNN: before "
                          "9.16 it needs a multiple of 128 keys");
    cudnn_world_told_once(text, "attention: nondeterministic backward is done by our own kernels");
    cudnn_world_close(world);
}

/* A tensor at another place than cuDNN takes is ours, and told. */
static void test_unaligned(void **state)
{
    (void)state;
    enum { T = 3, HD = 64 };
    const struct attention_shape shape = {PACKED(1, T, 1, 1, HD)};
    const int64_t count = (int64_t)T * 3 * HD + 8;
    char text[2048];
    struct world *world = cudnn_world_open("cudnn", NULL);
    bf16 *x = to_device_as(world, DTYPE_BF16, host_random(world, count, -1, 1), count);
    bf16 *y = to_device_as(world, DTYPE_BF16, host_zeros(world, T * HD), T * HD);
    float *lse = to_device(world, host_zeros(world, T), T);
    int64_t before = cudnn_world_runs();
    support_stderr_begin();
    for (int i = 0; i < 2; i++)
        world->ops->attention_forward(world->stream, DTYPE_BF16, y, lse, x + 4, x + HD, x + 2 * HD,
                                      &shape);
    from_device_as(world, DTYPE_BF16, x, count);
    from_device_as(world, DTYPE_BF16, y, T * HD);
    from_device(world, lse, T);
    support_stderr_end(text, sizeof text);
    assert_int_equal(cudnn_world_runs() - before, 0);
    const char *line = "attention: forward is done by our own kernels, not by cuDNN: a tensor does "
                       "not begin at a multiple of 16 bytes";
    cudnn_world_told_once(text, line);
    cudnn_world_close(world);
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
        struct world *world = cudnn_world_open("auto", "capability=88");
        cudnn_world_check(world, &cudnn_world_rows[1], false);
        cudnn_world_close(world);
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
        struct world *world = cudnn_world_open("auto", rows[row].emulation);
        bf16 *x = to_device_as(world, DTYPE_BF16, host_random(world, (int64_t)T * WIDTH, -1, 1),
                               (int64_t)T * WIDTH);
        bf16 *y = to_device_as(world, DTYPE_BF16, host_zeros(world, T * HD), T * HD);
        float *lse = to_device(world, host_zeros(world, T), T);
        int64_t before = cudnn_world_runs();
        for (int i = 0; i < 2; i++)
            world->ops->attention_forward(world->stream, DTYPE_BF16, y, lse, x, x + HD, x + 2 * HD,
                                          &shape);
        assert_int_equal(cudnn_world_runs() - before, rows[row].runs);
        from_device_as(world, DTYPE_BF16, x, (int64_t)T * WIDTH);
        from_device_as(world, DTYPE_BF16, y, T * HD);
        from_device(world, lse, T);
        cudnn_world_close(world);
        support_stderr_end(text, sizeof text);
        const char *first = strstr(text, rows[row].told);
        if (!first || strstr(first + 1, rows[row].told) || strstr(text, rows[row].untold))
            fail_msg("row %zu: %s", row, text);
    }
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
    const struct CMUnitTest anywhere[] = {cmocka_unit_test(test_mode)};
    const struct CMUnitTest gpu[] = {cmocka_unit_test(test_bad_variable)};
    const struct CMUnitTest emulated_gpu[] = {
        cmocka_unit_test(test_bad_variable), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_unmeasured),   cmocka_unit_test(test_unasked),
        cmocka_unit_test(test_wrong),        cmocka_unit_test(test_unaligned),
        cmocka_unit_test(test_not_finite),   cmocka_unit_test(test_before_9_16),
    };
    if (support_is_emulated())
        return cmocka_run_group_tests(emulated_gpu, NULL, NULL);
    if (strcmp(support_device(), "cuda") == 0)
        return cmocka_run_group_tests(gpu, NULL, NULL);
    return cmocka_run_group_tests(anywhere, NULL, NULL);
}
