/* Statuses that were written: those whose answer was lost, and what an API server does not keep of
 * them. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/job/history.h"
#include "operator/job/history_fields.h"
#include "operator/job/job_status.h"
#include "tests/operator/apply/executor_fixture.h"

#include <string.h>

/* Without an answer nobody knows; what is seen then tells, once. */
static void a_status_whose_answer_was_lost_is_known_when_it_is_seen(void **state)
{
    (void)state;
    static const struct {
        enum error_code code;
        bool written; /* to be told by executor_confirm_write */
    } rows[] = {{ERR_CONFLICT, true}, {ERR_IO, true},         {ERR_TIMEOUT, true},
                {ERR_NONE, false},    {ERR_FORBIDDEN, false}, {ERR_INPUT, false}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct executor_fixture *f = executor_fixture_open(0);
        struct job_status before, seen;
        struct snapshot snapshot = {.job = f->cluster->job, .status = &f->cluster->status};
        executor_fixture_start(f, "ns/j");
        seen = *f->cluster->plan->actions[0].status;
        late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), rows[i].code);
        assert_false(
            executor_confirm_write(f->executor, "ns/j", &snapshot, f->cluster->arena, &before));
        snapshot.status = &seen;
        assert_int_equal(
            executor_confirm_write(f->executor, "ns/j", &snapshot, f->cluster->arena, &before),
            rows[i].written);
        if (rows[i].written)
            assert_int_equal(before.condition_count, 0);
        assert_false(
            executor_confirm_write(f->executor, "ns/j", &snapshot, f->cluster->arena, &before));
        executor_fixture_close(f);
    }
}

/* ... or that it was another's. */
static void a_status_that_another_wrote_is_not_ours(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    executor_fixture_start(f, "ns/j");
    struct job_status before, seen = *f->cluster->plan->actions[0].status, other = seen;
    other.start_ms++;
    late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_CONFLICT);
    struct snapshot snapshot = {.job = f->cluster->job, .status = &other};
    assert_false(
        executor_confirm_write(f->executor, "ns/j", &snapshot, f->cluster->arena, &before));
    snapshot.status = &seen;
    assert_false(
        executor_confirm_write(f->executor, "ns/j", &snapshot, f->cluster->arena, &before));
    executor_fixture_close(f);
}

/* What was tried before is not forgotten for a later try, which may be refused for its sake. */
static void of_several_lost_answers_any_may_be_the_one(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    struct job_status before, seen = {0};
    enum { TRIES = 9, DONE = 1 };
    for (int i = 0; i < TRIES; i++) {
        f->cluster->now_ms += 1000;
        executor_fixture_start(f, "ns/j");
        if (i == DONE)
            seen = job_status_copy(f->cluster->plan->actions[0].status, f->cluster->arena);
        late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"),
                        i < TRIES - 1 ? ERR_IO : ERR_CONFLICT);
    }
    assert_int_not_equal(seen.start_ms, f->cluster->plan->actions[0].status->start_ms);
    struct snapshot snapshot = {.job = f->cluster->job, .status = &seen};
    assert_true(executor_confirm_write(f->executor, "ns/j", &snapshot, f->cluster->arena, &before));
    assert_int_equal(before.condition_count, 0);
    executor_fixture_close(f);
}

/* What is seen lacks what that write counted; it counts all the same, once. */
static void a_lost_answer_is_known_without_history(void **state)
{
    (void)state;
    const struct history parts[] = {
        [LATE_API_KEEPS_A_PART] = {.known = true, .failures = 4}, [LATE_API_KEEPS_NOTHING] = {0}};
    for (int keeps = LATE_API_KEEPS_A_PART; keeps <= LATE_API_KEEPS_NOTHING; keeps++) {
        struct executor_fixture *f = executor_fixture_open(0);
        f->kube.keeps = keeps;
        const char *uid = f->cluster->job->uid;
        const struct history counted = {.known = true, .failures = 3, .incidents = 2};
        struct job_status tries[2] = {{.start_ms = 1000, .history = counted},
                                      {.start_ms = 2000, .history = counted}};
        tries[1].history.failures = tries[1].history.incidents = 4;
        for (int i = 0; i < 2; i++) {
            struct plan *plan = plan_open(f->cluster->arena);
            plan_add(plan, (struct action){.kind = ACTION_SET_STATUS, .status = &tries[i]});
            f->cluster->status = tries[0];
            executor_fixture_start_plan(f, "ns/j", plan);
            late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), i ? ERR_IO : 0);
            late_api_answer_all(&f->kube);
        }
        const struct job_status seen = {.start_ms = 2000, .history = parts[keeps]};
        struct job_status before;
        struct snapshot snapshot = {.job = f->cluster->job,
                                    .status =
                                        executor_restore_history(f->executor, "ns/j", uid, &seen)};
        assert_int_equal(snapshot.status->history.incidents, 2);
        assert_true(
            executor_confirm_write(f->executor, "ns/j", &snapshot, f->cluster->arena, &before));
        assert_int_equal(before.history.failures, 3);
        const struct job_status *now = executor_restore_history(f->executor, "ns/j", uid, &seen);
        assert_int_equal(now->history.failures, 4);
        assert_int_equal(now->history.incidents, 4);
        assert_false(
            executor_confirm_write(f->executor, "ns/j", &snapshot, f->cluster->arena, &before));
        executor_fixture_close(f);
    }
}

static void write_status(struct executor_fixture *f, const struct job_status *status)
{
    struct plan *plan = plan_open(f->cluster->arena);
    plan_add(plan, (struct action){.kind = ACTION_SET_STATUS, .status = status});
    executor_fixture_start_plan(f, "ns/j", plan);
    late_api_answer_all(&f->kube);
}

/* Else each pass would tell the same news again, and account for the job's whole life. */
static void a_training_that_is_not_kept_is_told_rarely(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    struct job_status status = {.training = training_open(), .goodput.known = true}, seen;
    status.training.step = 7;
    status.goodput.ms[TRAINING_SPENT_STEP] = 5000;
    seen = status;
    seen.goodput.known = false; /* as the cache has it, with the seconds dropped */
    static const char *const dropped[] = {NULL, "seconds", "training", "processSeconds", "step"};
    for (size_t i = 0; i < array_length(dropped); i++) {
        bool is_pruned = dropped[i];
        f->kube.keeps = LATE_API_KEEPS_ALL;
        f->kube.drops_of_training = dropped[i];
        write_status(f, &status);
        assert_int_equal(executor_training_is_pruned(f->executor), is_pruned);
        assert_int_equal(f->accounted_ms, is_pruned ? 0 : 5000);
        assert_int_equal(executor_may_tell_training(f->executor), !is_pruned);
        if (is_pruned && strcmp(dropped[i], "step") != 0) {
            write_status(f, &seen);
            assert_true(executor_training_is_pruned(f->executor));
        }
        executor_fixture_now_ms += 5 * 60 * 1000;
        assert_true(executor_may_tell_training(f->executor));
        assert_true(executor_may_tell_training(f->executor)); /* to ask takes nobody's turn */
        write_status(f, &status);
        assert_int_equal(executor_may_tell_training(f->executor), !is_pruned);
        f->kube.drops_of_training = NULL;
        write_status(f, &status);
        assert_false(executor_training_is_pruned(f->executor));
        assert_true(executor_may_tell_training(f->executor));
    }
    executor_fixture_close(f);
}

/* The CustomResourceDefinition of somebody else, or of an earlier version: what was counted is
 * remembered, whatever of it is seen. */
static void a_history_that_is_not_kept_is_remembered(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    const char *uid = f->cluster->job->uid;
    for (int keeps = LATE_API_KEEPS_NOTHING; keeps >= LATE_API_KEEPS_ALL; keeps--) {
        bool history_pruned = keeps != LATE_API_KEEPS_ALL;
        struct job_status seen = {.history.known = keeps != LATE_API_KEEPS_NOTHING};
        struct job_status counted = {.history = {.known = true, .failures = 3, .incidents = 2}};
        f->kube.keeps = keeps;
        for (int i = 0; i < 2; i++) {
            struct plan *plan = plan_open(f->cluster->arena);
            counted.history.failures++;
            plan_add(plan, (struct action){.kind = ACTION_SET_STATUS, .status = &counted});
            executor_fixture_start_plan(f, "ns/j", plan);
            late_api_answer_all(&f->kube);
            const struct job_status *recalled =
                executor_restore_history(f->executor, "ns/j", uid, &seen);
            assert_int_equal(recalled->history.failures,
                             history_pruned ? counted.history.failures : 0);
            assert_int_equal(recalled->history.incidents, history_pruned ? 2 : 0);
            assert_int_equal(executor_history_is_pruned(f->executor), history_pruned);
            assert_ptr_equal(executor_restore_history(f->executor, "ns/j", "another", &seen),
                             &seen);
        }
    }
    assert_int_equal(f->kube.events, 1); /* told once */
    executor_fixture_close(f);
}

/* A field that an older definition does not name: whichever it is, one event says so. */
static void any_field_that_is_not_kept_is_told(void **state)
{
    (void)state;
    struct history history = {.known = true,
                              .failures = 1,
                              .restarts = 1,
                              .rank_restarts = 1,
                              .incidents = 1,
                              .attempt = 1,
                              .incident_ms = 1000,
                              .incidents_without_cause = 1,
                              .hardware_leaves = 1,
                              .hardware_ms = 1000,
                              .preempted = 1,
                              .worker_0_ms = 1000,
                              .formed = {1, 1}};
    const struct history_field *const tables[] = {history_fields, replica_history_fields};
    auto_arena struct arena *arena = arena_open();
    const struct replica_history record = {.type = REPLICA_WORKER,
                                           .uid = "u",
                                           .counted = 1,
                                           .earlier = 1,
                                           .incidents = 1,
                                           .left = true};
    history_put(&history, record, arena);
    history_complete(&history, REPLICA_WORKER, 1, arena);
    history_avoid(&history, "gpu-a", 1000, arena);
    const struct job_status counted = {.history = history};
    int told = 0;
    for (size_t i = 0; i < 2 * array_length(tables); i++) {
        for (const struct history_field *row = tables[i / 2]; row->member; row++) {
            struct executor_fixture *f = executor_fixture_open(0);
            struct plan *plan = plan_open(f->cluster->arena);
            bool is_dropped = i % 2 && row->name;
            f->kube.drops = is_dropped ? row->name : NULL;
            plan_add(plan, (struct action){.kind = ACTION_SET_STATUS, .status = &counted});
            executor_fixture_start_plan(f, "ns/j", plan);
            late_api_answer_all(&f->kube);
            if (executor_history_is_pruned(f->executor) != is_dropped ||
                f->kube.events != is_dropped)
                fail_msg("%s %s", row->member, is_dropped ? "is lost in silence" : "is not lost");
            told += f->kube.events;
            executor_fixture_close(f);
        }
    }
    assert_true(told >= 16);
}

/* Another operator has counted since. */
static void who_leads_no_more_remembers_no_history(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    f->kube.keeps = LATE_API_KEEPS_NOTHING;
    const char *uid = f->cluster->job->uid;
    const struct job_status seen = {0}, counted = {.history = {.known = true, .failures = 3}};
    struct plan *plan = plan_open(f->cluster->arena);
    plan_add(plan, (struct action){.kind = ACTION_SET_STATUS, .status = &counted});
    executor_fixture_start_plan(f, "ns/j", plan);
    late_api_answer_all(&f->kube);
    assert_ptr_not_equal(executor_restore_history(f->executor, "ns/j", uid, &seen), &seen);
    executor_prune_histories(f->executor);
    assert_ptr_equal(executor_restore_history(f->executor, "ns/j", uid, &seen), &seen);
    assert_false(executor_history_is_pruned(f->executor));
    executor_fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_whose_answer_was_lost_is_known_when_it_is_seen),
        cmocka_unit_test(a_status_that_another_wrote_is_not_ours),
        cmocka_unit_test(of_several_lost_answers_any_may_be_the_one),
        cmocka_unit_test(a_lost_answer_is_known_without_history),
        cmocka_unit_test(a_training_that_is_not_kept_is_told_rarely),
        cmocka_unit_test(a_history_that_is_not_kept_is_remembered),
        cmocka_unit_test(any_field_that_is_not_kept_is_told),
        cmocka_unit_test(who_leads_no_more_remembers_no_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
