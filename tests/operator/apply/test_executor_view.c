/* After a plan: what it did is waited for in the view, and what it could not do is not tried again
 * on the same view. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/operator/apply/executor_fixture.h"

#include <string.h>

/* C35: a service and a pod are expected, and one of them seen, then both. */
static void a_view_without_our_own_writes_is_too_early(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    struct cluster *cluster = f->cluster;
    assert_int_equal(executor_fixture_early_ms(f), 0);
    executor_fixture_start(f, "ns/j");
    late_api_answer_all(&f->kube); /* uid1: the status, uid2: the service, uid3: the pod */
    assert_int_equal(executor_fixture_early_ms(f), 5000);
    executor_fixture_now_ms += 1;
    cluster->services[0] = (struct service){.name = "j-master-0", .uid = "uid2"};
    cluster->service_count = 1;
    assert_int_equal(executor_fixture_early_ms(f), 4999);
    cluster->pods[0] = (struct pod){.name = "j-master-0", .uid = "uid3"};
    cluster->pod_count = 1;
    assert_int_equal(executor_fixture_early_ms(f), 4999); /* the job is still the old one */
    json_set(f->object, "metadata", json_texts_of("resourceVersion", "3", NULL));
    assert_int_equal(executor_fixture_early_ms(f), 0);
    executor_fixture_close(f);
}

/* Its UID is not known: its name must do. Nobody is told of a failure. */
static void a_create_whose_answer_was_lost_is_awaited_by_name(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    struct cluster *cluster = f->cluster;
    json_set(f->object, "metadata", json_texts_of("resourceVersion", "2", NULL));
    executor_fixture_start(f, "ns/j");
    late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_NONE);
    late_api_confirm(&f->kube, late_api_find(&f->kube, "POST services j-master-0"));
    late_api_confirm(&f->kube, late_api_find(&f->kube, "POST pods j-master-0"));
    assert_int_equal(f->overs, 1);
    assert_null(strstr(str_text(&f->kube.said), "Failed"));
    assert_null(executor_refused(f->executor, "ns/j", "job"));
    cluster->services[0] = (struct service){.name = "j-master-0", .uid = "s"};
    cluster->service_count = 1;
    assert_int_equal(executor_fixture_early_ms(f), 5000);
    cluster->pods[0] = (struct pod){.name = "j-master-0", .uid = "p"};
    cluster->pod_count = 1;
    assert_int_equal(executor_fixture_early_ms(f), 0);
    executor_fixture_close(f);
}

/* The API server finds the stored job invalid: no use in asking again until it is another one. */
static void a_status_found_invalid_waits_for_another_version(void **state)
{
    (void)state;
    for (int mended = 0; mended < 2; mended++) {
        struct executor_fixture *f = executor_fixture_open(0);
        f->rereads = true;
        executor_fixture_start(f, "ns/j");
        late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_INPUT);
        assert_string_equal(str_text(&f->kube.said), "PUT status j\n(FailedUpdateStatus)\n");
        assert_int_equal(f->failure.code, ERR_INPUT);
        assert_true(f->is_new);
        executor_fixture_now_ms += 299 * 1000;
        assert_int_equal(executor_fixture_early_ms(f), 1000);
        executor_fixture_now_ms += mended ? 0 : 1000;
        if (mended)
            json_set(f->object, "metadata", json_texts_of("resourceVersion", "9", NULL));
        assert_int_equal(executor_fixture_early_ms(f), 0);
        assert_string_equal(str_text(&f->asked), ""); /* the watch is not to blame */

        executor_fixture_start(
            f, "ns/j"); /* the same again is told neither by an event nor in the log */
        late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_INPUT);
        assert_int_equal(f->kube.events, 1);
        assert_false(f->is_new);
        executor_fixture_close(f);
    }
}

static void a_write_that_changes_nothing_is_not_awaited(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    struct plan *plan = plan_open(f->cluster->arena);
    plan_add(plan, (struct action){.kind = ACTION_SET_STATUS, .status = &f->cluster->status});
    json_set(f->object, "metadata", json_texts_of("resourceVersion", "2", NULL));
    executor_fixture_start_plan(f, "ns/j", plan);
    late_api_answer_all(&f->kube);
    assert_int_equal(executor_fixture_early_ms(f), 0);
    executor_fixture_close(f);
}

/* C35: nothing is seen, for as long as is waited (the training operator: five minutes). */
static void nobody_waits_for_ever(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    executor_fixture_start(f, "ns/j");
    late_api_answer_all(&f->kube);
    executor_fixture_now_ms += 4999;
    assert_int_equal(executor_fixture_early_ms(f), 1);
    executor_fixture_now_ms += 1;
    assert_int_equal(executor_fixture_early_ms(f), 0);
    executor_fixture_now_ms -= 5000;
    assert_int_equal(executor_fixture_early_ms(f), 0); /* it is forgotten */

    executor_fixture_start(f, "ns/j");
    late_api_answer_all(&f->kube);
    f->cluster->job->uid = "another";
    assert_int_equal(executor_fixture_early_ms(f), 0);
    executor_fixture_close(f);
}

static void what_is_never_seen_may_be_read_anew(void **state)
{
    (void)state;
    for (int rereads = 0; rereads < 2; rereads++) {
        struct executor_fixture *f = executor_fixture_open(0);
        struct cluster *cluster = f->cluster;
        f->rereads = rereads;
        executor_fixture_start(f, "ns/j");
        late_api_answer_all(&f->kube); /* uid2: the service, uid3: the pod */
        cluster->pods[0] = (struct pod){.name = "j-master-0", .uid = "uid3"};
        cluster->pod_count = 1;
        json_set(f->object, "metadata", json_texts_of("resourceVersion", "3", NULL));
        executor_fixture_now_ms += 4999;
        assert_int_equal(executor_fixture_early_ms(f), 1);
        assert_string_equal(str_text(&f->asked), "");
        executor_fixture_now_ms += 1;
        assert_int_equal(executor_fixture_early_ms(f), rereads ? 5000 : 0);
        assert_string_equal(str_text(&f->asked), "service since 1000;");
        executor_fixture_now_ms += 5000;
        assert_int_equal(executor_fixture_early_ms(f), 0); /* not twice */
        assert_string_equal(str_text(&f->asked), "service since 1000;");
        executor_fixture_close(f);
    }
}

static void after_a_conflict_a_newer_job_is_awaited(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    executor_fixture_start(f, "ns/j");
    late_api_answer(&f->kube, late_api_find(&f->kube, NULL), ERR_CONFLICT);
    assert_int_equal(executor_fixture_early_ms(f), 5000);
    json_set(f->object, "metadata", json_texts_of("resourceVersion", "9", NULL));
    assert_int_equal(executor_fixture_early_ms(f), 0);
    executor_fixture_close(f);
}

/* Not the end of a pod that turned out to have changed is awaited, but how: it is looked at first.
 * Where no watch tells, it is listed again. */
static void a_deletion_as_seen_that_was_refused_awaits_the_change(void **state)
{
    (void)state;
    static const enum action_kind kinds[] = {ACTION_DELETE_POD, ACTION_FORCE_DELETE_POD};
    for (size_t i = 0; i < array_length(kinds); i++) {
        struct executor_fixture *f = executor_fixture_open(0);
        struct plan *plan = plan_open(f->cluster->arena);
        plan_add(plan, (struct action){.kind = kinds[i], .name = "p", .uid = "u", .version = "1"});
        f->cluster->pods[0] = (struct pod){.name = "p", .uid = "u", .version = "1"};
        f->cluster->pod_count = 1;
        f->rereads = true;
        executor_fixture_start_plan(f, "ns/j", plan);
        late_api_answer(&f->kube, late_api_find(&f->kube, "DELETE p"), ERR_CONFLICT);
        assert_int_equal(f->failure.code, ERR_NONE);
        assert_int_equal(executor_fixture_early_ms(f), 5000);
        executor_fixture_now_ms += 5000;
        assert_int_equal(executor_fixture_early_ms(f), 5000);
        assert_string_equal(str_text(&f->asked), "old pod since 1000;");
        f->cluster->pods[0].version = "2";
        assert_int_equal(executor_fixture_early_ms(f), 0);
        executor_fixture_start_plan(f, "ns/j", plan);
        late_api_answer(&f->kube, late_api_find(&f->kube, "DELETE p"), ERR_NONE);
        assert_int_equal(executor_fixture_early_ms(f), 5000); /* now its end is */
        executor_fixture_close(f);
    }
}

static void a_job_is_proven_by_a_status_that_was_written(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    executor_fixture_start(f, "ns/j");
    late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_CONFLICT);
    assert_false(executor_is_proven(f->executor, "ns/j", f->cluster->job->uid));
    executor_fixture_start(f, "ns/j");
    late_api_answer_all(&f->kube);
    executor_fixture_close(f);

    f = executor_fixture_open(0);
    executor_fixture_start(f, "ns/j");
    assert_false(executor_is_proven(f->executor, "ns/j", f->cluster->job->uid));
    late_api_answer_all(&f->kube);
    assert_true(executor_is_proven(f->executor, "ns/j", f->cluster->job->uid));
    assert_false(executor_is_proven(f->executor, "ns/j", "another"));
    executor_prune_histories(f->executor); /* another operator has led since */
    assert_false(executor_is_proven(f->executor, "ns/j", f->cluster->job->uid));
    executor_fixture_close(f);
}

/* A first write met another version. What was listed is of the past if somebody wrote the status
 * since: an edit, by a person or a webhook, is as usual. */
static void a_list_is_of_the_past_where_the_status_is(void **state)
{
    (void)state;
    enum change { EDITED, WRITTEN, WRITTEN_AS_TRIED, NOT_SHOWN, MADE_AGAIN, GONE };
    static const struct {
        enum change change;
        enum error_code code;
        int64_t age_ms; /* of the job, when the operator began; less than 0: made later */
        bool proven, past;
    } rows[] = {
        {WRITTEN, ERR_CONFLICT, 1, false, true},
        {WRITTEN, ERR_CONFLICT, 0, false, false}, /* it was never listed */
        {WRITTEN, ERR_CONFLICT, -1, false, false},
        {WRITTEN, ERR_TIMEOUT, 1, false, false},
        {WRITTEN, ERR_CONFLICT, 1, true, false}, /* somebody else wrote meanwhile */
        {EDITED, ERR_CONFLICT, 1, false, false},
        {WRITTEN_AS_TRIED, ERR_CONFLICT, 1, false, true}, /* the operator before decided the same */
        {NOT_SHOWN, ERR_CONFLICT, 1, false, false},
        {MADE_AGAIN, ERR_CONFLICT, 1, false, true},
        {GONE, ERR_CONFLICT, 1, false, true},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        enum change change = rows[i].change;
        struct executor_fixture *f = executor_fixture_open(0);
        f->cluster->job->created_ms = executor_fixture_now_ms - rows[i].age_ms;
        if (rows[i].proven)
            executor_fixture_start(f, "ns/j");
        late_api_answer_all(&f->kube);
        executor_fixture_start(f, "ns/j");
        const struct job_status *tried = f->cluster->plan->actions[0].status;
        late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), rows[i].code);
        struct job_status seen = change == WRITTEN_AS_TRIED ? *tried : f->cluster->status, before;
        if (change == WRITTEN)
            seen.start_ms = 7;
        if (change != NOT_SHOWN)
            json_set(f->object, "metadata", json_texts_of("resourceVersion", "9", NULL));
        struct snapshot snapshot = {.job = f->cluster->job, .status = &seen};
        bool is_ours =
            executor_confirm_write(f->executor, "ns/j", &snapshot, f->cluster->arena, &before);
        assert_int_equal(is_ours, change == WRITTEN_AS_TRIED);
        const char *uid = change == GONE         ? NULL
                          : change == MADE_AGAIN ? "another"
                                                 : f->cluster->job->uid;
        bool past = executor_is_of_the_past(f->executor, "ns/j", uid, f->object, &seen);
        if (past != rows[i].past)
            fail_msg("row %zu", i);
        assert_false(executor_is_of_the_past(f->executor, "ns/j", uid, f->object, &seen));
        /* not before it is shown */
        json_set(f->object, "metadata", json_texts_of("resourceVersion", "8", NULL));
        seen.start_ms = 8;
        past = executor_is_of_the_past(f->executor, "ns/j", uid, f->object, &seen);
        assert_int_equal(past, change == NOT_SHOWN);
        executor_fixture_close(f);
    }
}

/* What is stored may break a rule that was made after it: ours is tried, and is as good a proof. */
static void a_job_is_proven_where_its_stored_status_is_invalid(void **state)
{
    (void)state;
    struct executor_fixture *f = executor_fixture_open(0);
    struct plan *plan = plan_open(f->cluster->arena);
    plan_add(plan, (struct action){.kind = ACTION_SET_STATUS,
                                   .status = &f->cluster->status,
                                   .as_stored = true});
    json_set(f->object, "status", json_texts_of("foreign", "x", NULL));
    executor_fixture_start_plan(f, "ns/j", plan);
    assert_true(f->kube.put_foreign);
    late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_INPUT);
    assert_int_equal(f->failure.code, ERR_INPUT);
    assert_int_equal(executor_fixture_early_ms(f), 0);
    executor_fixture_start_plan(f, "ns/j", plan);
    assert_false(f->kube.put_foreign);
    late_api_answer(&f->kube, late_api_find(&f->kube, "PUT status j"), ERR_INPUT);
    assert_true(executor_fixture_early_ms(f) > 0); /* no better */
    executor_fixture_start_plan(f, "ns/j", plan);
    late_api_answer_all(&f->kube);
    assert_true(executor_is_proven(f->executor, "ns/j", f->cluster->job->uid));
    executor_fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_without_our_own_writes_is_too_early),
        cmocka_unit_test(a_create_whose_answer_was_lost_is_awaited_by_name),
        cmocka_unit_test(a_status_found_invalid_waits_for_another_version),
        cmocka_unit_test(a_write_that_changes_nothing_is_not_awaited),
        cmocka_unit_test(nobody_waits_for_ever),
        cmocka_unit_test(what_is_never_seen_may_be_read_anew),
        cmocka_unit_test(after_a_conflict_a_newer_job_is_awaited),
        cmocka_unit_test(a_deletion_as_seen_that_was_refused_awaits_the_change),
        cmocka_unit_test(a_job_is_proven_by_a_status_that_was_written),
        cmocka_unit_test(a_list_is_of_the_past_where_the_status_is),
        cmocka_unit_test(a_job_is_proven_where_its_stored_status_is_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
