/* Views that show, or do not show yet, what was done. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/apply/expectations.h"

static const struct action create_pod = {.kind = ACTION_CREATE_POD, .name = "p"};
static const struct action create_service = {.kind = ACTION_CREATE_SERVICE, .name = "p"};
static const struct action delete_pod = {.kind = ACTION_DELETE_POD, .name = "p", .uid = "a"};
static const struct action force_pod = {.kind = ACTION_FORCE_DELETE_POD, .name = "p", .uid = "a"};
static const struct action delete_service = {
    .kind = ACTION_DELETE_SERVICE, .name = "p", .uid = "a"};
static const struct action delete_job = {.kind = ACTION_DELETE_JOB, .name = "j", .uid = "a"};

static const struct {
    const char *name;
    const struct action *action;
    const char *uid;    /* what the answer to a create told */
    struct pod pods[2]; /* those with a uid */
    struct service services[1];
    bool met;
} rows[] = {
    {"a pod not seen yet", &create_pod, "a", {{.uid = NULL}}, {{.uid = NULL}}, false},
    {"a pod", &create_pod, "a", {{.uid = "z"}, {.uid = "a"}}, {{.uid = NULL}}, true},
    {"the pod before it", &create_pod, "a", {{.uid = "z"}}, {{.uid = NULL}}, false},
    {"a service of that uid is no pod", &create_pod, "a", {{.uid = NULL}}, {{.uid = "a"}}, false},
    {"a pod of unknown UID not seen yet",
     &create_pod,
     NULL,
     {{.uid = "z", .name = "o"}},
     {{.uid = "a", .name = "p"}},
     false},
    {"a pod of unknown UID",
     &create_pod,
     NULL,
     {{.uid = "z", .name = "o"}, {.uid = "a", .name = "p"}},
     {{.uid = NULL}},
     true},
    {"a service of unknown UID not seen yet",
     &create_service,
     NULL,
     {{.uid = "a", .name = "p"}},
     {{.uid = "z", .name = "o"}},
     false},
    {"a service of unknown UID",
     &create_service,
     NULL,
     {{.uid = NULL}},
     {{.uid = "a", .name = "p"}},
     true},
    {"a service not seen yet", &create_service, "a", {{.uid = "a"}}, {{.uid = NULL}}, false},
    {"a service", &create_service, "a", {{.uid = NULL}}, {{.uid = "a"}}, true},
    {"a pod still there", &delete_pod, NULL, {{.uid = "a"}}, {{.uid = NULL}}, false},
    {"a pod that is ending",
     &delete_pod,
     NULL,
     {{.uid = "a", .deleted_ms = 1, .grace_ms = 30000}},
     {{.uid = NULL}},
     true},
    {"a pod that is gone", &delete_pod, NULL, {{.uid = "z"}}, {{.uid = NULL}}, true},
    {"a pod that was ending before it was forced",
     &force_pod,
     NULL,
     {{.uid = "a", .deleted_ms = 1, .grace_ms = 30000}},
     {{.uid = NULL}},
     false},
    {"a pod that a finalizer holds",
     &force_pod,
     NULL,
     {{.uid = "a", .deleted_ms = 1}},
     {{.uid = NULL}},
     true},
    {"a service still there", &delete_service, NULL, {{.uid = NULL}}, {{.uid = "a"}}, false},
    {"a service that is ending",
     &delete_service,
     NULL,
     {{.uid = NULL}},
     {{.uid = "a", .deleting = true}},
     true},
    {"other kinds", &delete_job, NULL, {{.uid = NULL}}, {{.uid = NULL}}, true},
};

static void what_a_view_must_show(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct snapshot snapshot = {.pods = rows[i].pods, .services = rows[i].services};
        while (snapshot.pod_count < 2 && rows[i].pods[snapshot.pod_count].uid)
            snapshot.pod_count++;
        snapshot.service_count = rows[i].services[0].uid ? 1 : 0;
        struct expectations *expect = expectations_open();
        expectations_done(expect, rows[i].action, rows[i].uid);
        if (expectations_is_met(expect, &snapshot, "1") != rows[i].met)
            fail_msg("%s", rows[i].name);
        expectations_close(expect);
    }
}

static void a_pod_group_that_was_made_must_be_shown(void **state)
{
    (void)state;
    static const struct action create = {.kind = ACTION_CREATE_POD_GROUP, .name = "j"};
    struct pod pod = {.uid = "a", .name = "j"};
    struct pod_group group = {.uid = "a", .name = "j"};
    enum expectation_view views[EXPECTATION_KINDS];
    for (int known = 0; known < 2; known++) { /* its UID */
        struct snapshot snapshot = {.pods = &pod, .pod_count = 1};
        struct expectations *expect = expectations_open();
        expectations_done(expect, &create, known ? "a" : NULL);
        assert_false(expectations_is_met(expect, &snapshot, "1"));
        expectations_view(expect, &snapshot, "1", views);
        for (int kind = 0; kind < EXPECTATION_KINDS; kind++)
            assert_int_equal(views[kind], kind == EXPECTATION_POD_GROUP ? VIEW_LACKS : VIEW_IS_MET);
        snapshot.pod_group = &group;
        assert_true(expectations_is_met(expect, &snapshot, "1"));
        expectations_close(expect);
    }
}

static void an_autoscaler_that_was_made_must_be_shown(void **state)
{
    (void)state;
    static const struct action create = {.kind = ACTION_CREATE_AUTOSCALER, .name = "j"};
    struct autoscaler autoscaler = {.uid = "a", .name = "j"};
    enum expectation_view views[EXPECTATION_KINDS];
    for (int known = 0; known < 2; known++) { /* its UID */
        struct snapshot snapshot = {0};
        struct expectations *expect = expectations_open();
        expectations_done(expect, &create, known ? "a" : NULL);
        assert_false(expectations_is_met(expect, &snapshot, "1"));
        expectations_view(expect, &snapshot, "1", views);
        assert_int_equal(views[EXPECTATION_AUTOSCALER], VIEW_LACKS);
        assert_int_equal(views[EXPECTATION_POD_GROUP], VIEW_IS_MET);
        snapshot.autoscaler = &autoscaler;
        assert_true(expectations_is_met(expect, &snapshot, "1"));
        expectations_close(expect);
    }
}

static void a_workload_is_waited_for(void **state)
{
    (void)state;
    static const struct {
        struct action action;
        const char *uid;                     /* of the answer */
        const char *seen_uid, *seen_version; /* NULL: none */
        bool deleting, met;
    } cases[] = {
        {{.kind = ACTION_CREATE_WORKLOAD, .name = "w"}, "a", NULL, NULL, false, false},
        {{.kind = ACTION_CREATE_WORKLOAD, .name = "w"}, "a", "b", "1", false, false},
        {{.kind = ACTION_CREATE_WORKLOAD, .name = "w"}, "a", "a", "1", false, true},
        {{.kind = ACTION_CREATE_WORKLOAD, .name = "w"}, NULL, "a", "1", false, true},
        {{.kind = ACTION_UPDATE_WORKLOAD, .uid = "a", .version = "1"}, "a", "a", "1", false, false},
        {{.kind = ACTION_SET_WORKLOAD_STATUS, .uid = "a", .version = "1"},
         "a",
         "a",
         "1",
         false,
         false},
        {{.kind = ACTION_SET_WORKLOAD_STATUS, .uid = "a", .version = "1"},
         "a",
         "a",
         "2",
         false,
         true},
        {{.kind = ACTION_SET_WORKLOAD_STATUS, .uid = "a", .version = "1"},
         "a",
         NULL,
         NULL,
         false,
         true},
        {{.kind = ACTION_DELETE_WORKLOAD, .uid = "a"}, NULL, "a", "1", false, false},
        {{.kind = ACTION_DELETE_WORKLOAD, .uid = "a"}, NULL, "a", "1", true, true},
        {{.kind = ACTION_DELETE_WORKLOAD, .uid = "a"}, NULL, NULL, NULL, false, true},
        {{.kind = ACTION_DELETE_WORKLOAD, .uid = "a"}, NULL, "b", "1", false, true},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        const struct workload workload = {.name = "w",
                                          .uid = cases[i].seen_uid,
                                          .version = cases[i].seen_version,
                                          .deleting = cases[i].deleting};
        struct snapshot snapshot = {.queue = {.workload = cases[i].seen_uid ? &workload : NULL}};
        struct expectations *expect = expectations_open();
        enum expectation_view views[EXPECTATION_KINDS];
        expectations_done(expect, &cases[i].action, cases[i].uid);
        expectations_view(expect, &snapshot, "1", views);
        bool creates = cases[i].action.kind == ACTION_CREATE_WORKLOAD;
        assert_int_equal(views[EXPECTATION_WORKLOAD], cases[i].met ? VIEW_IS_MET
                                                      : creates    ? VIEW_LACKS
                                                                   : VIEW_IS_OLD);
        assert_int_equal(expectations_is_met(expect, &snapshot, "1"), cases[i].met);
        expectations_close(expect);
    }
}

/* What was made may be gone again before it was seen, but what is over does not come back. */
static void a_view_is_old_where_it_shows_what_is_over(void **state)
{
    (void)state;
    static const struct action as_seen = {
        .kind = ACTION_DELETE_POD, .name = "p", .uid = "a", .version = "7"};
    static const struct {
        const struct action *action;
        bool changed; /* it found that the pod has */
        struct pod pod;
        enum expectation_view view;
    } cases[] = {
        {&create_pod, false, {.uid = "z"}, VIEW_LACKS},
        {&delete_pod, false, {.uid = "a"}, VIEW_IS_OLD},
        {&force_pod, false, {.uid = "a", .deleted_ms = 1, .grace_ms = 1}, VIEW_IS_OLD},
        {&delete_pod, false, {.uid = "z"}, VIEW_IS_MET},
        {&as_seen, true, {.uid = "a", .version = "7"}, VIEW_IS_OLD},
        {&as_seen, true, {.uid = "a", .version = "8"}, VIEW_IS_MET},
        {&as_seen, true, {.uid = "a", .version = NULL}, VIEW_IS_MET},
        {&as_seen, true, {.uid = "z", .version = "7"}, VIEW_IS_MET},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        struct snapshot snapshot = {.pods = &cases[i].pod, .pod_count = 1};
        struct expectations *expect = expectations_open();
        enum expectation_view views[EXPECTATION_KINDS];
        if (cases[i].changed)
            expectations_changed(expect, cases[i].action);
        else
            expectations_done(expect, cases[i].action, "a");
        expectations_view(expect, &snapshot, "1", views);
        assert_int_equal(views[EXPECTATION_POD], cases[i].view);
        assert_int_equal(views[EXPECTATION_SERVICE], VIEW_IS_MET);
        bool met = cases[i].view == VIEW_IS_MET;
        assert_int_equal(expectations_is_met(expect, &snapshot, "1"), met);
        expectations_done(expect, &create_pod, "another"); /* as well */
        expectations_view(expect, &snapshot, "1", views);
        assert_int_equal(views[EXPECTATION_POD], met ? VIEW_LACKS : cases[i].view);
        expectations_close(expect);
    }
}

static void what_was_seen_once_need_not_be_seen_again(void **state)
{
    (void)state;
    enum { MANY = 100 };
    struct expectations *expect = expectations_open();
    auto_arena struct arena *arena = arena_open();
    struct pod pods[MANY];
    struct snapshot snapshot = {.pods = pods};
    for (int i = 0; i < MANY; i++) {
        pods[i] = (struct pod){.uid = arena_printf(arena, "u%d", i)};
        expectations_done(expect, &create_pod, pods[i].uid);
    }
    snapshot.pod_count = MANY / 2;
    assert_false(expectations_is_met(expect, &snapshot, "1"));
    snapshot.pods = pods + MANY / 2; /* the first half has ended and is gone */
    assert_true(expectations_is_met(expect, &snapshot, "1"));
    expectations_done(expect, &create_pod, "more");
    assert_false(expectations_is_met(expect, &snapshot, "1"));
    expectations_close(expect);
}

static void a_job_that_was_written_is_newer(void **state)
{
    (void)state;
    struct snapshot snapshot = {.pod_count = 0};
    struct expectations *expect = expectations_open();
    assert_true(expectations_is_met(expect, &snapshot, "7"));
    expectations_newer(expect, "7");
    assert_false(expectations_is_met(expect, &snapshot, "7"));
    enum expectation_view views[EXPECTATION_KINDS];
    expectations_view(expect, &snapshot, "7", views);
    assert_int_equal(views[EXPECTATION_JOB], VIEW_IS_OLD);
    assert_int_equal(views[EXPECTATION_POD], VIEW_IS_MET);
    assert_true(expectations_is_met(expect, &snapshot, "5")); /* versions have no order */
    expectations_close(expect);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_view_must_show),
        cmocka_unit_test(a_pod_group_that_was_made_must_be_shown),
        cmocka_unit_test(an_autoscaler_that_was_made_must_be_shown),
        cmocka_unit_test(a_workload_is_waited_for),
        cmocka_unit_test(a_view_is_old_where_it_shows_what_is_over),
        cmocka_unit_test(what_was_seen_once_need_not_be_seen_again),
        cmocka_unit_test(a_job_that_was_written_is_newer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
