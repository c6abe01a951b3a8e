/* Attention by the forward for compute capability 9.0, which SHOAL_ATTENTION=hopper asks for:
 * against the plain formula, and what is told where it cannot be had. On the emulated GPU, which
 * checks what hardware would (tests/emulation/async_block.h), and on a real one of 9.0. */
#include "base/contract.h"
#include "kernels/attention_choice.h"
#include "tests/kernels/cudnn_world.h"

#include <stdlib.h>
#include <string.h>

/* At the borders of tiles: 64 queries of a warpgroup, 128 of a block, 128 keys; two stages. The
 * first is small, and has all waits in it: a missing one is found at once. */
static const struct attention_row rows[] = {
    {"128 wide, all keys, stages for the second time",
     {.B = 2,
      .T_q = 3,
      .T_k = 500,
      .heads = 2,
      .kv_heads = 2,
      .hd = 128,
      .q_stride = 256,
      .k_stride = 384,
      .v_stride = 256,
      .scale = 0.09f},
     1,
     false,
     {0}},
    {"128 wide, a token more than two tiles, groups of two",
     {PACKED(1, 257, 4, 2, 128), .causal = true},
     1,
     false,
     {0}},
    {"64 wide, two sequences, an odd length, groups of three",
     {PACKED(2, 191, 3, 1, 64), .causal = true},
     1,
     false,
     {0}},
    {"64 wide, all keys, few",
     {.B = 1,
      .T_q = 130,
      .T_k = 33,
      .heads = 2,
      .kv_heads = 1,
      .hd = 64,
      .q_stride = 128,
      .k_stride = 64,
      .v_stride = 128,
      .scale = 0.125f},
     1,
     false,
     {0}},
    {"64 wide, one token", {PACKED(1, 1, 1, 1, 64), .causal = true}, 1, false, {0}},
    {"128 wide, large scores", {PACKED(1, 300, 1, 1, 128), .causal = true}, 3, false, {0}},
};

/* With SHOAL_ATTENTION=hopper; not on another GPU. */
static int setup(void **state)
{
    unsetenv(ENV_ATTENTION);
    if (world_setup(state) != 0)
        return -1;
    const struct world *world = *state;
    int capability = device_compute_capability(world->device);
    world_teardown(state);
    if (capability != 90) {
        *state = NULL;
        return 0;
    }
    setenv(ENV_ATTENTION, "hopper", 1);
    int result = world_setup(state);
    unsetenv(ENV_ATTENTION);
    return result;
}

static int teardown(void **state)
{
    return *state ? world_teardown(state) : 0;
}

static bool is_possible(const struct attention_row *row)
{
    const struct attention_choice hopper = attention_choice_here(ATTENTION_HOPPER, 90);
    return !row->bias && !row->key_counts[0] &&
           attention_choose(&hopper, ATTENTION_FORWARD, DTYPE_BF16, &row->shape) ==
               ATTENTION_BY_HOPPER;
}

static void test_rows(void **state)
{
    if (!*state)
        skip();
    for (size_t i = 0; i < array_length(rows); i++) {
        assert_true(is_possible(&rows[i]));
        check_attention(*state, &rows[i]);
    }
}

/* The rows are any attention's. */
static void test_rows_on_cpu(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++)
        check_attention(*state, &rows[i]);
}

/* What it cannot do the others do, which is told once: bias, dropout, padding, other places. */
static void test_others(void **state)
{
    char text[4096];
    if (!*state)
        skip();
    support_stderr_begin();
    for (size_t i = 0; i < attention_row_count; i++)
        if (attention_rows[i].shape.hd == 64 && !is_possible(&attention_rows[i]))
            check_attention(*state, &attention_rows[i]);
    support_stderr_end(text, sizeof text);
    const char *told = "attention: SHOAL_ATTENTION=hopper is for bf16, heads 64 or 128 wide, rows "
                       "that are a multiple of that apart, no bias, dropout or padding: a forward "
                       "in fp32 of heads 64 wide is done by our other kernels";
    cudnn_world_told_once(text, told);
}

static void test_other_gpus(void **state)
{
    (void)state;
    struct device *device;
    struct error err;
    if (!support_is_emulated())
        skip();
    setenv(ENV_ATTENTION, "hopper", 1);
    setenv("SHOAL_EMULATION", "capability=80", 1);
    assert_fails(device_open(support_device(), 1, &device, &err), &err, ERR_CONFIG,
                 "SHOAL_ATTENTION=hopper is for compute capability 9.0: GPU 0 has 8.0. auto, ours "
                 "and cudnn are for all");
    unsetenv(ENV_ATTENTION);
    unsetenv("SHOAL_EMULATION");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
        cmocka_unit_test(test_other_gpus),
    };
    const struct CMUnitTest on_cpu[] = {
        cmocka_unit_test_setup_teardown(test_rows_on_cpu, world_setup, world_teardown),
    };
    if (strcmp(support_device(), "cpu") == 0)
        return cmocka_run_group_tests(on_cpu, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
