/* The engine on the device under test (support_device()) against the CPU: each strategy, and what
 * keeps values on the host. The model is as small as can be: an emulated GPU takes its time. Each
 * wait between the engine's streams is needed by one of these
 * (tests/emulation/test_barriers.sh). */
#include "agent/comm/nccl_api.h"
#include "base/mem.h"
#include "tests/agent/world_check.h"
#include "tests/support.h"

#include <string.h>

static struct llama_config tiny_llama(void)
{
    struct llama_config c = world_llama();
    c.vocab_size = 11;
    c.hidden_size = 8;
    c.intermediate_size = 12;
    c.num_hidden_layers = 3; /* gradients take each other's memory from the third on */
    c.num_attention_heads = 2;
    c.num_key_value_heads = 1;
    return c;
}

/* A unit to each layer. */
static struct world tiny_world(const struct llama_config *llama, int ranks,
                               enum shard_strategy strategy)
{
    struct world w = {
        .ranks = ranks,
        .config = world_shard_config(ranks, strategy),
        .min_num_params = 300,
        .llama = llama,
        .T = 3,
        .optim = optim_defaults(&optim_adamw),
        .lr = 0.01f,
        .steps = 3,
        .rows = 4,
    };
    w.optim.grad_clip = 1;
    return w;
}

/* On the device and on the CPU. */
static void compare(struct world *w, const char *what)
{
    struct world_result got, expected;
    w->device = "cpu";
    world_must_run(w, &expected, what);
    w->device = NULL;
    world_must_run(w, &got, what);
    world_assert_same(&got, &expected, w->steps, what);
    world_result_free(&got);
    world_result_free(&expected);
}

static void strategies(void **state)
{
    (void)state;
    struct llama_config llama = tiny_llama();
    static const struct {
        const char *what;
        int ranks;
        enum shard_strategy strategy;
    } rows[] = {
        {"one rank", 1, FULL_SHARD},         {"FULL_SHARD", 2, FULL_SHARD},
        {"SHARD_GRAD_OP", 2, SHARD_GRAD_OP}, {"NO_SHARD", 2, NO_SHARD},
        {"HYBRID_SHARD", 4, HYBRID_SHARD},   {"HYBRID_SHARD_ZERO2", 4, HYBRID_SHARD_ZERO2},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct world w = tiny_world(&llama, rows[i].ranks, rows[i].strategy);
        compare(&w, rows[i].what);
    }
}

/* An update beside the next pass changes no bit, with the norm that the host has by then. */
static void updates_beside(void **state)
{
    (void)state;
    struct llama_config llama = tiny_llama();
    static const struct {
        int ranks;
        enum shard_strategy strategy;
        bool bf16;
    } rows[] = {
        {1, FULL_SHARD, false},   {1, NO_SHARD, true},  {2, FULL_SHARD, true},
        {2, SHARD_GRAD_OP, true}, {2, NO_SHARD, false}, {4, HYBRID_SHARD, false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct world w = tiny_world(&llama, rows[i].ranks, rows[i].strategy);
        struct world_result behind, beside;
        w.config.param_dtype = rows[i].bf16 ? DTYPE_BF16 : DTYPE_F32;
        w.config.forward_prefetch = i % 2;
        w.steps = 4;
        world_must_run(&w, &behind, "an update before the next pass");
        w.config.update_beside = true;
        world_must_run(&w, &beside, "an update beside the next pass");
        world_assert_bits(&beside, &behind, "an update beside the next pass");
        for (int step = 0; step < w.steps; step++)
            for (int rank = 0; rank < w.ranks; rank++)
                assert_true(beside.norms[step][rank] == behind.norms[step][rank]);
        world_result_free(&beside);
        world_result_free(&behind);
    }
}

static bool is_cpu(void)
{
    return strcmp(support_device(), "cpu") == 0;
}

/* Whether there are NCCL and a GPU for each rank; if not, says why. */
static bool has_nccl(int ranks)
{
    struct error err;
    struct nccl_api api;
    int gpus = device_count_gpus(&err);
    if (gpus < ranks)
        print_message("# SKIP NCCL of %d ranks: there are %d GPUs\n", ranks, gpus);
    else if (nccl_api_open(&api, &err) < 0)
        print_message("# SKIP NCCL: %s\n", err.msg);
    else
        return true;
    return false;
}

static void compare_over_nccl(int ranks)
{
    struct llama_config llama = tiny_llama();
    for (int strategy = FULL_SHARD; strategy <= HYBRID_SHARD_ZERO2; strategy++) {
        struct world w = tiny_world(&llama, ranks, (enum shard_strategy)strategy), cpu = w;
        struct world_result got, expected;
        if (ranks < 4 && strategy >= HYBRID_SHARD)
            continue;
        w.nccl = true;
        cpu.device = "cpu";
        world_must_run(&cpu, &expected, "the CPU");
        world_must_run(&w, &got, "NCCL");
        world_assert_same(&got, &expected, w.steps, "NCCL");
        world_result_free(&got);
        world_result_free(&expected);
    }
}

/* To the bits of a run without, whose units are the allocator's: where NCCL divides before it adds,
 * sums of two or four numbers are divided after it. */
static void in_windows(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int ranks;
        enum shard_strategy strategy;
        enum dtype reduce_dtype; /* bf16: the model computes in it, too */
        int micro_batches;
        bool fp8;
    } rows[] = {
        {"FULL_SHARD in windows", 2, FULL_SHARD, DTYPE_F32, 2, false},
        {"SHARD_GRAD_OP in windows", 2, SHARD_GRAD_OP, DTYPE_BF16, 0, false},
        {"HYBRID_SHARD in windows", 4, HYBRID_SHARD, DTYPE_BF16, 2, false},
        {"HYBRID_SHARD_ZERO2 in windows", 4, HYBRID_SHARD_ZERO2, DTYPE_F32, 0, false},
        /* codes are gathered in place, and so outside of them */
        {"fp8 beside windows", 2, FULL_SHARD, DTYPE_F32, 0, true},
    };
    struct llama_config llama = tiny_llama(), wide = llama;
    wide.hidden_size = wide.intermediate_size = 32; /* products in fp8 need multiples of 16 */
    for (size_t i = 0; i < array_length(rows) && !is_cpu(); i++) {
        struct world w = tiny_world(&llama, rows[i].ranks, rows[i].strategy);
        struct world_result got, expected;
        if (!has_nccl(rows[i].ranks))
            continue;
        w.nccl = true;
        w.config.reduce_dtype = w.config.param_dtype = rows[i].reduce_dtype;
        w.micro_batches = rows[i].micro_batches;
        w.rows = 2 * w.ranks;
        if (rows[i].fp8) {
            w.llama = &wide;
            w.fp8 = w.config.gathers_fp8 = true;
            w.config.param_dtype = DTYPE_BF16;
        }
        world_must_run(&w, &expected, rows[i].what);
        w.config.windows = w.windows = true;
        world_must_run(&w, &got, rows[i].what);
        world_assert_bits(&got, &expected, rows[i].what);
        assert_true(got.use.peak_bytes[MEMORY_UNIT] < expected.use.peak_bytes[MEMORY_UNIT]);
        world_result_free(&got);
        world_result_free(&expected);
    }
}

static void one_rank_over_nccl(void **state)
{
    (void)state;
    if (is_cpu())
        return;
    if (!has_nccl(1))
        skip();
    compare_over_nccl(1);
}

static void strategies_over_nccl(void **state)
{
    (void)state;
    if (is_cpu())
        return;
    if (!has_nccl(2))
        skip();
    compare_over_nccl(2);
    if (has_nccl(4))
        compare_over_nccl(4);
}

static void micro_batches(void **state)
{
    (void)state;
    struct llama_config llama = tiny_llama();
    struct world w = tiny_world(&llama, 2, FULL_SHARD);
    w.micro_batches = 2;
    compare(&w, "gradients add up in slices");
    w.config.accumulate_sharded = false;
    compare(&w, "gradients add up in units");
}

static void slices_on_the_host(void **state)
{
    (void)state;
    struct llama_config llama = tiny_llama();
    struct world w = tiny_world(&llama, 1, FULL_SHARD);
    w.offload = true;
    compare(&w, "one rank, slices on the host");
    w = tiny_world(&llama, 2, FULL_SHARD);
    w.offload = true;
    compare(&w, "slices on the host");
}

static void activations_on_the_host(void **state)
{
    (void)state;
    struct llama_config llama = tiny_llama();
    struct world w = tiny_world(&llama, 1, NO_SHARD);
    for (int keeps = TAPE_CHECKPOINTING_NONE; keeps <= TAPE_CHECKPOINTING_FULL; keeps++) {
        w.checkpointing = (enum tape_checkpointing)keeps;
        w.horizon = 1;
        compare(&w, "activations on the host");
    }
}

/* With an argument only the tests of that name: tests/emulation/test_barriers.sh has no time for
 * all. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        /* the dearest last: tests/emulation/test_barriers.sh ends a run that fails */
        cmocka_unit_test(strategies),         cmocka_unit_test(micro_batches),
        cmocka_unit_test(slices_on_the_host), cmocka_unit_test(activations_on_the_host),
        cmocka_unit_test(one_rank_over_nccl), cmocka_unit_test(strategies_over_nccl),
        cmocka_unit_test(updates_beside),     cmocka_unit_test(in_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
