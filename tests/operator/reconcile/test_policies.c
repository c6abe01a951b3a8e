/* How a job ends and what is left: deadline, time to live, cleanPodPolicy; who manages it; what is
 * invalid. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/reconcile/policy_deadline.h"
#include "tests/operator/cluster.h"

#include <string.h>

static const struct story deadlines[] = {
    {"C10 a deadline asks for a pass at its time", 1, 0, "OnFailure", "activeDeadlineSeconds: 2",
     "pass",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Master=0/0/0 start=1000\n"
     "create service j-master-0\n"
     "create pod j-master-0 attempt 0\n"
     "requeue 3000\n"},
    {"C10 and not before", 1, 0, "OnFailure", "activeDeadlineSeconds: 2",
     "settle; run *; settle; wait 1999; pass", "requeue 3000\n"},
    {"X12 then the job fails, however quiet its pods are", 1, 0, "OnFailure",
     "activeDeadlineSeconds: 2", "settle; run *; settle; wait 2000; pass",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it was active longer than specified deadline) Master=1/0/0 start=1000 completion=3000\n"
     "event Normal PyTorchJobFailed: Job j has failed because it was active longer than specified deadline\n"},
    {"C09 a deadline of 0 lets the first pass through", 1, 0, "OnFailure",
     "activeDeadlineSeconds: 0", "pass",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Master=0/0/0 start=1000\n"
     "create service j-master-0\n"
     "create pod j-master-0 attempt 0\n"
     "requeue 1000\n"},
    {"C09 and no second one", 1, 0, "OnFailure", "activeDeadlineSeconds: 0", "pass; pass; state",
     "status Created=T Failed=T(PyTorchJobFailed: Job j has failed because it was active longer than specified deadline) Master=0/0/0 start=1000 completion=1000\n"},
    {"resuming starts the clock again", 1, 0, "OnFailure", "activeDeadlineSeconds: 2",
     "settle; suspend; settle; wait 5000; resume; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Master=0/0/0 start=6000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-master-0\n"
     "create pod j-master-0 attempt 0\n"
     "requeue 8000\n"},
    {"also where that is the time at which it started", 1, 0, "OnFailure",
     "activeDeadlineSeconds: 0", "pass; suspend; settle; resume; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Master=0/0/0 start=1000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-master-0\n"
     "create pod j-master-0 attempt 0\n"
     "requeue 1000\n"},
    {"a deadline beyond time is none", 1, 0, "OnFailure",
     "activeDeadlineSeconds: 9223372036854775807", "settle; pass", ""},
    {"C24 a finished job is kept for its time to live", 1, 0, "OnFailure",
     "ttlSecondsAfterFinished: 3", "settle; exit master-0 0; pass",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 start=1000 completion=1000 done:master-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob j is successfully completed.\n"
     "requeue 4000\n"},
    {"C24 and then deleted", 1, 0, "OnFailure", "ttlSecondsAfterFinished: 3",
     "settle; exit master-0 0; settle; wait 3000; pass", "delete job j job\n"},
    {"X11 so is one that failed for good", 1, 0, "ExitCode", "ttlSecondsAfterFinished: 5",
     "settle; exit master-0 1; settle; wait 5000; pass", "delete job j job\n"},
    {"C25 so is one that failed by policy Never", 1, 0, "Never", "ttlSecondsAfterFinished: 3",
     "settle; exit master-0 1; settle; wait 3000; pass", "delete job j job\n"},
    {"C27 a suspended job has no end to count from", 1, 0, "OnFailure",
     "ttlSecondsAfterFinished: 3, suspend: true", "settle; wait 9000; pass", ""},
    {"C29 long after its time", 1, 0, "OnFailure", "ttlSecondsAfterFinished: 180",
     "settle; exit master-0 0; settle; wait 240000; pass", "delete job j job\n"},
    {"C29 a time of 0 is over at once", 1, 0, "OnFailure", "ttlSecondsAfterFinished: 0",
     "settle; exit master-0 0; pass; pass", "delete job j job\n"},
    {"C26 without one it stays", 1, 0, "OnFailure", "",
     "settle; exit master-0 0; settle; wait 100000; pass", ""},
    {"a suspended finished job stays", 1, 0, "OnFailure", "ttlSecondsAfterFinished: 3",
     "settle; exit master-0 0; settle; suspend; wait 5000; pass", ""},
};

static const struct story cleaning[] = {
    {"C03 None keeps all", 1, 1, "OnFailure", "", "settle; run *; exit master-0 0; pass",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=1/0/0 start=1000 completion=1000 done:master-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob j is successfully completed.\n"},
    {"None: a worker that has not begun does not begin any more", 1, 2, "OnFailure", "",
     "settle; run master-0; run worker-0; exit master-0 0; pass",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=1/0/0 start=1000 completion=1000 done:master-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob j is successfully completed.\n"
     "delete pod j-worker-1 u6\n"},
    {"... and then all is as it shall be", 1, 2, "OnFailure", "",
     "settle; run master-0; run worker-0; exit master-0 0; settle; pass", ""},
    {"of a failed job it stays, to show why", 1, 1, "Never", "",
     "settle; run master-0; exit master-0 1; settle; pass", ""},
    {"C01 Running keeps what has ended", 1, 2, "OnFailure", "cleanPodPolicy: Running",
     "settle; run *; exit master-0 0; pass",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=2/0/0 start=1000 completion=1000 done:master-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob j is successfully completed.\n"
     "delete pod j-worker-0 u5\n"
     "delete pod j-worker-1 u6\n"},
    {"a pod that runs beside a status that is done goes, as it may be another: Running", 1, 1,
     "OnFailure", "cleanPodPolicy: Running",
     "settle; run *; exit master-0 0; settle; run master-0; pass",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=1/1/0 Worker=0/0/0 start=1000 completion=1000 done:master-0\n"
     "delete pod j-master-0 u3\n"},
    {"... their services go behind them", 1, 2, "OnFailure", "cleanPodPolicy: Running",
     "settle; run *; exit master-0 0; pass; pass",
     "delete service j-worker-0 u2\n"
     "delete service j-worker-1 u3\n"},
    {"C02 All keeps nothing", 1, 1, "OnFailure", "cleanPodPolicy: All",
     "settle; run *; exit master-0 0; pass",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=1/0/0 start=1000 completion=1000 done:master-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob j is successfully completed.\n"
     "delete pod j-master-0 u3\n"
     "delete pod j-worker-0 u4\n"
     "delete service j-master-0 u1\n"
     "delete service j-worker-0 u2\n"},
    {"C05 a limit is no exception: None", 1, 1, "OnFailure", "backoffLimit: 0",
     "settle; run *; restart worker-0; pass",
     "status Created=T Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)) Master=1/0/0 Worker=1/0/0 start=1000 completion=1000 failures=1 restarts=0 worker-0:u4:1+0\n"
     "event Normal PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)\n"},
    {"C05 a limit is no exception: Running", 1, 1, "OnFailure",
     "backoffLimit: 0, cleanPodPolicy: Running", "settle; run *; restart worker-0; pass",
     "status Created=T Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)) Master=1/0/0 Worker=1/0/0 start=1000 completion=1000 failures=1 restarts=0 worker-0:u4:1+0\n"
     "event Normal PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)\n"
     "delete pod j-master-0 u3\n"
     "delete pod j-worker-0 u4\n"},
    {"services without pods go as well", 1, 1, "OnFailure", "cleanPodPolicy: All",
     "settle; run *; gone worker-0; exit master-0 0; pass",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=0/0/0 start=1000 completion=1000 done:master-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob j is successfully completed.\n"
     "delete pod j-master-0 u3\n"
     "delete service j-master-0 u1\n"
     "delete service j-worker-0 u2\n"},
    {"X04 what still runs after success is told as active", 1, 2, "OnFailure", "",
     "settle; run *; exit master-0 0; settle; exit worker-0 0; settle; state",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=1/1/0 start=1000 completion=1000 done:master-0\n"},
    {"a worker that leaves politely when it is cleaned up has not succeeded", 1, 1, "OnFailure",
     "cleanPodPolicy: Running",
     "settle; run *; exit master-0 0; pass; wait 5; exit worker-0 0; pass; state",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=0/0/0 start=1000 completion=1000 done:master-0\n"},
    {"a finished job stays finished", 1, 1, "OnFailure", "",
     "settle; run *; exit master-0 0; settle; exit worker-0 1; gone master-0; scale 3; pass; state",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=0/0/0 start=1000 completion=1000 done:master-0\n"},
    {"C04 suspending keeps nothing: None", 1, 1, "OnFailure", "",
     "settle; run *; exit worker-0 0; settle; suspend; pass",
     "status Created=T Running=F Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Master=1/0/0 Worker=0/1/0 start=1000 done:worker-0\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"
     "delete pod j-master-0 u3\n"
     "delete pod j-worker-0 u4\n"
     "delete service j-master-0 u1\n"
     "delete service j-worker-0 u2\n"},
    {"C04 suspending keeps nothing: Running", 1, 1, "OnFailure", "cleanPodPolicy: Running",
     "settle; run *; exit worker-0 0; settle; suspend; pass",
     "status Created=T Running=F Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Master=1/0/0 Worker=0/1/0 start=1000 done:worker-0\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"
     "delete pod j-master-0 u3\n"
     "delete pod j-worker-0 u4\n"
     "delete service j-master-0 u1\n"
     "delete service j-worker-0 u2\n"},
    {"X05 workers that run are cleaned up with their services, the master's stay", 1, 1,
     "OnFailure", "cleanPodPolicy: Running",
     "settle; run *; settle; exit master-0 0; settle; state",
     "status Created=T Running=F Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=0/0/0 start=1000 completion=1000 done:master-0\n"},
    {"a finished job ignores suspend", 1, 1, "OnFailure", "",
     "settle; run *; exit master-0 0; settle; suspend; pass", ""},
};

static const struct story managers[] = {
    {"C11 named manager", 1, 0, "OnFailure", "managedBy: kubeflow.org/training-operator", "pass",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Master=0/0/0 start=1000\n"
     "create service j-master-0\n"
     "create pod j-master-0 attempt 0\n"},
    {"P09 someone else's job is left alone", 1, 0, "OnFailure",
     "managedBy: kueue.x-k8s.io/multikueue", "pass", ""},
};

static void only_our_own_jobs_are_touched(void **state)
{
    (void)state;
    static const struct {
        const char *manager;
        bool ours;
    } rows[] = {
        {NULL, true}, /* C11, C33 */
        {"kubeflow.org/training-operator", true},
        {"kueue.x-k8s.io/multikueue", false},
        {"other-job-controller", false}, /* C12 */
        {"", false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct cluster *cluster = cluster_open(1, 1, "OnFailure", "suspend: true", "");
        cluster->job->run_policy.managed_by = rows[i].manager;
        cluster_do(cluster, "settle; resume; pass");
        assert_int_equal(cluster->pod_count, rows[i].ours ? 2 : 0);
        assert_int_equal(cluster->status.condition_count > 0, rows[i].ours);
        /* nor when its specification breaks a rule, as that of a name unknown to us does */
        cluster->job->invalid = "spec.x: wrong";
        cluster_plan(cluster);
        assert_int_equal(cluster->plan->count > 0, rows[i].ours);
        cluster_close(cluster);
    }
}

/* C28: another operator wrote the status. */
static void an_end_without_a_time_is_dated_by_its_condition(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "ExitCode", "ttlSecondsAfterFinished: 5", "");
    cluster_do(cluster, "settle; wait 1000; exit master-0 1; settle");
    cluster->status.completion_ms = 0;
    cluster_plan(cluster);
    assert_int_equal(cluster->plan->count, 1);
    assert_int_equal(cluster->plan->actions[0].kind, ACTION_REQUEUE);
    assert_int_equal(cluster->plan->actions[0].at_ms, 2000 + 5000);
    cluster->now_ms = 7000;
    cluster_plan(cluster);
    assert_int_equal(cluster->plan->actions[0].kind, ACTION_DELETE_JOB);
    cluster_close(cluster);
}

/* Whoever may write a status may write any time into it, such as one of the year 1013. */
static void times_before_1970_are_times(void **state)
{
    (void)state;
    static const struct {
        int64_t from_ms, seconds, then_ms;
    } rows[] = {
        {-30172046400000, 3600, -30172042800000},
        {-30172046400000, INT64_MAX, POLICY_NEVER},
        {-1000, 0, -1000},
        {1000, INT64_MAX / 1000, POLICY_NEVER},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct optional seconds = {.set = true, .value = rows[i].seconds};
        struct job job = {.run_policy = {.active_deadline_seconds = seconds,
                                         .ttl_seconds_after_finished = seconds}};
        struct job_status status = {.conditions = {{.type = CONDITION_FAILED, .status = true}},
                                    .condition_count = 1,
                                    .start_ms = rows[i].from_ms,
                                    .completion_ms = rows[i].from_ms};
        assert_int_equal(policy_deadline_ms(&job, &status), rows[i].then_ms);
        assert_int_equal(policy_expiry_ms(&job, &status), rows[i].then_ms);
    }
}

static void clocks_end_jobs(void **state)
{
    (void)state;
    cluster_tell(deadlines, array_length(deadlines));
}

static void finished_jobs_are_cleaned(void **state)
{
    (void)state;
    cluster_tell(cleaning, array_length(cleaning));
}

/* A pod may have ended where no watch has shown it yet: then it has another version, and stays. */
static void what_is_cleaned_up_is_as_it_was_seen(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *events, *version;
    } rows[] = {
        {"cleanPodPolicy: Running", "settle; run *; exit master-0 0; pass", "seen"},
        {"", "settle; run master-0; exit master-0 0; pass", "seen"}, /* pending ones go */
        {"", "gang volcano; settle; group Running; settle; run master-0; exit master-0 0; pass",
         "seen"}, /* beside their group */
        {"cleanPodPolicy: Running", "settle; run *; exit master-0 0; settle; run master-0; pass",
         "seen"}, /* of a replica that is done */
        {"cleanPodPolicy: All", "settle; run *; exit master-0 0; pass", NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct cluster *cluster = cluster_open(1, 1, "OnFailure", rows[i].policy, "");
        cluster_do(cluster, rows[i].events);
        size_t deleted = 0;
        for (size_t k = 0; k < cluster->plan->count; k++) {
            const struct action *action = &cluster->plan->actions[k];
            if (action->kind != ACTION_DELETE_POD)
                continue;
            deleted++;
            assert_true(rows[i].version ? strcmp(action->version, rows[i].version) == 0
                                        : !action->version);
        }
        assert_true(deleted > 0);
        cluster_close(cluster);
    }
}

/* An operator with an old status makes a pod again whose replica is done. */
static void what_was_made_after_the_end_does_not_begin(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster_do(cluster, "settle; run *; exit master-0 0; settle");
    cluster->pods[0].phase = POD_PENDING;
    cluster_do(cluster, "pass");
    assert_int_equal(cluster->plan->actions[cluster->plan->count - 1].kind, ACTION_DELETE_POD);
    cluster_close(cluster);
}

/* Of a job that another operator ended nobody knows which replicas were complete. */
static void services_of_an_unknown_history_stay(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct cluster *cluster = cluster_open(1, 1, "OnFailure", "", "");
        cluster_do(cluster, "settle; run *; exit master-0 0; settle");
        cluster->status.history.known = known;
        cluster_do(cluster, "gone worker-0; pass");
        bool is_deleted = false;
        for (size_t i = 0; i < cluster->plan->count; i++)
            is_deleted |= cluster->plan->actions[i].kind == ACTION_DELETE_SERVICE;
        assert_int_equal(is_deleted, known); /* the worker had not ended when the job did */
        cluster_close(cluster);
    }
}

static void managers_are_respected(void **state)
{
    (void)state;
    cluster_tell(managers, array_length(managers));
}

/* Nor is it written anew for what it does not say; what it says and is not so is mended. */
static void an_end_that_another_operator_wrote_is_left_alone(void **state)
{
    (void)state;
    static const struct {
        struct replica_status worker;
        bool pod, written;
    } rows[] = {
        {{.present = false}, false, false},
        {{.present = true}, false, false},
        {{.present = true, .succeeded = 1}, false, false},
        {{.present = true, .failed = 1}, false, false},
        {{.present = true, .active = 1}, false, true},
        {{.present = false}, true, true}, /* which runs */
        {{.present = true, .active = 1}, true, false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct cluster *cluster = cluster_open(1, 1, "OnFailure", "", "");
        cluster_do(cluster, "settle; run worker-0; gone master-0");
        if (!rows[i].pod)
            cluster_do(cluster, "gone worker-0");
        cluster->status = (struct job_status){
            .conditions = {{.type = CONDITION_CREATED, .status = true, .reason = "", .message = ""},
                           {.type = CONDITION_FAILED, .status = true, .reason = "", .message = ""}},
            .condition_count = 2,
            .replicas = {[REPLICA_WORKER] = rows[i].worker}};
        cluster_plan(cluster);
        assert_int_equal(cluster->plan->count, rows[i].written);
        if (rows[i].written)
            assert_int_equal(cluster->plan->actions[0].kind, ACTION_SET_STATUS);
        cluster_close(cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_end_jobs),
        cmocka_unit_test(times_before_1970_are_times),
        cmocka_unit_test(finished_jobs_are_cleaned),
        cmocka_unit_test(what_is_cleaned_up_is_as_it_was_seen),
        cmocka_unit_test(what_was_made_after_the_end_does_not_begin),
        cmocka_unit_test(services_of_an_unknown_history_stay),
        cmocka_unit_test(managers_are_respected),
        cmocka_unit_test(only_our_own_jobs_are_touched),
        cmocka_unit_test(an_end_without_a_time_is_dated_by_its_condition),
        cmocka_unit_test(an_end_that_another_operator_wrote_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
