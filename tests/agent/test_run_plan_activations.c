/* What a plan says of activations: their bytes, the scratch beside them, and what need not be
 * computed again. */
#include "tests/agent/plan_facts.h"
#include "tests/support.h"

/* Of one sequence of 8192 tokens: MB per layer, GB in all. */
static void activations_are_the_tables(void **state)
{
    (void)state;
    static const struct {
        bool is_8b;
        enum tape_checkpointing checkpointing;
        double gb;
    } rows[] = {
        {false, TAPE_CHECKPOINTING_NONE, 9.95}, {false, TAPE_CHECKPOINTING_SELECTIVE, 6.73},
        {false, TAPE_CHECKPOINTING_FULL, 1.16}, /* 0.54 and one layer */
        {true, TAPE_CHECKPOINTING_NONE, 36.5},  {true, TAPE_CHECKPOINTING_SELECTIVE, 24.7},
        {true, TAPE_CHECKPOINTING_FULL, 3.29}, /* 2.15 and one layer */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct run_plan_facts f = rows[i].is_8b ? plan_facts_8b(8) : plan_facts_1b(8);
        f.activations.checkpointing = rows[i].checkpointing;
        struct run_plan plan;
        run_plan_make(&f, &plan);
        plan_facts_assert_gb(plan.activations, rows[i].gb, "activations");
    }
}

static void what_is_offloaded_is_on_the_host(void **state)
{
    (void)state;
    struct run_plan_facts f = plan_facts_1b(8);
    const struct run_plan_strategy before = plan_facts_strategy(&f, FULL_SHARD);
    f.cpu_offload = true;
    const struct run_plan_strategy after = plan_facts_strategy(&f, FULL_SHARD);
    assert_int_equal(after.host, before.persistent);
    assert_int_equal(after.device, before.device - before.persistent);
    assert_int_equal(plan_facts_strategy(&f, NO_SHARD).gathered,
                     2 * f.parameters); /* copied before use */
    f.activations.offload = true;
    f.activations.horizon = 2;
    struct run_plan plan;
    run_plan_make(&f, &plan);
    assert_int_equal(plan.activations * PLAN_FACTS_LAYERS_1B / 2, plan.host_activations);
    plan_facts_assert_gb(plan.host_activations, 9.95, "activations on the host");
}

enum { MIB = 1 << 20, SUMS = 32 * 1024 * 4 };

static const struct {
    bool bias, cudnn, any_order, hopper;
    int value;
    int64_t rows, tokens, hd, kv_heads, scratch;
} scratches[] = {
    {false, false, false, false, 2, 4, 1024, 64, 8, RUN_PLAN_SCRATCH},
    {false, false, false, false, 2, 512, 1024, 64, 8, 64 * MIB}, /* a sum of each query and head */
    {false, true, false, false, 2, 1, 1024, 64, 8,
     (64 + 8) * MIB + SUMS}, /* scores, and of every head */
    {false, true, false, false, 2, 1, 1024, 64, 32, 64 * MIB + SUMS},
    {false, true, false, false, 2, 1, 512, 128, 32, RUN_PLAN_SCRATCH},
    {false, true, false, false, 2, 4, 1024, 64, 32, RUN_PLAN_CUDNN + 4 * SUMS},
    {false, true, false, false, 2, 4, 1024, 64, 8,
     2 * (64 + 8) * MIB + 4 * SUMS},                                  /* in two parts */
    {false, true, false, false, 2, 1, 4096, 64, 8, RUN_PLAN_SCRATCH}, /* too much for cuDNN: ours */
    {false, true, false, false, 4, 1, 1024, 64, 32, RUN_PLAN_SCRATCH},
    {false, true, false, false, 2, 1, 1024, 96, 32, RUN_PLAN_SCRATCH},
    {false, false, false, true, 2, 512, 1000, 64, 8, 128 * MIB}, /* two numbers, of 1024 */
    {false, false, false, true, 2, 4, 1024, 64, 8, RUN_PLAN_SCRATCH},
    /* of every head, and sums of the queries' gradients */
    {false, true, true, false, 2, 1, 8192, 64, 8, 64 * MIB + 64 * MIB + 8 * SUMS},
    {false, true, true, false, 2, 1, 8192, 128, 8, 128 * MIB + 128 * MIB + 8 * SUMS},
    {false, true, true, false, 2, 16, 1024, 64, 32, 128 * MIB + 16 * SUMS},
    {false, true, true, false, 2, 6, 8192, 64, 8, 3 * 128 * MIB + 6 * 8 * SUMS}, /* in two parts */
    {false, false, true, false, 2, 1, 8192, 64, 8, RUN_PLAN_SCRATCH},            /* ours */
    /* of 32 or 16 queries together, diagonals through whole tiles of keys and 32 more */
    {true, false, false, false, 2, 16, 1024, 64, 32, (16 * 32 * 32 * 1056) * 4 + (16 + 2) * SUMS},
    {true, true, false, false, 2, 16, 1024, 128, 32, (16 * 32 * 64 * 1056) * 4 + (16 + 2) * SUMS},
    {true, false, false, false, 2, 16, 1024 - 33, 64, 32,
     (16 * 32 * 31 * 1056 + (16 + 2) * 32 * (1024 - 33)) * 4},
    {true, false, false, false, 4, 4, 1024, 64, 32, RUN_PLAN_SCRATCH},
};

static void scratch_is_what_attention_has_if_that_is_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(scratches); i++) {
        struct run_plan_facts f = plan_facts_1b(8);
        struct run_plan plan;
        f.activations.bias = scratches[i].bias;
        f.activations.cudnn_backward = scratches[i].cudnn;
        f.activations.nondeterministic = scratches[i].any_order;
        f.activations.hopper_backward = scratches[i].hopper;
        f.activations.hd = scratches[i].hd;
        f.activations.kv_heads = scratches[i].kv_heads;
        f.bytes.value = scratches[i].value;
        f.batch_rows = scratches[i].rows;
        f.sequence_tokens = scratches[i].tokens;
        run_plan_make(&f, &plan);
        const struct run_plan_strategy *s = &plan.strategies[0];
        int64_t step = s->transient + plan.activations + plan.logits;
        int64_t scratch = s->allowance - plan.activation_gradients - step / RUN_PLAN_PART;
        if (scratch != scratches[i].scratch)
            fail_msg("row %zu: %lld bytes instead of %lld", i, (long long)scratch,
                     (long long)scratches[i].scratch);
    }
}

/* One linear layer's operands at a time: of the 1B's, gate and up have the most. */
static void fp8_has_copies(void **state)
{
    (void)state;
    struct run_plan_facts f = plan_facts_1b(8);
    struct run_plan without, with;
    run_plan_make(&f, &without);
    f.activations.fp8 = true;
    run_plan_make(&f, &with);
    int64_t rows = f.batch_rows * f.sequence_tokens, D = f.activations.D, I = f.activations.I;
    assert_int_equal(without.fp8_copies, 0);
    assert_int_equal(with.fp8_copies, rows * (2 * 2 * I + D)); /* twice dy, and x */
    for (int i = 0; i < RUN_PLAN_STRATEGIES; i++)
        assert_int_equal(with.strategies[i].device - without.strategies[i].device, with.fp8_copies);
    f.batch_rows = 1;
    f.sequence_tokens = 16; /* then the weight is the most of it */
    run_plan_make(&f, &with);
    assert_int_equal(with.fp8_copies, 16 * 2 * I + 2 * I * D);
}

/* A CPU multiplies what it decodes to bf16, two bytes for each code of a product's factors, and
 * gate and up one after the other. */
static void fp8_is_decoded_on_a_cpu(void **state)
{
    (void)state;
    struct run_plan_facts f = plan_facts_1b(8);
    struct run_plan plan;
    f.activations.fp8 = f.activations.fp8_decoded = true;
    int64_t rows = f.batch_rows * f.sequence_tokens, D = f.activations.D, I = f.activations.I;
    run_plan_make(&f, &plan); /* the weight's gradient of one of them */
    assert_int_equal(plan.fp8_copies, rows * (2 * I + D) + 2 * rows * (I + D));
    f.sequence_tokens = 16; /* the values' gradient, as the weight is the most of it */
    run_plan_make(&f, &plan);
    assert_int_equal(plan.fp8_copies, 3 * (16 * I + I * D));
}

/* t5-small in bf16, 4 samples of 512 tokens to 128. A token of the encoder keeps 2 (4 * 512 + 3 *
 * 512
 * + 512 + 2 * 2048) + 32 bytes a layer; one of the decoder as much, and 2 (4 * 512) + 32 for what
 * it sees of the encoder, whose tokens keep 4 * 512 more. */
static void a_decoders_layers_count_by_its_own_tokens(void **state)
{
    (void)state;
    enum { B = 4, S = 512, T = 128, ENCODER = 16416, CROSS = 4128, SEEN = 2048, L = 6 };
    struct run_plan_facts f = plan_facts_1b(1);
    struct run_plan plan;
    f.activations = (struct plan_activations){.L = L,
                                              .decoder_L = L,
                                              .target_tokens = T,
                                              .D = 512,
                                              .heads = 8,
                                              .kv_heads = 8,
                                              .hd = 64,
                                              .I = 2048,
                                              .logit_stride = 32128,
                                              .chunk_rows = 522};
    f.batch_rows = B;
    f.sequence_tokens = S + T;
    const int64_t encoder = B * S * ENCODER, decoder = B * (T * (ENCODER + CROSS) + S * SEEN);
    run_plan_make(&f, &plan);
    assert_int_equal(plan.activations, L * (encoder + decoder));
    assert_int_equal(plan.logits, B * T * 32128 * 2);
    f.activations.offload = true;
    f.activations.horizon = L + 1;
    run_plan_make(&f, &plan);
    assert_int_equal(plan.activations, L * decoder + encoder);
    assert_int_equal(plan.host_activations, L * (encoder + decoder));
    f.activations.offload = false;
    f.activations.checkpointing = TAPE_CHECKPOINTING_FULL;
    run_plan_make(&f, &plan);
    assert_int_equal(plan.activations, L * B * (S + T) * 1024 + encoder);
}

/* The least with which 80 GB hold the rank; never more than is configured. */
static void what_80_gb_hold_need_not_be_computed_again(void **state)
{
    (void)state;
    const enum tape_checkpointing NONE = TAPE_CHECKPOINTING_NONE,
                                  SELECTIVE = TAPE_CHECKPOINTING_SELECTIVE,
                                  FULL = TAPE_CHECKPOINTING_FULL;
    const struct {
        int world_size;
        int64_t rows;
        enum shard_strategy strategy;
        enum tape_checkpointing configured, least;
    } rows[] = {
        {8, 1, FULL_SHARD, FULL, NONE}, /* 61 GB */
        {8, 1, FULL_SHARD, NONE, NONE},
        {4, 1, FULL_SHARD, FULL, NONE}, /* 79.4: 0.54 more is left for libraries */
        {3, 1, FULL_SHARD, FULL, SELECTIVE},
        {8, 2, FULL_SHARD, FULL, SELECTIVE},
        {8, 2, FULL_SHARD, SELECTIVE, SELECTIVE},
        {8, 4, FULL_SHARD, FULL, FULL},
        {8, 8, FULL_SHARD, NONE, NONE}, /* not more than is asked for */
        {8, 1, SHARD_GRAD_OP, FULL, NONE},
        {1, 1, NO_SHARD, FULL, FULL}, /* nor what does not fit at all */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct run_plan_facts f = plan_facts_8b(rows[i].world_size);
        int64_t device;
        f.batch_rows = rows[i].rows;
        f.activations.checkpointing = rows[i].configured;
        enum tape_checkpointing least = run_plan_least_recompute(&f, rows[i].strategy, &device);
        print_message("row %zu: %d, %.3f GB\n", i, least, (double)device / 1e9);
        assert_int_equal(least, rows[i].least);
        f.activations.checkpointing = least;
        assert_int_equal(device, plan_facts_strategy(&f, rows[i].strategy).device);
    }
    struct run_plan_facts unknown = plan_facts_8b(8);
    int64_t device;
    unknown.activations.L = 0;
    unknown.activations.checkpointing = TAPE_CHECKPOINTING_FULL;
    assert_int_equal(run_plan_least_recompute(&unknown, FULL_SHARD, &device),
                     TAPE_CHECKPOINTING_FULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_are_the_tables),
        cmocka_unit_test(a_decoders_layers_count_by_its_own_tokens),
        cmocka_unit_test(what_is_offloaded_is_on_the_host),
        cmocka_unit_test(scratch_is_what_attention_has_if_that_is_more),
        cmocka_unit_test(fp8_has_copies),
        cmocka_unit_test(fp8_is_decoded_on_a_cpu),
        cmocka_unit_test(what_80_gb_hold_need_not_be_computed_again),
    };
    return cmocka_run_group_tests(tests, plan_facts_fill, NULL);
}
