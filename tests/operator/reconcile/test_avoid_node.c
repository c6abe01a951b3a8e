/* Nodes with bad hardware are left, by the agent's word: no failure. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/cluster.h"

#define PLACED "shun 60000; settle; bind master-0 a; bind worker-0 b; run *; settle; wait 5000; "

static const struct story agents[] = {
    {"the pod goes, the others stay, nothing is counted", 1, 1, "OnFailure", "backoffLimit: 0",
     PLACED "restart worker-0 144:gpu-3; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 worker-0:u4:1+0 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 60 s, and pod j-worker-0 is made again elsewhere: gpu-3\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "delete pod j-worker-0 u4\n"
     "requeue 66000\n"},
    {"in its place comes one that avoids the node", 1, 1, "OnFailure", "backoffLimit: 0",
     PLACED "restart worker-0 144:gpu-3; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=1 worker-0:u4:1+0 avoids:b\n"},
    {"also where no failure is forgiven", 1, 1, "Never", "", PLACED "exit worker-0 144:gpu-3; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) leave their nodes.) Master=1/0/0 Worker=0/0/1 start=1000 incidents=1 worker-0:u4:1+0 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 60 s, and pod j-worker-0 is made again elsewhere: gpu-3\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) leave their nodes.\n"
     "delete pod j-worker-0 u4\n"
     "requeue 66000\n"},
    {"and where the code says that it may be", 1, 1, "ExitCode", "",
     PLACED "exit worker-0 144:gpu-3; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=1 worker-0:u4:1+0 avoids:b\n"},
    {"peers that it leaves behind count nothing either", 1, 2, "OnFailure", "backoffLimit: 0",
     PLACED
     "bind worker-1 c; restart worker-0 144:gpu-3; pass; restart master-0 138; restart worker-1 138;"
     "settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 master-0:u4:1+0 worker-0:u5:1+0 worker-1:u6:1+0 avoids:b\n"},
    {"an image that uses 144 for itself is counted, and stays", 1, 1, "OnFailure", "",
     PLACED "restart worker-0 144; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 failures=1 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"},
    {"without the option it is a failure as any other", 1, 1, "OnFailure", "",
     "settle; bind worker-0 b; run *; settle; restart worker-0 144:gpu-3; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 failures=1 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"},
    {"who must run there is counted from the second time on", 1, 1, "OnFailure", "",
     PLACED "restart worker-0 144:gpu-3; settle; wait 5000; bind worker-0 b; run *; settle;"
            "restart worker-0 144:gpu-3; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 failures=1 incidents=2 worker-0:u5:1+1 avoids:b\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"
     "requeue 66000\n"},
    {"all pods of the node leave it", 1, 2, "OnFailure", "backoffLimit: 0",
     PLACED "bind worker-1 b; restart worker-0 144:gpu-3; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000 incidents=2 worker-0:u5:1+0 worker-1:u6:0+0 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 60 s, and pod j-worker-0 is made again elsewhere: gpu-3\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "delete pod j-worker-0 u5\n"
     "delete pod j-worker-1 u6\n"
     "requeue 66000\n"},
    {"scope Job: all start again, and nothing is counted", 1, 1, "OnFailure",
     "restartScope: Job, backoffLimit: 0", PLACED "exit worker-0 144:gpu-3; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) leave their nodes.) Master=1/0/0 Worker=0/0/1 start=1000 incidents=1 attempt=1 worker-0:u4:1+0 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 60 s, and pod j-worker-0 is made again elsewhere: gpu-3\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) leave their nodes.\n"
     "delete pod j-master-0 u3\n"
     "delete pod j-worker-0 u4\n"
     "requeue 66000\n"},
    {"a success is kept", 1, 2, "OnFailure", "",
     PLACED "bind worker-1 b; exit worker-1 0; settle; restart worker-0 144:gpu-3; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/1/0 start=1000 incidents=1 worker-0:u5:1+0 done:worker-1 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 60 s, and pod j-worker-0 is made again elsewhere: gpu-3\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "delete pod j-worker-0 u5\n"
     "requeue 66000\n"},
};

/* Its worker comes to another node after two minutes, whose hardware is bad as well. */
#define LEAVES(node)                                                                               \
    "wait 120000; bind worker-0 " node "; run *; settle; restart worker-0 144:gpu; settle;"
#define LEAVES_FOUR                                                                                \
    "shun 3600000; settle; bind master-0 a; run *; settle;" LEAVES("b") LEAVES("c") LEAVES("d")    \
        LEAVES("e")

static const struct story limits[] = {
    {"four nodes are forgiven", 1, 1, "OnFailure", "backoffLimit: 0", LEAVES_FOUR "state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=4 worker-0:u7:1+3 avoids:b avoids:c avoids:d avoids:e\n"},
    {"the fifth is not", 1, 1, "OnFailure", "backoffLimit: 0", LEAVES_FOUR LEAVES("f") "state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0, container pytorch, exit code 144)) Master=1/0/0 Worker=1/0/0 start=1000 completion=601000 failures=1 restarts=0 incidents=6 worker-0:u8:1+4 avoids:b avoids:c avoids:d avoids:e avoids:f\n"},
    {"nor where the policy is Never", 1, 1, "Never", "",
     "shun 3600000; settle; bind master-0 a; run *; settle;"
     "wait 120000; bind worker-0 b; run *; settle; exit worker-0 144:gpu; settle;"
     "wait 120000; bind worker-0 c; run *; settle; exit worker-0 144:gpu; settle;"
     "wait 120000; bind worker-0 d; run *; settle; exit worker-0 144:gpu; settle;"
     "wait 120000; bind worker-0 e; run *; settle; exit worker-0 144:gpu; settle;"
     "wait 120000; bind worker-0 f; run *; settle; exit worker-0 144:gpu; settle; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: PyTorchJob j is failed because 1 Worker replica(s) failed. (last failure: pod j-worker-0, container pytorch, exit code 144)) Master=1/0/0 Worker=0/0/1 start=1000 completion=601000 failures=1 restarts=0 incidents=5 worker-0:u8:1+4 avoids:b avoids:c avoids:d avoids:e avoids:f\n"},
    {"but what one fault does to many nodes is one leave", 1, 5, "OnFailure", "backoffLimit: 0",
     "shun 3600000; settle; run *; bind worker-0 b; bind worker-1 c; bind worker-2 d; bind worker-3 "
     "e; bind worker-4 f; settle; restart worker-0 144:gpu; restart worker-1 144:gpu; restart "
     "worker-2 144:gpu; settle; wait 30000; restart worker-3 144:gpu; restart worker-4 144:gpu; "
     "settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=5 worker-0:u8:1+0 worker-1:u9:1+0 worker-2:u10:1+0 worker-3:u11:1+0 worker-4:u12:1+0 avoids:b avoids:c avoids:d avoids:e avoids:f\n"},
};

static const struct story peers[] = {
    {"a peer there that failed by itself has failed", 1, 2, "OnFailure", "",
     PLACED "bind worker-1 b; restart worker-0 144:gpu-3; restart worker-1 1; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000 failures=1 incidents=3 worker-0:u5:1+0 worker-1:u6:1+0 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 60 s, and pod j-worker-0 is made again elsewhere: gpu-3\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-1 exited with code 1\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"
     "delete pod j-worker-0 u5\n"
     "delete pod j-worker-1 u6\n"
     "requeue 66000\n"},
    {"and is fatal as anywhere", 1, 2, "ExitCode", "",
     PLACED "bind worker-1 b; exit worker-0 144:gpu-3; exit worker-1 2; pass",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: job \"j\" is failing because \"Worker\" replica(s) failed. (last failure: pod j-worker-1, container pytorch, exit code 2)) Master=1/0/0 Worker=0/0/2 start=1000 completion=6000 failures=1 restarts=0 incidents=2 worker-0:u5:1+0 worker-1:u6:1+0 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 60 s, and pod j-worker-0 is made again elsewhere: gpu-3\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-1 exited with code 2\n"
     "event Warning PyTorchJobFailed: job \"j\" is failing because \"Worker\" replica(s) failed. (last failure: pod j-worker-1, container pytorch, exit code 2)\n"
     "requeue 66000\n"},
    {"one that lost a peer has not", 1, 2, "ExitCode", "backoffLimit: 0",
     PLACED "bind worker-1 b; exit worker-0 144:gpu-3; exit worker-1 138; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 2 Worker pod(s) leave their nodes.) Master=1/0/0 Worker=0/0/2 start=1000 incidents=2 worker-0:u5:1+0 worker-1:u6:1+0 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 60 s, and pod j-worker-0 is made again elsewhere: gpu-3\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-1 exited with code 138\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 2 Worker pod(s) leave their nodes.\n"
     "delete pod j-worker-0 u5\n"
     "delete pod j-worker-1 u6\n"
     "requeue 66000\n"},
    {"who waits elsewhere ends no attempt", 1, 2, "OnFailure", "restartScope: Job",
     PLACED "bind worker-1 c; exit worker-0 144:gpu-3; settle; run master-0; run worker-0;"
            "settle; wait 60000; pass; pass; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 attempt=1 formed=1+2 worker-0:u5:1+0\n"},
};

/* Pods are dated by the API server's clock, which is not the operator's. */
static const struct story clocks[] = {
    {"one from before leaves, though it is dated later", 1, 2, "OnFailure", "",
     PLACED "wait 3000; bind worker-1 b; wait -3000; restart worker-0 144:gpu-3; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000 incidents=2 worker-0:u5:1+0 worker-1:u6:0+0 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 60 s, and pod j-worker-0 is made again elsewhere: gpu-3\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "delete pod j-worker-0 u5\n"
     "delete pod j-worker-1 u6\n"
     "requeue 66000\n"},
    {"one that was told of the node stays, though it is dated earlier", 1, 1, "OnFailure", "",
     PLACED "restart worker-0 144:gpu-3; settle; wait -3000; bind worker-0 b; run *; wait 3000;"
            "settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 worker-0:u4:1+0 avoids:b\n"},
};

static const struct story times[] = {
    {"it ends", 1, 1, "OnFailure", "",
     PLACED "restart worker-0 144:gpu-3; settle; bind worker-0 c; run *; wait 60000; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 worker-0:u4:1+0\n"},
    {"who waits for a node waits for those of now", 1, 2, "OnFailure", "",
     PLACED "delete worker-1; settle; restart worker-0 144:gpu-3; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=2 worker-0:u5:1+0 worker-1:u6:0+0 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 60 s, and pod j-worker-0 is made again elsewhere: gpu-3\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 144\n"
     "delete pod j-worker-0 u5\n"
     "delete pod j-worker-1 u7\n"
     "requeue 66000\n"},
    {"and for one that is good again", 1, 1, "OnFailure", "",
     PLACED "restart worker-0 144:gpu-3; settle; wait 60000; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=1 worker-0:u4:1+0\n"
     "delete pod j-worker-0 u5\n"},
};

static void an_agent_may_say_so(void **state)
{
    (void)state;
    cluster_tell(agents, array_length(agents));
}

static void it_is_avoided_for_a_time(void **state)
{
    (void)state;
    cluster_tell(times, array_length(times));
}

static void who_was_told_of_it_stays(void **state)
{
    (void)state;
    cluster_tell(clocks, array_length(clocks));
}

static void not_for_ever(void **state)
{
    (void)state;
    cluster_tell(limits, array_length(limits));
}

static void only_what_the_node_explains(void **state)
{
    (void)state;
    cluster_tell(peers, array_length(peers));
}

static void progress_makes_up_for_it(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 1, "OnFailure", "backoffLimit: 0", "");
    const struct history *history = &cluster->status.history;
    cluster->job->created_ms = cluster->now_ms;
    cluster_do(cluster, "told worldSize 2; told processStartTime 1; told lastProgressTime 100;"
                        "told step 10;" LEAVES_FOUR "told step 9; pass");
    assert_int_equal(history->hardware_leaves, 4);
    cluster_do(cluster, "told step 10; pass"); /* again */
    assert_int_equal(history->hardware_leaves, 4);
    cluster_do(cluster, "told step 11; pass");
    assert_int_equal(history->hardware_leaves, 0);
    cluster_do(cluster, LEAVES("f") LEAVES("g") "pass");
    assert_int_equal(history->hardware_leaves, 2);
    assert_int_equal(history->failures, 0);
    cluster_close(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_may_say_so),      cmocka_unit_test(it_is_avoided_for_a_time),
        cmocka_unit_test(who_was_told_of_it_stays), cmocka_unit_test(not_for_ever),
        cmocka_unit_test(progress_makes_up_for_it), cmocka_unit_test(only_what_the_node_explains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
