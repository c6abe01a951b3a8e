/* Which of a plan's events are told: a job has a budget, and what is no news is not told again. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/apply/event_budget.h"
#include "tests/operator/apply/executor_fixture.h"
#include "tests/operator/cache/objects.h"

#include <string.h>
#include <unistd.h>

static void events_of_a_big_job_are_bounded(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(40);
    executor_fixture_start(f, "ns/j");
    late_api_answer_all(&f->kube);
    assert_int_equal(f->overs, 1);
    assert_int_equal(f->kube.events, 1); /* of all pods */
    struct plan *plan = plan_open(f->cluster->arena);
    for (int i = 0; i < 30; i++)
        plan_add(plan, (struct action){.kind = ACTION_EVENT, .reason = "Why", .message = "m"});
    executor_fixture_start_plan(f, "ns/j", plan);
    assert_int_equal(f->kube.events, 25);
    executor_forget(f->executor, "ns/j"); /* a new job of that name tells anew */
    executor_fixture_start_plan(f, "ns/j", plan);
    assert_int_equal(f->kube.events, 50);
    executor_fixture_close(f);
}

/* A node that goes takes many pods with it, again and again. */
static void the_ends_of_many_pods_leave_room_for_the_jobs(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    struct plan *plan = plan_open(f->cluster->arena);
    for (int i = 0; i < 30; i++)
        plan_add(plan, (struct action){.kind = ACTION_EVENT,
                                       .event_type = EVENT_WARNING,
                                       .reason = REASON_POD_DISRUPTED,
                                       .message = arena_printf(f->cluster->arena, "%d", i)});
    executor_fixture_start_plan(f, "ns/j", plan);
    late_api_answer_all(&f->kube);
    assert_int_equal(f->kube.events, EVENT_BUDGET_TOKENS - EVENT_BUDGET_RESERVE);
    plan = plan_open(f->cluster->arena);
    plan_add(plan, (struct action){.kind = ACTION_EVENT, .reason = "Why", .message = "m"});
    executor_fixture_start_plan(f, "ns/j", plan);
    assert_int_equal(f->kube.events, EVENT_BUDGET_TOKENS - EVENT_BUDGET_RESERVE + 1);
    executor_fixture_close(f);
}

static void tell_each(struct executor_fixture *f, const char *const reasons[], size_t count)
{
    struct plan *plan = plan_open(f->cluster->arena);
    for (size_t i = 0; i < count; i++)
        plan_add(plan, (struct action){.kind = ACTION_EVENT, .reason = reasons[i], .message = "m"});
    executor_fixture_start_plan(f, "ns/j", plan);
    late_api_answer_all(&f->kube);
}

/* A rank that hangs and recovers each time it is asked, all day long. */
static void the_story_of_a_training_leaves_room_for_the_jobs(void **state)
{
    (void)state;
    static const char *const story[] = {"TrainingStarted", "RankHung", "TrainingRecovered",
                                        "CheckpointSaved"};
    static const char *const other[] = {"Why"};
    struct executor_fixture *f = executor_fixture_open(0);
    for (int i = 0; i < 20; i++) {
        tell_each(f, story, array_length(story));
        executor_fixture_now_ms += EVENT_BUDGET_STORY_MS / 20;
    }
    assert_int_equal(f->kube.events, 4); /* each once */
    for (int i = 0; i < 20; i++) {
        tell_each(f, story, array_length(story));
        executor_fixture_now_ms += EVENT_BUDGET_STORY_MS;
    }
    int events = f->kube.events;
    for (int i = 0; i < EVENT_BUDGET_RESERVE; i++)
        tell_each(f, other, 1);
    assert_int_equal(f->kube.events, events + EVENT_BUDGET_RESERVE);
    executor_fixture_close(f);
}

static void events_in_flight_are_bounded(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(1);
    struct plan *plan = plan_open(f->cluster->arena);
    for (int i = 0; i < 25; i++)
        plan_add(plan, (struct action){.kind = ACTION_EVENT, .reason = "Why", .message = "m"});
    static const char *const keys[] = {"ns/a", "ns/b", "ns/c"};
    for (size_t i = 0; i < array_length(keys); i++)
        executor_fixture_start_plan(f, keys[i], plan);
    assert_int_equal(f->kube.count, EXECUTOR_EVENTS_MAX);
    late_api_answer(&f->kube, late_api_find(&f->kube, "(Why)"), ERR_NONE);
    executor_forget(f->executor, "ns/c");
    executor_fixture_start_plan(f, "ns/c", plan);
    assert_int_equal(f->kube.count, EXECUTOR_EVENTS_MAX);
    executor_fixture_close(f);
}

/* Nor does what each next pod meets use up the budget. */
static void a_pod_that_ends_like_the_last_is_told_once_an_hour(void **state)
{
    (void)state;
    static const struct {
        int64_t now_ms;
        const char *message;
        int events; /* by then */
    } rows[] = {{1000, "a: OutOfcpu", 1},
                {61000, "a: OutOfcpu", 1},
                {61000, "b: OutOfcpu", 2},
                {121000, "a: OutOfcpu", 2},
                {1000 + EVENT_BUDGET_AGAIN_MS, "a: OutOfcpu", 3}};
    struct executor_fixture *f = executor_fixture_open(0);
    for (size_t i = 0; i < array_length(rows); i++) {
        struct plan *plan = plan_open(f->cluster->arena);
        plan_add(plan, (struct action){.kind = ACTION_EVENT,
                                       .event_type = EVENT_WARNING,
                                       .reason = REASON_POD_DISRUPTED,
                                       .message = rows[i].message});
        executor_fixture_now_ms = rows[i].now_ms;
        executor_fixture_start_plan(f, "ns/j", plan);
        late_api_answer_all(&f->kube);
        assert_int_equal(f->kube.events, rows[i].events);
    }
    executor_fixture_close(f);
}

/* What goes to stderr meanwhile, which the caller frees, by a pipe: it is little. */
static char *said_of_forbidden_events(struct executor_fixture *f, int count)
{
    char text[8192] = "";
    int fds[2], old = dup(STDERR_FILENO);
    assert_int_equal(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    for (int i = 0; i < count; i++) {
        struct plan *plan = plan_open(f->cluster->arena);
        plan_add(plan, (struct action){.kind = ACTION_EVENT, .reason = "Why", .message = "m"});
        executor_fixture_start_plan(f, "ns/j", plan);
        late_api_answer(&f->kube, late_api_find(&f->kube, "(Why)"), ERR_FORBIDDEN);
    }
    dup2(old, STDERR_FILENO);
    close(fds[1]);
    assert_true(read(fds[0], text, sizeof text - 1) >= 0);
    close(fds[0]);
    close(old);
    return xstrdup(text);
}

/* In a namespace that goes all are refused: that says nothing of a right that goes later. */
static void that_events_are_refused_is_told_now_and_then(void **state)
{
    (void)state;
    static const struct {
        int64_t now_ms;
        bool told;
    } rows[] = {{1000, true}, {61000, false}, {1000 + 3600 * 1000, true}, {3700 * 1000, false}};
    struct executor_fixture *f = executor_fixture_open(0);
    for (size_t i = 0; i < array_length(rows); i++) {
        executor_fixture_now_ms = rows[i].now_ms;
        auto_free char *said = said_of_forbidden_events(f, 2);
        const char *first = strstr(said, "cannot record an event");
        assert_int_equal(first != NULL, rows[i].told);
        assert_true(!first || !strstr(first + 1, "cannot record an event"));
    }
    executor_fixture_close(f);
}

#define LABELS(type, index)                                                                        \
    "'training.kubeflow.org/operator-name': pytorchjob-controller, "                               \
    "'training.kubeflow.org/replica-type': " type ", "                                             \
    "'training.kubeflow.org/replica-index': '" index "'"
#define OWNER(uid, controller) "{uid: " uid ", controller: " controller "}"
#define OF_THE_JOB             "{uid: other}, " OWNER("job", "true")

/* What has the name of a pod or service that is to be made; the job's, it is as good as made. */
static const struct taken_name {
    enum action_kind kind;
    int32_t attempt;    /* of the pod that is to be made */
    const char *owners; /* NULL: it is gone by now */
    const char *labels;
    bool ours;
} taken_names[] = {
    {ACTION_CREATE_POD, 0, OF_THE_JOB, LABELS("worker", "1"), true},
    {ACTION_CREATE_POD, 0, OWNER("other", "true"), LABELS("worker", "1"), false},
    {ACTION_CREATE_POD, 0, OWNER("job", "false"), LABELS("worker", "1"), false},
    {ACTION_CREATE_POD, 0, "", LABELS("worker", "1"), false},
    {ACTION_CREATE_POD, 0, NULL, NULL, false},
    /* no watch of ours would ever show these, or not in this place */
    {ACTION_CREATE_POD, 0, OF_THE_JOB, "a: b", false},
    {ACTION_CREATE_POD, 0, OF_THE_JOB, LABELS("master", "1"), false},
    {ACTION_CREATE_POD, 0, OF_THE_JOB, LABELS("worker", "2"), false},
    {ACTION_CREATE_POD, 0, OF_THE_JOB, LABELS("worker", ""), false},
    {ACTION_CREATE_POD, 2, OF_THE_JOB, LABELS("worker", "1"), false},
    {ACTION_CREATE_POD, 2, OF_THE_JOB, LABELS("worker", "1") ", 'shoal.dev/restart-attempt': '1'",
     false},
    {ACTION_CREATE_POD, 2, OF_THE_JOB, LABELS("worker", "1") ", 'shoal.dev/restart-attempt': '2'",
     true},
    {ACTION_CREATE_POD, 0, OF_THE_JOB, LABELS("worker", "1") ", 'shoal.dev/restart-attempt': '1'",
     false},
    {ACTION_CREATE_SERVICE, 2, OF_THE_JOB, LABELS("worker", "1"), true},
    {ACTION_CREATE_SERVICE, 0, OWNER("other", "true"), LABELS("worker", "1"), false},
};

static struct json *object_of_taken_name(const struct taken_name *row)
{
    return row->owners ? object_from("{metadata: {name: j-worker-1, uid: there, labels: {%s}, "
                                     "ownerReferences: [%s]}}",
                                     row->labels, row->owners)
                       : NULL;
}

static void what_is_the_jobs_already_is_not_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(taken_names); i++) {
        const struct taken_name *row = &taken_names[i];
        bool pod = row->kind == ACTION_CREATE_POD, fails = pod && row->attempt && !row->ours;
        struct executor_fixture *f = executor_fixture_open(2);
        struct plan *plan = plan_open(f->cluster->arena);
        plan_add(plan, (struct action){.kind = row->kind,
                                       .name = "j-worker-1",
                                       .type = REPLICA_WORKER,
                                       .index = 1,
                                       .attempt = row->attempt});
        executor_fixture_start_plan(f, "ns/j", plan);
        late_api_answer(
            &f->kube,
            late_api_find(&f->kube, pod ? "POST pods j-worker-1" : "POST services j-worker-1"),
            ERR_EXISTS);
        assert_int_equal(f->overs + f->kube.events, 0); /* nothing is said before it is known */
        late_api_answer_list(
            &f->kube,
            late_api_find(&f->kube, pod ? "GET pods j-worker-1" : "GET services j-worker-1"),
            object_of_taken_name(row));
        const char *said = str_text(&f->kube.said), *failed = strstr(said, "(FailedCreate");
        assert_int_equal(f->overs, 1);
        assert_int_equal(failed == NULL, row->ours);
        assert_int_equal(f->kube.events, !row->ours);
        assert_int_equal(f->failure.code, fails ? ERR_EXISTS : ERR_NONE);
        assert_int_equal(executor_refused(f->executor, "ns/j", "job") == NULL, row->ours);
        assert_int_equal(f->requeue_ms, row->ours ? 0 : executor_fixture_now_ms + 10000);
        executor_fixture_close(f);
    }
}

/* It is waited for as what was made just now, by its UID. */
static void what_is_the_jobs_already_is_awaited(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(2);
    struct plan *plan = plan_open(f->cluster->arena);
    plan_add(plan, (struct action){
                       .kind = ACTION_CREATE_POD, .name = "j-worker-1", .type = 1, .index = 1});
    cluster_do(f->cluster, "pass");
    struct pod *pod = cluster_pod(f->cluster, "j-worker-1");
    executor_fixture_start_plan(f, "ns/j", plan);
    late_api_answer(&f->kube, late_api_find(&f->kube, "POST pods j-worker-1"), ERR_EXISTS);
    late_api_answer_list(&f->kube, late_api_find(&f->kube, "GET pods j-worker-1"),
                         object_of_taken_name(&taken_names[0]));
    assert_int_equal(executor_fixture_early_ms(f), EXPECT_MAX_MS);
    pod->uid = "there";
    assert_int_equal(executor_fixture_early_ms(f), 0);
    executor_fixture_close(f);
}

/* The question fails: then it is as if nobody knew. */
static void what_cannot_be_looked_at_is_told(void **state)
{
    (void)state;
    static const enum error_code codes[] = {ERR_FORBIDDEN, ERR_TIMEOUT, ERR_EXISTS};
    for (size_t i = 0; i < array_length(codes); i++) {
        struct executor_fixture *f = executor_fixture_open(2);
        struct plan *plan = plan_open(f->cluster->arena);
        plan_add(plan, (struct action){.kind = ACTION_CREATE_POD, .name = "j-master-0"});
        executor_fixture_start_plan(f, "ns/j", plan);
        late_api_answer(&f->kube, late_api_find(&f->kube, "POST pods j-master-0"), ERR_EXISTS);
        late_api_answer(&f->kube, late_api_find(&f->kube, "GET pods j-master-0"), codes[i]);
        assert_int_equal(f->overs, 1);
        assert_int_equal(f->failure.code, ERR_NONE);
        assert_non_null(strstr(str_text(&f->kube.said), "(FailedCreatePod)"));
        executor_fixture_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_of_a_big_job_are_bounded),
        cmocka_unit_test(the_ends_of_many_pods_leave_room_for_the_jobs),
        cmocka_unit_test(the_story_of_a_training_leaves_room_for_the_jobs),
        cmocka_unit_test(events_in_flight_are_bounded),
        cmocka_unit_test(a_pod_that_ends_like_the_last_is_told_once_an_hour),
        cmocka_unit_test(that_events_are_refused_is_told_now_and_then),
        cmocka_unit_test(what_is_the_jobs_already_is_not_told),
        cmocka_unit_test(what_is_the_jobs_already_is_awaited),
        cmocka_unit_test(what_cannot_be_looked_at_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
