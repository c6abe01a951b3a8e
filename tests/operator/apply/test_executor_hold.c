/* How long a status write waits for more of the kind. */
#include "operator/apply/executor.h"

#include "base/mem.h"
#include "operator/job/history.h"
#include "tests/operator/apply/executor_fixture.h"
#include "tests/support.h"

static struct executor_fixture *f;
static struct job_status after;

static struct plan *plan_of(const struct action *actions, size_t count)
{
    struct plan *plan = plan_open(f->cluster->arena);
    for (size_t i = 0; i < count; i++)
        plan_add(plan, actions[i]);
    return plan;
}

/* Of a plan that writes one active pod more. */
static int64_t hold_ms(const struct action *beside)
{
    const struct action write = {.kind = ACTION_SET_STATUS, .status = &after};
    struct plan *plan = plan_of(&write, 1);
    after = f->cluster->status;
    after.replicas[REPLICA_WORKER].active++;
    if (beside)
        plan_add(plan, *beside);
    return executor_hold_ms(f->executor, "ns/j", "job", &f->cluster->status, plan);
}

static void start(void)
{
    f = executor_fixture_open(1);
    executor_fixture_start(f, "ns/j");
    late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_NONE);
}

static void a_burst_is_written_when_it_is_over(void **state)
{
    (void)state;
    static const struct {
        int64_t after_ms; /* of the pass before */
        int64_t hold_ms;
    } rows[] = {
        {0, 150},   {150, 0},   /* one change, and its time */
        {0, 150},   {149, 150}, /* news, in time */
        {150, 0},               /* none since */
        {0, 150},   {0, 150},   {149, 150}, {149, 150},
        {149, 150}, {149, 150}, {149, 150}, {149, 106}, /* a second since the first is near */
        {105, 1},   {1, 0},                             /* and over, whatever comes */
        {1, 150},
    };
    start();
    for (size_t i = 0; i < array_length(rows); i++) {
        executor_fixture_now_ms += rows[i].after_ms;
        int64_t ms = hold_ms(NULL);
        if (ms != rows[i].hold_ms)
            fail_msg("pass %zu: held for %d ms", i, (int)ms);
    }
    executor_fixture_close(f);
}

static void what_does_more_does_not_wait(void **state)
{
    (void)state;
    static const struct {
        struct action beside;
        bool waits;
    } rows[] = {
        {{.kind = ACTION_REQUEUE, .at_ms = 1}, true},
        {{.kind = ACTION_EVENT, .reason = "R", .message = "m"}, false},
        {{.kind = ACTION_EVENT, .reason = REASON_EXITED_WITH_CODE, .message = "m"}, true},
        {{.kind = ACTION_DELETE_POD, .name = "p", .uid = "u"}, false},
        {{.kind = ACTION_CREATE_POD, .name = "p"}, false},
    };
    start();
    for (size_t i = 0; i < array_length(rows); i++) {
        assert_int_equal(hold_ms(&rows[i].beside), rows[i].waits ? 150 : 0);
        /* it ends what waited before, too */
        executor_fixture_now_ms += 149;
        assert_int_equal(hold_ms(NULL), 150);
        assert_int_equal(
            executor_hold_ms(f->executor, "ns/j", "job", &f->cluster->status, plan_of(NULL, 0)), 0);
    }
    executor_fixture_close(f);
}

static void a_job_is_proven_without_delay(void **state)
{
    (void)state;
    f = executor_fixture_open(1);
    assert_int_equal(hold_ms(NULL), 0); /* it is not known at all */
    executor_fixture_start(f, "ns/j");
    assert_int_equal(hold_ms(NULL), 0);
    late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_NONE);
    assert_int_equal(hold_ms(NULL), 150);
    executor_prune_histories(f->executor);
    assert_int_equal(hold_ms(NULL), 0);
    executor_fixture_close(f);
}

/* For a while: in a quiet cluster no watch tells that nothing has happened. One that is away tells
 * nothing of what has. */
static void a_pass_awaits_pods_that_the_status_goes_by(void **state)
{
    (void)state;
    static const struct {
        int64_t after_ms;
        bool are_behind, is_away;
        int64_t wait_ms;
    } rows[] = {
        {0, false, false, 0},   {0, true, false, 2000},   {1999, true, false, 1},
        {1, true, false, 0},    {9000, true, false, 0},   {0, false, false, 0},
        {0, true, false, 2000}, {1999, true, true, 2000}, {2000, true, true, 2000},
        {1999, true, false, 1}, {1, true, false, 0},      {0, false, true, 0},
    };
    f = executor_fixture_open(1);
    for (size_t i = 0; i < array_length(rows); i++) {
        executor_fixture_now_ms += rows[i].after_ms;
        int64_t ms =
            executor_await_pods_ms(f->executor, "ns/j", "job", rows[i].are_behind, rows[i].is_away);
        if (ms != rows[i].wait_ms)
            fail_msg("pass %zu: waits for %d ms", i, (int)ms);
    }
    /* another operator may have written since: it is a new status */
    executor_fixture_now_ms += PODS_AWAITED_MS;
    executor_await_pods_ms(f->executor, "ns/j", "job", true, false);
    executor_fixture_now_ms += PODS_AWAITED_MS;
    assert_int_equal(executor_await_pods_ms(f->executor, "ns/j", "job", true, false), 0);
    executor_prune_histories(f->executor);
    assert_int_equal(executor_await_pods_ms(f->executor, "ns/j", "job", true, false), 2000);
    executor_fixture_close(f);
}

static const struct history *unwritten(const struct job_status *seen)
{
    return executor_unwritten(f->executor, "ns/j", "job", seen);
}

/* The pod may be gone before the write. */
static void what_is_complete_is_remembered_until_it_is_written(void **state)
{
    (void)state;
    start();
    late_api_answer_all(&f->kube);
    struct job_status seen = f->cluster->status, other = seen;
    bool done[] = {true};
    struct job_status complete = seen;
    complete.history.completed[REPLICA_WORKER] = done;
    complete.history.completed_count[REPLICA_WORKER] = 1;
    const struct action write = {.kind = ACTION_SET_STATUS, .status = &complete};
    struct plan *plan = plan_of(&write, 1);
    assert_null(unwritten(&seen));
    assert_int_equal(executor_hold_ms(f->executor, "ns/j", "job", &seen, plan), 150);
    done[0] = false; /* it is a copy */
    assert_true(history_is_complete(unwritten(&seen), REPLICA_WORKER, 0));
    done[0] = true;
    /* a write that fails changes nothing */
    executor_fixture_now_ms += 150;
    assert_int_equal(executor_hold_ms(f->executor, "ns/j", "job", &seen, plan), 0);
    executor_fixture_start_plan(f, "ns/j", plan);
    late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_CONFLICT);
    assert_non_null(unwritten(&seen));
    /* one that gets through does */
    executor_fixture_start_plan(f, "ns/j", plan);
    late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_NONE);
    assert_null(unwritten(&seen));
    /* and so does another status that is seen: it was written with a lost answer, or by others */
    assert_int_equal(executor_hold_ms(f->executor, "ns/j", "job", &seen, plan), 150);
    other.history.attempt++;
    assert_null(unwritten(&other));
    assert_null(unwritten(&seen));
    /* and another operator that leads */
    executor_hold_ms(f->executor, "ns/j", "job", &seen, plan);
    assert_non_null(unwritten(&seen));
    executor_prune_histories(f->executor);
    assert_null(unwritten(&seen));
    executor_fixture_close(f);
}

/* A write that was reported as failed may get through behind what was found since. */
static void what_is_complete_is_remembered_over_a_late_write(void **state)
{
    (void)state;
    static const struct {
        int attempt;
        bool suspends;
        bool kept;
    } rows[] = {{0, false, true}, {1, false, false}, {0, true, false}};
    for (size_t i = 0; i < array_length(rows); i++) {
        start();
        late_api_answer_all(&f->kube);
        struct job_status seen = f->cluster->status, late = seen, complete = seen, before;
        bool done[] = {true};
        late.replicas[REPLICA_WORKER].active++;
        late.history.attempt += rows[i].attempt;
        late.conditions[late.condition_count] = (struct condition){
            .type = CONDITION_SUSPENDED, .status = true, .reason = "R", .message = "m"};
        late.condition_count += rows[i].suspends;
        complete.history.completed[REPLICA_WORKER] = done;
        complete.history.completed_count[REPLICA_WORKER] = 1;
        const struct action first = {.kind = ACTION_SET_STATUS, .status = &late};
        const struct action second = {.kind = ACTION_SET_STATUS, .status = &complete};
        executor_fixture_start_plan(f, "ns/j", plan_of(&first, 1));
        late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_TIMEOUT);
        assert_int_equal(executor_hold_ms(f->executor, "ns/j", "job", &seen, plan_of(&second, 1)),
                         150);
        const struct snapshot snapshot = {.job = f->cluster->job, .status = &late};
        assert_true(
            executor_confirm_write(f->executor, "ns/j", &snapshot, f->cluster->arena, &before));
        const struct history *history = unwritten(&late);
        assert_int_equal(history && history_is_complete(history, REPLICA_WORKER, 0), rows[i].kept);
        executor_fixture_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_is_written_when_it_is_over),
        cmocka_unit_test(what_does_more_does_not_wait),
        cmocka_unit_test(a_job_is_proven_without_delay),
        cmocka_unit_test(what_is_complete_is_remembered_until_it_is_written),
        cmocka_unit_test(what_is_complete_is_remembered_over_a_late_write),
        cmocka_unit_test(a_pass_awaits_pods_that_the_status_goes_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
