/* What a GPU does in a slow way is told, once for each kind; nothing else is, nor anything on the
 * CPU. */
#include "tests/kernels/op_check.h"

#include <stdio.h>
#include <string.h>

static void multiply(struct world *world, enum dtype t, int64_t in)
{
    enum { ROWS = 256, OUT = 256 };
    const struct linear_shape shape = linear_dense(ROWS, in, OUT);
    void *x = to_device_as(world, t, host_random(world, ROWS * in, -1, 1), ROWS * in);
    void *w = to_device_as(world, t, host_random(world, OUT * in, -1, 1), OUT * in);
    void *y = to_device_as(world, t, host_zeros(world, ROWS * OUT), ROWS * OUT);
    world->ops->linear_forward(world->stream, t, t, y, x, w, NULL, false, &shape);
    from_device_as(world, t, x, ROWS * in);
    from_device_as(world, t, w, OUT * in);
    from_device_as(world, t, y, ROWS * OUT);
}

static void attend(struct world *world, enum dtype t, int64_t hd)
{
    enum { T = 1024 };
    const struct attention_shape shape = {.B = 1,
                                          .T_q = T,
                                          .T_k = T,
                                          .heads = 1,
                                          .kv_heads = 1,
                                          .hd = hd,
                                          .q_stride = hd,
                                          .k_stride = hd,
                                          .v_stride = hd,
                                          .causal = true,
                                          .scale = 1};
    void *x = to_device_as(world, t, host_random(world, T * hd, -1, 1), T * hd);
    void *y = to_device_as(world, t, host_zeros(world, T * hd), T * hd);
    float *lse = to_device(world, host_zeros(world, T), T);
    world->ops->attention_forward(world->stream, t, y, lse, x, x, x, &shape);
    from_device_as(world, t, x, T * hd);
    from_device_as(world, t, y, T * hd);
    from_device(world, lse, T);
}

static const struct {
    const char *what;
    void (*run)(struct world *world, enum dtype t, int64_t width);
    enum dtype t;
    int64_t width;
    const char *told; /* NULL: nothing, on a GPU either */
} rows[] = {
    {"aligned rows", multiply, DTYPE_BF16, 264, NULL},
    {"fp32 has no matrix units here", multiply, DTYPE_F32, 257, NULL},
    {"too small to matter", multiply, DTYPE_BF16, 33, NULL},
    {"rows at multiples of 8 bytes", multiply, DTYPE_BF16, 260,
     "rows of 260, 260 or 256 elements do not begin at multiples of 16 bytes"},
    {"... again", multiply, DTYPE_BF16, 268, NULL},
    {"odd rows", multiply, DTYPE_BF16, 257,
     "cuBLASLt has no algorithm for one in bf16 of 256 x 256 x 257"},
    {"... again", multiply, DTYPE_BF16, 259, NULL},
    {"heads in fp32", attend, DTYPE_F32, 16, NULL},
    {"heads 64 wide", attend, DTYPE_BF16, 64, NULL},
    {"heads 16 wide", attend, DTYPE_BF16, 16,
     "attention: heads 16 wide have no kernel on matrix units"},
    {"... again", attend, DTYPE_BF16, 32, NULL},
};

static void test_slow_paths_are_told_once(void **state)
{
    bool on_gpu = strcmp(support_device(), "cpu") != 0;
    for (size_t i = 0; i < array_length(rows); i++) {
        char text[2048];
        support_stderr_begin();
        rows[i].run(*state, rows[i].t, rows[i].width);
        support_stderr_end(text, sizeof text);
        if (strstr(rows[i].what, "odd") && on_gpu && !support_is_emulated())
            continue; /* NVIDIA's may have one */
        if (on_gpu && rows[i].told ? !strstr(text, rows[i].told)
                                   : strstr(text, " warning ") != NULL)
            fail_msg("%s: %s", rows[i].what, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        test_slow_paths_are_told_once, world_setup, world_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
