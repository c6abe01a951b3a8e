/* Nodes that die: pods that nobody is left to end are given up after a time, made again, and never
 * counted as failures. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/cluster.h"

static const struct story nodes[] = {
    {"a node that is lost is waited for", 1, 1, "Never", "",
     "patience 60000; settle; run *; settle; lose worker-0; pass", "requeue 61000\n"},
    {"one that comes back in time has done no harm", 1, 1, "Never", "",
     "patience 60000; settle; run *; settle; lose worker-0; settle; wait 59999; find worker-0; pass",
     ""},
    {"then its pod is deleted by force", 1, 1, "Never", "",
     "patience 60000; settle; run *; settle; lose worker-0; settle; wait 60000; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are lost with their nodes.) Master=1/0/0 Worker=0/0/1 start=1000 incidents=1 worker-0:u4:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are lost with their nodes.\n"
     "event Warning PodLost: Pod j-worker-0 is deleted by force: its node is lost\n"
     "force delete pod j-worker-0 u4\n"},
    {"and made again, and no failure is counted", 1, 1, "Never", "",
     "patience 60000; settle; run *; settle; lose worker-0; wait 60000; pass; pass; run *; settle;"
     "state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 worker-0:u4:0+0\n"},
    {"ended pods need no node", 0, 2, "OnFailure", "",
     "patience 60000; settle; run *; exit worker-0 0; settle; lose worker-0; wait 60000; pass", ""},
    {"scope Job: all begin again", 1, 1, "OnFailure", "restartScope: Job",
     "patience 60000; settle; run *; settle; lose worker-0; wait 60000; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are lost with their nodes.) Master=1/0/0 Worker=0/0/1 start=1000 incidents=1 attempt=1 worker-0:u4:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are lost with their nodes.\n"
     "event Warning PodLost: Pod j-worker-0 is deleted by force: its node is lost\n"
     "delete pod j-master-0 u3\n"
     "force delete pod j-worker-0 u4\n"},
    {"without patience nothing is ever given up", 1, 1, "OnFailure", "",
     "settle; run *; settle; lose worker-0; wait 999999; pass", ""},
};

static const struct story overdue[] = {
    {"a pod is given its grace period and then some", 1, 1, "OnFailure", "",
     "patience 60000; settle; run *; settle; delete worker-0; pass; wait 89999; pass",
     "requeue 91000\n"},
    {"on a node that is well it is waited for all the same, and people are told", 1, 1, "OnFailure",
     "", "patience 60000; settle; run *; settle; delete worker-0; pass; wait 90000; pass",
     "status Created=T Restarting=T Waiting=T(PodTerminating: Pod j-worker-0 is past its deletion grace period; its node is not known to be lost, so the operator does not force the deletion) Master=1/0/0 Worker=0/0/1 start=1000 incidents=1 worker-0:u4:0+0\n"
     "event Warning PodTerminating: Pod j-worker-0 is past its deletion grace period; its node is not known to be lost, so the operator does not force the deletion\n"},
    {"for ever", 1, 1, "OnFailure", "",
     "patience 60000; settle; run *; settle; delete worker-0; pass; wait 90000; pass; wait 9000000; "
     "pass",
     ""},
    {"until it ends", 1, 1, "OnFailure", "",
     "patience 60000; settle; run *; settle; delete worker-0; pass; wait 90000; pass; gone worker-0; "
     "pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=1 worker-0:u4:0+0\n"
     "create pod j-worker-0 attempt 0\n"},
    {"or its node is lost: then it is deleted by force", 1, 1, "OnFailure", "",
     "patience 60000; settle; run *; settle; delete worker-0; pass; wait 89999; lose worker-0; pass; "
     "wait 1; pass",
     "event Warning PodLost: Pod j-worker-0 is deleted by force: its node is lost\n"
     "force delete pod j-worker-0 u4\n"},
    {"a pod in which nothing runs any more can be deleted by force anywhere", 0, 2, "OnFailure", "",
     "patience 60000; settle; run *; settle; exit worker-0 1; pass; wait 90000; pass",
     "event Warning PodForceDeleted: Pod j-worker-0 is deleted by force: it has terminated and is past its grace period\n"
     "force delete pod j-worker-0 u3\n"},
    {"and made again", 1, 1, "OnFailure", "",
     "patience 60000; settle; run *; settle; delete worker-0; pass; wait 80000; lose worker-0; "
     "wait 10000; pass; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=1 worker-0:u4:0+0\n"
     "create pod j-worker-0 attempt 0\n"},
    {"suspension gives up what is overdue", 1, 0, "OnFailure", "",
     "patience 60000; settle; run *; settle; suspend; pass; wait 80000; lose *; wait 10000; pass",
     "event Warning PodLost: Pod j-master-0 is deleted by force: its node is lost\n"
     "force delete pod j-master-0 u2\n"},
    {"so does a finished job that is cleaned up", 1, 1, "OnFailure", "cleanPodPolicy: All",
     "patience 60000; settle; run *; exit master-0 0; pass; wait 80000; lose worker-0; wait 10000; pass",
     "event Warning PodForceDeleted: Pod j-master-0 is deleted by force: it has terminated and is past its grace period\n"
     "event Warning PodLost: Pod j-worker-0 is deleted by force: its node is lost\n"
     "force delete pod j-master-0 u3\n"
     "force delete pod j-worker-0 u4\n"},
    {"a job scaled down as well", 0, 2, "OnFailure", "",
     "patience 60000; settle; run *; settle; scale 1; pass; wait 80000; lose worker-1; wait 10000; pass",
     "event Warning PodLost: Pod j-worker-1 is deleted by force: its node is lost\n"
     "force delete pod j-worker-1 u4\n"},
};

static void lost_nodes_are_given_up(void **state)
{
    (void)state;
    cluster_tell(nodes, array_length(nodes));
}

static void overdue_pods_are_given_up(void **state)
{
    (void)state;
    cluster_tell(overdue, array_length(overdue));
}

/* What is left after a deletion by force is left for a finalizer. */
static void finalizers_are_respected(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster_do(cluster, "patience 60000; settle; run *; settle; delete master-0; settle");
    cluster_do(cluster, "settle; run *; settle; lose master-0; delete master-0");
    cluster_pod(cluster, "j-master-0")->grace_ms = 0;
    cluster_do(cluster, "pass; wait 999999; pass");
    assert_int_equal(cluster->plan->count, 0);
    cluster_close(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_nodes_are_given_up),
        cmocka_unit_test(overdue_pods_are_given_up),
        cmocka_unit_test(finalizers_are_respected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
