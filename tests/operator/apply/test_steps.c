/* The step machine driven by hand: what may be started when, and what follows from each outcome. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/apply/steps.h"

#include <stdlib.h>
#include <string.h>

#define MANY 64

/* A driver that writes down what it starts and holds what is in flight. */
struct driver {
    struct arena *arena;
    struct plan *plan;
    struct job_status status;
    struct steps *steps;
    struct str said;
    const struct action *in_flight[MANY];
    size_t count;
};

static void add(struct driver *driver, enum action_kind kind, const char *name)
{
    plan_add(driver->plan, (struct action){.kind = kind, .name = name, .uid = "u"});
}

static void add_pods(struct driver *driver, int count)
{
    for (int i = 0; i < count; i++)
        add(driver, ACTION_CREATE_POD, arena_printf(driver->arena, "p%d", i));
}

static struct driver driver_open(void)
{
    struct driver driver = {.arena = arena_open()};
    driver.plan = plan_open(driver.arena);
    str_init(&driver.said, 1 << 16);
    return driver;
}

static void driver_close(struct driver *driver)
{
    steps_close(driver->steps);
    str_free(&driver->said);
    arena_close(driver->arena);
}

static void say(struct driver *driver, const struct action *action)
{
    static const char *const verbs[] = {
        [ACTION_SET_STATUS] = "status",    [ACTION_DELETE_POD] = "-pod",
        [ACTION_DELETE_SERVICE] = "-svc",  [ACTION_CREATE_SERVICE] = "+svc",
        [ACTION_CREATE_POD] = "+pod",      [ACTION_DELETE_JOB] = "-job",
        [ACTION_CREATE_POD_GROUP] = "+pg", [ACTION_CREATE_AUTOSCALER] = "+hpa",
    };
    if (action->kind == ACTION_EVENT)
        str_printf(&driver->said, "(%s) ", action->reason);
    else
        str_printf(&driver->said, "%s %s ", verbs[action->kind], action->name);
}

/* Starts all that may be started, and ends the line. */
static void start(struct driver *driver)
{
    const struct action *action;
    if (!driver->steps)
        driver->steps = steps_open(driver->plan, &driver->status, 8);
    while ((action = steps_next(driver->steps))) {
        say(driver, action);
        if (action->kind != ACTION_EVENT)
            driver->in_flight[driver->count++] = action;
    }
    str_add(&driver->said, "\n");
}

static bool finish(struct driver *driver, size_t at, enum error_code code)
{
    struct error err = {.code = code};
    if (code)
        error_set(&err, code, "no luck");
    const struct action *action = driver->in_flight[at];
    driver->in_flight[at] = driver->in_flight[--driver->count];
    return steps_done(driver->steps, action, &err);
}

/* All in flight end well, again and again, until it is over. */
static void run(struct driver *driver)
{
    start(driver);
    while (driver->count) {
        while (driver->count)
            finish(driver, 0, ERR_NONE);
        start(driver);
    }
    assert_true(steps_are_finished(driver->steps));
}

static void each_stage_waits_for_the_one_before(void **state)
{
    (void)state;
    struct driver driver = driver_open();
    struct job_status status = {.start_ms = 7};
    add(&driver, ACTION_DELETE_JOB, "j");
    add_pods(&driver, 2);
    add(&driver, ACTION_CREATE_SERVICE, "s0");
    add(&driver, ACTION_CREATE_SERVICE, "s1");
    add(&driver, ACTION_DELETE_SERVICE, "x");
    add(&driver, ACTION_DELETE_POD, "x");
    add(&driver, ACTION_DELETE_POD, "y");
    plan_add(driver.plan, (struct action){.kind = ACTION_EVENT, .reason = "Why", .message = "m"});
    plan_add(driver.plan,
             (struct action){.kind = ACTION_SET_STATUS, .name = "j", .status = &status});
    plan_add(driver.plan, (struct action){.kind = ACTION_REQUEUE, .at_ms = 55});
    run(&driver);
    assert_string_equal(str_text(&driver.said),
                        "status j \n"
                        "(Why) -pod x -pod y -svc x \n"
                        "(SuccessfulDeletePod) (SuccessfulDeletePod) +svc s0 \n"
                        "+svc s1 \n"
                        "+pod p0 \n"
                        "(SuccessfulCreatePod) +pod p1 \n"
                        "(SuccessfulCreatePod) -job j \n"
                        "(SuccessfulDeletePod) \n");
    assert_null(steps_failure(driver.steps));
    assert_int_equal(steps_requeue_ms(driver.steps), 55);
    driver_close(&driver);
}

static void creates_double_with_each_round(void **state)
{
    (void)state;
    static const size_t rounds[] = {1, 2, 4, 8, 8, 7, 0};
    struct driver driver = driver_open();
    add_pods(&driver, 30);
    for (size_t i = 0; i < array_length(rounds); i++) {
        start(&driver);
        assert_int_equal(driver.count, rounds[i]);
        while (driver.count)
            finish(&driver, 0, ERR_NONE);
    }
    assert_true(steps_are_finished(driver.steps));
    driver_close(&driver);
}

static void a_slow_one_does_not_hold_up_the_others(void **state)
{
    (void)state;
    struct driver driver = driver_open();
    add_pods(&driver, 9);
    start(&driver);
    finish(&driver, 0, ERR_NONE);
    start(&driver); /* p1, p2 */
    for (int i = 0; i < 7; i++) {
        finish(&driver, driver.count - 1, ERR_NONE); /* any but p1 */
        start(&driver);
        assert_string_equal(driver.in_flight[0]->name, "p1");
    }
    assert_int_equal(driver.count, 1);
    assert_false(steps_are_finished(driver.steps));
    finish(&driver, 0, ERR_NONE);
    start(&driver);
    assert_true(steps_are_finished(driver.steps));
    driver_close(&driver);
}

static void what_is_so_already_is_no_failure(void **state)
{
    (void)state;
    static const struct {
        enum action_kind kind;
        int32_t attempt;
        enum error_code code;
        bool fine;
        const char *said; /* afterwards */
    } rows[] = {
        {ACTION_CREATE_POD, 0, ERR_EXISTS, true, "(FailedCreatePod) \n"},
        {ACTION_CREATE_POD, 1, ERR_EXISTS, false, "(FailedCreatePod) \n"},
        {ACTION_CREATE_SERVICE, 1, ERR_EXISTS, true, "(FailedCreateService) \n"},
        {ACTION_CREATE_SERVICE, 0, ERR_EXISTS, true, "(FailedCreateService) \n"},
        {ACTION_DELETE_POD, 0, ERR_NOT_FOUND, true, "\n"},
        {ACTION_DELETE_POD, 0, ERR_CONFLICT, false, "\n"},
        {ACTION_DELETE_SERVICE, 0, ERR_NOT_FOUND, true, "\n"},
        {ACTION_DELETE_JOB, 0, ERR_NOT_FOUND, true, "\n"},
        {ACTION_DELETE_JOB, 0, ERR_CONFLICT, false, "\n"},
        {ACTION_DELETE_AUTOSCALER, 0, ERR_CONFLICT, false, "\n"},
        {ACTION_CREATE_POD, 0, ERR_NOT_FOUND, false, "(FailedCreatePod) \n"},
        {ACTION_CREATE_POD, 0, ERR_CONFLICT, false, "(FailedCreatePod) \n"},
        {ACTION_CREATE_SERVICE, 0, ERR_FORBIDDEN, false, "(FailedCreateService) \n"},
        {ACTION_DELETE_POD, 0, ERR_EXISTS, false, "(FailedDeletePod) \n"},
        {ACTION_DELETE_SERVICE, 0, ERR_IO, false, "(FailedDeleteService) \n"},
        {ACTION_DELETE_JOB, 0, ERR_TIMEOUT, false, "(FailedDeletePod) \n"},
        {ACTION_SET_STATUS, 0, ERR_CONFLICT, false, "\n"},
        {ACTION_SET_STATUS, 0, ERR_NOT_FOUND, false, "\n"},
        {ACTION_SET_STATUS, 0, ERR_EXISTS, false, "\n"},
        {ACTION_SET_STATUS, 0, ERR_TIMEOUT, false, "\n"},
        {ACTION_SET_STATUS, 0, ERR_FORBIDDEN, false, "(FailedUpdateStatus) \n"},
        {ACTION_SET_STATUS, 0, ERR_INPUT, false, "(FailedUpdateStatus) \n"},
        {ACTION_CREATE_POD_GROUP, 0, ERR_EXISTS, false, "(FailedCreatePodGroup) \n"},
        {ACTION_CREATE_WORKLOAD, 0, ERR_EXISTS, false, "(FailedCreateWorkload) \n"},
        {ACTION_DELETE_WORKLOAD, 0, ERR_NOT_FOUND, true, "\n"},
        {ACTION_SET_WORKLOAD_STATUS, 0, ERR_CONFLICT, false, "\n"},
        {ACTION_SET_WORKLOAD_STATUS, 0, ERR_NOT_FOUND, true, "\n"},
        {ACTION_UPDATE_WORKLOAD, 0, ERR_NOT_FOUND, true, "\n"},
        {ACTION_UPDATE_WORKLOAD, 0, ERR_CONFLICT, false, "\n"},
        {ACTION_SET_WORKLOAD_STATUS, 0, ERR_INPUT, false, "(FailedUpdateWorkload) \n"},
        {ACTION_SET_WORKLOAD_STATUS, 0, ERR_NONE, true, "\n"},
        {ACTION_CREATE_AUTOSCALER, 0, ERR_EXISTS, true, "(FailedCreateAutoscaler) \n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct driver driver = driver_open();
        struct job_status status = {0};
        plan_add(driver.plan,
                 (struct action){.kind = rows[i].kind,
                                 .name = "n",
                                 .attempt = rows[i].attempt,
                                 .status = rows[i].kind == ACTION_SET_STATUS ? &status : NULL});
        start(&driver);
        str_clear(&driver.said);
        assert_int_equal(finish(&driver, 0, rows[i].code), rows[i].fine);
        start(&driver);
        assert_string_equal(str_text(&driver.said), rows[i].said);
        assert_true(steps_are_finished(driver.steps));
        const struct error *failure = steps_failure(driver.steps);
        assert_int_equal(failure ? failure->code : ERR_NONE, rows[i].fine ? 0 : rows[i].code);
        driver_close(&driver);
    }
}

/* It has changed since it was seen, and is looked at again. */
static void a_delete_as_seen_may_meet_another_version(void **state)
{
    (void)state;
    struct driver driver = driver_open();
    plan_add(driver.plan, (struct action){.kind = ACTION_DELETE_POD, .name = "n", .version = "7"});
    start(&driver);
    assert_true(finish(&driver, 0, ERR_CONFLICT));
    assert_null(steps_failure(driver.steps));
    driver_close(&driver);
}

/* That is the job's already; only what was made so just now is told. */
static void what_is_adopted_is_done(void **state)
{
    (void)state;
    static const struct {
        enum action_kind kind;
        int32_t attempt;
        const char *said;
    } rows[] = {
        {ACTION_CREATE_POD, 0, "+pod n +pod n \n"},
        {ACTION_CREATE_POD, 1, "+pod n +pod n \n"},
        {ACTION_CREATE_SERVICE, 0, "+svc n +svc n \n"},
        {ACTION_CREATE_POD_GROUP, 0, "(SuccessfulAdoptPodGroup) +pg n +pg n \n"},
        {ACTION_CREATE_AUTOSCALER, 0, "(SuccessfulAdoptAutoscaler) +hpa n +hpa n \n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct driver driver = driver_open();
        for (int k = 0; k < 3; k++)
            plan_add(
                driver.plan,
                (struct action){.kind = rows[i].kind, .name = "n", .attempt = rows[i].attempt});
        start(&driver);
        assert_int_equal(driver.count, 1);
        str_clear(&driver.said);
        steps_adopted(driver.steps, driver.in_flight[0]);
        driver.count = 0;
        start(&driver);
        assert_string_equal(str_text(&driver.said), rows[i].said); /* a success: two at once */
        finish(&driver, 0, ERR_NONE);
        finish(&driver, 0, ERR_NONE);
        start(&driver);
        assert_true(steps_are_finished(driver.steps));
        assert_null(steps_failure(driver.steps));
        driver_close(&driver);
    }
}

/* Starts all that may be started, and notes what events say. */
static void start_and_listen(struct driver *driver)
{
    const struct action *action;
    if (!driver->steps)
        driver->steps = steps_open(driver->plan, &driver->status, 8);
    while ((action = steps_next(driver->steps))) {
        if (action->kind == ACTION_EVENT)
            str_printf(&driver->said, "%s %s\n", action->reason, action->message);
        else
            driver->in_flight[driver->count++] = action;
    }
}

/* Of pods, the failing-th of which meets this; services are beside them. */
static void many_pods_are_told_at_once(void **state)
{
    (void)state;
    static const struct {
        enum action_kind kind;
        int count, failing;
        enum error_code code;
        const char *said;
    } rows[] = {
        {ACTION_CREATE_POD, 4, -1, ERR_NONE,
         "SuccessfulCreatePod Created pod: p0\nSuccessfulCreatePod Created pod: p1\n"
         "SuccessfulCreatePod Created pod: p2\nSuccessfulCreatePod Created pod: p3\n"},
        {ACTION_CREATE_POD, 5, -1, ERR_NONE,
         "SuccessfulCreatePod Created 5 pods: p0, p1, p2, p3, p4\n"},
        {ACTION_DELETE_POD, 8, -1, ERR_NONE,
         "SuccessfulDeletePod Deleted 8 pods: p0, p1, p2, p3, p4, p5, p6, p7\n"},
        {ACTION_CREATE_POD, 60, -1, ERR_NONE,
         "SuccessfulCreatePod Created 60 pods: p0, p1, p2, p3, p4, p5, p6, p7 and 52 more\n"},
        {ACTION_FORCE_DELETE_POD, 6, 0, ERR_NOT_FOUND,
         "SuccessfulDeletePod Deleted 5 pods: p1, p2, p3, p4, p5\n"},
        {ACTION_CREATE_POD, 5, 4, ERR_EXISTS,
         "FailedCreatePod Error creating: no luck\n"
         "SuccessfulCreatePod Created 4 pods: p0, p1, p2, p3\n"},
        {ACTION_CREATE_POD, 9, 0, ERR_IO, "FailedCreatePod Error creating: no luck\n"},
        {ACTION_CREATE_POD, 9, 1, ERR_IO,
         "FailedCreatePod Error creating: no luck\n"
         "SuccessfulCreatePod Created 2 pods: p0, p2\n"},
        {ACTION_CREATE_SERVICE, 9, -1, ERR_NONE, ""},
        {ACTION_DELETE_SERVICE, 2, -1, ERR_NONE, ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct driver driver = driver_open();
        for (int k = 0; k < rows[i].count; k++)
            add(&driver, rows[i].kind, arena_printf(driver.arena, "p%d", k));
        start_and_listen(&driver);
        for (int k = 0; driver.count; k++) { /* in their order */
            const struct action *first = driver.in_flight[0];
            memmove(driver.in_flight, driver.in_flight + 1, --driver.count * sizeof first);
            driver.in_flight[driver.count] = first;
            driver.count++;
            finish(&driver, driver.count - 1, k == rows[i].failing ? rows[i].code : ERR_NONE);
            start_and_listen(&driver);
        }
        assert_true(steps_are_finished(driver.steps));
        assert_string_equal(str_text(&driver.said), rows[i].said);
        driver_close(&driver);
    }
}

/* The n-th outcome is a failure: nothing is started after it, what is in flight is waited for. */
static void a_failure_at_any_point_stops_it(void **state)
{
    (void)state;
    enum { ACTIONS = 1 + 3 + 2 + 20 + 1 };
    for (int failing = 0; failing < ACTIONS; failing++) {
        struct driver driver = driver_open();
        struct job_status status = {0};
        plan_add(driver.plan,
                 (struct action){.kind = ACTION_SET_STATUS, .name = "j", .status = &status});
        for (int i = 0; i < 3; i++)
            add(&driver, ACTION_DELETE_POD, "x");
        add(&driver, ACTION_CREATE_SERVICE, "s0");
        add(&driver, ACTION_CREATE_SERVICE, "s1");
        add_pods(&driver, 20);
        add(&driver, ACTION_DELETE_JOB, "j");
        plan_add(driver.plan, (struct action){.kind = ACTION_REQUEUE, .at_ms = 55});
        start(&driver);
        for (int i = 0; i < failing; i++) {
            assert_true(finish(&driver, 0, ERR_NONE));
            start(&driver);
        }
        assert_true(driver.count > 0);
        assert_false(finish(&driver, 0, ERR_LIMIT));
        size_t waited_for = driver.count;
        start(&driver);
        assert_int_equal(driver.count, waited_for);
        while (driver.count) {
            assert_false(steps_are_finished(driver.steps));
            finish(&driver, 0, ERR_IO); /* the first one is the failure */
            start(&driver);
        }
        assert_true(steps_are_finished(driver.steps));
        assert_int_equal(steps_failure(driver.steps)->code, ERR_LIMIT);
        assert_int_equal(steps_requeue_ms(driver.steps), 55);
        driver_close(&driver);
    }
}

static void it_outlives_plan_and_status(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct plan *plan = plan_open(arena);
    struct history history = {.attempt = 3};
    struct job_status status = {.history = history}, next = {.history = {.attempt = 4}};
    char name[] = "p", uid[] = "u", message[] = "m";
    plan_add(plan, (struct action){.kind = ACTION_SET_STATUS, .status = &next});
    plan_add(plan, (struct action){.kind = ACTION_DELETE_POD, .name = name, .uid = uid});
    plan_add(plan, (struct action){.kind = ACTION_EVENT, .reason = "r", .message = message});
    struct steps *steps = steps_open(plan, &status, 1);
    name[0] = uid[0] = message[0] = '?';
    next.history.attempt = status.history.attempt = 0;
    const struct action *action = steps_next(steps);
    assert_int_equal(action->status->history.attempt, 4);
    assert_int_equal(steps_history(steps)->attempt, 4);
    steps_done(steps, action, &(struct error){.code = ERR_NONE});
    assert_string_equal(steps_next(steps)->message, "m");
    action = steps_next(steps);
    assert_string_equal(action->name, "p");
    assert_string_equal(action->uid, "u");
    steps_close(steps);

    plan = plan_open(arena); /* without a status of its own */
    status.history.attempt = 3;
    steps = steps_open(plan, &status, 1);
    assert_int_equal(steps_history(steps)->attempt, 3);
    assert_true(steps_are_finished(steps));
    assert_null(steps_next(steps));
    steps_close(steps);
}

/* It is no news, and what was made beside it is told all the same. */
static void pods_beside_an_adopted_one_are_told(void **state)
{
    (void)state;
    struct driver driver = driver_open();
    for (int k = 0; k < 6; k++)
        add(&driver, ACTION_CREATE_POD, arena_printf(driver.arena, "p%d", k));
    start_and_listen(&driver);
    while (driver.count) {
        if (strcmp(driver.in_flight[0]->name, "p0") == 0)
            steps_adopted(driver.steps, driver.in_flight[0]);
        else
            steps_done(driver.steps, driver.in_flight[0], &(struct error){.code = ERR_NONE});
        memmove(driver.in_flight, driver.in_flight + 1,
                --driver.count * sizeof driver.in_flight[0]);
        start_and_listen(&driver);
    }
    assert_true(steps_are_finished(driver.steps));
    assert_string_equal(str_text(&driver.said),
                        "SuccessfulCreatePod Created 5 pods: p1, p2, p3, p4, p5\n");
    driver_close(&driver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stage_waits_for_the_one_before),
        cmocka_unit_test(creates_double_with_each_round),
        cmocka_unit_test(a_slow_one_does_not_hold_up_the_others),
        cmocka_unit_test(what_is_so_already_is_no_failure),
        cmocka_unit_test(a_delete_as_seen_may_meet_another_version),
        cmocka_unit_test(what_is_adopted_is_done),
        cmocka_unit_test(many_pods_are_told_at_once),
        cmocka_unit_test(pods_beside_an_adopted_one_are_told),
        cmocka_unit_test(a_failure_at_any_point_stops_it),
        cmocka_unit_test(it_outlives_plan_and_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
