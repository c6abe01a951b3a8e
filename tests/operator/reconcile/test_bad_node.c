/* Nodes that others have marked as bad are left with care: no failure. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/cluster.h"

#define PLACED                                                                                     \
    "shun 600000; spare 1; settle; bind master-0 a; bind worker-0 b; bind worker-1 c; run *;"      \
    "settle; wait 5000; "

static const struct story stories[] = {
    {"the pod goes, the others stay, nothing is counted", 1, 2, "Never", "backoffLimit: 0",
     PLACED "sign b taint; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000 incidents=1 worker-0:u5:0+0 avoids:b\n"
     "event Warning NodeAvoided: Node b is avoided for 600 s, and pod j-worker-0 is made again elsewhere: taint\n"
     "delete pod j-worker-0 u5\n"
     "requeue 606000\n"},
    {"in its place comes one that avoids the node", 1, 2, "OnFailure", "backoffLimit: 0",
     PLACED "sign b taint; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 worker-0:u5:0+0 avoids:b\n"},
    {"which is all: the sign stays, and nothing more happens", 1, 2, "OnFailure", "",
     PLACED "sign b taint; settle; bind worker-0 d; run *; settle; wait 1000; pass",
     "requeue 606000\n"},
    {"its end by SIGTERM and its peers' are no failures", 1, 2, "OnFailure", "backoffLimit: 0",
     PLACED "sign b taint; pass; exit worker-0 143; restart master-0 138; restart worker-1 138;"
            "settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 master-0:u4:1+0 worker-0:u5:0+0 worker-1:u6:1+0 avoids:b\n"},
    {"what failed there by itself has failed", 1, 2, "OnFailure", "",
     PLACED "sign b taint; restart worker-0 1; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 failures=1 incidents=2 worker-0:u5:1+0 avoids:b\n"},
    {"scope Job: all start again, and nothing is counted", 1, 2, "OnFailure",
     "restartScope: Job, backoffLimit: 0", PLACED "sign b taint; settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because pods are missing.) Master=0/0/0 Worker=0/0/0 start=1000 incidents=1 attempt=1 formed=1+2 worker-0:u5:0+0 avoids:b\n"},
    {"without the option it stays", 1, 2, "OnFailure", "", PLACED "shun 0; sign b taint; pass", ""},
    {"where no other node could take it, it stays", 1, 2, "OnFailure", "",
     PLACED "spare 0; sign b taint; pass", "requeue 66000\n"},
    {"until one can", 1, 2, "OnFailure", "",
     PLACED "spare 0; sign b taint; pass; spare 1; wait 60000; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 worker-0:u5:0+0 avoids:b\n"},
    {"one spare node takes one: the next leaves when that is there", 1, 2, "OnFailure", "",
     PLACED "sign b taint; sign c taint; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 worker-0:u5:0+0 avoids:b\n"},
    {"two take two, which are one leave", 1, 2, "OnFailure", "",
     PLACED "spare 2; sign b taint; sign c taint; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=2 worker-0:u5:0+0 worker-1:u6:0+0 avoids:b avoids:c\n"},
    {"who waits for a node already will take the spare one", 1, 2, "OnFailure", "",
     PLACED "delete worker-1; settle; sign b taint; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 worker-1:u6:0+0\n"},
    {"a success stays", 1, 2, "OnFailure", "",
     PLACED "exit worker-0 0; settle; sign b taint; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/1/0 start=1000 done:worker-0\n"},
    {"who is being deleted goes as it is", 1, 2, "OnFailure", "",
     PLACED "delete worker-0; sign b taint; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are being deleted.) Master=1/0/0 Worker=1/0/1 start=1000 incidents=1 worker-0:u5:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are being deleted.\n"},
    {"who was told of the node and is there can be nowhere else", 1, 2, "OnFailure", "",
     PLACED "sign b taint; settle; bind worker-0 b; run *; settle; wait 600000; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000 incidents=1 worker-0:u5:0+0\n"},
    {"a node that is still bad after the time is left again", 1, 2, "OnFailure", "",
     PLACED "sign b taint; settle; bind worker-0 d; run *; settle; wait 600000; settle; delete "
            "worker-1; settle; bind worker-1 b; run *; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=3 worker-0:u5:0+0 worker-1:u8:0+0 avoids:b\n"},
    {"the agent's word comes first, and is counted as its leave", 1, 2, "OnFailure",
     "backoffLimit: 0", PLACED "sign b taint; restart worker-0 144:gpu-3; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=1 worker-0:u5:1+0 avoids:b\n"},
};

/* Each node that its worker comes to gets the sign two minutes later. */
#define FOLLOWS(node) "wait 120000; bind worker-0 " node "; run *; sign " node " taint; settle;"
#define FOLLOWS_FOUR                                                                               \
    "shun 3600000; spare 9; settle; bind master-0 a; run *; settle;" FOLLOWS("b") FOLLOWS("c")     \
        FOLLOWS("d") FOLLOWS("e")

static const struct story limits[] = {
    {"four nodes are left", 1, 1, "OnFailure", "", FOLLOWS_FOUR "state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=4 worker-0:u7:0+0 avoids:b avoids:c avoids:d avoids:e\n"},
    {"the fifth is not, as the sign follows the job", 1, 1, "OnFailure", "",
     FOLLOWS_FOUR FOLLOWS("f") "state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 incidents=4 worker-0:u7:0+0 avoids:b avoids:c avoids:d avoids:e\n"},
    {"what comes within the minute of the fourth belongs to it", 1, 1, "OnFailure", "",
     FOLLOWS_FOUR "wait 59000; bind worker-0 f; run *; sign f taint; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=5 worker-0:u8:0+0 avoids:b avoids:c avoids:d avoids:e avoids:f\n"},
    {"until the first is forgotten", 1, 1, "OnFailure", "",
     FOLLOWS_FOUR FOLLOWS("f") "wait 3120000; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=5 worker-0:u8:0+0 avoids:c avoids:d avoids:e avoids:f\n"},
    {"all nodes at once are one leave, as far as others are spare", 1, 5, "OnFailure", "",
     "shun 3600000; spare 9; settle; run *; bind worker-0 b; bind worker-1 c; bind worker-2 d; bind "
     "worker-3 e; bind worker-4 f; settle; sign b taint; sign c taint; sign d taint; sign e taint;"
     "sign f taint; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 incidents=5 worker-0:u8:0+0 worker-1:u9:0+0 worker-2:u10:0+0 worker-3:u11:0+0 worker-4:u12:0+0 avoids:b avoids:c avoids:d avoids:e avoids:f\n"},
};

static void a_marked_node_is_left(void **state)
{
    (void)state;
    cluster_tell(stories, array_length(stories));
}

static void not_without_end(void **state)
{
    (void)state;
    cluster_tell(limits, array_length(limits));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_marked_node_is_left),
        cmocka_unit_test(not_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
