#include "tests/agent/plan_facts.h"
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

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
            rows[i].is_8b ? plan_facts_8b(rows[i].world_size) : plan_facts_1b(rows[i].world_size);
        const struct run_plan_strategy s = plan_facts_strategy(&f, rows[i].strategy);
        bool stays_whole =
            rows[i].strategy == SHARD_GRAD_OP || rows[i].strategy == HYBRID_SHARD_ZERO2;
        int64_t doubled = stays_whole && s.group_size > 1 ? s.values : 0;
        plan_facts_assert_gb(s.persistent + s.transient - doubled, rows[i].gb,
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
    plan_facts_units_1b[0].role = PLAN_OTHER;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct run_plan_facts f =
            rows[i].is_8b ? plan_facts_8b(rows[i].world_size) : plan_facts_1b(rows[i].world_size);
        f.bytes.reduction = rows[i].reduction;
        const struct run_plan_strategy s = plan_facts_strategy(&f, rows[i].strategy);
        plan_facts_assert_gb(s.sent_in_group, rows[i].in_group,
                             shard_strategy_name(rows[i].strategy));
        plan_facts_assert_gb(s.sent_between_groups, rows[i].between, "between groups");
    }
    plan_facts_fill(NULL);
}

static void accumulation_is_paid_where_it_is_done(void **state)
{
    (void)state;
    struct run_plan_facts f = plan_facts_8b(8);
    const struct run_plan_strategy once = plan_facts_strategy(&f, FULL_SHARD);
    const int64_t gradients = 7 * (f.parameters / 8) * 4;
    f.micro_batches = 4;
    const struct run_plan_strategy whole = plan_facts_strategy(&f, FULL_SHARD);
    f.accumulate_sharded = true;
    const struct run_plan_strategy sharded = plan_facts_strategy(&f, FULL_SHARD);
    const struct run_plan_strategy zero2 = plan_facts_strategy(&f, SHARD_GRAD_OP);
    int64_t values = once.sent_in_group - gradients;
    assert_int_equal(whole.sent_in_group, 4 * values + gradients);
    assert_int_equal(sharded.sent_in_group, 4 * once.sent_in_group);
    assert_int_equal(zero2.sent_in_group, 7 * (f.parameters / 8) * 2 + 4 * gradients);
    assert_int_equal(sharded.transient, once.transient);
    assert_int_equal(whole.whole_gradients, f.parameters * 4);
    assert_true(whole.transient > sharded.transient);
}

/* What is reserved of a GPU: all that is known, and a part of what comes and goes;
 * graphs beside. */
static void the_total_has_an_allowance(void **state)
{
    (void)state;
    struct run_plan_facts f = plan_facts_1b(8);
    struct run_plan without, with;
    run_plan_make(&f, &without);
    f.cuda_graphs = true;
    run_plan_make(&f, &with);
    assert_int_equal(without.graphs, 0);
    assert_int_equal(with.graphs, (PLAN_FACTS_LAYERS_1B + 1) * 8 << 20);
    for (int i = 0; i < RUN_PLAN_STRATEGIES; i++) {
        const struct run_plan_strategy *s = &with.strategies[i];
        int64_t step = s->transient + with.activations + with.logits;
        assert_int_equal(s->allowance, (32 << 20) + 8192 * 2 * (8192 + 2048) + step / 16);
        assert_int_equal(s->reserve, s->persistent + step + s->allowance);
        assert_int_equal(s->device, s->reserve + with.graphs);
        assert_int_equal(without.strategies[i].device, s->reserve);
    }
    const struct run_plan_facts images = {.units = plan_facts_units_1b,
                                          .unit_count = 1,
                                          .world_size = 1,
                                          .group_size = 1,
                                          .activations = {.pass_bytes = 1000}};
    run_plan_make(&images, &with);
    assert_int_equal(with.activations, 1000);
}

/* Blocks that are gathered in fp8: a byte of each element less, but for what stays beside. */
static void fp8_halves_what_is_gathered(void **state)
{
    (void)state;
    enum { NORMS = 8192, MOST_UNITS = 64, BLOCKS = PLAN_FACTS_LAYERS_8B };
    struct run_plan_facts f = plan_facts_8b(8);
    struct plan_unit units[MOST_UNITS];
    memcpy(units, f.units, (size_t)f.unit_count * sizeof *units);
    int64_t block = units[f.unit_count - 1].flat_count;
    f.activations.fp8 = true;
    f.units = units;
    const struct run_plan_strategy full = plan_facts_strategy(&f, FULL_SHARD),
                                   zero2 = plan_facts_strategy(&f, SHARD_GRAD_OP);
    for (int i = 0; i < f.unit_count; i++)
        units[i].fp8_count = units[i].role == PLAN_BLOCK ? block - NORMS : 0;
    const struct run_plan_strategy full_fp8 = plan_facts_strategy(&f, FULL_SHARD),
                                   zero2_fp8 = plan_facts_strategy(&f, SHARD_GRAD_OP),
                                   alone = plan_facts_strategy(&f, NO_SHARD);
    assert_true(full_fp8.gathers_fp8 && zero2_fp8.gathers_fp8);
    assert_false(full.gathers_fp8 || alone.gathers_fp8);
    /* the rest in bf16, and a message of each rank that may have all of it */
    const int64_t rest = NORMS * 2, kept = BLOCKS * rest + 8 * rest;
    /* embedding and head are as they were; a block is gathered beside */
    assert_int_equal(full.gathered - full_fp8.gathered, block - kept);
    assert_int_equal(full.whole_gradients, full_fp8.whole_gradients);
    assert_int_equal(zero2.gathered - zero2_fp8.gathered, BLOCKS * block - kept);
    assert_int_equal(zero2.transient - zero2_fp8.transient, BLOCKS * block - kept);
    /* of two gathers a step; a message once */
    assert_int_equal(full.sent_in_group - full_fp8.sent_in_group,
                     (2 * BLOCKS * block - BLOCKS * 8 * rest) / 8 * 7);
    assert_int_equal(alone.gathered, 0);
    f.cpu_offload = true; /* a slice comes in bf16, and is cast there */
    assert_int_equal(plan_facts_strategy(&f, FULL_SHARD).gathered - full_fp8.gathered,
                     block / 8 * 2);
    units[f.unit_count - 1].fp8_count = 0; /* one of the blocks is not, then */
    assert_false(plan_facts_strategy(&f, FULL_SHARD).gathers_fp8);
    f.units = &(struct plan_unit){64 * block, PLAN_ROOT, 63 * block};
    f.unit_count = 1; /* it is, but has more than blocks, which are timed */
    assert_false(plan_facts_strategy(&f, FULL_SHARD).gathers_fp8);
}

/* NCCL's memory, in granules; what has a place of its own there is not reserved as well. */
static void windows_lie_beside_the_reserve(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    struct plan_unit units[] = {{MIB, PLAN_ROOT, 0},
                                {4 * MIB, PLAN_BLOCK, 0},
                                {4 * MIB, PLAN_BLOCK, 0},
                                {64 * MIB, PLAN_OTHER, 0}};
    struct run_plan_facts f = {.parameters = 73 * MIB,
                               .units = units,
                               .unit_count = array_length(units),
                               .bytes = {2, 4, 8, 4, 4},
                               .batch_rows = 1,
                               .world_size = 8,
                               .group_size = 4,
                               .micro_batches = 1};
    static const struct {
        enum shard_strategy strategy;
        int slots;
        double windows, moved; /* MiB */
    } rows[] = {
        /* slices, the root, two blocks; and in fp32, with a slice of a block */
        {FULL_SHARD, 0, 22 + 44, 2.25 + 2 + 4.5 + 4},
        {FULL_SHARD, 8, 22, 2.25 + 2},
        {NO_SHARD, 0, 0, 0},
        /* slices, the root and both blocks */
        {HYBRID_SHARD_ZERO2, 0, 24 + 50, 4.5 + 18 + 9 + 4},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct run_plan without, with;
        f.slots = rows[i].slots;
        f.windows = false;
        run_plan_make(&f, &without);
        f.windows = true;
        run_plan_make(&f, &with);
        const struct run_plan_strategy *s = &with.strategies[rows[i].strategy - FULL_SHARD];
        const struct run_plan_strategy *other = &without.strategies[rows[i].strategy - FULL_SHARD];
        assert_int_equal(other->windows, 0);
        assert_int_equal(s->windows, rows[i].windows * MIB);
        assert_int_equal(other->reserve - s->reserve, rows[i].moved * MIB);
        assert_int_equal(s->device, s->reserve + s->windows);
    }
    /* the root alone is gathered there: its slice, and all of it */
    f.activations.fp8 = true;
    f.slots = 8;
    units[1].fp8_count = units[2].fp8_count = 4 * MIB;
    assert_int_equal(plan_facts_strategy(&f, FULL_SHARD).windows, 4 * MIB);
}

static void slices_are_padded_to_the_group(void **state)
{
    (void)state;
    const struct plan_unit units[] = {{20108, PLAN_ROOT, 0}, {1179776, PLAN_BLOCK, 0}};
    struct run_plan_facts f = {.parameters = 1199882,
                               .units = units,
                               .unit_count = 2,
                               .bytes = {4, 0, 8, 4, 4},
                               .batch_rows = 64,
                               .world_size = 3,
                               .group_size = 3,
                               .micro_batches = 1};
    const struct run_plan_strategy s = plan_facts_strategy(&f, FULL_SHARD);
    assert_int_equal(s.values, 4 * (20112 + 1179792) / 3);
    /* there is no second block that could be gathered ahead */
    assert_int_equal(s.gathered, 4 * (20112 + 1179792));
    struct run_plan plan;
    run_plan_make(&f, &plan);
    assert_int_equal(plan.samples, 192);
    assert_int_equal(plan.tokens, 0);
    assert_int_equal(plan.activations, 0);
    f.world_size = f.slots = 9; /* each rank adds up a part of them */
    assert_int_equal(plan_facts_strategy(&f, HYBRID_SHARD).values, 4 * (20160 + 1179792) / 3);
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

/* Two of what a checkpoint holds of the rank's slice: fp32 where it is kept, and the optimizer's
 * state. */
static void checkpoints_in_memory_are_counted_beside(void **state)
{
    (void)state;
    struct run_plan_facts f = plan_facts_1b(8);
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
    struct run_plan_facts f = plan_facts_1b(8);
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

static void small_units_are_told(void **state)
{
    (void)state;
    assert_true(run_plan_units_are_small(60506624, 13)); /* t5-small */
    assert_false(run_plan_units_are_small(60506624, 1));
    assert_false(run_plan_units_are_small(1235814400, 17)); /* Llama-3.2-1B */
}

/* With as many slots as ranks the same bytes are sent, and a piece from each is kept beside; on
 * fewer ranks the samples stay, and each micro-batch is run in rounds. */
static void slots_cost_a_buffer_and_rounds(void **state)
{
    (void)state;
    struct run_plan_facts f = plan_facts_1b(8), fixed = f, fewer = plan_facts_1b(5),
                          one = plan_facts_1b(1);
    fixed.slots = fewer.slots = one.slots = 8;
    const struct run_plan_strategy plain = plan_facts_strategy(&f, FULL_SHARD);
    const struct run_plan_strategy slots = plan_facts_strategy(&fixed, FULL_SHARD);
    assert_int_equal(slots.persistent, plain.persistent);
    assert_int_equal(slots.transient - plain.transient, 8 * SLOTS_PIECE_BYTES);
    fixed.on_host = true;
    assert_int_equal(plan_facts_strategy(&fixed, FULL_SHARD).transient - plain.transient,
                     8 * SLOTS_HOST_PIECE_BYTES);
    fixed.on_host = false;
    assert_int_equal(slots.sent_in_group, plain.sent_in_group);
    assert_int_equal(slots.sent_between_groups, 0);
    int64_t gathered = 2 * plan_facts_1b(1).parameters - (PLAN_FACTS_EMBEDDING_1B + 2048);
    assert_true(llabs(plan_facts_strategy(&fewer, FULL_SHARD).sent_in_group -
                      (gathered * 2 + plan_facts_1b(1).parameters * 4) / 5 * 4 * 2) < 20000);
    /* As an all_reduce: half of it for sums, half for what all need. */
    assert_true(llabs(plan_facts_strategy(&fixed, NO_SHARD).sent_between_groups +
                      plan_facts_strategy(&fixed, NO_SHARD).sent_in_group -
                      plan_facts_strategy(&f, NO_SHARD).sent_between_groups) < 1000);
    /* Sums are made in place where each rank has one slot; else what backward wrote lies beside. */
    assert_int_equal(plan_facts_strategy(&fixed, NO_SHARD).transient -
                         plan_facts_strategy(&f, NO_SHARD).transient,
                     8 * SLOTS_PIECE_BYTES);
    assert_int_equal(plan_facts_strategy(&one, NO_SHARD).transient,
                     (PLAN_FACTS_EMBEDDING_1B + 2048 + 2 * PLAN_FACTS_LAYER_1B) * 4);
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
        cmocka_unit_test(fp8_halves_what_is_gathered),
        cmocka_unit_test(small_units_are_told),
        cmocka_unit_test(the_total_has_an_allowance),
        cmocka_unit_test(windows_lie_beside_the_reserve),
        cmocka_unit_test(slices_are_padded_to_the_group),
        cmocka_unit_test(advice_is_the_guides),
        cmocka_unit_test(checkpoints_in_memory_are_counted_beside),
        cmocka_unit_test(it_is_told_as_text_and_as_json),
        cmocka_unit_test(slots_cost_a_buffer_and_rounds),
    };
    return cmocka_run_group_tests(tests, plan_facts_fill, NULL);
}
