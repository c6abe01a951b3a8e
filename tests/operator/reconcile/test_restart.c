/* Failures: what the restart policies do, both restart scopes, and the pauses before a pod is made
 * again. What is counted: test_backoff_limit.c. Names such as C19 and X01 are those of the peer's
 * cases that a row re-creates. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/cluster.h"

static const struct story policies[] = {
    {"X01 OnFailure: a failed pod is replaced", 1, 1, "OnFailure", "",
     "settle; run *; settle; exit worker-0 1; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Master=1/0/0 Worker=0/0/1 start=1000 failures=1 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 1\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"
     "delete pod j-worker-0 u4\n"},
    {"X01 and the job runs again", 1, 1, "OnFailure", "",
     "settle; run *; settle; exit worker-0 1; settle; run *; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 failures=1 worker-0:u4:1+0\n"},
    {"X02 Never: one failure fails the job", 1, 1, "Never", "",
     "settle; run *; settle; exit worker-0 1; wait 5; pass",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: PyTorchJob j is failed because 1 Worker replica(s) failed. (last failure: pod j-worker-0, container pytorch, exit code 1)) Master=1/0/0 Worker=0/0/1 start=1000 completion=1005 failures=1 restarts=0 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 1\n"
     "event Normal PyTorchJobFailed: PyTorchJob j is failed because 1 Worker replica(s) failed. (last failure: pod j-worker-0, container pytorch, exit code 1)\n"},
    {"Never: evicted: replaced and not counted", 1, 1, "Never", "",
     "settle; run *; settle; evict worker-0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.) Master=1/0/0 Worker=0/0/1 start=1000 incidents=1 worker-0:u4:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.\n"
     "delete pod j-worker-0 u4\n"},
    {"C19 ExitCode: 130 is retried", 1, 1, "ExitCode", "",
     "settle; run *; settle; exit worker-0 130; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Master=1/0/0 Worker=0/0/1 start=1000 failures=1 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 130\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"
     "delete pod j-worker-0 u4\n"},
    {"C20 ExitCode: 1 is permanent", 1, 1, "ExitCode", "",
     "settle; run *; settle; exit worker-0 1; pass",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: job \"j\" is failing because \"Worker\" replica(s) failed. (last failure: pod j-worker-0, container pytorch, exit code 1)) Master=1/0/0 Worker=0/0/1 start=1000 completion=1000 failures=1 restarts=0 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 1\n"
     "event Warning PyTorchJobFailed: job \"j\" is failing because \"Worker\" replica(s) failed. (last failure: pod j-worker-0, container pytorch, exit code 1)\n"},
    {"C21 ExitCode: 127 is the last permanent one", 1, 0, "ExitCode", "",
     "settle; exit master-0 127; pass; state",
     "status Created=T Failed=T(PyTorchJobFailed: job \"j\" is failing because \"Master\" replica(s) failed. (last failure: pod j-master-0, container pytorch, exit code 127)) Master=0/0/1 start=1000 completion=1000 failures=1 restarts=0 master-0:u2:1+0\n"},
    {"C21 ExitCode: 128 is the first retryable one", 1, 0, "ExitCode", "",
     "settle; exit master-0 128; pass; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Master replica(s) failed.) Master=0/0/1 start=1000 failures=1 master-0:u2:1+0\n"},
    {"X15 ExitCode: an evicted pod is replaced and not counted", 1, 1, "ExitCode", "",
     "settle; run *; settle; evict worker-0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.) Master=1/0/0 Worker=0/0/1 start=1000 incidents=1 worker-0:u4:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.\n"
     "delete pod j-worker-0 u4\n"},
    {"ExitCode: a pod without exit code is replaced and counted", 1, 0, "ExitCode", "",
     "settle; fail master-0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Master replica(s) failed.) Master=0/0/1 start=1000 failures=1 master-0:u2:1+0\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Master replica(s) failed.\n"
     "delete pod j-master-0 u2\n"},
    {"OnFailure: an in-place restart names the pod and how it ended", 1, 1, "OnFailure", "",
     "settle; run *; settle; restart worker-0 137; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000 failures=1 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 137\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"},
    {"Always: an in-place restart after success is no failure", 1, 0, "Always", "backoffLimit: 0",
     "settle; run *; settle; restart master-0 0; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 start=1000 master-0:u2:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"},
    {"a sidecar is named", 1, 1, "OnFailure", "backoffLimit: 0",
     "settle; run *; settle; restart worker-0 3:OOMKilled@side; pass",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0, container side, exit code 3: OOMKilled)) Master=1/0/0 Worker=1/0/0 start=1000 completion=1000 failures=1 restarts=0 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0, container side exited with code 3: OOMKilled\n"
     "event Normal PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0, container side, exit code 3: OOMKilled)\n"},
    {"so is why a container was killed", 1, 1, "ExitCode", "",
     "settle; run *; settle; exit worker-0 137:OOMKilled; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Master=1/0/0 Worker=0/0/1 start=1000 failures=1 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 137: OOMKilled\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"
     "delete pod j-worker-0 u4\n"},
    {"Always: an in-place restart after who knows what is counted", 1, 0, "Always", "",
     "settle; run *; settle; restart master-0; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 start=1000 failures=1 master-0:u2:1+0\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Master replica(s) failed.\n"},
};

static const struct story deletions[] = {
    {"C22 a running pod being deleted is not active", 0, 2, "OnFailure", "",
     "settle; run *; settle; delete worker-0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are being deleted.) Worker=1/0/1 start=1000 incidents=1 worker-0:u3:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are being deleted.\n"},
    {"Never: someone deletes a pod: it is made again", 1, 1, "Never", "",
     "settle; run *; settle; delete worker-0; settle; gone worker-0; pass",
     "create pod j-worker-0 attempt 0\n"},
    {"a deleted pod that ends with 1 has not failed", 1, 1, "ExitCode", "",
     "settle; run *; settle; delete worker-0; exit worker-0 1; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are being deleted.) Master=1/0/0 Worker=0/0/1 start=1000 incidents=1 worker-0:u4:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are being deleted.\n"},
    {"a deleted master that ends with 0 has not succeeded", 1, 0, "OnFailure", "",
     "settle; run *; settle; delete master-0; exit master-0 0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because no Master replica is running.) Master=0/0/0 start=1000 incidents=1 master-0:u2:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because no Master replica is running.\n"},
    {"but one that succeeded before it was deleted has", 1, 0, "OnFailure", "",
     "settle; run *; settle; exit master-0 0; wait 5; delete master-0; pass",
     "status Created=T Running=F Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 start=1000 completion=1005 done:master-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob j is successfully completed.\n"},
};

/* The operator's own init container found no master: a cluster may take its time to have a node. */
#define STARVED "settle; starve worker-0; starve worker-1; starve worker-2; "
static const struct story waits[] = {
    {"ExitCode: who waited for the master in vain waits anew", 1, 3, "ExitCode", "backoffLimit: 0",
     STARVED "pass",
     "delete pod j-worker-0 u6\n"
     "delete pod j-worker-1 u7\n"
     "delete pod j-worker-2 u8\n"},
    {"Never: it is not the failure that fails the job", 1, 3, "Never", "",
     STARVED "settle; " STARVED "settle; state",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Master=0/0/0 Worker=0/0/0 start=1000\n"},
    {"scope Job: nor one that ends the attempt", 1, 3, "OnFailure",
     "restartScope: Job, backoffLimit: 0", STARVED "pass; gone worker-0; pass",
     "create pod j-worker-0 attempt 0\n"},
    {"scope Job: the master goes on waiting for its node", 1, 3, "OnFailure",
     "restartScope: Job, backoffLimit: 0", STARVED "settle; " STARVED "settle; state",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Master=0/0/0 Worker=0/0/0 start=1000 formed=1+3\n"},
    {"scope Job: what vanishes once all have come ends the attempt again", 1, 3, "OnFailure",
     "restartScope: Job", STARVED "settle; run *; settle; gone worker-1; settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because pods are missing.) Master=0/0/0 Worker=0/0/0 start=1000 attempt=1 formed=1+3\n"},
    {"scope Job: and what had been there before, at any time", 1, 3, "OnFailure",
     "restartScope: Job",
     "settle; run *; settle; starve worker-2; pass; gone worker-0; settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because pods are missing.) Master=0/0/0 Worker=0/0/0 start=1000 attempt=1 formed=1+3\n"},
};

#define REJECTED "settle; reject worker-0 OutOfcpu; pass; "
static const struct story pauses[] = {
    {"a kubelet that refuses a pod does not get the next one at once", 1, 1, "Never", "",
     REJECTED "wait 9999; pass", "requeue 11000\n"},
    {"but after a pause", 1, 1, "Never", "", REJECTED "wait 10000; pass",
     "event Warning PodDisrupted: Pod j-worker-0 did not fail, the system terminated it: OutOfcpu\n"
     "delete pod j-worker-0 u4\n"},
    {"which grows with the trouble", 1, 1, "Never", "",
     REJECTED "wait 10000; settle; wait 30000; reject worker-0 OutOfcpu; pass; pass",
     "requeue 61000\n"},
    {"whatever the others do", 1, 1, "Never", "",
     "settle; run master-0; settle; wait 30000; reject worker-0 OutOfcpu; pass; pass",
     "requeue 46000\n"},
    {"up to a minute", 1, 1, "Never", "",
     REJECTED "wait 10000; settle; wait 990000; reject worker-0 OutOfcpu; pass; pass",
     "requeue 1061000\n"},
    {"and is none for a pod that has lived", 1, 1, "Never", "",
     "settle; reject worker-0 Evicted; wait 10000; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.) Master=0/0/0 Worker=0/0/1 start=1000 incidents=1 worker-0:u4:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.\n"
     "event Warning PodDisrupted: Pod j-worker-0 did not fail, the system terminated it: Evicted\n"
     "delete pod j-worker-0 u4\n"},
    {"nor for one that has run", 1, 1, "Never", "",
     "settle; run *; settle; bind worker-0 n; exit worker-0 137; evict worker-0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.) Master=1/0/0 Worker=0/0/1 start=1000 incidents=1 worker-0:u4:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.\n"
     "delete pod j-worker-0 u4\n"},
    {"but for one that has not", 1, 1, "Never", "",
     "settle; bind worker-0 n; evict worker-0; pass; pass", "requeue 11000\n"},
    {"whose container is said to have ended, and never began", 1, 1, "Never", "",
     "settle; bind worker-0 n; abort worker-0; pass; pass", "requeue 11000\n"},
    {"nor does it keep what has no place", 1, 2, "Never", "",
     "settle; reject worker-1 OutOfcpu; pass; scale 1; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.) Master=0/0/0 Worker=0/0/0 start=1000 incidents=1 worker-1:u6:0+0\n"
     "delete pod j-worker-1 u6\n"
     "delete service j-worker-1 u3\n"
     "requeue 11000\n"},
    {"clocks too far apart tell nothing", 1, 0, "Never", "",
     "settle; wait 50000; reject master-0 OutOfcpu; pass; wait -25001; pass",
     "event Warning PodDisrupted: Pod j-master-0 did not fail, the system terminated it: OutOfcpu\n"
     "delete pod j-master-0 u2\n"},
    {"scope Job: the next attempt waits for it", 1, 1, "OnFailure", "restartScope: Job",
     REJECTED "gone master-0; pass; wait 9999; pass", "requeue 11000\n"},
    {"scope Job: and begins after it", 1, 1, "OnFailure", "restartScope: Job",
     REJECTED "gone master-0; pass; wait 10000; pass; gone worker-0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.) Master=0/0/0 Worker=0/0/0 start=1000 incidents=1 attempt=1 worker-0:u4:0+0\n"
     "create pod j-master-0 attempt 1\n"
     "create pod j-worker-0 attempt 1\n"},
};

static const struct story groups[] = {
    {"scope Job: one failure ends the attempt", 1, 2, "OnFailure", "restartScope: Job",
     "settle; run *; settle; exit worker-0 138; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Master=1/0/0 Worker=1/0/1 start=1000 failures=1 attempt=1 worker-0:u5:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 138\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"
     "delete pod j-master-0 u4\n"
     "delete pod j-worker-0 u5\n"
     "delete pod j-worker-1 u6\n"},
    {"scope Job: restarting until the old attempt is gone", 1, 2, "OnFailure", "restartScope: Job",
     "settle; run *; settle; exit worker-0 138; pass; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Master=0/0/1 Worker=0/0/2 start=1000 failures=1 attempt=1 worker-0:u5:1+0\n"},
    {"scope Job: nothing is made before the last old pod is gone", 1, 1, "OnFailure",
     "restartScope: Job", "settle; run *; settle; exit worker-0 138; pass; gone worker-0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Master=0/0/1 Worker=0/0/0 start=1000 failures=1 attempt=1 worker-0:u4:1+0\n"},
    {"scope Job: then all are made anew", 1, 1, "OnFailure", "restartScope: Job",
     "settle; run *; settle; exit worker-0 138; pass; gone worker-0; gone master-0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Master=0/0/0 Worker=0/0/0 start=1000 failures=1 attempt=1 worker-0:u4:1+0\n"
     "create pod j-master-0 attempt 1\n"
     "create pod j-worker-0 attempt 1\n"},
    {"scope Job: survivors that fail later are not counted again", 1, 2, "OnFailure",
     "restartScope: Job",
     "settle; run *; settle; exit worker-0 138; pass; exit worker-1 138; exit master-0 138; settle;"
     "run *; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000 failures=1 attempt=1 formed=1+2 worker-0:u5:1+0\n"},
    {"scope Job: several failures seen at once are one", 1, 2, "OnFailure", "restartScope: Job",
     "settle; run *; settle; exit * 138; settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 3 Master replica(s) failed.) Master=0/0/0 Worker=0/0/0 start=1000 failures=1 attempt=1 formed=1+2 master-0:u4:1+0 worker-0:u5:1+0 worker-1:u6:1+0\n"},
    {"scope Job: attempts are limited", 1, 1, "OnFailure", "restartScope: Job, backoffLimit: 1",
     "settle; exit worker-0 138; settle; exit master-0 138; pass",
     "status Created=T Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0, container pytorch, exit code 138)) Master=0/0/1 Worker=0/0/0 start=1000 completion=1000 failures=2 restarts=1 attempt=1 formed=1+1 master-0:u5:1+0 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 138\n"
     "event Normal PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-master-0, container pytorch, exit code 138)\n"},
    {"scope Job: a deleted pod restarts all, uncounted", 1, 1, "OnFailure", "restartScope: Job",
     "settle; run *; settle; delete worker-0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are being deleted.) Master=1/0/0 Worker=0/0/1 start=1000 incidents=1 attempt=1 worker-0:u4:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) are being deleted.\n"
     "delete pod j-master-0 u3\n"},
    {"scope Job: a pod that vanished ends the attempt, uncounted", 1, 2, "OnFailure",
     "restartScope: Job", "settle; run *; settle; gone worker-1; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because pods are missing.) Master=1/0/0 Worker=1/0/0 start=1000 attempt=1\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because pods are missing.\n"
     "delete pod j-master-0 u4\n"
     "delete pod j-worker-0 u5\n"},
    {"scope Job: one that was not made yet has not vanished", 1, 2, "OnFailure",
     "restartScope: Job", "pass; gone worker-1; pass", "create pod j-worker-1 attempt 0\n"},
    {"scope Job: nor has one that is new", 1, 1, "OnFailure", "restartScope: Job",
     "settle; run *; settle; scale 2; pass",
     "create service j-worker-1\n"
     "create pod j-worker-1 attempt 0\n"},
    {"scope Job: nor one that was finished", 0, 2, "OnFailure", "restartScope: Job",
     "settle; exit worker-1 0; settle; gone worker-1; pass", ""},
    {"scope Job: what was finished is run again", 0, 2, "OnFailure", "restartScope: Job",
     "settle; exit worker-0 0; settle; exit worker-1 1; settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Worker=0/0/0 start=1000 failures=1 attempt=1 formed=0+2 worker-1:u4:1+0\n"},
    {"scope Job, Never: fails", 0, 2, "Never", "restartScope: Job", "settle; exit worker-0 1; pass",
     "status Created=T Failed=T(PyTorchJobFailed: PyTorchJob j is failed because 1 Worker replica(s) failed. (last failure: pod j-worker-0, container pytorch, exit code 1)) Worker=0/0/1 start=1000 completion=1000 failures=1 restarts=0 formed=0+2 worker-0:u3:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 1\n"
     "event Normal PyTorchJobFailed: PyTorchJob j is failed because 1 Worker replica(s) failed. (last failure: pod j-worker-0, container pytorch, exit code 1)\n"},
    {"scope Job, Never: evicted: all begin anew", 0, 2, "Never", "restartScope: Job",
     "settle; evict worker-0; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.) Worker=0/0/1 start=1000 incidents=1 attempt=1 worker-0:u3:0+0\n"
     "event Normal PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker pod(s) were terminated by the system.\n"
     "delete pod j-worker-0 u3\n"
     "delete pod j-worker-1 u4\n"},
    {"scope Job: resuming is a new attempt", 1, 1, "OnFailure", "restartScope: Job",
     "settle; run *; settle; suspend; pass; resume; settle; state",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Master=0/0/0 Worker=0/0/0 start=1000 attempt=1 formed=1+1\n"},
};

static void policies_decide(void **state)
{
    (void)state;
    cluster_tell(policies, array_length(policies));
}

static void deletions_are_no_failures(void **state)
{
    (void)state;
    cluster_tell(deletions, array_length(deletions));
}

static void what_the_system_ends_again_and_again_waits(void **state)
{
    (void)state;
    cluster_tell(pauses, array_length(pauses));
}

static void who_waits_for_the_master_has_not_failed(void **state)
{
    (void)state;
    cluster_tell(waits, array_length(waits));
}

static void groups_restart_together(void **state)
{
    (void)state;
    cluster_tell(groups, array_length(groups));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_decide),
        cmocka_unit_test(deletions_are_no_failures),
        cmocka_unit_test(what_the_system_ends_again_and_again_waits),
        cmocka_unit_test(who_waits_for_the_master_has_not_failed),
        cmocka_unit_test(groups_restart_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
