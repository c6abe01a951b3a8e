#include "tests/agent/run_fixture.h"
#include "tests/support.h"

#include "agent/telemetry/log_lines.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

struct row {
    struct run_moment moment;
    const char *text;
};

#define AT(what) .event = what, .wall_us = RUN_FIXTURE_WALL_US
#define PREFIX   "2025-06-17 16:24:52,123 [INFO] __main__: "

static const struct row adt_rows[] = {
    {{AT(RUN_MODEL_BEGIN)}, PREFIX "Creating Model\n"},
    {{AT(RUN_MODEL_DONE)}, PREFIX "Created model with total parameters: 1235814400 (1.24 B)\n"},
    {{AT(RUN_WRAPPED)}, PREFIX "Wrapped model with FSDP\n"},
    {{AT(RUN_OPTIMIZER_DONE)}, PREFIX "Created optimizer\n"},
    {{AT(RUN_NO_CHECKPOINT)}, PREFIX "No Checkpoints Found\n"},
    {{AT(RUN_VALUE_TAKEN), .path = "0.0001 for learning rate"},
     " > using checkpoint value 0.0001 for learning rate\n"},
    {{AT(RUN_INCOMPLETE), .path = "c/llama_v3-2steps"},
     PREFIX "c/llama_v3-2steps/.metadata not found. Skipping this incomplete checkpoint\n"},
    {{AT(RUN_LOAD_BEGIN), .path = "c/llama_v3-2steps"},
     PREFIX "Loading checkpoint from c/llama_v3-2steps ...\n"},
    {{AT(RUN_LOAD_MODEL_DONE)}, PREFIX "Loaded model state from disk\n"},
    {{AT(RUN_LOAD_OPTIMIZER_DONE)}, PREFIX "Loading optimizer state from disk\n"},
    {{AT(RUN_LOAD_DONE), .path = "c/llama_v3-2steps"},
     PREFIX "Checkpoint loaded from c/llama_v3-2steps.\n"},
    {{AT(RUN_STEP)}, PREFIX "Batch 2 Loss: 2.50000, Speed: 16.00 samples/sec, lr: 0.000013\n"},
    {{AT(RUN_EVAL)}, PREFIX "Batch 2 Validation loss: 2.25\n"},
    {{AT(RUN_SAVE_BEGIN), .path = "c/llama_v3-3steps"},
     PREFIX "Writing checkpoint to c/llama_v3-3steps.\n"},
    {{AT(RUN_SAVE_DONE), .path = "c/llama_v3-3steps"}, PREFIX "Completed checkpoint.\n"},
    {{AT(RUN_END)}, ""},
};

static const struct row fabric_rows[] = {
    {{AT(RUN_MODEL_BEGIN)}, ""},
    {{AT(RUN_MODEL_DONE), .seconds = 1.234}, "Time to instantiate model: 1.23 seconds.\n"},
    {{AT(RUN_LOAD_BEGIN), .path = NULL}, ""}, /* from memory */
    {{AT(RUN_LOAD_BEGIN), .path = "e-000-gs-000002"}, "Resuming training from 'e-000-gs-000002'\n"},
    {{AT(RUN_EVAL)}, "step 3: val loss 2.2500, val time: 750.00ms\n"},
    {{AT(RUN_SAVE_BEGIN), .path = "c/e-001-gs-000003"},
     "Saving checkpoint to 'e-001-gs-000003' (3.0% of epoch 1)\n"},
    {{AT(RUN_SAVE_BEGIN), .path = "c/e-001-gs-000003", .at_epoch_end = true},
     "Saving checkpoint to 'e-001-gs-000003' (end of epoch)\n"},
    {{AT(RUN_END)}, "Training time: 5.00s\nMemory used: 5.37 GB\n"},
};

static const struct row plain_rows[] = {
    {{AT(RUN_MODEL_BEGIN)}, ""},
    {{AT(RUN_MODEL_DONE), .seconds = 1.234},
     "Model: llama3.2-1b, 1235814400 parameters, built in 1.23 s\n"},
    {{AT(RUN_LOAD_DONE), .path = "c/2"}, "Resumed from c/2\n"},
    {{AT(RUN_LOAD_DONE), .path = NULL}, ""}, /* from memory */
    {{AT(RUN_STEP)},
     "Epoch 0.03 | Step 3/100 | Loss: 2.5000 | norm: 1.2500 | lr: 0.0001 | 500 ms | "
     "8192 tokens/s | MFU: 50.0% causal, 60.0% full | memory: 5.00 GiB\n"},
    {{AT(RUN_EVAL)},
     "Evaluation at step 3 | Loss: 2.2500 | perplexity: 9.5000 | accuracy: 50.00% | 0.75 s\n"},
    {{AT(RUN_SAVE_DONE), .path = "c/3"}, "Checkpoint saved: c/3\n"},
    {{AT(RUN_END)},
     "Training: 3 steps, 1.50 s, data 0.19 s, forward 0.75 s, checkpoint 0.50 s, eval 0.75 s\n"},
};

static void expect(enum log_style style, const struct row *rows, size_t count)
{
    struct run_state s;
    run_fixture_state(&s);
    for (size_t i = 0; i < count; i++) {
        auto_str struct str text;
        str_init(&text, 4096);
        log_lines(&(struct log_setting){.style = style, .every = 1}, &rows[i].moment, &s, &text);
        assert_string_equal(str_text(&text), rows[i].text);
    }
}

static void each_style_has_its_words(void **state)
{
    (void)state;
    expect(STYLE_ADT, adt_rows, sizeof adt_rows / sizeof adt_rows[0]);
    expect(STYLE_FABRIC, fabric_rows, sizeof fabric_rows / sizeof fabric_rows[0]);
    expect(STYLE_PLAIN, plain_rows, sizeof plain_rows / sizeof plain_rows[0]);
}

/* t5-fsdp.py counts micro-batches from 0 in each epoch; a step may have several. */
static void the_chapter_has_its_words_in_two_languages(void **state)
{
    (void)state;
    static const struct {
        struct run_moment moment;
        int64_t first, count; /* the step's micro-batches */
        const char *english, *korean;
    } rows[] = {
        {{AT(RUN_NO_CHECKPOINT)},
         0,
         1,
         "--- There is no checkpoint. Training starts from the beginning. ---\n",
         "--- 기존 체크포인트가 없습니다. 처음부터 학습을 시작합니다. ---\n"},
        {{AT(RUN_LOAD_DONE), .path = "c", .epoch = 2},
         0,
         1,
         "--- Loaded a checkpoint. Training goes on from epoch 2. ---\n",
         "--- 체크포인트를 로드했습니다. 2 에폭부터 재시작합니다. ---\n"},
        {{AT(RUN_STEP)},
         0,
         1,
         "Epoch 1 | Step 0 | Loss: 2.5000 | Strategy: FULL_SHARD\n",
         "Epoch 1 | Step 0 | Loss: 2.5000 | Strategy: FULL_SHARD\n"},
        {{AT(RUN_STEP)}, 1, 1, "", ""},
        {{AT(RUN_STEP)}, 9, 1, "", ""},
        {{AT(RUN_STEP)},
         8,
         4,
         "Epoch 1 | Step 10 | Loss: 2.5000 | Strategy: FULL_SHARD\n",
         "Epoch 1 | Step 10 | Loss: 2.5000 | Strategy: FULL_SHARD\n"},
        {{AT(RUN_STEP)},
         10,
         20,
         "Epoch 1 | Step 10 | Loss: 2.5000 | Strategy: FULL_SHARD\n"
         "Epoch 1 | Step 20 | Loss: 2.5000 | Strategy: FULL_SHARD\n",
         "Epoch 1 | Step 10 | Loss: 2.5000 | Strategy: FULL_SHARD\n"
         "Epoch 1 | Step 20 | Loss: 2.5000 | Strategy: FULL_SHARD\n"},
        {{AT(RUN_SAVE_DONE), .path = "c/checkpoint_FULL_SHARD-3steps", .epoch = 1,
          .at_epoch_end = true},
         0,
         1,
         "--- Checkpoint saved: c/checkpoint_FULL_SHARD-3steps (Epoch: 0) ---\n",
         "--- 체크포인트 저장 완료: c/checkpoint_FULL_SHARD-3steps (Epoch: 0) ---\n"},
        {{AT(RUN_SAVE_DONE), .path = "c/x", .epoch = 1},
         0,
         1,
         "--- Checkpoint saved: c/x (Epoch: 1) ---\n",
         "--- 체크포인트 저장 완료: c/x (Epoch: 1) ---\n"},
        {{AT(RUN_END)},
         0,
         1,
         "Elapsed time of the code block: 5.0000 seconds\n",
         "코드 블록 실행 시간: 5.0000 초\n"},
        {{AT(RUN_EVAL)}, 0, 1, "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_state s;
        run_fixture_state(&s);
        s.last.epochs_done = 1;
        s.last.micro_batch = rows[i].first;
        s.last.micro_batches = rows[i].count;
        for (int lang = LANG_EN; lang <= LANG_KO; lang++) {
            const struct log_setting setting = {
                .style = STYLE_T5, .lang = (enum log_language)lang, .every = 10};
            auto_str struct str text;
            str_init(&text, 4096);
            log_lines(&setting, &rows[i].moment, &s, &text);
            assert_string_equal(str_text(&text),
                                lang == LANG_EN ? rows[i].english : rows[i].korean);
        }
    }
}

static void no_style_says_nothing(void **state)
{
    (void)state;
    static const struct row rows[] = {{{AT(RUN_STEP)}, ""}, {{AT(RUN_END)}, ""}};
    expect(STYLE_NONE, rows, 2);
}

static bool says_step(enum log_style style, int64_t step, int64_t every)
{
    const struct run_moment moment = {AT(RUN_STEP)};
    const struct run_numbers numbers = run_fixture_numbers(step);
    struct run_state s;
    run_fixture_state(&s);
    run_state_step(&s, &numbers, 0);
    auto_str struct str text;
    str_init(&text, 4096);
    log_lines(&(struct log_setting){.style = style, .every = every}, &moment, &s, &text);
    return text.length > 0;
}

/* The sample's batches begin at 0: with 5, the first one is told and then every fifth after it. */
static void steps_are_told_when_they_are_due(void **state)
{
    (void)state;
    assert_true(says_step(STYLE_ADT, 1, 5));
    assert_false(says_step(STYLE_ADT, 5, 5));
    assert_true(says_step(STYLE_ADT, 6, 5));
    assert_true(says_step(STYLE_PLAIN, 5, 5));
    assert_false(says_step(STYLE_PLAIN, 6, 5));
    assert_true(says_step(STYLE_FABRIC, 10, 5));
    assert_true(says_step(STYLE_PLAIN, 100, 7)); /* the last, before the lines of its save */
    assert_true(says_step(STYLE_FABRIC, 100, 7));
    assert_false(says_step(STYLE_PLAIN, 99, 7));
    assert_false(says_step(STYLE_ADT, 100, 7));
    assert_false(says_step(STYLE_PLAIN, 100, 0));
    assert_false(says_step(STYLE_ADT, 1, 0));
}

/* A run that is shorter than `every` would else say nothing of its loss. */
static void the_last_step_of_a_shorter_run_is_told_at_the_end(void **state)
{
    (void)state;
    static const struct {
        enum log_style style;
        int64_t every, steps; /* of this process, up to step 3 */
        int64_t of;           /* steps of the whole run */
        bool tells;
    } rows[] = {
        {STYLE_PLAIN, 10, 3, 100, true}, {STYLE_PLAIN, 3, 3, 100, false},
        {STYLE_PLAIN, 0, 3, 100, false}, {STYLE_PLAIN, 10, 0, 100, false},
        {STYLE_FABRIC, 2, 3, 100, true}, {STYLE_ADT, 5, 3, 100, false},
        {STYLE_T5, 10, 3, 100, false},   {STYLE_PLAIN, 10, 3, 0, true},
        {STYLE_PLAIN, 10, 3, 3, false}, /* it was told as the last */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct log_setting setting = {.style = rows[i].style, .every = rows[i].every};
        const struct run_moment end = {AT(RUN_END)};
        struct run_state s;
        run_fixture_state(&s);
        s.steps = rows[i].steps;
        s.facts.steps = rows[i].of;
        auto_str struct str text;
        str_init(&text, 4096);
        log_lines(&setting, &end, &s, &text);
        assert_int_equal(strncmp(str_text(&text), "Epoch 0.03 | Step 3", 19) == 0, rows[i].tells);
    }
}

/* As Python prints a float. */
static void a_validation_loss_is_the_shortest_text_that_reads_back(void **state)
{
    (void)state;
    static const struct {
        double loss;
        const char *text;
    } rows[] = {
        {7, "7.0"},
        {6.918121337890625, "6.918121337890625"},
        {0.1f, "0.10000000149011612"},
        {(double)NAN, "-1"},
        {(double)INFINITY, "inf"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct run_moment moment = {AT(RUN_EVAL)};
        const struct run_eval eval = {.step = 1, .loss = rows[i].loss};
        struct run_state s;
        run_fixture_state(&s);
        run_state_eval(&s, &eval, 0);
        auto_str struct str text, expected;
        str_init(&text, 4096);
        str_init(&expected, 4096);
        str_printf(&expected, PREFIX "Batch 0 Validation loss: %s\n", rows[i].text);
        log_lines(&(struct log_setting){.style = STYLE_ADT, .every = 1}, &moment, &s, &text);
        assert_string_equal(str_text(&text), str_text(&expected));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_style_has_its_words),
        cmocka_unit_test(the_chapter_has_its_words_in_two_languages),
        cmocka_unit_test(no_style_says_nothing),
        cmocka_unit_test(steps_are_told_when_they_are_due),
        cmocka_unit_test(the_last_step_of_a_shorter_run_is_told_at_the_end),
        cmocka_unit_test(a_validation_loss_is_the_shortest_text_that_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
