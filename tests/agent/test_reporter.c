#include "tests/agent/run_fixture.h"
#include "tests/support.h"

#include "agent/comm.h"
#include "agent/reporter.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A run of the trainer's events, with what was printed and what telemetry knows of it. Each look at
 * the clock takes half a second. */
struct stage {
    struct reporter *reporter;
    struct telemetry *telemetry;
    struct trainer_listener trainer; /* what the trainer would call */
    struct comm *comm;
    FILE *out;
    char *text;
    size_t bytes;
    int told; /* of the console */
};

static int64_t now_us;
static int64_t tick_us(void)
{
    return now_us += 500000;
}
static int64_t wall_us(void)
{
    return RUN_FIXTURE_WALL_US;
}

static void console_step(void *ctx, const struct trainer_step *step)
{
    (void)step;
    ((struct stage *)ctx)->told++;
}

static void open_stage(struct stage *s, enum log_style style, bool is_language)
{
    struct error err;
    *s = (struct stage){0};
    now_us = 0;
    s->out = open_memstream(&s->text, &s->bytes);
    const struct telemetry_setting setting = {
        .facts = run_fixture_facts(),
        .style = style,
        .logging_steps = 1,
        .out = s->out,
        .csv = "",
        .jsonl = "",
        .tensorboard_dir = "",
        .http_host = "",
        .wall_us = wall_us,
        .steady_us = wall_us,
    };
    assert_ok(telemetry_open(&s->telemetry, &setting, &err), &err);
    assert_ok(comm_self_open(&s->comm, &err), &err);
    const struct reporter_parts parts = {
        .telemetry = s->telemetry,
        .console = {.ctx = s, .step = console_step},
        .world = s->comm,
        .is_language = is_language,
        .now_us = tick_us,
    };
    s->reporter = reporter_open(&parts);
    s->trainer = reporter_listener(s->reporter);
}

static void close_stage(struct stage *s)
{
    reporter_close(s->reporter);
    comm_close(s->comm);
    fclose(s->out);
    free(s->text);
}

static const char *text_of(struct stage *s)
{
    fflush(s->out);
    return s->text;
}

static struct trainer_step step_of(int64_t step, int64_t epoch_samples)
{
    return (struct trainer_step){
        .position = {.epoch = step / 4, .epoch_samples = epoch_samples, .step = step},
        .steps = 8,
        .epochs = 2,
        .samples = 8,
        .tokens = 4096,
        .loss = 2.5,
        .grad_norm = (double)NAN,
        .lr = 1e-4,
        .next_lr = 0.0000126,
        .phase_s = {[PHASE_FORWARD] = 0.25, [PHASE_EVAL] = 9},
    };
}

#define LINE "2025-06-17 16:24:52,123 [INFO] __main__: "

static void a_run_from_the_start_has_the_samples_lines(void **state)
{
    (void)state;
    struct stage s;
    open_stage(&s, STYLE_ADT, true);
    reporter_begin(s.reporter, NULL);
    const struct trainer_step step = step_of(1, 8);
    const struct trainer_score score = {
        .epoch = 1, .step = 1, .loss = 2.25, .loss_sum = 2304, .samples = 1024, .correct = 256};
    s.trainer.step(s.trainer.ctx, &step);
    s.trainer.test(s.trainer.ctx, &score);
    s.trainer.saved(s.trainer.ctx, "c/llama-1steps", 1);
    assert_string_equal(
        text_of(&s), LINE
        "Creating Model\n" LINE "Created model with total parameters: 1235814400 (1.24 B)\n" LINE
        "Wrapped model with FSDP\n" LINE "Created optimizer\n" LINE "No Checkpoints Found\n" LINE
        "Batch 0 Loss: 2.50000, Speed: 16.00 samples/sec, lr: 0.000013\n" LINE
        "Batch 0 Validation loss: 2.25\n" LINE "Writing checkpoint to c/llama-1steps.\n" LINE
        "Completed checkpoint.\n");
    assert_int_equal(s.told, 1);
    close_stage(&s);
}

static void a_run_that_goes_on_has_the_samples_lines(void **state)
{
    (void)state;
    struct stage s;
    open_stage(&s, STYLE_ADT, true);
    s.trainer.skipped(s.trainer.ctx, "c/a-4steps: not a complete checkpoint: it has no COMPLETE; "
                                     "c/b-3steps: damaged; see its files");
    s.trainer.resumed(s.trainer.ctx, "c/c-2steps", 2);
    reporter_begin(s.reporter, NULL);
    assert_string_equal(
        text_of(&s), LINE
        "Creating Model\n" LINE "Created model with total parameters: 1235814400 (1.24 B)\n" LINE
        "Wrapped model with FSDP\n" LINE "Created optimizer\n" LINE
        "c/a-4steps/.metadata not found. Skipping this incomplete checkpoint\n" LINE
        "c/b-3steps/.metadata not found. Skipping this incomplete checkpoint\n" LINE
        "Loading checkpoint from c/c-2steps ...\n" LINE "Loaded model state from disk\n" LINE
        "Loading optimizer state from disk\n" LINE "Checkpoint loaded from c/c-2steps.\n");
    close_stage(&s);
}

static void steps_become_numbers(void **state)
{
    (void)state;
    struct stage s;
    open_stage(&s, STYLE_NONE, true);
    reporter_begin(s.reporter, NULL);
    s.comm->stats.all_gathers = 34;
    s.comm->stats.bytes_sent = 1000;
    const struct trainer_step step = step_of(2, 16);
    s.trainer.step(s.trainer.ctx, &step);
    const struct run_state *r = telemetry_state(s.telemetry);
    assert_int_equal(r->last.step, 2);
    assert_int_equal(r->facts.steps, 8);
    assert_true(r->last.epoch == 0.5);
    assert_true(r->last.step_s == 0.5);
    assert_true(r->phase_s[PHASE_FORWARD] == 0.25 && r->phase_s[PHASE_EVAL] == 0);
    assert_int_equal(r->last.collectives[RUN_ALL_GATHER], 34);
    assert_int_equal(r->last.collective_bytes, 1000);
    assert_true(isnan(r->last.grad_norm));
    /* between two steps: an evaluation, which is no training time */
    const struct trainer_score score = {.step = 2, .loss = 2, .samples = 4, .correct = 1};
    s.trainer.test(s.trainer.ctx, &score);
    assert_true(r->eval.perplexity == exp(2) && r->eval.accuracy == 0.25);
    const struct trainer_step last = step_of(4, 0);
    s.trainer.step(s.trainer.ctx, &last);
    assert_true(r->last.step_s == 0.5 && r->phase_s[PHASE_EVAL] == 0.5);
    assert_true(r->last.epoch == 1);
    s.trainer.not_saved(s.trainer.ctx, 4, "no space");
    assert_int_equal(r->failed_saves, 1);
    assert_int_equal(r->tried_step, 4);
    close_stage(&s);
}

static void the_end_of_an_epoch_is_said_where_it_is_saved(void **state)
{
    (void)state;
    struct stage s;
    open_stage(&s, STYLE_FABRIC, true);
    reporter_begin(s.reporter, NULL);
    const struct trainer_step step = step_of(3, 24), last = step_of(4, 0);
    s.trainer.step(s.trainer.ctx, &step);
    s.trainer.saved(s.trainer.ctx, "e-000-gs-000003", 3);
    s.trainer.step(s.trainer.ctx, &last);
    s.trainer.saved(s.trainer.ctx, "e-001-gs-000004", 4);
    const char *text = text_of(&s);
    assert_non_null(strstr(text, "\nSaving checkpoint to 'e-000-gs-000003'\n"));
    assert_non_null(strstr(text, "\nSaving checkpoint to 'e-001-gs-000004' (end of epoch)\n"));
    close_stage(&s);
}

static void images_have_no_perplexity(void **state)
{
    (void)state;
    struct stage s;
    open_stage(&s, STYLE_NONE, false);
    reporter_begin(s.reporter, NULL);
    const struct trainer_score score = {.step = 2, .loss = 2, .samples = 4, .correct = 1};
    s.trainer.test(s.trainer.ctx, &score);
    assert_true(isnan(telemetry_state(s.telemetry)->eval.perplexity));
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_from_the_start_has_the_samples_lines),
        cmocka_unit_test(a_run_that_goes_on_has_the_samples_lines),
        cmocka_unit_test(steps_become_numbers),
        cmocka_unit_test(the_end_of_an_epoch_is_said_where_it_is_saved),
        cmocka_unit_test(images_have_no_perplexity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
