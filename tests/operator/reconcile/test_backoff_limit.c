/* Which failures count, once each, and the backoffLimit that they reach. Names such as C07 and X13
 * are those of the peer's cases that a row re-creates; by our rule the limits of C06 to C08 and X13
 * grant as many restarts as they say. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/cluster.h"

static const struct story limits[] = {
    {"C06 limit 0 without failures", 1, 0, "OnFailure", "backoffLimit: 0",
     "settle; run *; settle; pass", ""},
    {"limit 0: the first failure fails the job", 1, 0, "OnFailure", "backoffLimit: 0",
     "settle; run *; settle; restart master-0; pass",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0)) Master=1/0/0 start=1000 completion=1000 failures=1 restarts=0 master-0:u2:1+0\n"
     "event Normal PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0)\n"},
    {"C07 limit 3: three in-place restarts are granted", 1, 0, "OnFailure", "backoffLimit: 3",
     "settle; run *; settle; restart *; settle; restart *; settle; restart *; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 start=1000 failures=3 master-0:u2:3+0\n"},
    {"C07 limit 3: the fourth failure fails the job", 1, 0, "OnFailure", "backoffLimit: 3",
     "settle; run *; settle; restart *; restart *; settle; restart *; restart *; pass",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0)) Master=1/0/0 start=1000 completion=1000 failures=4 restarts=2 master-0:u2:4+0\n"
     "event Normal PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0)\n"},
    {"C08 limit 4: one restart of each of five workers is too many", 0, 5, "OnFailure",
     "backoffLimit: 4", "settle; run *; settle; restart *; pass",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-4)) Worker=5/0/0 start=1000 completion=1000 failures=5 restarts=0 worker-0:u6:1+0 worker-1:u7:1+0 worker-2:u8:1+0 worker-3:u9:1+0 worker-4:u10:1+0\n"
     "event Normal PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-4)\n"},
    {"C08 limit 4: of four it is not", 0, 4, "OnFailure", "backoffLimit: 4",
     "settle; run *; settle; restart *; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=4/0/0 start=1000 failures=4 worker-0:u5:1+0 worker-1:u6:1+0 worker-2:u7:1+0 worker-3:u8:1+0\n"},
    {"X13 ExitCode, limit 2: two new pods are granted", 1, 0, "ExitCode", "backoffLimit: 2",
     "settle; exit master-0 137; settle; exit master-0 137; settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Master replica(s) failed.) Master=0/0/0 start=1000 failures=2 master-0:u3:1+1\n"},
    {"X13 ExitCode, limit 2: the third failure fails the job", 1, 0, "ExitCode", "backoffLimit: 2",
     "settle; exit master-0 137; settle; exit master-0 137; settle; exit master-0 137; pass",
     "status Created=T Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0, container pytorch, exit code 137)) Master=0/0/1 start=1000 completion=1000 failures=3 restarts=2 master-0:u4:1+2\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 137\n"
     "event Normal PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0, container pytorch, exit code 137)\n"},
    {"X14 restarts of a pending pod count too", 1, 1, "OnFailure", "backoffLimit: 0",
     "settle; restart worker-0; pass; state",
     "status Created=T Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)) Master=0/0/0 Worker=0/0/0 start=1000 completion=1000 failures=1 restarts=0 worker-0:u4:1+0\n"},
    {"unset means six", 1, 0, "ExitCode", "",
     "settle; exit * 137; settle; exit * 137; settle; exit * 137; settle; exit * 137; settle;"
     "exit * 137; settle; exit * 137; settle; exit * 137; settle; state",
     "status Created=T Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0, container pytorch, exit code 137)) Master=0/0/1 start=1000 completion=1000 failures=7 restarts=6 master-0:u8:1+6\n"},
    {"-1 means unlimited", 1, 0, "OnFailure", "backoffLimit: -1",
     "settle; run *; restart *; restart *; restart *; restart *; restart *; restart *; restart *;"
     "restart *; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 start=1000 failures=8 master-0:u2:8+0\n"},
    {"evictions are no failures", 1, 0, "OnFailure", "backoffLimit: 0",
     "settle; evict *; settle; evict *; settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Master pod(s) were terminated by the system.) Master=0/0/0 start=1000 incidents=2 master-0:u3:0+0\n"},
    {"restarts of a replaced pod stay counted", 1, 0, "OnFailure", "backoffLimit: 2",
     "settle; run *; restart *; restart *; settle; gone *; settle; restart *; pass; state",
     "status Created=T Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0)) Master=0/0/0 start=1000 completion=1000 failures=3 restarts=2 master-0:u3:1+2\n"},
};

/* The limit is lowered below what has been counted: whose failure was the last is of before. */
static const struct story lowered_limits[] = {
    {"the pod still tells", 1, 1, "OnFailure", "",
     "settle; run *; settle; restart worker-0 3:OOMKilled; settle; limit 0; pass; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0, container pytorch, exit code 3: OOMKilled)) Master=1/0/0 Worker=1/0/0 start=1000 completion=1000 failures=1 worker-0:u4:1+0\n"},
    {"the pod was replaced", 1, 1, "ExitCode", "",
     "settle; run *; settle; exit worker-0 137; settle; run *; settle; limit 0; pass; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)) Master=1/0/0 Worker=1/0/0 start=1000 completion=1000 failures=1 worker-0:u4:1+0\n"},
    {"the later of two", 1, 1, "ExitCode", "",
     "settle; run *; settle; exit worker-0 137; settle; run *; settle; exit master-0 137; settle;"
     "limit 0; pass; state",
     "status Created=T Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0)) Master=0/0/0 Worker=1/0/0 start=1000 completion=1000 failures=2 master-0:u3:1+0 worker-0:u4:1+0\n"},
    {"its peer's end is not it", 1, 1, "OnFailure", "",
     "settle; run *; settle; restart worker-0 9; restart master-0 138; settle; limit 0; pass; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0, container pytorch, exit code 9)) Master=1/0/0 Worker=1/0/0 start=1000 completion=1000 failures=1 master-0:u3:1+0 worker-0:u4:1+0\n"},
    {"several of one moment, nobody knows which", 1, 1, "ExitCode", "",
     "settle; run *; settle; exit * 138; settle; run *; settle; limit 0; pass; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit) Master=1/0/0 Worker=1/0/0 start=1000 completion=1000 failures=1 master-0:u3:1+0 worker-0:u4:1+0\n"},
    {"it was deleted since", 1, 1, "ExitCode", "",
     "settle; run *; settle; exit worker-0 137; settle; run *; settle; delete worker-0; settle;"
     "run *; settle; limit 0; pass; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)) Master=1/0/0 Worker=1/0/0 start=1000 completion=1000 failures=1 incidents=2 worker-0:u5:0+1\n"},
    {"it was deleted since, and another has failed", 1, 1, "ExitCode", "",
     "settle; run *; settle; exit worker-0 137; settle; run *; settle; exit master-0 137; settle;"
     "run *; settle; delete worker-0; settle; run *; settle; limit 0; pass; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit) Master=1/0/0 Worker=1/0/0 start=1000 completion=1000 failures=2 incidents=3 master-0:u3:1+0 worker-0:u5:0+1\n"},
};

/* One rank that goes takes its peers with it: they leave with 138. */
#define IN_PLACE "settle; run *; settle; "
static const struct story incidents[] = {
    {"one dead rank of four is one failure", 1, 3, "OnFailure", "backoffLimit: 1",
     IN_PLACE "restart worker-1 137; settle; restart master-0 138; settle; restart worker-0 138;"
              "restart worker-2 138; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=3/0/0 start=1000 failures=1 master-0:u5:1+0 worker-0:u6:1+0 worker-1:u7:1+0 worker-2:u8:1+0\n"},
    {"in whatever order they are seen", 1, 3, "OnFailure", "backoffLimit: 1",
     IN_PLACE "restart master-0 138; settle; restart worker-2 138; settle; restart worker-1 137;"
              "settle; restart worker-0 138; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=3/0/0 start=1000 failures=1 master-0:u5:1+0 worker-0:u6:1+0 worker-1:u7:1+0 worker-2:u8:1+0\n"},
    {"or all at once", 1, 3, "OnFailure", "backoffLimit: 1",
     IN_PLACE
     "restart master-0 138; restart worker-0 138; restart worker-1 137; restart worker-2 138;"
     "settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=3/0/0 start=1000 failures=1 master-0:u5:1+0 worker-0:u6:1+0 worker-1:u7:1+0 worker-2:u8:1+0\n"},
    {"so it is with pods that are made again", 1, 3, "ExitCode", "backoffLimit: 1",
     IN_PLACE
     "exit master-0 138; pass; exit worker-1 137; pass; exit worker-0 138; exit worker-2 138;"
     "settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Master replica(s) failed.) Master=0/0/0 Worker=0/0/0 start=1000 failures=1 master-0:u5:1+0 worker-0:u6:1+0 worker-1:u7:1+0 worker-2:u8:1+0\n"},
    {"the next one is another", 1, 2, "OnFailure", "",
     IN_PLACE
     "restart worker-1 137; restart master-0 138; restart worker-0 138; settle; restart worker-0 137;"
     "settle; restart master-0 138; restart worker-1 138; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000 failures=2 master-0:u4:2+0 worker-0:u5:2+0 worker-1:u6:2+0\n"},
    {"unset grants six incidents", 1, 3, "OnFailure", "",
     IN_PLACE "restart * 138; settle; restart * 138; settle; restart * 138; settle; restart * 138;"
              "settle; restart * 138; settle; restart * 138; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=3/0/0 start=1000 failures=6 master-0:u5:6+0 worker-0:u6:6+0 worker-1:u7:6+0 worker-2:u8:6+0\n"},
    {"and not the seventh", 1, 3, "OnFailure", "",
     IN_PLACE "restart * 138; settle; restart * 138; settle; restart * 138; settle; restart * 138;"
              "settle; restart * 138; settle; restart * 138; settle; restart * 138; settle; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0, container pytorch, exit code 138)) Master=1/0/0 Worker=3/0/0 start=1000 completion=1000 failures=7 restarts=6 master-0:u5:7+0 worker-0:u6:7+0 worker-1:u7:7+0 worker-2:u8:7+0\n"},
    {"scope Job grants as many", 1, 3, "OnFailure", "restartScope: Job, backoffLimit: 1",
     IN_PLACE "exit worker-0 138; pass; exit worker-1 137; settle; run *; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=3/0/0 start=1000 failures=1 attempt=1 formed=1+3 worker-0:u6:1+0\n"},
    {"two that fail by themselves are two", 1, 3, "OnFailure", "",
     IN_PLACE "restart worker-0 1; restart worker-1 1; restart master-0 138; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=3/0/0 start=1000 failures=2 master-0:u5:1+0 worker-0:u6:1+0 worker-1:u7:1+0\n"},
    {"an image that uses 138 for itself reaches its limit", 0, 1, "OnFailure", "backoffLimit: 2",
     IN_PLACE "restart * 138; settle; restart * 138; settle; restart * 138; settle; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0, container pytorch, exit code 138)) Worker=1/0/0 start=1000 completion=1000 failures=3 restarts=2 worker-0:u2:3+0\n"},
    {"so it does beside another that fails", 0, 2, "OnFailure", "backoffLimit: 2",
     IN_PLACE
     "restart worker-0 1; settle; restart worker-1 138; settle; restart worker-1 138; settle;"
     "restart worker-1 138; settle; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-1, container pytorch, exit code 138)) Worker=2/0/0 start=1000 completion=1000 failures=3 restarts=2 worker-0:u3:1+0 worker-1:u4:3+0\n"},
    {"long after an incident 138 is a failure of its own", 0, 2, "OnFailure", "", IN_PLACE "restart worker-0 1; settle; wait 600000; restart worker-1 138; settle; state", "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 failures=2 worker-0:u3:1+0 worker-1:u4:1+0\n"},
    {"and another code is none's cause", 0, 2, "OnFailure", "",
     IN_PLACE "restart worker-0 138; settle; wait 600000; restart worker-1 1; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 failures=2 worker-0:u3:1+0 worker-1:u4:1+0\n"},
    {"a sidecar that leaves with 138 has lost nobody", 0, 2, "OnFailure", "",
     IN_PLACE "restart worker-0 1; settle; restart worker-1 138@side; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 failures=2 worker-0:u3:1+0 worker-1:u4:1+0\n"},
    {"an evicted pod's peers have not failed", 1, 3, "OnFailure", "backoffLimit: 0",
     IN_PLACE
     "evict worker-1; pass; restart master-0 138; restart worker-0 138; restart worker-2 138;"
     "settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000 incidents=1 master-0:u5:1+0 worker-0:u6:1+0 worker-1:u7:0+0 worker-2:u8:1+0\n"},
    {"nor a deleted one's, in any order of nodes", 1, 3, "ExitCode", "backoffLimit: 0",
     IN_PLACE
     "delete worker-1; pass; delete worker-2; exit master-0 138; exit worker-0 138; settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are being deleted.) Master=0/0/0 Worker=0/0/0 start=1000 incidents=2 master-0:u5:1+0 worker-0:u6:1+0 worker-1:u7:0+0 worker-2:u8:0+0\n"},
    {"scope Job: nor does the attempt count", 1, 1, "OnFailure",
     "restartScope: Job, backoffLimit: 0",
     IN_PLACE "evict worker-0; exit master-0 138; settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Master replica(s) failed.) Master=0/0/0 Worker=0/0/0 start=1000 incidents=1 attempt=1 formed=1+1 master-0:u3:1+0 worker-0:u4:0+0\n"},
    {"a resumed job starts with none", 1, 1, "OnFailure", "",
     IN_PLACE "restart worker-0 1; settle; suspend; settle; resume; settle; run *; settle;"
              "restart master-0 138; settle; state",
     "status Created=T Suspended=F Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 failures=2 master-0:u7:1+0 worker-0:u4:1+0\n"},
};

/* Of a pod that is asked to stop all ranks save and stop, with 143. */
static const struct story stops[] = {
    {"a pod is deleted, and its peers stop with it", 1, 3, "OnFailure", "backoffLimit: 0",
     IN_PLACE "delete worker-1; pass; restart master-0 143; settle; restart worker-0 143;"
              "restart worker-2 143; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000 incidents=1 master-0:u5:1+0 worker-0:u6:1+0 worker-1:u7:0+0 worker-2:u8:1+0\n"},
    {"what stops by itself has failed, once", 1, 1, "OnFailure", "",
     IN_PLACE "restart worker-0 143; settle; restart master-0 143; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 failures=1 master-0:u3:1+0 worker-0:u4:1+0\n"},
};

/* Jobs under way that another operator began: a limit that it did not have is not
 * reached at once. */
static const struct story adoptions[] = {
    {"what was before is not counted", 0, 2, "OnFailure", "backoffLimit: 0",
     IN_PLACE "restart worker-0 1; restart worker-0 1; restart worker-1 137; adopt; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 worker-0:u3:2+0 worker-1:u4:1+0\n"},
    {"what comes is", 0, 2, "OnFailure", "backoffLimit: 1",
     IN_PLACE
     "restart worker-0 1; restart worker-0 1; adopt; settle; restart worker-0 1; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 failures=1 worker-0:u3:3+0\n"},
    {"a pod that ended meanwhile is replaced, and counts", 1, 1, "ExitCode", "",
     IN_PLACE "exit worker-0 137; adopt; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Master=1/0/0 Worker=0/0/1 start=1000 failures=1 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 137\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"
     "delete pod j-worker-0 u4\n"},
    {"one that is asleep wakes to a history of its own", 1, 1, "OnFailure", "",
     IN_PLACE
     "suspend; settle; adopt; pass; resume; settle; run *; restart worker-0 1; settle; state",
     "status Created=T Suspended=F Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 failures=1 worker-0:u8:1+0\n"},
    {"nothing is written while nothing can be seen", 0, 1, "OnFailure", "backoffLimit: 0",
     IN_PLACE "restart worker-0 1; adopt; forbid Forbidden; pass; permit; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/0/0 start=1000 worker-0:u2:1+0\n"},
};

static void failures_are_counted_once(void **state)
{
    (void)state;
    cluster_tell(limits, array_length(limits));
    cluster_tell(lowered_limits, array_length(lowered_limits));
}

static void one_incident_is_one_count(void **state)
{
    (void)state;
    cluster_tell(stops, array_length(stops));
    cluster_tell(incidents, array_length(incidents));
}

static void jobs_are_taken_over_with_what_they_went_through(void **state)
{
    (void)state;
    cluster_tell(adoptions, array_length(adoptions));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_counted_once),
        cmocka_unit_test(one_incident_is_one_count),
        cmocka_unit_test(jobs_are_taken_over_with_what_they_went_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
