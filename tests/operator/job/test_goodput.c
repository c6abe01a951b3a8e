/* Goodput over simulated histories: jobs wait, start, train, are killed, suspended and resumed,
 * while somebody asks now and then. What is accounted for adds up to the time that went by, and
 * each kind is what it was. */
#include "operator/job/goodput.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode_status.h"
#include "operator/job/job_status.h"
#include "operator/manifest/manifest.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CREATED_MS INT64_C(1767225600000)

/* ---- a job's life, with a clock of milliseconds ---- */

struct life {
    uint64_t seed;
    int64_t now_ms, ask_ms; /* the next ask */
    int64_t true_ms[GOODPUT_KINDS];
    struct training shown; /* in the status */
    struct goodput goodput;
    struct training tells; /* the process; process_ms 0: none runs */
    struct goodput_start start;
    int64_t step, kept_step, furthest_step;
    int64_t skew_ms; /* of its node's clock */
    int processes, losses;
};

static int64_t any(struct life *l, int64_t least, int64_t most)
{
    l->seed = l->seed * 6364136223846793005u + 1442695040888963407u;
    return least + (int64_t)((l->seed >> 33) % (uint64_t)(most - least + 1));
}

static int64_t whole_s(int64_t ms)
{
    return ms / 1000 * 1000;
}

/* Another operator goes on from the status alone. */
static void change_operators(struct life *l)
{
    static const struct job job = {.name = "j", .namespace_ = "ns"};
    auto_arena struct arena *arena = arena_open();
    const struct job_status before = {.training = l->shown, .goodput = l->goodput};
    struct json *json = manifest_status(&job, &before);
    const struct job_status after = decode_status(json, arena);
    assert_true(job_status_equal(&before, &after));
    l->shown = after.training;
    l->goodput = after.goodput;
    json_free(json);
}

static void hear(struct life *l)
{
    if (any(l, 0, 9) == 0)
        change_operators(l);
    goodput_told(&l->goodput, &l->shown, &l->tells, &l->start, CREATED_MS, whole_s(l->now_ms));
    training_merge(&l->shown, &l->tells);
}

/* Time passes; the process tells what it has published so far whenever it is asked. */
static void pass(struct life *l, int kind, int64_t ms)
{
    l->true_ms[kind] += ms;
    int64_t end_ms = l->now_ms + ms;
    while (l->ask_ms < end_ms) {
        l->now_ms = l->ask_ms;
        if (l->tells.process_ms && l->tells.step >= 0)
            hear(l);
        l->ask_ms += 15000;
    }
    l->now_ms = end_ms;
}

/* The process counts what it has ended. */
static void spend(struct life *l, int kind, int64_t ms)
{
    pass(l, kind, ms);
    l->tells.spent_ms[kind == TRAINING_SPENT_LOST_WORK ? TRAINING_SPENT_STEP : kind] += ms;
}

static void start_pod(struct life *l, bool first)
{
    pass(l, first ? GOODPUT_PENDING : GOODPUT_RECOVERY, any(l, 1000, 60000));
    l->start.scheduled_ms = whole_s(l->now_ms);
    pass(l, first ? GOODPUT_CONTAINER_START : GOODPUT_RECOVERY, any(l, 1000, 90000));
    l->start.started_ms = whole_s(l->now_ms);
}

static void start_process(struct life *l)
{
    l->processes++;
    l->tells = training_open();
    l->tells.process_ms = whole_s(l->now_ms + l->skew_ms);
    l->tells.resumed_step = l->step = l->kept_step;
    l->tells.step = -1; /* it does not listen yet */
    spend(l, TRAINING_SPENT_INITIALIZATION, any(l, 500, 20000));
    spend(l, TRAINING_SPENT_PEER_WAIT, any(l, 0, 5000));
    if (l->kept_step)
        spend(l, TRAINING_SPENT_RESTORE, any(l, 500, 9000));
}

static void train(struct life *l, int64_t steps)
{
    for (int64_t i = 0; i < steps; i++) {
        bool again = l->step < l->furthest_step;
        spend(l, TRAINING_SPENT_DATA, any(l, 0, 20));
        spend(l, again ? TRAINING_SPENT_LOST_WORK : TRAINING_SPENT_STEP, any(l, 400, 600));
        l->tells.step = ++l->step;
        if (l->step > l->furthest_step)
            l->furthest_step = l->step;
        if (l->step % 100 == 0) {
            spend(l, TRAINING_SPENT_SAVE, any(l, 100, 2000));
            l->kept_step = l->step;
        }
        if (l->step % 150 == 0)
            spend(l, TRAINING_SPENT_EVALUATION, any(l, 100, 4000));
    }
}

/* What it told last is what its container left behind, unless the node is gone with it. */
static void end_process(struct life *l, bool leaves)
{
    if (leaves)
        hear(l);
    l->tells.process_ms = 0;
}

static void live(struct life *l, uint64_t seed)
{
    *l = (struct life){.seed = seed, .now_ms = CREATED_MS};
    l->ask_ms = CREATED_MS + any(l, 0, 14999);
    l->skew_ms = any(l, -300, 300);
    if (any(l, 0, 2) == 0) {
        pass(l, GOODPUT_SUSPENDED, any(l, 1000, 600000));
        l->start.suspended_until_ms = whole_s(l->now_ms);
    }
    start_pod(l, true);
    start_process(l);
    for (int64_t n = any(l, 0, 6); n > 0; n--) {
        train(l, any(l, 50, 500));
        switch (any(l, 0, 2)) {
        case 0: /* ranks start again in their pod */
            end_process(l, true);
            pass(l, GOODPUT_RECOVERY, any(l, 200, 3000));
            break;
        case 1: /* a node goes */
            end_process(l, false);
            l->losses++;
            start_pod(l, false);
            break;
        case 2:
            end_process(l, true);
            pass(l, GOODPUT_SUSPENDED, any(l, 1000, 900000));
            goodput_rest(&l->goodput, GOODPUT_SUSPENDED, CREATED_MS, whole_s(l->now_ms));
            training_forget_process(&l->shown);
            start_pod(l, true);
            break;
        }
        start_process(l);
    }
    train(l, any(l, 50, 500));
    spend(l, TRAINING_SPENT_OTHER, any(l, 0, 3000));
    end_process(l, true);
    pass(l, TRAINING_SPENT_OTHER, any(l, 0, 2000));
    goodput_rest(&l->goodput, TRAINING_SPENT_OTHER, CREATED_MS, whole_s(l->now_ms));
}

/* Within 1 %, and two seconds for what has whole seconds only. */
static void the_kinds_add_up_to_the_life_of_the_job(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct life l;
        live(&l, seed);
        int64_t wall_ms = l.now_ms - CREATED_MS, off_ms = goodput_sum_ms(&l.goodput) - wall_ms;
        if (llabs(off_ms) > wall_ms / 100 + 2000)
            fail_msg("seed %d: %lld of %lld ms", (int)seed, (long long)goodput_sum_ms(&l.goodput),
                     (long long)wall_ms);
    }
}

/* A node that goes takes up to 15 s with it that nobody was told of, which are recovery then; and
 * the steps of these 15 s are not known to have been done. */
static void each_kind_is_what_it_was(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct life l;
        live(&l, seed);
        for (int k = 0; k < GOODPUT_KINDS; k++) {
            int64_t off_ms = l.goodput.ms[k] - l.true_ms[k];
            if (llabs(off_ms) > 17000 * l.losses + 2000 * l.processes)
                fail_msg("seed %d: %s %lld, in truth %lld ms", (int)seed, goodput_kind_name(k),
                         (long long)l.goodput.ms[k], (long long)l.true_ms[k]);
        }
    }
}

/* ---- single cases ---- */

static struct training told_at(int64_t process_s, int64_t steps_s, int64_t step)
{
    struct training t = training_open();
    t.process_ms = CREATED_MS + 1000 * process_s;
    t.spent_ms[TRAINING_SPENT_STEP] = 1000 * steps_s;
    t.resumed_step = 0;
    t.step = step;
    return t;
}

static void no_more_than_went_by_is_taken(void **state)
{
    (void)state;
    struct goodput g = {.known = false};
    const struct training none = {.known = false};
    const struct goodput_start start = {0};
    struct training lies = told_at(-7000, 900000000, 5);
    lies.spent_ms[TRAINING_SPENT_DATA] = INT64_C(100000000000);
    goodput_told(&g, &none, &lies, &start, CREATED_MS, CREATED_MS + 60000);
    assert_in_range(goodput_sum_ms(&g), 0, 62000);
    struct training future = told_at(100000, 1, 5);
    goodput_told(&g, &lies, &future, &start, CREATED_MS, CREATED_MS + 120000);
    assert_in_range(goodput_sum_ms(&g), 0, 122000);
    goodput_rest(&g, GOODPUT_RECOVERY, CREATED_MS, CREATED_MS); /* a clock that went back */
    assert_in_range(goodput_sum_ms(&g), 0, 122000);
}

static void steps_done_again_are_lost_work(void **state)
{
    (void)state;
    struct goodput g = {.known = false};
    const struct training none = {.known = false};
    const struct goodput_start start = {.scheduled_ms = CREATED_MS + 4000,
                                        .started_ms = CREATED_MS + 9000};
    struct training first = told_at(10, 100, 200);
    goodput_told(&g, &none, &first, &start, CREATED_MS, CREATED_MS + 112000);
    assert_int_equal(g.ms[GOODPUT_PENDING], 4000);
    assert_int_equal(g.ms[GOODPUT_CONTAINER_START], 6000);
    assert_int_equal(g.ms[TRAINING_SPENT_STEP], 100000);
    struct training second = told_at(130, 100, 350); /* from 150 on: a quarter again */
    second.resumed_step = 150;
    goodput_told(&g, &first, &second, &start, CREATED_MS, CREATED_MS + 240000);
    assert_int_equal(g.ms[GOODPUT_RECOVERY], 20000);
    assert_int_equal(g.ms[TRAINING_SPENT_LOST_WORK], 25000);
    assert_int_equal(g.ms[TRAINING_SPENT_STEP], 175000);
    assert_true(fabs(goodput_ratio(&g) - 175.0 / 230.0) < 1e-9);
    /* one that knows which of its steps are done again says so itself */
    struct training third = told_at(250, 50, 400);
    third.resumed_step = 300;
    third.spent_ms[TRAINING_SPENT_LOST_WORK] = 50000;
    goodput_told(&g, &second, &third, &start, CREATED_MS, CREATED_MS + 360000);
    assert_int_equal(g.ms[TRAINING_SPENT_LOST_WORK], 75000);
    assert_int_equal(g.ms[TRAINING_SPENT_STEP], 225000);
    /* said again it is nothing new */
    const struct goodput before = g;
    goodput_told(&g, &third, &third, &start, CREATED_MS, CREATED_MS + 400000);
    assert_true(goodput_equal(&g, &before));
}

static void of_nothing_nothing_is_known(void **state)
{
    (void)state;
    struct goodput g = {.known = false};
    const struct training none = {.known = false};
    const struct goodput_start start = {0};
    struct training old_agent = told_at(0, 0, 7);
    old_agent.process_ms = 0;
    goodput_told(&g, &none, &old_agent, &start, CREATED_MS, CREATED_MS + 60000);
    goodput_rest(&g, GOODPUT_SUSPENDED, CREATED_MS, CREATED_MS + 90000);
    assert_false(g.known);
    assert_int_equal(goodput_sum_ms(&g), 0);
    assert_true(isnan(goodput_ratio(&g)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kinds_add_up_to_the_life_of_the_job),
        cmocka_unit_test(each_kind_is_what_it_was),
        cmocka_unit_test(no_more_than_went_by_is_taken),
        cmocka_unit_test(steps_done_again_are_lost_work),
        cmocka_unit_test(of_nothing_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
