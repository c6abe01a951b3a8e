/* Where the time of a job goes, in its status: kinds that add up, across pauses and failures. */
#include "tests/operator/reconcile/training_fixture.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode_status.h"
#include "operator/job/job_status.h"
#include "operator/manifest/manifest.h"
#include "tests/support.h"

static int64_t spent_s(const struct cluster *cluster, int kind)
{
    return cluster->status.goodput.ms[kind] / 1000;
}

/* A job waits, trains, is suspended, is resumed ten steps back, and succeeds. */
static void the_time_of_a_job_adds_up(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster->job->created_ms = cluster->now_ms = CREATED_MS;
    cluster_do(cluster, "settle; wait 30000; run *");
    struct pod *pod = cluster_pod(cluster, "j-master-0");
    pod->scheduled_ms = CREATED_MS + 10000;
    pod->started_ms = CREATED_MS + 28000;
    cluster_do(cluster, "settle; wait 70000");
    training_fixture_tell(cluster, 30, 8, 60,
                          60); /* told at 100 s, when the last step was 2 s ago */
    cluster_do(cluster, "pass; untold; suspend; pass; wait 500000; settle");
    assert_int_equal(cluster->status.goodput.ms[GOODPUT_SUSPENDED], 0);
    cluster_do(cluster, "resume; settle; wait 20000; run *");
    assert_int_equal(spent_s(cluster, GOODPUT_SUSPENDED), 500);
    pod = cluster_pod(cluster, "j-master-0");
    pod->scheduled_ms = CREATED_MS + 605000;
    pod->started_ms = CREATED_MS + 620000;
    cluster_do(cluster, "settle; wait 30000");
    training_fixture_tell(cluster, 625, 5, 20, 70);
    cluster_do(cluster, "pass; exit master-0 0; wait 3000; pass");
    static const int64_t seconds[GOODPUT_KINDS] = {
        [GOODPUT_PENDING] = 10 + 5,      [GOODPUT_CONTAINER_START] = 20 + 20,
        [GOODPUT_SUSPENDED] = 500,       [TRAINING_SPENT_INITIALIZATION] = 8 + 5,
        [TRAINING_SPENT_STEP] = 60 + 10, [TRAINING_SPENT_LOST_WORK] = 10,
        [TRAINING_SPENT_OTHER] = 3 + 2,
    };
    for (int k = 0; k < GOODPUT_KINDS; k++)
        if (spent_s(cluster, k) != seconds[k])
            fail_msg("%s: %d s", goodput_kind_name(k), (int)spent_s(cluster, k));
    assert_true(cluster->status.completion_ms == cluster->now_ms);
    assert_true(goodput_sum_ms(&cluster->status.goodput) ==
                cluster->status.completion_ms - CREATED_MS);
    struct json *json = manifest_status(cluster->job, &cluster->status);
    const struct json *training = json_get(json, "training");
    assert_true(json_as_number(json_get(training, "goodput")) == 0.458);
    assert_true(json_as_number(json_get(json_get(training, "seconds"), "suspended")) == 500);
    json_free(json);
    cluster_close(cluster);
}

/* A master that a node takes 10 s after its creation, and whose container runs 18 s later. */
static struct cluster *open_started(int masters, int workers, const char *run_policy)
{
    struct cluster *cluster = cluster_open(masters, workers, "OnFailure", run_policy, "");
    cluster->job->created_ms = cluster->now_ms = CREATED_MS;
    cluster_do(cluster, "settle; wait 10000; settle");
    struct pod *pod = cluster_pod(cluster, masters ? "j-master-0" : "j-worker-0");
    pod->scheduled_ms = CREATED_MS + 10000;
    cluster_do(cluster, "settle; wait 18000; run *");
    pod->started_ms = CREATED_MS + 28000;
    cluster_do(cluster, "settle; wait 2000");
    return cluster;
}

static void expect_kinds(struct cluster *cluster, const int64_t seconds[GOODPUT_KINDS])
{
    for (int k = 0; k < GOODPUT_KINDS; k++)
        if (spent_s(cluster, k) != seconds[k])
            fail_msg("%s: %d s, not %d", goodput_kind_name(k), (int)spent_s(cluster, k),
                     (int)seconds[k]);
    cluster_close(cluster);
}

/* The account goes on without a write: only what turns is written. */
static void what_goes_on_costs_no_write(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster->job->created_ms = cluster->now_ms = CREATED_MS;
    cluster_do(cluster, "settle; wait 60000; pass");
    assert_int_equal(cluster->plan->count, 0);
    assert_int_equal(cluster->status.goodput.now, GOODPUT_PENDING);
    cluster_pod(cluster, "j-master-0")->scheduled_ms = CREATED_MS + 70000;
    cluster_do(cluster, "wait 15000; pass");
    assert_int_equal(cluster->plan->count, 1);
    assert_int_equal(spent_s(cluster, GOODPUT_PENDING), 70);
    assert_int_equal(cluster->status.goodput.now, GOODPUT_CONTAINER_START);
    cluster_do(cluster, "wait 3600000; pass");
    assert_int_equal(cluster->plan->count, 0);
    struct json *json = manifest_status(cluster->job, &cluster->status);
    auto_free char *text = json_print(json_get(json, "training"), JSON_COMPACT);
    assert_string_equal(text,
                        "{\"seconds\":{\"pending\":70.0},\"secondsKind\":\"containerStart\"}");
    struct job_status read = decode_status(json, cluster->arena);
    assert_true(job_status_equal(&read, &cluster->status));
    json_free(json);
    cluster_close(cluster);
}

/* A server that drops the account would be told of it again with each pass. */
static void what_is_dropped_is_not_accounted_for(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster->job->created_ms = cluster->now_ms = CREATED_MS;
    cluster->unaccounted = true;
    cluster_do(cluster, "settle; wait 60000; pass");
    assert_false(cluster->status.goodput.known);
    assert_int_equal(cluster->plan->count, 0);
    cluster_close(cluster);
}

/* A server that drops what goes on now, and keeps the seconds. */
static void what_goes_on_is_not_written_where_it_is_dropped(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "");
    cluster->quiet = cluster->unaccounted = true;
    cluster->status.goodput.now = GOODPUT_INSIDE; /* as it is read */
    cluster_do(cluster, "wait 58000; pass");
    assert_int_equal(cluster->plan->count, 0);
    assert_true(cluster->status.goodput.known);
    cluster_close(cluster);
}

/* Of a program that is no agent it is known how long it ran, and no more. */
static void another_program_is_untold(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "");
    assert_int_equal(cluster->status.goodput.now, GOODPUT_INSIDE); /* it may be one */
    cluster->quiet = true;
    cluster_do(cluster, "wait 58000; pass");
    assert_int_equal(cluster->status.goodput.now, GOODPUT_UNTOLD);
    cluster->quiet = false; /* another operator, which has not asked yet */
    cluster_do(cluster, "wait 2000; pass");
    assert_int_equal(cluster->plan->count, 0);
    struct pod *pod = cluster_pod(cluster, "j-master-0"); /* it ends; the kubelet starts it again */
    pod->started_ms = 0;
    pod->exited = true;
    pod->exited_ms = CREATED_MS + 90000;
    cluster_do(cluster, "wait 10000; pass");
    assert_int_equal(spent_s(cluster, GOODPUT_UNTOLD), 62);
    pod->exited = false;
    pod->started_ms = CREATED_MS + 110000;
    cluster_do(cluster, "wait 20000; pass");
    assert_int_equal(spent_s(cluster, GOODPUT_CONTAINER_START), 18);
    assert_int_equal(spent_s(cluster, GOODPUT_RECOVERY), 20);
    assert_int_equal(cluster->status.goodput.now, GOODPUT_INSIDE);
    cluster_do(cluster, "exit master-0 0; wait 10000; pass");
    expect_kinds(cluster, (int64_t[GOODPUT_KINDS]){[GOODPUT_PENDING] = 10,
                                                   [GOODPUT_CONTAINER_START] = 18,
                                                   [GOODPUT_RECOVERY] = 20,
                                                   [GOODPUT_UNTOLD] = 62 + 20});
}

/* Nobody knows when it ended, an eviction say: until it is seen it ran. */
static void an_end_without_a_time_is_when_it_is_seen(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "");
    cluster->quiet = true;
    cluster_do(cluster, "wait 58000; pass");
    struct pod *pod = cluster_pod(cluster, "j-master-0");
    pod->started_ms = pod->exited_ms = 0;
    pod->exited = true;
    cluster_do(cluster, "wait 10000; pass");
    assert_int_equal(cluster->status.goodput.now, GOODPUT_RECOVERY);
    assert_int_equal(spent_s(cluster, GOODPUT_UNTOLD), 70);
    cluster_close(cluster);
}

/* Who resumes before a pass has seen the pods go. */
static void a_short_pause_is_one(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "");
    training_fixture_tell(cluster, 30, 8, 60, 60);
    cluster_do(cluster, "wait 68000; pass; suspend; pass; wait 50000; gone master-0; resume; pass");
    /* what was told is told again, by who asked the pod that is gone */
    training_fixture_tell(cluster, 30, 8, 60, 60);
    cluster_do(cluster, "untold; pass");
    expect_kinds(cluster, (int64_t[GOODPUT_KINDS]){[GOODPUT_PENDING] = 10,
                                                   [GOODPUT_CONTAINER_START] = 20,
                                                   [TRAINING_SPENT_INITIALIZATION] = 8,
                                                   [TRAINING_SPENT_STEP] = 60,
                                                   [TRAINING_SPENT_OTHER] = 0,
                                                   [GOODPUT_SUSPENDED] = 50});
}

/* What ran before the pause does not run again: its new pods wait for nodes. */
static void who_resumes_at_once_waits(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "");
    cluster_do(cluster, "wait 68000; pass; suspend; pass; wait 50000; gone master-0; resume; pass");
    assert_int_equal(cluster->status.goodput.now, GOODPUT_PENDING);
    cluster_do(cluster, "wait 20000; run *; pass");
    assert_int_equal(spent_s(cluster, GOODPUT_RECOVERY), 0);
    cluster_close(cluster);
}

/* The last failure of a job is its end, and not a recovery. */
static void a_job_that_fails_does_not_recover(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "backoffLimit: 0");
    training_fixture_tell(cluster, 30, 8, 60, 60);
    cluster_do(cluster, "wait 68000; pass; untold; wait 7000; fail master-0 1; pass");
    assert_true(cluster->status.completion_ms == cluster->now_ms);
    expect_kinds(cluster, (int64_t[GOODPUT_KINDS]){[GOODPUT_PENDING] = 10,
                                                   [GOODPUT_CONTAINER_START] = 20,
                                                   [TRAINING_SPENT_INITIALIZATION] = 8,
                                                   [TRAINING_SPENT_STEP] = 60,
                                                   [TRAINING_SPENT_OTHER] = 7});
}

/* Of a job without a master rank 0 may be done before the others. */
static void who_is_done_does_not_recover(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(0, 2, "");
    training_fixture_tell(cluster, 30, 8, 60, 60);
    cluster_do(cluster, "wait 68000; pass; untold; exit worker-0 0; pass; wait 60000; pass");
    assert_int_equal(cluster->status.goodput.now, TRAINING_SPENT_OTHER);
    cluster_do(cluster, "exit worker-1 0; pass");
    expect_kinds(cluster, (int64_t[GOODPUT_KINDS]){[GOODPUT_PENDING] = 10,
                                                   [GOODPUT_CONTAINER_START] = 20,
                                                   [TRAINING_SPENT_INITIALIZATION] = 8,
                                                   [TRAINING_SPENT_STEP] = 60,
                                                   [TRAINING_SPENT_OTHER] = 60});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_of_a_job_adds_up),
        cmocka_unit_test(what_goes_on_costs_no_write),
        cmocka_unit_test(what_is_dropped_is_not_accounted_for),
        cmocka_unit_test(what_goes_on_is_not_written_where_it_is_dropped),
        cmocka_unit_test(another_program_is_untold),
        cmocka_unit_test(an_end_without_a_time_is_when_it_is_seen),
        cmocka_unit_test(a_short_pause_is_one),
        cmocka_unit_test(who_resumes_at_once_waits),
        cmocka_unit_test(a_job_that_fails_does_not_recover),
        cmocka_unit_test(who_is_done_does_not_recover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
