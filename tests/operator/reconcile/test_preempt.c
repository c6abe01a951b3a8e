/* Room for worker 0 of an elastic job: another worker is preempted, one for each absence. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/cluster.h"

#define ELASTIC "elasticPolicy: {minReplicas: 2, maxReplicas: 4}"
/* All run, each on a node; worker 0 is lost, and no node has room for its next pod. */
#define LOST "settle; bind * a; run *; settle; wait 1000; gone worker-0; settle; unfit worker-0; "
/* Worker 3 is preempted, and gone. */
#define PREEMPTED LOST "wait 30000; settle; "
/* The kubelet refuses worker 0 there, and the node has no room for its next pod for long. */
#define REFUSED                                                                                    \
    "bind worker-0 a; settle; reject worker-0 OutOfcpu; wait 60000; settle; unfit worker-0; wait 90000; settle; "

static const struct story chosen[] = {
    {"before the patience is over nobody goes", 0, 4, "OnFailure", "", LOST "wait 29999; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=3/0/0 start=1000\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available\n"
     "requeue 32000\n"},
    {"then the last one goes, and is named", 0, 4, "OnFailure", "", LOST "wait 30000; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=3/0/0 start=1000 preempted=3\n"
     "event Warning WorkerPreempted: Pod j-worker-3 is deleted to make room for pod j-worker-0, for which all others wait: after 30 s it is Unschedulable: 0/3 nodes are available\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available\n"
     "delete pod j-worker-3 u8\n"},
    {"it is not made again, and no other follows", 0, 4, "OnFailure", "",
     PREEMPTED "wait 90000; pass", ""},
    {"nor if the pod of worker 0 is made anew", 0, 4, "OnFailure", "",
     PREEMPTED "gone worker-0; settle; unfit worker-0; wait 90000; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 preempted=3\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available\n"},
    {"nor while the node of worker 0 has not begun it", 0, 4, "OnFailure", "",
     PREEMPTED "bind worker-0 a; settle; wait 90000; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 preempted=3\n"},
    {"nor who is lost meanwhile", 0, 4, "OnFailure", "",
     PREEMPTED "bind worker-0 a; gone worker-2; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/0/0 start=1000 preempted=3\n"},
    {"nor if its kubelet refuses it, which is told", 0, 4, "OnFailure", "",
     PREEMPTED "bind worker-0 a; settle; reject worker-0 OutOfcpu; wait 60000; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.) Worker=2/0/1 start=1000 incidents=1 worker-0:u9:0+0 preempted=3\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.\n"
     "event Warning PodDisrupted: Pod j-worker-0 did not fail, the system terminated it: OutOfcpu\n"
     "delete pod j-worker-0 u9\n"},
    {"or ends it before its container began", 0, 4, "OnFailure", "",
     PREEMPTED "bind worker-0 a; settle; abort worker-0; wait 60000; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.) Worker=2/0/1 start=1000 incidents=1 worker-0:u9:0+0 preempted=3\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.\n"
     "delete pod j-worker-0 u9\n"},
    {"and however often, no other follows", 0, 4, "OnFailure", "",
     PREEMPTED REFUSED REFUSED REFUSED "state",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 incidents=3 worker-0:u11:0+0 preempted=3\n"},
    {"it is not made either if its number came anew", 0, 4, "OnFailure", "",
     PREEMPTED "scale 3; settle; scale 5; wait 90000; settle; state",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 preempted=3\n"},
    {"once worker 0 has run it is", 0, 4, "OnFailure", "",
     PREEMPTED "bind worker-0 a; run worker-0; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=3/0/0 start=1000\n"
     "create pod j-worker-3 attempt 0\n"},
    {"likewise, if nobody saw it run", 0, 4, "OnFailure", "",
     PREEMPTED "bind worker-0 a; exit worker-0 1; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Worker=2/0/1 start=1000 failures=1 worker-0:u9:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 1\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"
     "delete pod j-worker-0 u9\n"
     "create pod j-worker-3 attempt 0\n"},
    {"the next absence is another one", 0, 4, "OnFailure", "",
     PREEMPTED
     "bind worker-0 a; run worker-0; settle; unfit worker-3; settle; wait 1000; gone worker-0; settle; "
     "unfit worker-0; wait 30000; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 preempted=2\n"
     "event Warning WorkerPreempted: Pod j-worker-2 is deleted to make room for pod j-worker-0, for which all others wait: after 30 s it is Unschedulable: 0/3 nodes are available\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available\n"
     "delete pod j-worker-2 u7\n"
     "delete pod j-worker-3 u10\n"},
    {"who waits for a node goes, too", 0, 4, "OnFailure", "",
     LOST "gone worker-3; settle; unfit worker-3; wait 30000; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 preempted=2\n"
     "event Warning WorkerPreempted: Pod j-worker-2 is deleted to make room for pod j-worker-0, for which all others wait: after 30 s it is Unschedulable: 0/3 nodes are available\n"
     "delete pod j-worker-2 u7\n"
     "delete pod j-worker-3 u10\n"},
    {"and is not made again", 0, 4, "OnFailure", "",
     LOST "gone worker-3; settle; unfit worker-3; wait 30000; settle; wait 90000; pass", ""},
    {"unless the others are too few", 0, 4, "OnFailure", "",
     LOST "gone worker-3; settle; unfit worker-3; wait 30000; settle; gone worker-1; pass",
     "status Created=T Restarting=T Waiting=T(Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available) Worker=0/0/0 start=1000 preempted=2\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because no Worker replica is running.\n"
     "create pod j-worker-1 attempt 0\n"
     "create pod j-worker-3 attempt 0\n"},
    {"fewer than minReplicas are left alone", 0, 4, "OnFailure", "",
     LOST "gone worker-3; gone worker-2; settle; unfit worker-3; unfit worker-2; wait 30000; pass",
     ""},
    {"a worker that goes, or whose node is lost, has no room to give", 0, 4, "OnFailure", "",
     LOST "lose worker-3; wait 30000; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=3/0/0 start=1000 preempted=2\n"
     "event Warning WorkerPreempted: Pod j-worker-2 is deleted to make room for pod j-worker-0, for which all others wait: after 30 s it is Unschedulable: 0/3 nodes are available\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available\n"
     "delete pod j-worker-2 u7\n"},
    {"likewise", 0, 4, "OnFailure", "", LOST "lose worker-3; delete worker-2; wait 30000; pass",
     "status Created=T Restarting=T Waiting=T(Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available) Worker=2/0/1 start=1000 incidents=1 worker-2:u7:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are being deleted.\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available\n"},
    {"a pod without its image has a node", 0, 4, "OnFailure", "",
     LOST "stuck worker-0 ImagePullBackOff; wait 30000; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=3/0/0 start=1000\n"
     "event Warning ImagePullBackOff: Pod j-worker-0 is waiting: ImagePullBackOff: 0/3 nodes are available\n"},
    {"a resumed job starts over", 0, 4, "OnFailure", "", PREEMPTED "suspend; settle; resume; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Worker=0/0/0 start=32000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-worker-0\n"
     "create service j-worker-1\n"
     "create service j-worker-2\n"
     "create service j-worker-3\n"
     "create pod j-worker-0 attempt 0\n"
     "create pod j-worker-1 attempt 0\n"
     "create pod j-worker-2 attempt 0\n"
     "create pod j-worker-3 attempt 0\n"},
    {"a gang needs more", 0, 4, "OnFailure", "",
     "gang coscheduler; member 4; " LOST "wait 30000; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=3/0/0 start=1000\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available\n"},
    {"or as many", 0, 4, "OnFailure", "", "gang coscheduler; member 3; " LOST "wait 30000; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=3/0/0 start=1000 preempted=3\n"
     "event Warning WorkerPreempted: Pod j-worker-3 is deleted to make room for pod j-worker-0, for which all others wait: after 30 s it is Unschedulable: 0/3 nodes are available\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available\n"
     "delete pod j-worker-3 u9\n"},
    {"restartScope: Job waits for nobody", 0, 4, "OnFailure", "restartScope: Job",
     LOST "wait 30000; pass",
     "status Created=T Restarting=T Waiting=T(Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available) Worker=0/0/0 start=1000 attempt=1 formed=0+4\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available\n"},
    {"with a Master all meet there", 1, 4, "OnFailure", "", LOST "wait 30000; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=3/0/0 start=1000\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable: 0/3 nodes are available\n"},
};

static void one_goes_for_each_absence(void **state)
{
    (void)state;
    cluster_tell_of(ELASTIC, chosen, array_length(chosen));
}

/* The worker that is preempted after `wait_ms`; 0: none. */
static int preempted_after(const char *spec, int wait_ms)
{
    struct cluster *cluster = cluster_open(0, 4, "OnFailure", "", spec);
    auto_free char *script = xasprintf(LOST "wait %d; pass", wait_ms);
    cluster_do(cluster, script);
    int preempted = cluster->status.history.preempted;
    cluster_close(cluster);
    return preempted;
}

static void only_where_all_meet_at_worker_0(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        int wait_ms, preempted;
    } rows[] = {
        {"minReplicas: 2, maxReplicas: 4", 30000, 3},
        {"minReplicas: 1, maxReplicas: 4, rdzvBackend: c10d", 30000, 3},
        {"minReplicas: 1, maxReplicas: 4, rdzvBackend: etcd", 30000, 0},
        {"minReplicas: 1, maxReplicas: 4, rdzvHost: there", 30000, 0},
        {"minReplicas: 1, maxReplicas: 4, standalone: true", 30000, 0},
        {"minReplicas: 3, maxReplicas: 4", 30000, 3},
        {"minReplicas: 4, maxReplicas: 4", 30000, 0},
        {NULL, 30000, 0},
        {"minReplicas: 1, maxReplicas: 4, shrinkAfterSeconds: 90", 89999, 0},
        {"minReplicas: 1, maxReplicas: 4, shrinkAfterSeconds: 90", 90000, 3},
        {"minReplicas: 1, maxReplicas: 4, shrinkAfterSeconds: 0", 0, 3},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const char *policy = rows[i].policy;
        auto_free char *spec = policy ? xasprintf("elasticPolicy: {%s}", policy) : xstrdup("");
        int preempted = preempted_after(spec, rows[i].wait_ms);
        if (preempted != rows[i].preempted)
            fail_msg("%s, %d ms: worker %d", spec, rows[i].wait_ms, preempted);
    }
}

/* Between the status and the deletes; and who has succeeded or got a node meanwhile stays. */
static void an_operator_that_dies_takes_no_second_one(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(0, 4, "OnFailure", "", ELASTIC);
    cluster_do(cluster, LOST "gone worker-3; settle; unfit worker-3; wait 30000");
    cluster_plan(cluster);
    assert_int_equal(cluster->plan->actions[0].kind, ACTION_SET_STATUS);
    cluster_apply(cluster, 1);
    cluster_plan(cluster);
    assert_int_equal(cluster->plan->count, 2);
    for (int i = 0; i < 2; i++) {
        const struct action *action = &cluster->plan->actions[i];
        assert_int_equal(action->kind, ACTION_DELETE_POD);
        assert_string_equal(action->name, i == 0 ? "j-worker-2" : "j-worker-3");
        assert_string_equal(action->version, "seen");
    }
    cluster_close(cluster);
}

/* The operator died before the delete. It goes, and no other, once worker 0 waits so again. */
static void who_was_chosen_stays_while_worker_0_has_a_node(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(0, 4, "OnFailure", "", ELASTIC);
    cluster_do(cluster, LOST "wait 30000");
    cluster_plan(cluster);
    cluster_apply(cluster, 1);
    cluster_do(cluster, "bind worker-0 a; settle; reject worker-0 OutOfcpu; wait 60000; settle; "
                        "unfit worker-0; wait 29999; settle");
    assert_int_equal(cluster->status.history.preempted, 3);
    assert_int_equal(cluster->plan->actions[0].kind, ACTION_REQUEUE);
    assert_false(cluster_pod(cluster, "j-worker-3")->deleted_ms);
    cluster_do(cluster, "wait 1; pass");
    assert_int_equal(cluster->plan->actions[0].kind, ACTION_DELETE_POD);
    assert_string_equal(cluster->plan->actions[0].name, "j-worker-3");
    cluster_do(cluster, "settle; wait 90000; settle");
    assert_int_equal(cluster->pod_count, 3);
    cluster_close(cluster);
}

static void the_status_knows_when_the_pod_that_has_run_was_made(void **state)
{
    (void)state;
    static const struct {
        int masters;
        const char *spec, *script;
        int64_t made_ms; /* 0: of none */
    } rows[] = {
        {0, ELASTIC, "wait 1000; settle; bind * a; settle", 0},
        {0, ELASTIC, "settle; bind * a; run worker-0; settle", 1000},
        {0, ELASTIC, LOST "settle", 1000},
        {0, ELASTIC, LOST "bind worker-0 a; reject worker-0 OutOfcpu; settle", 1000},
        {0, ELASTIC, LOST "bind worker-0 a; exit worker-0 1; settle", 2000},
        {1, ELASTIC, "settle; run *; settle", 0},
        {0, "", "settle; run *; settle", 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct cluster *cluster = cluster_open(rows[i].masters, 4, "OnFailure", "", rows[i].spec);
        cluster_do(cluster, rows[i].script);
        if (cluster->status.history.worker_0_ms != rows[i].made_ms)
            fail_msg("row %zu: %d ms", i, (int)cluster->status.history.worker_0_ms);
        cluster_close(cluster);
    }
}

/* The job is as the last operator wrote it, and pods are older. */
static void an_operator_that_begins_with_older_pods_takes_none(void **state)
{
    (void)state;
    static const struct {
        const char *script, *then;
        int before, after;
    } rows[] = {
        /* the pod of worker 0 has run since, or one after it */
        {LOST "wait 30000", "pass", 0, 0},
        {LOST "gone worker-3; settle; unfit worker-3; wait 30000", "pass", 0, 0},
        /* it is gone since, and worker 3 went for the next one */
        {"settle; bind * a; run *; settle", "pass", 3, 3},
        /* until pods are as new: the next absence, and the end of the one that there was */
        {LOST "wait 30000", "wait 1000; gone worker-0; settle; unfit worker-0; wait 30000; pass", 0,
         3},
        {"settle; bind * a; run *; settle",
         "wait 1000; gone worker-0; settle; unfit worker-0; settle; bind worker-0 a; run worker-0; "
         "pass",
         3, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct cluster *cluster = cluster_open(0, 4, "OnFailure", "", ELASTIC);
        cluster_do(cluster, rows[i].script);
        struct history *history = &cluster->status.history;
        history->preempted = rows[i].before;
        history->worker_0_ms = cluster_pod(cluster, "j-worker-0")->created_ms;
        cluster_do(cluster, rows[i].then);
        if (history->preempted != rows[i].after)
            fail_msg("row %zu: worker %d", i, history->preempted);
        cluster_close(cluster);
    }
}

/* Nobody waits for worker 0 any more. */
static void an_edit_gives_the_place_back(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(0, 4, "OnFailure", "", ELASTIC);
    cluster_do(cluster, PREEMPTED "pass");
    assert_int_equal(cluster->status.history.preempted, 3);
    cluster->job->elastic.rdzv_host = "there";
    cluster_do(cluster, "settle");
    assert_int_equal(cluster->status.history.preempted, 0);
    assert_non_null(cluster_pod(cluster, "j-worker-3"));
    cluster_close(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_goes_for_each_absence),
        cmocka_unit_test(only_where_all_meet_at_worker_0),
        cmocka_unit_test(an_operator_that_dies_takes_no_second_one),
        cmocka_unit_test(who_was_chosen_stays_while_worker_0_has_a_node),
        cmocka_unit_test(the_status_knows_when_the_pod_that_has_run_was_made),
        cmocka_unit_test(an_operator_that_begins_with_older_pods_takes_none),
        cmocka_unit_test(an_edit_gives_the_place_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
