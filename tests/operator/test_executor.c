/* Plans carried out on an API server that answers when the test says so. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/reconcile.h"
#include "tests/operator/cluster.h"
#include "tests/operator/late_api.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int64_t now_ms;

static int64_t now(void)
{
    return now_ms;
}

static const struct clocks clocks = {now, now};

/* What the executor works with, and what it told in the end. */
struct fixture {
    struct kube kube;
    struct executor *executor;
    struct cluster *cluster;
    json_t *object;
    int overs;
    struct error failure; /* of the last one that was over, like the rest */
    bool written, job_deleted;
    int64_t requeue_ms;
    bool rereads;     /* what to say when something is unseen */
    struct str asked; /* then */
};

static void on_over(void *context, const char *key, const struct executor_outcome *outcome)
{
    struct fixture *f = context;
    (void)key;
    f->overs++;
    f->failure = outcome->failure ? *outcome->failure : (struct error){.code = ERR_NONE};
    f->written = outcome->written != NULL;
    f->job_deleted = outcome->job_deleted;
    f->requeue_ms = outcome->requeue_ms;
}

static bool on_unseen(void *context, enum expect_kind kind, int64_t since_ms)
{
    static const char *const kinds[] = {"job", "pod", "service"};
    struct fixture *f = context;
    str_printf(&f->asked, "%s since %d;", kinds[kind], (int)since_ms);
    return f->rereads;
}

static struct fixture *fixture_open(int workers)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    now_ms = 1000;
    late_api_open(&f->kube);
    str_init(&f->asked, 1000);
    const struct executor_options options = {.transport = &late_api_transport,
                                             .parallel_max = 8,
                                             .clocks = &clocks,
                                             .over = on_over,
                                             .unseen = on_unseen,
                                             .context = f};
    f->executor = executor_open(&f->kube, &options);
    f->cluster = cluster_open(1, workers, "OnFailure", "activeDeadlineSeconds: 9", "");
    f->object = json_pack("{s:{s:s}}", "metadata", "resourceVersion", "1");
    return f;
}

static void fixture_close(struct fixture *f)
{
    executor_close(f->executor);
    late_api_close(&f->kube);
    str_free(&f->asked);
    json_decref(f->object);
    cluster_close(f->cluster);
    free(f);
}

static void start_plan(struct fixture *f, const char *key, const struct plan *plan)
{
    executor_start(f->executor, key, f->cluster->job, f->object, &f->cluster->status, plan);
}

/* Starts the plan of a first pass. */
static void start(struct fixture *f, const char *key)
{
    cluster_plan(f->cluster);
    start_plan(f, key, f->cluster->plan);
}

static int64_t early_ms(struct fixture *f)
{
    struct world world = {.job = f->cluster->job,
                          .pods = f->cluster->pods,
                          .pod_count = f->cluster->pod_count,
                          .services = f->cluster->services,
                          .service_count = f->cluster->service_count};
    return executor_early_ms(f->executor, "ns/j", &world, f->object);
}

static void a_new_job_is_carried_out(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    start(f, "ns/j");
    late_api_answer_all(&f->kube);
    assert_string_equal(str_text(&f->kube.said), "PUT status j\n"
                                                 "POST services j-master-0\n"
                                                 "(SuccessfulCreateService)\n"
                                                 "POST services j-worker-0\n"
                                                 "(SuccessfulCreateService)\n"
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
    fixture_close(f);
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
        struct fixture *f = fixture_open(3);
        struct kube_request *request;
        start(f, "ns/j");
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
        fixture_close(f);
    }
}

/* Once it goes well, or is not wanted any more, another pass tells that nothing is in the way. */
static void what_was_refused_is_forgiven(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        struct fixture *f = fixture_open(0);
        start(f, "ns/j");
        while (!late_api_find(&f->kube, "POST pods j-master-0"))
            late_api_answer(&f->kube, late_api_find(&f->kube, NULL), ERR_NONE);
        late_api_answer(&f->kube, late_api_find(&f->kube, "POST pods j-master-0"), ERR_FORBIDDEN);
        late_api_answer_all(&f->kube);
        assert_non_null(executor_refused(f->executor, "ns/j", "job"));
        if (again) {
            start(f, "ns/j");
            late_api_answer_all(&f->kube);
        } else {
            assert_true(executor_forgive(f->executor, "ns/j", "job"));
        }
        assert_null(executor_refused(f->executor, "ns/j", "job"));
        assert_false(executor_forgive(f->executor, "ns/j", "job"));
        fixture_close(f);
    }
}

static void what_is_in_flight_at_a_failure_is_waited_for(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(3);
    start(f, "ns/j");
    while (!late_api_find(&f->kube, "POST pods j-worker-1"))
        late_api_answer(&f->kube, late_api_find(&f->kube, NULL), ERR_NONE);
    late_api_answer(&f->kube, late_api_find(&f->kube, "POST pods j-worker-1"), ERR_FORBIDDEN);
    assert_non_null(late_api_find(&f->kube, "(FailedCreatePod)"));
    assert_int_equal(f->overs, 0);
    assert_int_equal(executor_running(f->executor), 1);
    late_api_answer(&f->kube, late_api_find(&f->kube, "POST pods j-worker-0"), ERR_NONE);
    assert_int_equal(f->overs, 1);
    fixture_close(f);
}

static void a_deleted_job_is_told(void **state)
{
    (void)state;
    static const struct {
        enum error_code code;
        bool deleted;
    } rows[] = {{ERR_NONE, true}, {ERR_NOT_FOUND, false}, {ERR_IO, false}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct fixture *f = fixture_open(1);
        struct plan *plan = plan_open(f->cluster->arena);
        plan_add(plan, (struct action){.kind = ACTION_DELETE_JOB, .name = "j", .uid = "job"});
        start_plan(f, "ns/j", plan);
        late_api_answer(&f->kube, late_api_find(&f->kube, NULL), rows[i].code);
        assert_int_equal(f->overs, 1);
        assert_int_equal(f->job_deleted, rows[i].deleted);
        fixture_close(f);
    }
}

static void a_plan_that_only_tells_is_over_at_once(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct plan *plan = plan_open(f->cluster->arena);
    plan_add(plan, (struct action){.kind = ACTION_EVENT, .reason = "Why", .message = "m"});
    start_plan(f, "ns/j", plan);
    assert_int_equal(f->overs, 1);
    late_api_answer(&f->kube, late_api_find(&f->kube, "(Why)"), ERR_IO); /* and lost */
    assert_int_equal(f->failure.code, ERR_NONE);
    fixture_close(f);
}

static void a_plan_can_be_dropped(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(7);
    start(f, "ns/j");
    for (int i = 0; i < 3; i++)
        late_api_answer(&f->kube, late_api_find(&f->kube, NULL), ERR_NONE);
    int in_flight = (int)f->kube.count - f->kube.events;
    assert_true(in_flight > 1);
    executor_drop(f->executor, "ns/j");
    executor_drop(f->executor, "ns/j");
    assert_int_equal(f->kube.cancelled, in_flight);
    assert_int_equal(f->overs, 0);
    assert_int_equal(executor_running(f->executor), 0);
    start(f, "ns/j"); /* closed with requests and events in flight */
    fixture_close(f);
}

static void jobs_are_carried_out_side_by_side(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    start(f, "ns/a");
    start(f, "ns/b");
    assert_int_equal(executor_running(f->executor), 2);
    assert_int_equal(f->kube.count, 2);
    late_api_answer_all(&f->kube);
    assert_int_equal(f->overs, 2);
    fixture_close(f);
}

static void events_of_a_big_job_are_bounded(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(40);
    start(f, "ns/j");
    late_api_answer_all(&f->kube);
    assert_int_equal(f->overs, 1);
    assert_int_equal(f->kube.events, 20);
    struct plan *plan = plan_open(f->cluster->arena);
    for (int i = 0; i < 9; i++)
        plan_add(plan, (struct action){.kind = ACTION_EVENT, .reason = "Why", .message = "m"});
    start_plan(f, "ns/j", plan);
    assert_int_equal(f->kube.events, 25);
    executor_forget(f->executor, "ns/j"); /* a new job of that name tells anew */
    start_plan(f, "ns/j", plan);
    assert_int_equal(f->kube.events, 34);
    fixture_close(f);
}

static void events_in_flight_are_bounded(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct plan *plan = plan_open(f->cluster->arena);
    for (int i = 0; i < 25; i++)
        plan_add(plan, (struct action){.kind = ACTION_EVENT, .reason = "Why", .message = "m"});
    static const char *const keys[] = {"ns/a", "ns/b", "ns/c"};
    for (size_t i = 0; i < array_length(keys); i++)
        start_plan(f, keys[i], plan);
    assert_int_equal(f->kube.count, EXECUTOR_EVENTS_MAX);
    late_api_answer(&f->kube, late_api_find(&f->kube, "(Why)"), ERR_NONE);
    executor_forget(f->executor, "ns/c");
    start_plan(f, "ns/c", plan);
    assert_int_equal(f->kube.count, EXECUTOR_EVENTS_MAX);
    fixture_close(f);
}

static void a_view_without_our_own_writes_is_too_early(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(0);
    struct cluster *cluster = f->cluster;
    assert_int_equal(early_ms(f), 0);
    start(f, "ns/j");
    late_api_answer_all(&f->kube); /* uid1: the status, uid2: the service, uid3: the pod */
    assert_int_equal(early_ms(f), 5000);
    now_ms += 1;
    cluster->services[0] = (struct service){.name = "j-master-0", .uid = "uid2"};
    cluster->service_count = 1;
    assert_int_equal(early_ms(f), 4999);
    cluster->pods[0] = (struct pod){.name = "j-master-0", .uid = "uid3"};
    cluster->pod_count = 1;
    assert_int_equal(early_ms(f), 4999); /* the job is still the old one */
    json_object_set_new(f->object, "metadata", json_pack("{s:s}", "resourceVersion", "3"));
    assert_int_equal(early_ms(f), 0);
    fixture_close(f);
}

static void a_write_that_changes_nothing_is_not_awaited(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(0);
    struct plan *plan = plan_open(f->cluster->arena);
    plan_add(plan, (struct action){.kind = ACTION_SET_STATUS, .status = &f->cluster->status});
    json_object_set_new(f->object, "metadata", json_pack("{s:s}", "resourceVersion", "2"));
    start_plan(f, "ns/j", plan);
    late_api_answer_all(&f->kube);
    assert_int_equal(early_ms(f), 0);
    fixture_close(f);
}

static void nobody_waits_for_ever(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(0);
    start(f, "ns/j");
    late_api_answer_all(&f->kube);
    now_ms += 4999;
    assert_int_equal(early_ms(f), 1);
    now_ms += 1;
    assert_int_equal(early_ms(f), 0);
    now_ms -= 5000;
    assert_int_equal(early_ms(f), 0); /* it is forgotten */

    start(f, "ns/j");
    late_api_answer_all(&f->kube);
    f->cluster->job->uid = "another";
    assert_int_equal(early_ms(f), 0);
    fixture_close(f);
}

static void what_is_never_seen_may_be_read_anew(void **state)
{
    (void)state;
    for (int rereads = 0; rereads < 2; rereads++) {
        struct fixture *f = fixture_open(0);
        struct cluster *cluster = f->cluster;
        f->rereads = rereads;
        start(f, "ns/j");
        late_api_answer_all(&f->kube); /* uid2: the service, uid3: the pod */
        cluster->pods[0] = (struct pod){.name = "j-master-0", .uid = "uid3"};
        cluster->pod_count = 1;
        json_object_set_new(f->object, "metadata", json_pack("{s:s}", "resourceVersion", "3"));
        now_ms += 4999;
        assert_int_equal(early_ms(f), 1);
        assert_string_equal(str_text(&f->asked), "");
        now_ms += 1;
        assert_int_equal(early_ms(f), rereads ? 5000 : 0);
        assert_string_equal(str_text(&f->asked), "service since 1000;");
        now_ms += 5000;
        assert_int_equal(early_ms(f), 0); /* not twice */
        assert_string_equal(str_text(&f->asked), "service since 1000;");
        fixture_close(f);
    }
}

static void after_a_conflict_a_newer_job_is_awaited(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(0);
    start(f, "ns/j");
    late_api_answer(&f->kube, late_api_find(&f->kube, NULL), ERR_CONFLICT);
    assert_int_equal(early_ms(f), 5000);
    json_object_set_new(f->object, "metadata", json_pack("{s:s}", "resourceVersion", "9"));
    assert_int_equal(early_ms(f), 0);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_job_is_carried_out),
        cmocka_unit_test(outcomes_decide_what_follows),
        cmocka_unit_test(what_was_refused_is_forgiven),
        cmocka_unit_test(what_is_in_flight_at_a_failure_is_waited_for),
        cmocka_unit_test(a_deleted_job_is_told),
        cmocka_unit_test(a_plan_that_only_tells_is_over_at_once),
        cmocka_unit_test(a_plan_can_be_dropped),
        cmocka_unit_test(jobs_are_carried_out_side_by_side),
        cmocka_unit_test(events_of_a_big_job_are_bounded),
        cmocka_unit_test(events_in_flight_are_bounded),
        cmocka_unit_test(a_view_without_our_own_writes_is_too_early),
        cmocka_unit_test(a_write_that_changes_nothing_is_not_awaited),
        cmocka_unit_test(nobody_waits_for_ever),
        cmocka_unit_test(what_is_never_seen_may_be_read_anew),
        cmocka_unit_test(after_a_conflict_a_newer_job_is_awaited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
