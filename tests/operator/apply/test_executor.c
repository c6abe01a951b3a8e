/* Plans carried out on an API server that answers when the test says so. What is written of a
 * status is test_executor_status.c's matter, what follows until the view shows what was done is
 * test_executor_view.c's, events are test_executor_events.c's. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/apply/executor_fixture.h"

#include <string.h>

static void a_new_job_is_carried_out(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(1);
    executor_fixture_start(f, "ns/j");
    late_api_answer_all(&f->kube);
    assert_string_equal(str_text(&f->kube.said), "PUT status j\n"
                                                 "POST services j-master-0\n"
                                                 "POST services j-worker-0\n"
                                                 "POST pods j-master-0\n"
                                                 "(SuccessfulCreatePod)\n"
                                                 "POST pods j-worker-0\n"
                                                 "(SuccessfulCreatePod)\n");
    assert_int_equal(f->overs, 1);
    assert_int_equal(f->failure.code, ERR_NONE);
    assert_true(f->written);
    assert_false(f->job_deleted);
    assert_int_equal(f->requeue_ms, 1000 + 9000);
    assert_int_equal(executor_running(f->executor), 0);
    executor_fixture_close(f);
}

static void outcomes_decide_what_follows(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum error_code code, failure;
        bool written;
        int pods;     /* asked for */
        bool refused; /* is remembered */
    } rows[] = {
        {"PUT status j", ERR_CONFLICT, ERR_CONFLICT, false, 0, false},
        {"PUT status j", ERR_FORBIDDEN, ERR_FORBIDDEN, false, 0, false},
        {"POST services j-worker-0", ERR_INPUT, ERR_INPUT, true, 0, true},
        {"POST services j-worker-0", ERR_EXISTS, ERR_NONE, true, 4, true},
        {"POST pods j-master-0", ERR_EXISTS, ERR_NONE, true, 4, true},
        {"POST pods j-master-0", ERR_FORBIDDEN, ERR_FORBIDDEN, true, 1, true},
        {"POST pods j-worker-0", ERR_TIMEOUT, ERR_TIMEOUT, true, 3, false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct executor_fixture *f = executor_fixture_open(3);
        struct kube_request *request;
        executor_fixture_start(f, "ns/j");
        while (!(request = late_api_find(&f->kube, rows[i].line)))
            late_api_answer(&f->kube, late_api_find(&f->kube, NULL), ERR_NONE);
        late_api_answer(&f->kube, request, rows[i].code);
        late_api_answer_all(&f->kube);
        assert_int_equal(f->overs, 1);
        assert_int_equal(f->failure.code, rows[i].failure);
        assert_int_equal(f->written, rows[i].written);
        assert_int_equal(f->requeue_ms, 1000 + 9000);
        int pods = 0;
        for (const char *at = str_text(&f->kube.said); (at = strstr(at, "POST pods")); at++)
            pods++;
        assert_int_equal(pods, rows[i].pods);
        assert_int_equal(executor_refused(f->executor, "ns/j", "job") != NULL, rows[i].refused);
        executor_fixture_close(f);
    }
}

/* Once it goes well, or is not wanted any more, another pass tells that nothing is in the way. */
static void what_was_refused_is_forgiven(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        struct executor_fixture *f = executor_fixture_open(0);
        executor_fixture_start(f, "ns/j");
        while (!late_api_find(&f->kube, "POST pods j-master-0"))
            late_api_answer(&f->kube, late_api_find(&f->kube, NULL), ERR_NONE);
        late_api_answer(&f->kube, late_api_find(&f->kube, "POST pods j-master-0"), ERR_FORBIDDEN);
        late_api_answer_all(&f->kube);
        assert_non_null(executor_refused(f->executor, "ns/j", "job"));
        if (again) {
            executor_fixture_start(f, "ns/j");
            late_api_answer_all(&f->kube);
        } else {
            assert_true(executor_clear_refusal(f->executor, "ns/j", "job"));
        }
        assert_null(executor_refused(f->executor, "ns/j", "job"));
        assert_false(executor_clear_refusal(f->executor, "ns/j", "job"));
        executor_fixture_close(f);
    }
}

static void a_right_that_is_missing_is_remembered_until_it_is_there(void **state)
{
    (void)state;
    static const struct {
        enum error_code code;
        bool refused; /* is remembered afterwards */
    } answers[] = {{ERR_TIMEOUT, false}, {ERR_FORBIDDEN, true}, {ERR_IO, true}, {ERR_NONE, false}};
    static const enum action_kind kinds[] = {ACTION_DELETE_POD, ACTION_DELETE_SERVICE};
    for (size_t k = 0; k < array_length(kinds); k++) {
        struct executor_fixture *f = executor_fixture_open(0);
        struct plan *plan = plan_open(f->cluster->arena);
        plan_add(plan, (struct action){.kind = kinds[k], .name = "p", .uid = "u"});
        for (size_t i = 0; i < array_length(answers); i++) {
            executor_fixture_start_plan(f, "ns/j", plan);
            late_api_answer(&f->kube, late_api_find(&f->kube, "DELETE p"), answers[i].code);
            const char *refused = executor_refused(f->executor, "ns/j", "job");
            assert_int_equal(refused != NULL, answers[i].refused);
        }
        assert_int_equal(f->requeue_ms, executor_fixture_now_ms); /* to tell that it is there */
        executor_fixture_close(f);
    }
}

/* Nothing will tell when a group that is not in sight is gone: it is looked for in time. */
static void a_group_that_is_taken_is_looked_at_again(void **state)
{
    (void)state;
    static const struct {
        enum error_code code;
        int64_t again_ms;
        bool refused;
    } rows[] = {{ERR_EXISTS, 10000, true},
                {ERR_FORBIDDEN, 0, true},
                {ERR_IO, 0, false}}; /* maybe it is ours, though nobody said so */
    static const struct pod_group_spec spec = {.queue = "", .priority_class = ""};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct executor_fixture *f = executor_fixture_open(0);
        struct plan *plan = plan_open(f->cluster->arena);
        plan_add(plan,
                 (struct action){.kind = ACTION_CREATE_POD_GROUP, .name = "j", .pod_group = &spec});
        executor_fixture_start_plan(f, "ns/j", plan);
        late_api_answer(&f->kube, late_api_find(&f->kube, "POST podgroups j"), rows[i].code);
        if (rows[i].code == ERR_EXISTS) /* nor is it the job's */
            for (int way = 0; way < 2; way++)
                late_api_answer(&f->kube, late_api_find(&f->kube, "PATCH j"), ERR_INPUT);
        assert_int_equal(f->failure.code, rows[i].code);
        assert_int_equal(executor_refused(f->executor, "ns/j", "job") != NULL, rows[i].refused);
        int64_t again_ms = rows[i].again_ms ? executor_fixture_now_ms + rows[i].again_ms : 0;
        assert_int_equal(f->requeue_ms, again_ms);
        executor_fixture_close(f);
    }
}

/* What exists is the job's, by its owner, and gets our labels; or it is left alone. */
static void what_exists_is_adopted(void **state)
{
    (void)state;
    static const struct {
        enum error_code answers[2]; /* to the requests to adopt it */
        int requests;
        enum error_code failure;
    } rows[] = {
        {{ERR_NONE}, 1, ERR_NONE},
        {{ERR_INPUT, ERR_NONE}, 2, ERR_NONE}, /* it has labels */
        {{ERR_INPUT, ERR_INPUT}, 2, ERR_EXISTS},
        {{ERR_FORBIDDEN}, 1, ERR_EXISTS},
        {{ERR_NOT_FOUND}, 1, ERR_EXISTS}, /* it went meanwhile */
        {{ERR_INPUT, ERR_IO}, 2, ERR_EXISTS},
    };
    static const struct pod_group_spec spec = {.queue = "", .priority_class = ""};
    static const struct autoscaler_spec scaler = {.metrics_hash = ""};
    const struct action actions[] = {
        {.kind = ACTION_CREATE_POD_GROUP, .name = "j", .pod_group = &spec},
        {.kind = ACTION_CREATE_AUTOSCALER, .name = "j", .autoscaler = &scaler},
    };
    static const char *const plurals[] = {"podgroups", "horizontalpodautoscalers"};
    static const char *const events[] = {"(SuccessfulAdoptPodGroup)",
                                         "(SuccessfulAdoptAutoscaler)"};
    for (size_t i = 0; i < array_length(rows) * array_length(actions); i++) {
        size_t row = i / array_length(actions), what = i % array_length(actions);
        struct executor_fixture *f = executor_fixture_open(0);
        struct plan *plan = plan_open(f->cluster->arena);
        plan_add(plan, actions[what]);
        executor_use_autoscaling(f->executor, "v2");
        executor_fixture_start_plan(f, "ns/j", plan);
        auto_free char *post = xasprintf("POST %s j", plurals[what]);
        late_api_answer(&f->kube, late_api_find(&f->kube, post), ERR_EXISTS);
        for (int n = 0; n < rows[row].requests; n++) {
            assert_int_equal(f->overs, 0);
            late_api_answer(&f->kube, late_api_find(&f->kube, "PATCH j"), rows[row].answers[n]);
        }
        assert_null(late_api_find(&f->kube, "PATCH j"));
        bool adopted = rows[row].failure == ERR_NONE;
        assert_int_equal(strstr(str_text(&f->kube.said), events[what]) != NULL, adopted);
        assert_int_equal(f->overs, 1);
        assert_int_equal(executor_refused(f->executor, "ns/j", "job") != NULL,
                         rows[row].failure != ERR_NONE);
        if (actions[what].kind == ACTION_CREATE_POD_GROUP)
            assert_int_equal(f->failure.code, rows[row].failure);
        executor_fixture_close(f);
    }
}

static void what_is_in_flight_at_a_failure_is_waited_for(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(3);
    executor_fixture_start(f, "ns/j");
    while (!late_api_find(&f->kube, "POST pods j-worker-1"))
        late_api_answer(&f->kube, late_api_find(&f->kube, NULL), ERR_NONE);
    late_api_answer(&f->kube, late_api_find(&f->kube, "POST pods j-worker-1"), ERR_FORBIDDEN);
    assert_non_null(late_api_find(&f->kube, "(FailedCreatePod)"));
    assert_int_equal(f->overs, 0);
    assert_int_equal(executor_running(f->executor), 1);
    late_api_answer(&f->kube, late_api_find(&f->kube, "POST pods j-worker-0"), ERR_NONE);
    assert_int_equal(f->overs, 1);
    executor_fixture_close(f);
}

static void a_deleted_job_is_told(void **state)
{
    (void)state;
    static const struct {
        enum error_code code;
        bool deleted;
    } rows[] = {{ERR_NONE, true}, {ERR_NOT_FOUND, false}, {ERR_IO, false}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct executor_fixture *f = executor_fixture_open(1);
        struct plan *plan = plan_open(f->cluster->arena);
        plan_add(plan, (struct action){.kind = ACTION_DELETE_JOB, .name = "j", .uid = "job"});
        executor_fixture_start_plan(f, "ns/j", plan);
        late_api_answer(&f->kube, late_api_find(&f->kube, NULL), rows[i].code);
        assert_int_equal(f->overs, 1);
        assert_int_equal(f->job_deleted, rows[i].deleted);
        executor_fixture_close(f);
    }
}

static void a_plan_that_only_tells_is_over_at_once(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(1);
    struct plan *plan = plan_open(f->cluster->arena);
    plan_add(plan, (struct action){.kind = ACTION_EVENT, .reason = "Why", .message = "m"});
    executor_fixture_start_plan(f, "ns/j", plan);
    assert_int_equal(f->overs, 1);
    late_api_answer(&f->kube, late_api_find(&f->kube, "(Why)"), ERR_IO); /* and lost */
    assert_int_equal(f->failure.code, ERR_NONE);
    executor_fixture_close(f);
}

static void a_plan_can_be_dropped(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(7);
    executor_fixture_start(f, "ns/j");
    for (int i = 0; i < 3; i++)
        late_api_answer(&f->kube, late_api_find(&f->kube, NULL), ERR_NONE);
    int in_flight = (int)f->kube.count - f->kube.events;
    assert_true(in_flight > 1);
    executor_cancel(f->executor, "ns/j");
    executor_cancel(f->executor, "ns/j");
    assert_int_equal(f->kube.cancelled, in_flight);
    assert_int_equal(f->overs, 0);
    assert_int_equal(executor_running(f->executor), 0);
    executor_fixture_start(f, "ns/j"); /* closed with requests and events in flight */
    executor_fixture_close(f);
}

static void jobs_are_carried_out_side_by_side(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(1);
    executor_fixture_start(f, "ns/a");
    executor_fixture_start(f, "ns/b");
    assert_int_equal(executor_running(f->executor), 2);
    assert_int_equal(f->kube.count, 2);
    late_api_answer_all(&f->kube);
    assert_int_equal(f->overs, 2);
    executor_fixture_close(f);
}

/* Bodies of a megabyte each are not piled up: one is always under way. */
static void large_bodies_go_one_at_a_time(void **state)
{
    (void)state;
    enum { WORKERS = 20 };
    struct executor_fixture *f = executor_fixture_open(WORKERS);
    f->kube.body_bytes = EXECUTOR_BODY_BYTES_MAX;
    executor_fixture_start(f, "ns/j");
    int answers = 0;
    for (struct kube_request *request; (request = late_api_find(&f->kube, NULL)); answers++) {
        assert_int_equal(f->kube.count - (size_t)f->kube.events, 1);
        late_api_answer(&f->kube, request, ERR_NONE);
    }
    assert_true(answers > 2 * WORKERS); /* a service and a pod each, and the status */
    assert_int_equal(f->overs, 1);
    executor_fixture_close(f);
}

static void a_failure_is_news_after_a_success(void **state)
{
    (void)state;
    static const struct {
        enum error_code code;
        bool is_new;
    } rows[] = {
        {ERR_FORBIDDEN, true}, {ERR_FORBIDDEN, false}, {ERR_NONE, false}, {ERR_FORBIDDEN, true}};
    struct executor_fixture *f = executor_fixture_open(0);
    struct plan *plan = plan_open(f->cluster->arena);
    plan_add(plan, (struct action){.kind = ACTION_DELETE_POD, .name = "p", .uid = "u"});
    for (size_t i = 0; i < array_length(rows); i++) {
        executor_fixture_start_plan(f, "ns/j", plan);
        late_api_answer(&f->kube, late_api_find(&f->kube, "DELETE p"), rows[i].code);
        assert_int_equal(f->is_new, rows[i].is_new);
    }
    executor_fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_job_is_carried_out),
        cmocka_unit_test(outcomes_decide_what_follows),
        cmocka_unit_test(what_was_refused_is_forgiven),
        cmocka_unit_test(a_right_that_is_missing_is_remembered_until_it_is_there),
        cmocka_unit_test(a_group_that_is_taken_is_looked_at_again),
        cmocka_unit_test(what_exists_is_adopted),
        cmocka_unit_test(what_is_in_flight_at_a_failure_is_waited_for),
        cmocka_unit_test(a_deleted_job_is_told),
        cmocka_unit_test(a_plan_that_only_tells_is_over_at_once),
        cmocka_unit_test(a_plan_can_be_dropped),
        cmocka_unit_test(jobs_are_carried_out_side_by_side),
        cmocka_unit_test(large_bodies_go_one_at_a_time),
        cmocka_unit_test(a_failure_is_news_after_a_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
