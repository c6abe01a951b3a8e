#include "tests/support.h"

#include "agent/plan/run_plan.h"
#include "base/json.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Llama-3.2-1B, whose head is its embedding, and Llama-3-8B, whose head is not: published counts.
 * The units are a layer each; the embedding is in the root, or in one of its own as the head is. */
enum { LAYERS_1B = 16, LAYERS_8B = 32 };
static const int64_t layer_1b = 60821504, embedding_1b = 262668288, layer_8b = 218112000,
                     embedding_8b = 525336576;

static struct plan_unit units_1b[1 + LAYERS_1B], units_8b[3 + LAYERS_8B];

static int fill_units(void **state)
{
    (void)state;
    units_1b[0] = (struct plan_unit){embedding_1b + 2048, PLAN_ROOT};
    for (int i = 0; i < LAYERS_1B; i++)
        units_1b[1 + i] = (struct plan_unit){layer_1b, PLAN_BLOCK};
    units_8b[0] = (struct plan_unit){4096, PLAN_ROOT};
    units_8b[1] = units_8b[2] = (struct plan_unit){embedding_8b, PLAN_OTHER};
    for (int i = 0; i < LAYERS_8B; i++)
        units_8b[3 + i] = (struct plan_unit){layer_8b, PLAN_BLOCK};
    return 0;
}

static struct run_plan_facts facts_1b(int world_size)
{
    return (struct run_plan_facts){
        .parameters = 1235814400,
        .units = units_1b,
        .unit_count = 1 + LAYERS_1B,
        .bytes = {2, 4, 8, 4, 4},
        .activations = {.L = LAYERS_1B,
                        .D = 2048,
                        .heads = 32,
                        .kv_heads = 8,
                        .hd = 64,
                        .I = 8192,
                        .logit_stride = 128256,
                        .gated = true,
                        .chunk_rows = 1024},
        .batch_rows = 1,
        .sequence_tokens = 8192,
        .world_size = world_size,
        .group_size = world_size < 8 ? world_size : 8,
        .micro_batches = 1,
    };
}

static struct run_plan_facts facts_8b(int world_size)
{
    struct run_plan_facts f = facts_1b(world_size);
    f.parameters = 8030261248;
    f.units = units_8b;
    f.unit_count = 3 + LAYERS_8B;
    f.activations.L = LAYERS_8B;
    f.activations.D = 4096;
    f.activations.hd = 128;
    f.activations.I = 14336;
    return f;
}

static struct run_plan_strategy plan_of(const struct run_plan_facts *f, enum shard_strategy s)
{
    struct run_plan plan;
    run_plan_make(f, &plan);
    assert_int_equal(plan.strategies[s - FULL_SHARD].strategy, s);
    return plan.strategies[s - FULL_SHARD];
}

static void assert_gb(int64_t bytes, double gb, const char *what)
{
    if (fabs((double)bytes / 1e9 - gb) > 0.06) /* the tables add rounded parts */
        fail_msg("%s: %.3f GB, not %.1f", what, (double)bytes / 1e9, gb);
}

/* A published table of memory per GPU (bf16 values, fp32 masters, Adam, fp32 gradients), in GB. In
 * it, whole values take the place of the slice's; here both are there. */
static void memory_is_the_tables(void **state)
{
    (void)state;
    static const struct {
        bool is_8b;
        enum shard_strategy strategy;
        int world_size;
        double gb;
    } rows[] = {
        {false, NO_SHARD, 1, 22.2},      {false, NO_SHARD, 8, 22.2},
        {false, SHARD_GRAD_OP, 1, 22.2}, {false, SHARD_GRAD_OP, 8, 6.5},
        {false, SHARD_GRAD_OP, 64, 4.3}, {false, FULL_SHARD, 1, 22.2},
        {false, FULL_SHARD, 8, 5.1},     {false, FULL_SHARD, 64, 2.7},
        {false, HYBRID_SHARD, 64, 5.1},  {false, HYBRID_SHARD_ZERO2, 64, 6.5},
        {true, NO_SHARD, 64, 144.5},     {true, SHARD_GRAD_OP, 8, 36.0},
        {true, SHARD_GRAD_OP, 64, 21.9}, {true, FULL_SHARD, 1, 144.5},
        {true, FULL_SHARD, 8, 21.7},     {true, FULL_SHARD, 64, 5.9},
        {true, HYBRID_SHARD, 64, 21.7},  {true, HYBRID_SHARD_ZERO2, 64, 36.0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct run_plan_facts f =
            rows[i].is_8b ? facts_8b(rows[i].world_size) : facts_1b(rows[i].world_size);
        const struct run_plan_strategy s = plan_of(&f, rows[i].strategy);
        bool stays_whole =
            rows[i].strategy == SHARD_GRAD_OP || rows[i].strategy == HYBRID_SHARD_ZERO2;
        int64_t doubled = stays_whole && s.group_size > 1 ? s.values : 0;
        assert_gb(s.persistent + s.transient - doubled, rows[i].gb,
                  shard_strategy_name(rows[i].strategy));
    }
}

/* Bytes sent per GPU and step, fp32 or bf16 reduction. The table gathers every unit twice, so the
 * root of the 1B model is taken for a block here. */
static void traffic_is_the_tables(void **state)
{
    (void)state;
    static const struct {
        bool is_8b;
        enum shard_strategy strategy;
        int world_size, reduction;
        double in_group, between;
    } rows[] = {
        {false, NO_SHARD, 8, 2, 0, 4.3},          {false, NO_SHARD, 8, 4, 0, 8.7},
        {false, SHARD_GRAD_OP, 8, 2, 4.3, 0},     {false, SHARD_GRAD_OP, 8, 4, 6.5, 0},
        {false, FULL_SHARD, 8, 2, 6.5, 0},        {false, FULL_SHARD, 8, 4, 8.7, 0},
        {false, HYBRID_SHARD, 64, 4, 8.65, 1.08}, {false, HYBRID_SHARD_ZERO2, 64, 4, 6.5, 1.08},
        {true, NO_SHARD, 8, 4, 0, 56.2},          {true, SHARD_GRAD_OP, 8, 4, 42.2, 0},
        {true, FULL_SHARD, 8, 2, 42.2, 0},        {true, FULL_SHARD, 8, 4, 56.2, 0},
        {true, HYBRID_SHARD, 64, 4, 56.2, 7.0},
    };
    units_1b[0].role = PLAN_OTHER;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct run_plan_facts f =
            rows[i].is_8b ? facts_8b(rows[i].world_size) : facts_1b(rows[i].world_size);
        f.bytes.reduction = rows[i].reduction;
        const struct run_plan_strategy s = plan_of(&f, rows[i].strategy);
        assert_gb(s.sent_in_group, rows[i].in_group, shard_strategy_name(rows[i].strategy));
        assert_gb(s.sent_between_groups, rows[i].between, "between groups");
    }
    fill_units(NULL);
}

static void accumulation_is_paid_where_it_is_done(void **state)
{
    (void)state;
    struct run_plan_facts f = facts_8b(8);
    const struct run_plan_strategy once = plan_of(&f, FULL_SHARD);
    const int64_t gradients = 7 * (f.parameters / 8) * 4;
    f.micro_batches = 4;
    const struct run_plan_strategy whole = plan_of(&f, FULL_SHARD);
    f.accumulate_sharded = true;
    const struct run_plan_strategy sharded = plan_of(&f, FULL_SHARD);
    const struct run_plan_strategy zero2 = plan_of(&f, SHARD_GRAD_OP);
    int64_t values = once.sent_in_group - gradients;
    assert_int_equal(whole.sent_in_group, 4 * values + gradients);
    assert_int_equal(sharded.sent_in_group, 4 * once.sent_in_group);
    assert_int_equal(zero2.sent_in_group, 7 * (f.parameters / 8) * 2 + 4 * gradients);
    assert_int_equal(sharded.transient, once.transient);
    assert_int_equal(whole.whole_gradients, f.parameters * 4);
    assert_true(whole.transient > sharded.transient);
}

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
        struct run_plan_facts f = rows[i].is_8b ? facts_8b(8) : facts_1b(8);
        f.activations.checkpointing = rows[i].checkpointing;
        struct run_plan plan;
        run_plan_make(&f, &plan);
        assert_gb(plan.activations, rows[i].gb, "activations");
    }
}

static void what_is_offloaded_is_on_the_host(void **state)
{
    (void)state;
    struct run_plan_facts f = facts_1b(8);
    const struct run_plan_strategy before = plan_of(&f, FULL_SHARD);
    f.cpu_offload = true;
    const struct run_plan_strategy after = plan_of(&f, FULL_SHARD);
    assert_int_equal(after.host, before.persistent);
    assert_int_equal(after.device, before.device - before.persistent);
    assert_int_equal(plan_of(&f, NO_SHARD).gathered, 2 * f.parameters); /* copied before use */
    f.activations.offload = true;
    f.activations.horizon = 2;
    struct run_plan plan;
    run_plan_make(&f, &plan);
    assert_int_equal(plan.activations * LAYERS_1B / 2, plan.host_activations);
    assert_gb(plan.host_activations, 9.95, "activations on the host");
}

static void scratch_is_what_attention_has_if_that_is_more(void **state)
{
    (void)state;
    enum { MIB = 1 << 20, SUMS = 32 * 1024 * 4 };
    static const struct {
        bool bias, cudnn, any_order;
        int value;
        int64_t rows, tokens, hd, kv_heads, scratch;
    } rows[] = {
        {false, false, false, 2, 4, 1024, 64, 8, RUN_PLAN_SCRATCH},
        {false, false, false, 2, 512, 1024, 64, 8, 64 * MIB}, /* a sum of each query and head */
        {false, true, false, 2, 1, 1024, 64, 8,
         (64 + 8) * MIB + SUMS}, /* scores, and of every head */
        {false, true, false, 2, 1, 1024, 64, 32, 64 * MIB + SUMS},
        {false, true, false, 2, 1, 512, 128, 32, RUN_PLAN_SCRATCH},
        {false, true, false, 2, 4, 1024, 64, 32, RUN_PLAN_CUDNN + 4 * SUMS},
        {false, true, false, 2, 4, 1024, 64, 8, 2 * (64 + 8) * MIB + 4 * SUMS}, /* in two parts */
        {false, true, false, 2, 1, 4096, 64, 8, RUN_PLAN_SCRATCH}, /* too much for cuDNN: ours */
        {false, true, false, 4, 1, 1024, 64, 32, RUN_PLAN_SCRATCH},
        {false, true, false, 2, 1, 1024, 96, 32, RUN_PLAN_SCRATCH},
        /* of every head, and sums of the queries' gradients */
        {false, true, true, 2, 1, 8192, 64, 8, 64 * MIB + 64 * MIB + 8 * SUMS},
        {false, true, true, 2, 1, 8192, 128, 8, 128 * MIB + 128 * MIB + 8 * SUMS},
        {false, true, true, 2, 16, 1024, 64, 32, 128 * MIB + 16 * SUMS},
        {false, true, true, 2, 6, 8192, 64, 8, 3 * 128 * MIB + 6 * 8 * SUMS}, /* in two parts */
        {false, false, true, 2, 1, 8192, 64, 8, RUN_PLAN_SCRATCH},            /* ours */
        /* of 32 or 16 queries together, diagonals through whole tiles of keys and 32 more */
        {true, false, false, 2, 16, 1024, 64, 32, (16 * 32 * 32 * 1056) * 4 + (16 + 2) * SUMS},
        {true, true, false, 2, 16, 1024, 128, 32, (16 * 32 * 64 * 1056) * 4 + (16 + 2) * SUMS},
        {true, false, false, 2, 16, 1024 - 33, 64, 32,
         (16 * 32 * 31 * 1056 + (16 + 2) * 32 * (1024 - 33)) * 4},
        {true, false, false, 4, 4, 1024, 64, 32, RUN_PLAN_SCRATCH},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct run_plan_facts f = facts_1b(8);
        struct run_plan plan;
        f.activations.bias = rows[i].bias;
        f.activations.cudnn_backward = rows[i].cudnn;
        f.activations.nondeterministic = rows[i].any_order;
        f.activations.hd = rows[i].hd;
        f.activations.kv_heads = rows[i].kv_heads;
        f.bytes.value = rows[i].value;
        f.batch_rows = rows[i].rows;
        f.sequence_tokens = rows[i].tokens;
        run_plan_make(&f, &plan);
        const struct run_plan_strategy *s = &plan.strategies[0];
        int64_t step = s->transient + plan.activations + plan.logits;
        int64_t scratch = s->allowance - plan.activation_gradients - step / RUN_PLAN_PART;
        if (scratch != rows[i].scratch)
            fail_msg("row %zu: %lld bytes instead of %lld", i, (long long)scratch,
                     (long long)rows[i].scratch);
    }
}

/* What is reserved of a GPU: all that is known, and a part of what comes and goes;
 * graphs beside. */
static void the_total_has_an_allowance(void **state)
{
    (void)state;
    struct run_plan_facts f = facts_1b(8);
    struct run_plan without, with;
    run_plan_make(&f, &without);
    f.cuda_graphs = true;
    run_plan_make(&f, &with);
    assert_int_equal(without.graphs, 0);
    assert_int_equal(with.graphs, (LAYERS_1B + 1) * 8 << 20);
    for (int i = 0; i < RUN_PLAN_STRATEGIES; i++) {
        const struct run_plan_strategy *s = &with.strategies[i];
        int64_t step = s->transient + with.activations + with.logits;
        assert_int_equal(s->allowance, (32 << 20) + 8192 * 2 * (8192 + 2048) + step / 16);
        assert_int_equal(s->reserve, s->persistent + step + s->allowance);
        assert_int_equal(s->device, s->reserve + with.graphs);
        assert_int_equal(without.strategies[i].device, s->reserve);
    }
    const struct run_plan_facts images = {.units = units_1b,
                                          .unit_count = 1,
                                          .world_size = 1,
                                          .group_size = 1,
                                          .activations = {.pass_bytes = 1000}};
    run_plan_make(&images, &with);
    assert_int_equal(with.activations, 1000);
}

static void slices_are_padded_to_the_group(void **state)
{
    (void)state;
    const struct plan_unit units[] = {{20108, PLAN_ROOT}, {1179776, PLAN_BLOCK}};
    const struct run_plan_facts f = {.parameters = 1199882,
                                     .units = units,
                                     .unit_count = 2,
                                     .bytes = {4, 0, 8, 4, 4},
                                     .batch_rows = 64,
                                     .world_size = 3,
                                     .group_size = 3,
                                     .micro_batches = 1};
    const struct run_plan_strategy s = plan_of(&f, FULL_SHARD);
    assert_int_equal(s.values, 4 * (20112 + 1179792) / 3);
    /* there is no second block that could be gathered ahead */
    assert_int_equal(s.gathered, 4 * (20112 + 1179792));
    struct run_plan plan;
    run_plan_make(&f, &plan);
    assert_int_equal(plan.samples, 192);
    assert_int_equal(plan.tokens, 0);
    assert_int_equal(plan.activations, 0);
}

static void advice_is_the_guides(void **state)
{
    (void)state;
    static const struct {
        int64_t parameters;
        enum shard_strategy strategy;
        bool offload, cpu_offload;
        int max_nodes;
    } rows[] = {
        {237519872, NO_SHARD, false, false, 1},      {999999999, NO_SHARD, false, false, 1},
        {1000000000, SHARD_GRAD_OP, true, false, 2}, {8030261248, SHARD_GRAD_OP, true, false, 2},
        {13015864320, FULL_SHARD, true, false, 8},   {70553706496, FULL_SHARD, true, true, 32},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct run_plan_advice a = run_plan_advise(rows[i].parameters);
        assert_int_equal(a.strategy, rows[i].strategy);
        assert_int_equal(a.offload_activations, rows[i].offload);
        assert_int_equal(a.cpu_offload_if_needed, rows[i].cpu_offload);
        assert_int_equal(a.max_nodes, rows[i].max_nodes);
    }
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
        struct run_plan_facts f = facts_8b(rows[i].world_size);
        int64_t device;
        f.batch_rows = rows[i].rows;
        f.activations.checkpointing = rows[i].configured;
        enum tape_checkpointing least = run_plan_least_recompute(&f, rows[i].strategy, &device);
        print_message("row %zu: %d, %.3f GB\n", i, least, (double)device / 1e9);
        assert_int_equal(least, rows[i].least);
        f.activations.checkpointing = least;
        assert_int_equal(device, plan_of(&f, rows[i].strategy).device);
    }
    struct run_plan_facts unknown = facts_8b(8);
    int64_t device;
    unknown.activations.L = 0;
    unknown.activations.checkpointing = TAPE_CHECKPOINTING_FULL;
    assert_int_equal(run_plan_least_recompute(&unknown, FULL_SHARD, &device),
                     TAPE_CHECKPOINTING_FULL);
}

/* Two of what a checkpoint holds of the rank's slice: fp32 where it is kept, and the optimizer's
 * state. */
static void checkpoints_in_memory_are_counted_beside(void **state)
{
    (void)state;
    struct run_plan_facts f = facts_1b(8);
    struct run_plan plan;
    auto_str struct str text;
    str_init(&text, 1 << 16);
    f.memory_copies = 1;
    run_plan_make(&f, &plan);
    for (int i = 0; i < RUN_PLAN_STRATEGIES; i++) {
        const struct run_plan_strategy *s = &plan.strategies[i];
        assert_int_equal(s->memory_checkpoints, 2 * (s->masters + s->states));
        assert_int_equal(s->memory_checkpoints % (2 * (4 + 8)), 0);
        assert_int_equal(s->host, 0);
    }
    run_plan_print_short(&plan, &f, FULL_SHARD, &text);
    assert_non_null(strstr(str_text(&text), "checkpoints in memory take 3.707 GB more per rank"));
    str_clear(&text);
    run_plan_print(&plan, &f, NO_SHARD, &text);
    assert_non_null(strstr(str_text(&text), "checkpoints in memory take 29.660 GB more per rank"));
    f.bytes = (struct plan_bytes){2, 0, 4, 4, 2}; /* bf16-true */
    run_plan_make(&f, &plan);
    assert_int_equal(plan.strategies[0].memory_checkpoints,
                     2 * (plan.strategies[0].values + plan.strategies[0].states));
    f.memory_copies = 2; /* with another pod's */
    run_plan_make(&f, &plan);
    assert_int_equal(plan.strategies[0].memory_checkpoints,
                     4 * (plan.strategies[0].values + plan.strategies[0].states));
}

static void it_is_told_as_text_and_as_json(void **state)
{
    (void)state;
    struct run_plan_facts f = facts_1b(8);
    f.flops_per_token[FLOPS_CAUSAL] = 9e9;
    f.flops_per_token[FLOPS_FULL] = 10e9;
    struct run_plan plan;
    run_plan_make(&f, &plan);
    auto_str struct str text, object;
    str_init(&text, 1 << 16);
    str_init(&object, 1 << 16);
    run_plan_print(&plan, &f, FULL_SHARD, &text);
    run_plan_json(&plan, &f, FULL_SHARD, "", &object);
    assert_non_null(strstr(str_text(&text), "1,235,814,400 parameters in 17 units"));
    assert_non_null(
        strstr(str_text(&text), "65,536 tokens in all, 589.8 TFLOP (causal), 655.4 TFLOP"));
    assert_non_null(strstr(str_text(&text), "\n* FULL_SHARD "));
    assert_non_null(strstr(str_text(&text), "\n  SHARD_GRAD_OP "));
    assert_null(strstr(str_text(&text), "checkpoints in memory"));
    str_clear(&text);
    run_plan_print_short(&plan, &f, HYBRID_SHARD, &text);
    assert_non_null(strstr(str_text(&text), "8 ranks, HYBRID_SHARD in groups of 8: about "));
    assert_non_null(
        strstr(str_text(&text), "\nGB: shards 0.927, optimizer 1.236, gradients 0.618"));
    struct json *json = json_parse_text(str_text(&object), JSON_STRICT, NULL);
    assert_non_null(json);
    assert_int_equal(json_as_integer(json_get(json, "parameters")), 1235814400);
    const struct json *strategies = json_get(json, "strategies");
    assert_int_equal(json_array_count(strategies), RUN_PLAN_STRATEGIES);
    const struct json *full = json_at(strategies, 0);
    assert_true(json_is_true(json_get(full, "configured")));
    assert_int_equal(json_as_integer(json_get(full, "optimizer_bytes")), plan.strategies[0].states);
    json_free(json);
}

/* t5-small in bf16, 4 samples of 512 tokens to 128. A token of the encoder keeps 2 (4 * 512 + 3 *
 * 512
 * + 512 + 2 * 2048) + 32 bytes a layer; one of the decoder as much, and 2 (4 * 512) + 32 for what
 * it sees of the encoder, whose tokens keep 4 * 512 more. */
static void a_decoders_layers_count_by_its_own_tokens(void **state)
{
    (void)state;
    enum { B = 4, S = 512, T = 128, ENCODER = 16416, CROSS = 4128, SEEN = 2048, L = 6 };
    struct run_plan_facts f = facts_1b(1);
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

static void small_units_are_told(void **state)
{
    (void)state;
    assert_true(run_plan_units_are_small(60506624, 13)); /* t5-small */
    assert_false(run_plan_units_are_small(60506624, 1));
    assert_false(run_plan_units_are_small(1235814400, 17)); /* Llama-3.2-1B */
}

/* With as many slots as ranks the same bytes are sent, and a unit's worth is kept beside; on fewer
 * ranks the samples stay, and each micro-batch is run in rounds. */
static void slots_cost_a_buffer_and_rounds(void **state)
{
    (void)state;
    struct run_plan_facts f = facts_1b(8), fixed = f, fewer = facts_1b(5), one = facts_1b(1);
    fixed.slots = fewer.slots = one.slots = 8;
    const struct run_plan_strategy plain = plan_of(&f, FULL_SHARD);
    const struct run_plan_strategy slots = plan_of(&fixed, FULL_SHARD);
    assert_int_equal(slots.persistent, plain.persistent);
    assert_int_equal(slots.transient - plain.transient, (embedding_1b + 2048) * 4);
    assert_int_equal(slots.sent_in_group, plain.sent_in_group);
    assert_int_equal(slots.sent_between_groups, 0);
    int64_t gathered = 2 * facts_1b(1).parameters - (embedding_1b + 2048);
    assert_true(llabs(plan_of(&fewer, FULL_SHARD).sent_in_group -
                      (gathered * 2 + facts_1b(1).parameters * 4) / 5 * 4 * 2) < 20000);
    /* As an all_reduce: half of it for sums, half for what all need. */
    assert_true(llabs(plan_of(&fixed, NO_SHARD).sent_between_groups +
                      plan_of(&fixed, NO_SHARD).sent_in_group -
                      plan_of(&f, NO_SHARD).sent_between_groups) < 1000);
    /* No gradient is added up in place. */
    assert_int_equal(plan_of(&one, NO_SHARD).transient, (embedding_1b + 2048 + 2 * layer_1b) * 4);
    const struct run_plan_facts *rows[] = {&fixed, &fewer, &one};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct run_plan plan;
        run_plan_make(rows[i], &plan);
        assert_int_equal(plan.samples, 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_the_tables),
        cmocka_unit_test(traffic_is_the_tables),
        cmocka_unit_test(accumulation_is_paid_where_it_is_done),
        cmocka_unit_test(activations_are_the_tables),
        cmocka_unit_test(a_decoders_layers_count_by_its_own_tokens),
        cmocka_unit_test(small_units_are_told),
        cmocka_unit_test(what_is_offloaded_is_on_the_host),
        cmocka_unit_test(scratch_is_what_attention_has_if_that_is_more),
        cmocka_unit_test(the_total_has_an_allowance),
        cmocka_unit_test(slices_are_padded_to_the_group),
        cmocka_unit_test(advice_is_the_guides),
        cmocka_unit_test(what_80_gb_hold_need_not_be_computed_again),
        cmocka_unit_test(checkpoints_in_memory_are_counted_beside),
        cmocka_unit_test(it_is_told_as_text_and_as_json),
        cmocka_unit_test(slots_cost_a_buffer_and_rounds),
    };
    return cmocka_run_group_tests(tests, fill_units, NULL);
}
