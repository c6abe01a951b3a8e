/* A small Llama in every layout, and with every way to spare memory. */
#include "base/mem.h"
#include "tests/agent/world_check.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>

static struct world llama_world(const struct llama_config *llama, int ranks,
                                enum shard_strategy strategy)
{
    struct world w = {
        .ranks = ranks,
        .config = world_shard_config(ranks, strategy),
        .llama = llama,
        .T = 7,
        .optim = optim_defaults(&optim_sgd),
        .lr = 0.1f,
        .steps = 3,
        .rows = 24,
    };
    w.optim.momentum = 0.9f;
    return w;
}

/* Where one and two ranks are enough, one micro-batch or two. */
enum { FEW_ROWS = 8 };

/* Elements: of the root alone, of blocks (4,152 with their norms) and of products within blocks
 * (480 and more): units inside a segment that runs again. */
static const int64_t cuts[] = {0, 4000, 470};

static void any_layout_trains_the_same(void **state)
{
    (void)state;
    struct llama_config llama = world_llama();
    for (int tied = 0, turn = 0; tied < 2; tied++) {
        struct world_result alone, got;
        llama.tie_word_embeddings = tied;
        struct world one = llama_world(&llama, 1, NO_SHARD);
        world_must_run(&one, &alone, "one rank");
        for (int ranks = 1; ranks <= 4; ranks++)
            for (int strategy = FULL_SHARD; strategy <= HYBRID_SHARD_ZERO2; strategy++)
                for (size_t cut = 0; cut < array_length(cuts); cut++, turn++) {
                    struct world w = llama_world(&llama, ranks, (enum shard_strategy)strategy);
                    uint32_t choice = world_hash((uint32_t)turn, 0);
                    w.min_num_params = cuts[cut];
                    w.checkpointing = (enum tape_checkpointing)(turn / 3 % 3);
                    w.horizon = choice & 1 ? (int)(choice >> 8) % 4 : 0;
                    w.config.backward_prefetch = (enum backward_prefetch)((choice >> 4) % 3);
                    w.config.forward_prefetch = choice & 2;
                    w.config.limit_all_gathers = choice & 4;
                    w.config.accumulate_sharded = choice & 8;
                    w.micro_batches = choice & 16 ? 2 : 1;
                    w.offload = choice & 32;
                    char what[128];
                    snprintf(
                        what, sizeof what,
                        "%d ranks, strategy %d, cut %d, checkpointing %d, horizon %d, choice %x",
                        ranks, strategy, (int)cuts[cut], w.checkpointing, w.horizon, choice);
                    world_must_run(&w, &got, what);
                    world_assert_same(&got, &alone, w.steps, what);
                    world_result_free(&got);
                }
        world_result_free(&alone);
    }
}

/* With dropout, so that numbers drawn again are seen to be the same. */
static void sparing_memory_changes_no_bit(void **state)
{
    (void)state;
    static const int horizons[] = {0, 1, 2, 9};
    struct llama_config llama = world_llama();
    llama.attention_dropout = 0.25;
    for (size_t cut = 0; cut < array_length(cuts); cut++) {
        struct world_result plain, got;
        struct world w = llama_world(&llama, 2, FULL_SHARD);
        w.rows = FEW_ROWS;
        w.min_num_params = cuts[cut];
        w.micro_batches = 2;
        world_must_run(&w, &plain, "no checkpointing");
        for (int checkpointing = TAPE_CHECKPOINTING_NONE; checkpointing <= TAPE_CHECKPOINTING_FULL;
             checkpointing++)
            for (size_t h = 0; h < array_length(horizons); h++) {
                char what[64];
                snprintf(what, sizeof what, "cut %d, checkpointing %d, horizon %d", (int)cuts[cut],
                         checkpointing, horizons[h]);
                w.checkpointing = (enum tape_checkpointing)checkpointing;
                w.horizon = horizons[h];
                world_must_run(&w, &got, what);
                world_assert_bits(&got, &plain, what);
                /* running again gathers nothing twice */
                assert_int_equal(got.second.calls[COMM_ALL_GATHER],
                                 plain.second.calls[COMM_ALL_GATHER]);
                assert_int_equal(got.second.calls[COMM_REDUCE_SCATTER],
                                 plain.second.calls[COMM_REDUCE_SCATTER]);
                world_result_free(&got);
            }
        world_result_free(&plain);
    }
}

/* Eight layers, so that what a layer keeps weighs more than the one at work. */
static struct memory_use use_with(enum tape_checkpointing checkpointing, int horizon,
                                  struct memory_use *ret_host)
{
    struct llama_config llama = world_llama();
    llama.num_hidden_layers = 6;
    struct world w = llama_world(&llama, 1, NO_SHARD);
    struct world_result result;
    w.checkpointing = checkpointing;
    w.horizon = horizon;
    w.steps = 2;
    world_must_run(&w, &result, "memory");
    struct memory_use use = result.use;
    *ret_host = result.host;
    world_result_free(&result);
    return use;
}

static void what_is_spared_is_counted(void **state)
{
    (void)state;
    int64_t peak[3][3], host[3][3]; /* keeps; horizon 0, 1, 3 */
    for (int checkpointing = 0; checkpointing < 3; checkpointing++)
        for (int h = 0; h < 3; h++) {
            struct memory_use away;
            struct memory_use use =
                use_with((enum tape_checkpointing)checkpointing, h == 2 ? 3 : h, &away);
            peak[checkpointing][h] = use.peak_bytes[MEMORY_ACTIVATION];
            host[checkpointing][h] = away.peak_bytes[MEMORY_ACTIVATION];
            print_message("# checkpointing %d, horizon %d: %lld bytes on the device, %lld away\n",
                          checkpointing, h == 2 ? 3 : h, (long long)peak[checkpointing][h],
                          (long long)host[checkpointing][h]);
        }
    for (int checkpointing = 0; checkpointing < 3; checkpointing++) {
        assert_int_equal(host[checkpointing][0], 0);
        assert_true(host[checkpointing][1] > 0);
        assert_int_equal(host[checkpointing][2], host[checkpointing][1]);
        assert_true(peak[checkpointing][1] < peak[checkpointing][0]);
        assert_true(peak[checkpointing][1] <= peak[checkpointing][2]);
    }
    assert_true(peak[TAPE_CHECKPOINTING_SELECTIVE][0] < peak[TAPE_CHECKPOINTING_NONE][0]);
    assert_true(peak[TAPE_CHECKPOINTING_FULL][0] < peak[TAPE_CHECKPOINTING_SELECTIVE][0]);
}

/* The first step leaves all that later ones need. */
static void no_step_after_the_first_allocates(void **state)
{
    (void)state;
    struct llama_config llama = world_llama();
    for (int turn = 0; turn < 72; turn++) {
        struct world_result result;
        struct world w = llama_world(&llama, 2, (enum shard_strategy)(FULL_SHARD + turn % 3));
        uint32_t choice = world_hash((uint32_t)turn, 0);
        w.rows = FEW_ROWS;
        w.min_num_params = cuts[turn / 3 % 3];
        w.checkpointing = (enum tape_checkpointing)(choice % 3);
        w.horizon = (int)(choice >> 4) % 3;
        w.offload = choice & 256;
        w.micro_batches = choice & 512 ? 2 : 1;
        w.config.accumulate_sharded = choice & 1024;
        w.config.forward_prefetch = choice & 2048;
        w.config.limit_all_gathers = choice & 4096;
        w.config.param_dtype = choice & 8192 ? DTYPE_BF16 : DTYPE_F32;
        w.config.reduce_dtype = choice & 16384 ? DTYPE_BF16 : DTYPE_F32;
        w.optim.grad_clip = 1;
        char what[32];
        snprintf(what, sizeof what, "turn %d", turn);
        world_must_run(&w, &result, what);
        world_assert_no_fresh_blocks(result.fresh_blocks, w.steps, what);
        world_result_free(&result);
    }
}

/* Rank 1 has ever less memory from its second step on: wherever that ends it, nothing stays. */
static void running_out_of_memory_leaks_nothing(void **state)
{
    (void)state;
    struct llama_config llama = world_llama();
    for (int checkpointing = TAPE_CHECKPOINTING_NONE; checkpointing <= TAPE_CHECKPOINTING_FULL;
         checkpointing++) {
        struct world w = llama_world(&llama, 2, FULL_SHARD);
        struct world_result result;
        w.min_num_params = cuts[2];
        w.checkpointing = (enum tape_checkpointing)checkpointing;
        w.horizon = 2;
        w.steps = 2;
        world_must_run(&w, &result, "enough memory");
        int64_t peak = result.use.peak_total_bytes;
        world_result_free(&result);
        for (int part = 1; part < 12; part++) {
            struct error err;
            w.limit_bytes = peak * part / 12;
            assert_int_equal(world_run(&w, &result, &err), -1);
            assert_fails(-1, &result.errors[1], ERR_MEMORY, "no device memory for ");
            assert_int_equal(result.leaked_bytes, 0);
            world_result_free(&result);
        }
    }
}

/* |a - b| / |b|, all elements as one vector. */
static double distance(const float *a, const float *b, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / size);
}

/* bf16 has 8 bits, so what is computed in it is off by some 2^-8 of its size. Three steps of Adam
 * move a weight by 0.006 at most; bf16-true rounds weights of about 0.2 by 2^-8 of that. */
static void bf16_stays_near_fp32(void **state)
{
    (void)state;
    static const struct {
        enum dtype slice, reduce;
        double loss, gradients, weights; /* relative */
    } rows[] = {
        {DTYPE_F32, DTYPE_F32, 0.01, 0.03, 0.003},
        {DTYPE_F32, DTYPE_BF16, 0.01, 0.03, 0.003},
        {DTYPE_BF16, DTYPE_F32, 0.01, 0.03, 0.008},
        {DTYPE_BF16, DTYPE_BF16, 0.01, 0.03, 0.008},
    };
    struct llama_config llama = world_llama();
    struct world_result exact, got;
    struct world w = llama_world(&llama, 1, NO_SHARD);
    w.optim = optim_defaults(&optim_adamw);
    w.lr = 0.002f;
    world_must_run(&w, &exact, "fp32");
    w.config.param_dtype = DTYPE_BF16;
    for (size_t i = 0; i < array_length(rows); i++)
        for (int ranks = 1; ranks <= 4; ranks *= 2) {
            char what[64];
            snprintf(what, sizeof what, "row %zu, %d ranks", i, ranks);
            w.ranks = ranks;
            w.config.strategy = ranks == 4 ? HYBRID_SHARD : NO_SHARD;
            w.config.shard_group_size = 2;
            w.config.accumulate_sharded = true;
            w.micro_batches = rows[i].slice == DTYPE_BF16 ? 2 : 1; /* each reduced, and added up */
            w.config.slice_dtype = rows[i].slice;
            w.config.reduce_dtype = rows[i].reduce;
            world_must_run(&w, &got, what);
            for (int step = 0; step < w.steps; step++)
                assert_true(fabs(got.losses[step] / exact.losses[step] - 1) < rows[i].loss);
            double gradients = distance(got.gradients, exact.gradients, got.count);
            double weights = distance(got.weights, exact.weights, got.count);
            print_message("# %s: gradients off by %.5f, weights by %.5f\n", what, gradients,
                          weights);
            assert_true(gradients > 0 && gradients < rows[i].gradients);
            assert_true(weights > 0 && weights < rows[i].weights);
            assert_memory_equal(got.gathered, got.weights, (size_t)got.count * sizeof(float));
            world_result_free(&got);
        }
    world_result_free(&exact);
}

/* Stochastic rounding and bf16's own are the same in every layout: with gradients that no order of
 * summation changes (one micro-batch, on one rank, cut in whatever way) so are the bits. */
static void bf16_does_not_depend_on_the_layout(void **state)
{
    (void)state;
    struct llama_config llama = world_llama();
    struct world sgd = llama_world(&llama, 1, NO_SHARD);
    const struct {
        enum dtype slices;
        struct optim_config optim;
        float lr;
        int turns;
    } rows[] = {
        {DTYPE_F32, optim_defaults(&optim_adamw), 0.01f, 8},
        {DTYPE_BF16, optim_defaults(&optim_adamw), 0.01f, 8},
        {DTYPE_BF16, optim_defaults(&optim_adadelta), 1, 3},
        {DTYPE_BF16, sgd.optim, sgd.lr, 3},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct world_result plain, got;
        struct world w = llama_world(&llama, 1, NO_SHARD);
        w.rows = FEW_ROWS;
        w.optim = rows[i].optim;
        w.lr = rows[i].lr;
        w.config.param_dtype = DTYPE_BF16;
        w.config.slice_dtype = rows[i].slices;
        world_must_run(&w, &plain, "one unit");
        for (int turn = 0; turn < rows[i].turns; turn++) {
            w.min_num_params = cuts[turn % 3];
            w.config.strategy = turn & 1 ? FULL_SHARD : SHARD_GRAD_OP;
            w.offload = turn & 2;
            w.checkpointing = (enum tape_checkpointing)(turn % 3);
            w.horizon = turn & 4 ? 1 : 0;
            world_must_run(&w, &got, "bf16");
            world_assert_bits(&got, &plain, "bf16");
            world_result_free(&got);
        }
        world_result_free(&plain);
    }
}

/* Half the bytes are gathered, and half reduced. */
static void bf16_halves_the_traffic(void **state)
{
    (void)state;
    static const struct {
        enum dtype param, reduce;
        int quarters; /* of fp32's bytes; FULL_SHARD of one unit gathers and reduces as much */
    } rows[] = {{DTYPE_F32, DTYPE_F32, 4}, {DTYPE_BF16, DTYPE_F32, 3}, {DTYPE_BF16, DTYPE_BF16, 2}};
    struct llama_config llama = world_llama();
    int64_t whole = 0;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct world_result result;
        struct world w = llama_world(&llama, 2, FULL_SHARD);
        w.config.param_dtype = rows[i].param;
        w.config.reduce_dtype = rows[i].reduce;
        world_must_run(&w, &result, "traffic");
        int64_t bytes = result.first.bytes_sent;
        whole = i == 0 ? bytes : whole;
        assert_int_equal(bytes * 4, whole * rows[i].quarters);
        world_result_free(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_layout_trains_the_same),
        cmocka_unit_test(sparing_memory_changes_no_bit),
        cmocka_unit_test(what_is_spared_is_counted),
        cmocka_unit_test(bf16_stays_near_fp32),
        cmocka_unit_test(bf16_does_not_depend_on_the_layout),
        cmocka_unit_test(bf16_halves_the_traffic),
        cmocka_unit_test(no_step_after_the_first_allocates),
        cmocka_unit_test(running_out_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
