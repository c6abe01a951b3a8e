/* A GPU's memory: reserved by the run's plan before its first tensor, which all of the run has room
 * in; refused with the shortfall. */
#include "agent/plan/run_plan.h"
#include "agent/trainer/trainer_internal.h"
#include "tests/agent/runs.h"
#include "tests/agent/world_check.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL "--num_hidden_layers=2 --batch_size=2 --max_steps=4 "
static const struct runs_case cases[] = {
    /* two epochs, each with a short batch and an evaluation at its end */
    {"MNIST", runs_make_images, runs_do, 1, NULL,
     "--dropout=0.25 --batch_size=2 --train_size=3 --eval_size=6"},
    {"MNIST in bf16", runs_make_images, runs_do, 1, NULL,
     "--mixed_precision=bf16 --batch_size=2 --train_size=3 --eval_size=6"},
    {"Llama", runs_make_tokens, runs_do_language, 1, NULL,
     SMALL "--mixed_precision=bf16 --eval_strategy=steps --eval_steps=2"},
    {"Llama, by graphs", runs_make_tokens, runs_do_language, 1, NULL, SMALL "--cuda_graphs"},
    {"Llama over two ranks", runs_make_tokens, runs_do_language, 2, NULL,
     SMALL "--sharding_strategy=FULL_SHARD --reduce_dtype=bf16"},
    {"Llama on slots", runs_make_tokens, runs_do_language, 2, NULL,
     SMALL "--sharding_strategy=NO_SHARD --parallel.reduction_slots=3"},
    {"T5", runs_make_rows, runs_do_language, 1, "rows",
     SMALL "--model.type=t5 --vocab_size=550 --tokenizer=tests/data/tokenizers/unigram_t5 "
           "--num_key_value_heads=0 --max_source_length=24 --max_target_length=12"},
};

static void train(const struct runs_case *c, struct run *run)
{
    auto_arena struct arena *arena = arena_open();
    void *dir;
    c->make_data(&dir);
    runs_do_case(c, run, arena, dir, "");
    runs_remove(&dir);
}

/* Nobody asks the GPU for memory or gives it back between the first step's end and the last's. */
static void no_step_after_the_first_allocates(void **state)
{
    (void)state;
    if (strcmp(support_device(), "cpu") == 0)
        return;
    auto_arena struct arena *arena = arena_open();
    const char *before = getenv("SHOAL_EMULATION");
    before = before ? arena_strdup(arena, before) : NULL;
    if (before)
        setenv("SHOAL_EMULATION", "memory_mib=4096", 1); /* enough for two ranks on one GPU */
    for (size_t i = 0; i < array_length(cases); i++) {
        struct run run = {0};
        train(&cases[i], &run);
        const struct seen *seen = &run.seen[0];
        assert_true(seen->last_step > 2);
        assert_true(seen->memory.reserved_bytes > RUN_PLAN_SCRATCH);
        assert_true(seen->memory_calls[0] > 0 || !getenv("SHOAL_EMULATION"));
        if (seen->memory.beyond_bytes > 0)
            fail_msg("%s: %lld bytes beyond the plan", cases[i].name,
                     (long long)seen->memory.beyond_bytes);
        assert_null(strstr(seen->notice, "reserved by the run's plan"));
        world_assert_no_fresh_blocks(seen->fresh_blocks, seen->last_step, cases[i].name);
        for (int s = 1; s < seen->last_step && run.size == 1; s++)
            if (seen->memory_calls[s] != seen->memory_calls[0])
                fail_msg("%s: %ld calls for memory by step 1, %ld by step %d", cases[i].name,
                         seen->memory_calls[0], seen->memory_calls[s], s + 1);
    }
    if (before)
        setenv("SHOAL_EMULATION", before, 1);
}

static void the_cpus_memory_is_not_reserved(void **state)
{
    auto_arena struct arena *arena = arena_open();
    struct run run = {0};
    runs_do(&run, arena, *state, 1, "--device=cpu --train_size=3 --eval_size=1");
    assert_int_equal(run.seen[0].memory.reserved_bytes, 0);
}

static void note(void *ctx, const char *text)
{
    struct str *told = ctx;
    str_printf(told, "%s\n", text);
}

/* What the plan does not have room for is told with both numbers, once, and again when it has
 * doubled. */
static void what_is_beyond_the_plan_is_told(void **state)
{
    (void)state;
    struct error err;
    void *within, *beyond, *more;
    auto_str struct str told;
    str_init(&told, 4096);
    const struct trainer_listener listener = {.ctx = &told, .notice = note};
    struct trainer t = {.listener = &listener, .cursor = {.position = {.step = 7}}};
    assert_ok(device_open(support_device(), 1, &t.device, &err), &err);
    assert_ok(device_reserve(t.device, 3000000, &err), &err);
    assert_ok(device_alloc(t.device, MEMORY_UNIT, 2000000, "x", &within, &err), &err);
    trainer_log_memory(&t);
    assert_int_equal(told.length, 0);
    assert_ok(device_alloc(t.device, MEMORY_UNIT, 1 << 21, "y", &beyond, &err), &err);
    trainer_log_memory(&t);
    trainer_log_memory(&t);
    assert_string_equal(str_text(&told),
                        "the 0.003 GB of the GPU's memory that were reserved by the run's plan "
                        "have no room for 0.002 GB more by step 7: that much was asked for beside "
                        "them\n");
    str_clear(&told);
    assert_ok(device_alloc(t.device, MEMORY_UNIT, 1 << 21, "z", &more, &err), &err);
    trainer_log_memory(&t);
    trainer_log_memory(&t);
    assert_non_null(strstr(str_text(&told), "have no room for 0.004 GB more by step 7"));
    assert_null(strstr(strchr(str_text(&told), '\n'), "room"));
    device_free(t.device, within);
    device_free(t.device, beyond);
    device_free(t.device, more);
    device_close(t.device);
}

/* A run whose known bytes have room is started, though its allowance has none, and libraries are
 * left their own: what the reserve is too small for is asked for beside it. */
static void what_is_a_guess_refuses_nothing(void **state)
{
    static const struct {
        int ranks, memory_mib;
        bool reserves;
    } rows[] = {
        {1, 24, false},
        {1, (RUN_PLAN_LIBRARIES >> 20) + 2, true},
        {2, (RUN_PLAN_LIBRARIES >> 20) + 32, false},         /* one GPU: half of it for each */
        {2, (RUN_PLAN_LIBRARIES >> 20) * 64 / 31 + 4, true}, /* and a 64th of it, for NCCL */
    };
    const char *setting = getenv("SHOAL_EMULATION");
    if (strcmp(support_device(), "cpu") == 0 || !setting)
        return;
    auto_arena struct arena *arena = arena_open();
    const char *before = arena_strdup(arena, setting);
    for (size_t i = 0; i < array_length(rows); i++) {
        struct run run = {0};
        setenv("SHOAL_EMULATION", arena_printf(arena, "memory_mib=%d", rows[i].memory_mib), 1);
        runs_do(&run, arena, *state, rows[i].ranks,
                "--device=cuda:0 --batch_size=2 --train_size=3");
        for (int r = 0; r < rows[i].ranks; r++) {
            const struct memory_use *use = &run.seen[r].memory;
            if ((use->reserved_bytes > 0) != rows[i].reserves || use->reserved_bytes >= 2 << 20)
                fail_msg("%d ranks, %d MiB: rank %d reserved %lld bytes", rows[i].ranks,
                         rows[i].memory_mib, r, (long long)use->reserved_bytes);
        }
        assert_int_equal(run.seen[0].last_step, 4 / rows[i].ranks);
    }
    setenv("SHOAL_EMULATION", before, 1);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct error err;
    struct memory_share share = {.bytes = 5000, .total_bytes = 6000, .ranks = 1};
    assert_ok(trainer_memory_fits("FULL_SHARD", 5000, &share, "--x saves 1.0 GB", &err), &err);
    share = (struct memory_share){79000000000, 80000000000, 1};
    assert_fails(trainer_memory_fits("FULL_SHARD", 96000000000, &share, "--x saves 1.0 GB", &err),
                 &err, ERR_MEMORY,
                 "FULL_SHARD needs at least 96.00 GB of the GPU's memory (shoal plan lists it), "
                 "but 79.00 of its 80.00 GB are free: 17.00 GB are missing; --x saves 1.0 "
                 "GB");
    share = (struct memory_share){39500000000, 80000000000, 2};
    assert_fails(trainer_memory_fits("FULL_SHARD", 48000000000, &share, "--x saves 1.0 GB", &err),
                 &err, ERR_MEMORY,
                 "but 39.50 of its 80.00 GB are free for each of the 2 ranks that share it: 8.50 "
                 "GB are missing; --x saves 1.0 GB");
}

static void a_later_lack_tells_what_is_free(void **state)
{
    (void)state;
    struct error err, ignored;
    void *some, *none;
    struct trainer t = {0};
    assert_ok(device_open(support_device(), 1, &t.device, &err), &err);
    assert_ok(device_alloc(t.device, MEMORY_UNIT, 50 << 20, "x", &some, &err), &err);
    int result = device_alloc(t.device, MEMORY_UNIT, (size_t)1 << 60, "logits", &none, &err);
    assert_fails(result, &err, ERR_MEMORY, "logits");
    char expected[sizeof err.msg];
    snprintf(expected, sizeof expected, "%s", err.msg);
    if (!device_is_host(t.device)) {
        int64_t total, free_bytes = device_memory_free_bytes(t.device, &total);
        assert_true(free_bytes <= total - (50 << 20));
        size_t length = strlen(expected);
        snprintf(expected + length, sizeof expected - length,
                 "; %.2f of the GPU's %.2f GB are free: a smaller model or more GPUs",
                 (double)free_bytes / 1e9, (double)total / 1e9);
    }
    err.shared = true;
    for (int times = 0; times < 2; times++) { /* once is enough */
        trainer_explain_memory(&t, &err);
        assert_string_equal(err.msg, expected);
        assert_true(err.code == ERR_MEMORY && err.shared);
    }
    error_set(&ignored, ERR_IO, "the disk is slow");
    trainer_explain_memory(&t, &ignored);
    assert_string_equal(ignored.msg, "the disk is slow");
    device_free(t.device, some);
    device_close(t.device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_after_the_first_allocates),
        cmocka_unit_test_setup_teardown(the_cpus_memory_is_not_reserved, runs_make_images,
                                        runs_remove),
        cmocka_unit_test(what_is_beyond_the_plan_is_told),
        cmocka_unit_test_setup_teardown(what_is_a_guess_refuses_nothing, runs_make_images,
                                        runs_remove),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_later_lack_tells_what_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
