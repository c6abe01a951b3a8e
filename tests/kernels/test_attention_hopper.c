/* Attention by the kernels for compute capability 9.0, which SHOAL_ATTENTION=hopper asks for:
 * against the plain formula, backward beside the kernels for older GPUs, too, and what is told
 * where they cannot be had. On the emulated GPU, which checks what hardware would
 * (tests/emulation/async_block.h), and on a real one of 9.0. */
#include "base/contract.h"
#include "kernels/attention_choice.h"
#include "tests/kernels/cudnn_world.h"

#include <stdlib.h>
#include <string.h>

/* At the borders of tiles: 64 queries of a warpgroup, 128 of a block, 128 keys, in backward 64 of
 * either; two stages, in backward four of keys and three of queries. The first is small, and has
 * all waits in it: a missing one is found at once. */
static const struct attention_row rows[] = {
    {"128 wide, all keys, stages for the second time",
     {.B = 1,
      .T_q = 193,
      .T_k = 400,
      .heads = 1,
      .kv_heads = 1,
      .hd = 128,
      .q_stride = 256,
      .k_stride = 384,
      .v_stride = 128,
      .scale = 0.09f},
     1,
     false,
     {0}},
    {"128 wide, a token more than two tiles, groups of two",
     {PACKED(1, 257, 2, 1, 128), .causal = true},
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
    {"64 wide, no sequence", {PACKED(0, 9, 1, 1, 64), .causal = true}, 1, false, {0}},
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
               ATTENTION_BY_HOPPER &&
           attention_choose(&hopper, ATTENTION_BACKWARD, DTYPE_BF16, &row->shape) ==
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

/* What both backwards get: the forward's results are those of our other kernels. */
struct backward_case {
    const struct attention_shape *shape;
    float *q, *k, *v, *dy, *y, *lse;
    int64_t count[3], y_count; /* of q, k, v */
};

static float *random_bf16(struct world *world, int64_t count, float size)
{
    return round_to(DTYPE_BF16, host_random(world, count, -size, size), count);
}

static void make_case(struct world *ours, struct backward_case *c, const struct attention_row *row)
{
    const struct attention_shape *z = c->shape = &row->shape;
    const int64_t count[] = {z->B * z->T_q * z->q_stride, z->B * z->T_k * z->k_stride,
                             z->B * z->T_k * z->v_stride};
    memcpy(c->count, count, sizeof count);
    c->y_count = z->B * z->T_q * z->heads * z->hd;
    c->q = random_bf16(ours, count[0], row->size);
    c->k = random_bf16(ours, count[1], row->size);
    c->v = random_bf16(ours, count[2], row->size);
    c->dy = random_bf16(ours, c->y_count, row->size);
    void *q = to_device_as(ours, DTYPE_BF16, c->q, count[0]);
    void *k = to_device_as(ours, DTYPE_BF16, c->k, count[1]);
    void *v = to_device_as(ours, DTYPE_BF16, c->v, count[2]);
    void *y = to_device_as(ours, DTYPE_BF16, host_zeros(ours, c->y_count), c->y_count);
    float *lse = to_device(ours, host_zeros(ours, c->y_count / z->hd), c->y_count / z->hd);
    ours->ops->attention_forward(ours->stream, DTYPE_BF16, y, lse, q, k, v, z);
    c->y = from_device_as(ours, DTYPE_BF16, y, c->y_count);
    c->lse = from_device(ours, lse, c->y_count / z->hd);
    void *inputs[] = {q, k, v};
    for (int i = 0; i < 3; i++)
        device_free(ours->device, inputs[i]);
}

static void run_backward(struct world *world, const struct backward_case *c, float *ret_gradient[3])
{
    const struct attention_shape *z = c->shape;
    void *in[] = {to_device_as(world, DTYPE_BF16, c->q, c->count[0]),
                  to_device_as(world, DTYPE_BF16, c->k, c->count[1]),
                  to_device_as(world, DTYPE_BF16, c->v, c->count[2]),
                  to_device_as(world, DTYPE_BF16, c->dy, c->y_count),
                  to_device_as(world, DTYPE_BF16, c->y, c->y_count),
                  to_device(world, c->lse, c->y_count / z->hd)};
    void *gradient[3];
    for (int i = 0; i < 3; i++)
        gradient[i] = to_device_as(world, DTYPE_BF16, host_zeros(world, c->count[i]), c->count[i]);
    world->ops->attention_backward(world->stream, DTYPE_BF16, gradient[0], gradient[1], gradient[2],
                                   NULL, in[3], in[4], in[5], in[0], in[1], in[2], z);
    for (int i = 0; i < 3; i++)
        ret_gradient[i] = from_device_as(world, DTYPE_BF16, gradient[i], c->count[i]);
    for (size_t i = 0; i < array_length(in); i++)
        device_free(world->device, in[i]);
}

/* Both round P and dS to bf16 and add up in fp32, in other orders: a result may be rounded to the
 * other neighbour. Where a sum nearly cancels, the units are those of a 16th of the values. */
static void test_beside_ours(void **state)
{
    static const char *const names[] = {"dq", "dk", "dv"};
    struct world *place = *state; /* of the one world that a test has */
    if (!place)
        skip();
    struct world of_hopper = *place, of_ours;
    setenv(ENV_ATTENTION, "ours", 1);
    assert_int_equal(world_setup(state), 0);
    unsetenv(ENV_ATTENTION);
    of_ours = *place;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct backward_case c;
        float *hopper[3], *ours[3];
        if (rows[i].shape.B == 0)
            continue;
        make_case(&of_ours, &c, &rows[i]);
        run_backward(&of_ours, &c, ours);
        run_backward(&of_hopper, &c, hopper);
        for (int which = 0; which < 3; which++)
            assert_near_bf16(hopper[which], ours[which], c.count[which], 1,
                             rows[i].size * rows[i].size / 16, names[which]);
    }
    *place = of_ours;
    world_teardown(state);
    *place = of_hopper;
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
                       "that are a multiple of that apart, no bias, dropout or padding: attention "
                       "in bf16 of heads 64 wide is done by our other kernels";
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
        cmocka_unit_test_setup_teardown(test_beside_ours, setup, teardown),
        cmocka_unit_test(test_other_gpus),
    };
    const struct CMUnitTest on_cpu[] = {
        cmocka_unit_test_setup_teardown(test_rows_on_cpu, world_setup, world_teardown),
    };
    if (strcmp(support_device(), "cpu") == 0)
        return cmocka_run_group_tests(on_cpu, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
