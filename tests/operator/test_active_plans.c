/* Plans under way: what they hold, and for which others there is room. */
#include "operator/active_plans.h"

#include "base/mem.h"
#include "tests/operator/cache/cache_fixture.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

static const char *key_of(int number)
{
    static char key[16];
    snprintf(key, sizeof key, "ns/j%d", number);
    return key;
}

static const struct active_plan *begin_plan(struct fixture *f, struct active_plans *active,
                                            int number, enum queue_lane lane,
                                            const struct plan *plan)
{
    struct cached_job *job = cache_acquire_job(f->cache, key_of(number));
    assert_non_null(job);
    return active_plans_add(active, key_of(number), lane, job, job->status, plan);
}

/* A plan of the job of that number begins. */
static const struct active_plan *begin(struct fixture *f, struct active_plans *active, int number,
                                       enum queue_lane lane)
{
    return begin_plan(f, active, number, lane, &(struct plan){.count = 0});
}

static void put_jobs(struct fixture *f, int count)
{
    for (int i = 0; i < count; i++)
        put_job(f, key_of(i) + strlen("ns/"), "u", i + 1, 1);
}

static void a_plan_holds_its_job_until_it_is_over(void **state)
{
    struct fixture *f = *state;
    struct active_plans active = {.count = 0};
    put_jobs(f, 3);
    for (int i = 0; i < 3; i++)
        begin(f, &active, i, i == 1 ? QUEUE_PATIENT : QUEUE_URGENT);
    const struct active_plan *plan = active_plans_find(&active, "ns/j1");
    assert_string_equal(plan->key, "ns/j1");
    assert_int_equal(plan->lane, QUEUE_PATIENT);
    feed_gone(f, CACHE_JOBS, object_job("j1", "u", 9, 1));
    assert_string_equal(plan->job->job->name, "j1"); /* though the cache has it no more */

    active_plans_remove(&active, "ns/j0"); /* others move to its place */
    assert_null(active_plans_find(&active, "ns/j0"));
    assert_string_equal(active_plans_find(&active, "ns/j1")->job->job->name, "j1");
    assert_string_equal(active_plans_find(&active, "ns/j2")->job->job->name, "j2");
    active_plans_remove(&active, "ns/j0"); /* nothing happens */
    assert_int_equal(active.count, 2);
    active_plans_remove(&active, "ns/j1");
    active_plans_remove(&active, "ns/j2");
    assert_int_equal(active.count, 0);
    assert_int_equal(active.held_bytes, 0);
}

static void each_lane_has_room_of_its_own(void **state)
{
    struct fixture *f = *state;
    struct active_plans active = {.count = 0};
    put_jobs(f, ACTIVE_PLANS_PATIENT_MAX + 1);
    for (int i = 0; i < ACTIVE_PLANS_PATIENT_MAX; i++) {
        assert_true(active_plans_have_room(&active, QUEUE_PATIENT));
        begin(f, &active, i, QUEUE_PATIENT);
    }
    assert_false(active_plans_have_room(&active, QUEUE_PATIENT));
    assert_true(active_plans_have_room(&active, QUEUE_URGENT));
    begin(f, &active, ACTIVE_PLANS_PATIENT_MAX, QUEUE_URGENT);
    active_plans_remove(&active, key_of(ACTIVE_PLANS_PATIENT_MAX));
    assert_false(active_plans_have_room(&active, QUEUE_PATIENT));
    active_plans_remove(&active, key_of(0));
    assert_true(active_plans_have_room(&active, QUEUE_PATIENT));
    while (active.count > 0)
        active_plans_remove(&active, active.plans[0].key);
}

/* Those that write a status or events, and do nothing else. */
static void plans_that_only_tell_are_counted(void **state)
{
    struct fixture *f = *state;
    struct active_plans active = {.count = 0};
    struct action actions[] = {
        {.kind = ACTION_SET_STATUS}, {.kind = ACTION_EVENT}, {.kind = ACTION_CREATE_WORKLOAD}};
    const struct plan plans[] = {{.actions = actions, .count = 1},
                                 {.actions = actions, .count = 3},
                                 {.actions = actions + 2, .count = 1},
                                 {.actions = actions, .count = 2}};
    put_jobs(f, array_length(plans));
    for (int i = 0; i < (int)array_length(plans); i++)
        begin_plan(f, &active, i, QUEUE_URGENT, &plans[i]);
    assert_int_equal(active.telling, 2);
    active_plans_remove(&active, key_of(1));
    assert_int_equal(active.telling, 2);
    active_plans_remove(&active, key_of(3));
    assert_int_equal(active.telling, 1);
    while (active.count > 0)
        active_plans_remove(&active, active.plans[0].key);
    assert_int_equal(active.telling, 0);
}

static void large_jobs_leave_no_room_for_others(void **state)
{
    struct fixture *f = *state;
    struct active_plans active = {.count = 0};
    put_jobs(f, 1);
    const struct cached_job *job = begin(f, &active, 0, QUEUE_URGENT)->job;
    assert_true(job->bytes > 0);
    assert_int_equal(active.held_bytes, job->bytes);
    active.held_bytes = ACTIVE_PLANS_BYTES_MAX; /* as of a job so large */
    assert_false(active_plans_have_room(&active, QUEUE_URGENT));
    assert_false(active_plans_have_room(&active, QUEUE_PATIENT));
    active_plans_remove(&active, "ns/j0");
    assert_true(active_plans_have_room(&active, QUEUE_URGENT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_plan_holds_its_job_until_it_is_over),
        test(each_lane_has_room_of_its_own),
        test(plans_that_only_tell_are_counted),
        test(large_jobs_leave_no_room_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
