/* The life of a job without failures: creation, running, success, scaling, suspension, ownership.
 * Names such as P06 and X10 are those of the peer's cases that a row re-creates. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/job/condition.h"
#include "tests/operator/cluster.h"

static const struct story life[] = {
    {"a new job gets its services and pods at once", 1, 2, "OnFailure", "", "pass",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Master=0/0/0 Worker=0/0/0 start=1000\n"
     "create service j-master-0\n"
     "create service j-worker-0\n"
     "create service j-worker-1\n"
     "create pod j-master-0 attempt 0\n"
     "create pod j-worker-0 attempt 0\n"
     "create pod j-worker-1 attempt 0\n"},
    {"a large job is told what it costs, once", 1, 0, "OnFailure", "",
     "bytes 1000000; pass; run *; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 start=1000\n"},
    {"with its first status", 1, 0, "OnFailure", "suspend: true", "bytes 1000000; pass",
     "status Created=T Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Master=0/0/0\n"
     "event Warning PyTorchJobLarge: PyTorchJob j is 976 KiB of text, which the API server and the operator keep in memory: put scripts and data into a ConfigMap or a volume.\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"},
    {"an unchanged world plans nothing", 1, 2, "OnFailure", "", "pass; wait 5; pass", ""},
    {"P06 running means the master runs", 1, 1, "OnFailure", "", "pass; run *; wait 5; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000\n"},
    {"workers alone do not make a job with a master run", 1, 1, "OnFailure", "",
     "pass; run worker-0; pass",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Master=0/0/0 Worker=1/0/0 start=1000\n"},
    {"without a master any worker does", 0, 2, "OnFailure", "", "pass; run worker-1; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/0/0 start=1000\n"},
    {"P03 the master's success is the job's", 1, 1, "OnFailure", "",
     "settle; run *; settle; wait 5; exit master-0 0; pass",
     "status Created=T Running=F Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=1/0/0 start=1000 completion=1005 done:master-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob j is successfully completed.\n"},
    {"C32 a fast job goes from Created to Succeeded", 1, 0, "OnFailure", "",
     "pass; exit master-0 0; pass; state",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 start=1000 completion=1000 done:master-0\n"},
    {"X03 two of three workers done: running", 0, 3, "OnFailure", "",
     "settle; run *; settle; exit worker-0 0; exit worker-1 0; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/2/0 start=1000 done:worker-0 done:worker-1\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-1 exited with code 0\n"},
    {"X03 three of three workers done: succeeded", 0, 3, "OnFailure", "",
     "settle; run *; settle; exit * 0; pass",
     "status Created=T Running=F Succeeded=T(PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.) Worker=0/3/0 start=1000 completion=1000 done:worker-0 done:worker-1 done:worker-2\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-1 exited with code 0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-2 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.\n"},
    {"C34 a job of workers alone", 0, 3, "OnFailure", "",
     "settle; run *; settle; exit * 0; settle; state",
     "status Created=T Running=F Succeeded=T(PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.) Worker=0/3/0 start=1000 completion=1000 done:worker-0 done:worker-1 done:worker-2\n"},
    {"C16 a pod's type decides its place, not only its index", 1, 1, "OnFailure", "",
     "settle; gone worker-0; pass", "create pod j-worker-0 attempt 0\n"},
    {"a success that waits to be written is told while its pod is there", 0, 2, "OnFailure", "",
     "settle; run *; settle; exit worker-0 0; hold; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/1/0 start=1000 done:worker-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 0\n"},
    {"... and succeeds though its pod goes first", 0, 2, "OnFailure", "",
     "settle; run *; settle; exit worker-0 0; hold; gone worker-0; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/1/0 start=1000 done:worker-0\n"},
    {"... or is deleted within the second", 0, 2, "OnFailure", "",
     "settle; run *; settle; exit worker-0 0; hold; delete worker-0; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/1/0 start=1000 done:worker-0\n"},
    {"... or the job is spoilt", 0, 2, "OnFailure", "",
     "settle; run *; settle; exit worker-1 0; hold; gone worker-1; spoil; pass; state",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/1/0 start=1000 done:worker-1\n"},
    {"... or the job has become smaller", 0, 2, "OnFailure", "",
     "settle; run *; settle; exit worker-1 0; hold; gone worker-1; scale 1; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/0/0 start=1000\n"
     "delete service j-worker-1 u2\n"},
    {"a finished replica whose pod is gone is not run again", 0, 2, "OnFailure", "",
     "settle; run *; exit worker-0 0; settle; gone worker-0; pass", ""},
    {"nor is its pod missed in the counters", 0, 2, "OnFailure", "",
     "settle; run *; exit worker-0 0; settle; gone worker-0; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/1/0 start=1000 done:worker-0\n"},
};

static const struct story sight[] = {
    {"what cannot be seen is told, and nothing is decided", 1, 1, "OnFailure", "",
     "settle; run *; settle; forbid no-right; exit worker-0 1; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000\n"
     "event Warning Forbidden: no-right\n"},
    {"once", 1, 1, "OnFailure", "", "settle; run *; settle; forbid no-right; pass; wait 5; pass",
     ""},
    {"seen again it is acted upon", 1, 1, "OnFailure", "",
     "settle; run *; settle; forbid no-right; exit worker-0 1; pass; permit; pass",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Master=1/0/0 Worker=0/0/1 start=1000 failures=1 worker-0:u4:1+0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 1\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"
     "delete pod j-worker-0 u4\n"},
    {"a new job is told too", 1, 1, "OnFailure", "", "forbid no-right; pass",
     "status Created=T Waiting=T(Forbidden: no-right)\n"
     "event Warning Forbidden: no-right\n"},
    {"one that sleeps has nothing to wait for", 1, 1, "OnFailure", "suspend: true",
     "settle; forbid no-right; pass", ""},
    {"one that is woken has", 1, 1, "OnFailure", "suspend: true",
     "settle; forbid no-right; resume; pass",
     "status Created=T Suspended=T Waiting=T(Forbidden: no-right) Master=0/0/0 Worker=0/0/0\n"
     "event Warning Forbidden: no-right\n"},
    {"until it sleeps again", 1, 1, "OnFailure", "suspend: true",
     "settle; forbid no-right; resume; pass; suspend; pass",
     "status Created=T Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Master=0/0/0 Worker=0/0/0\n"},
    {"seen or not", 1, 1, "OnFailure", "suspend: true",
     "settle; forbid no-right; resume; pass; suspend; permit; pass",
     "status Created=T Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Master=0/0/0 Worker=0/0/0\n"},
    {"or can be seen to go on", 0, 1, "OnFailure", "suspend: true",
     "settle; forbid no-right; resume; pass; permit; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Worker=0/0/0 start=1000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-worker-0\n"
     "create pod j-worker-0 attempt 0\n"},
    {"nor has one that is done", 1, 0, "OnFailure", "cleanPodPolicy: All",
     "settle; run *; exit * 0; pass; forbid no-right; pass", ""},
};

static const struct story scaling[] = {
    {"C18 up: missing replicas are made", 1, 1, "OnFailure", "", "settle; scale 3; pass",
     "create service j-worker-1\n"
     "create service j-worker-2\n"
     "create pod j-worker-1 attempt 0\n"
     "create pod j-worker-2 attempt 0\n"},
    {"C17 down: replicas beyond the number go", 1, 3, "OnFailure", "", "settle; scale 1; pass",
     "delete pod j-worker-1 u7\n"
     "delete pod j-worker-2 u8\n"
     "delete service j-worker-1 u3\n"
     "delete service j-worker-2 u4\n"},
    {"X10 no hole is filled while the rest is on its way out", 0, 5, "OnFailure", "",
     "settle; run *; settle; scale 2; pass; gone worker-2; pass; gone worker-3; pass", ""},
    {"a replica that comes back after scaling down starts anew", 0, 3, "OnFailure", "",
     "settle; exit worker-2 0; settle; scale 2; settle; scale 3; pass",
     "create service j-worker-2\n"
     "create pod j-worker-2 attempt 0\n"},
};

static const struct story suspension[] = {
    {"P05 created suspended: nothing is made", 1, 1, "OnFailure", "suspend: true", "pass",
     "status Created=T Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Master=0/0/0 Worker=0/0/0\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"},
    {"P07 suspending deletes everything", 1, 1, "OnFailure", "",
     "settle; run *; settle; wait 5; suspend; pass",
     "status Created=T Running=F Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Master=1/0/0 Worker=1/0/0 start=1000\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"
     "delete pod j-master-0 u3\n"
     "delete pod j-worker-0 u4\n"
     "delete service j-master-0 u1\n"
     "delete service j-worker-0 u2\n"},
    {"P07 and the state stays", 1, 1, "OnFailure", "",
     "settle; run *; settle; wait 5; suspend; settle; state",
     "status Created=T Running=F Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Master=0/0/0 Worker=0/0/0 start=1000\n"},
    {"what still runs is told while its pods end", 1, 1, "OnFailure", "",
     "settle; run *; settle; suspend; pass; state",
     "status Created=T Running=F Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Master=1/0/0 Worker=1/0/0 start=1000\n"},
    {"P08 resuming makes all again", 1, 1, "OnFailure", "",
     "settle; run *; settle; suspend; settle; wait 5; resume; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Master=0/0/0 Worker=0/0/0 start=1005\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-master-0\n"
     "create service j-worker-0\n"
     "create pod j-master-0 attempt 0\n"
     "create pod j-worker-0 attempt 0\n"},
    {"P08 and then runs", 1, 1, "OnFailure", "",
     "settle; run *; settle; suspend; settle; wait 5; resume; settle; run *; settle; state",
     "status Created=T Suspended=F Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1005\n"},
    {"P05 and pods that wait for a node hold their quota until they are gone", 1, 1, "OnFailure",
     "", "settle; suspend; pass; state",
     "status Created=T Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Master=1/0/0 Worker=1/0/0 start=1000\n"},
    {"a job created suspended starts when it is resumed", 1, 0, "OnFailure", "suspend: true",
     "settle; wait 5000; resume; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Master=0/0/0 start=6000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-master-0\n"
     "create pod j-master-0 attempt 0\n"},
    {"a job that was spoilt can be suspended all the same", 1, 0, "OnFailure", "",
     "settle; run *; settle; spoil; suspend; pass",
     "status Created=T Running=F Suspended=T Waiting=T(PyTorchJobFailedValidation: spec.x: wrong) Master=1/0/0 start=1000\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"
     "event Warning PyTorchJobFailedValidation: spec.x: wrong\n"
     "delete pod j-master-0 u2\n"
     "delete service j-master-0 u1\n"},
    {"P08 what was finished before runs again: its peers need it", 0, 2, "OnFailure", "",
     "settle; run *; settle; exit worker-0 0; settle; suspend; settle; resume; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Worker=0/0/0 start=1000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-worker-0\n"
     "create service j-worker-1\n"
     "create pod j-worker-0 attempt 0\n"
     "create pod j-worker-1 attempt 0\n"},
    {"X21 and starts when the last one is gone", 1, 1, "Never", "",
     "settle; run *; settle; suspend; pass; resume; wait 5000; gone master-0; pass; gone worker-0;"
     "pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Master=0/0/0 Worker=0/0/0 start=6000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-master-0\n"
     "create service j-worker-0\n"
     "create pod j-master-0 attempt 0\n"
     "create pod j-worker-0 attempt 0\n"},
    {"X21 resumed before the pods are gone: waits for them", 1, 1, "Never", "",
     "settle; run *; settle; suspend; pass; resume; pass", ""},
};

static const struct story owners[] = {
    {"X16 a foreign pod with our name is neither ours nor fought", 1, 1, "OnFailure", "",
     "foreign worker-0; pass",
     "status Created=T Waiting=T(FailedCreateService: Error creating: service \"j-worker-0\" already exists and belongs to another owner) Master=0/0/0 Worker=0/0/0 start=1000\n"
     "event Warning FailedCreateService: Error creating: service \"j-worker-0\" already exists and belongs to another owner\n"
     "create service j-master-0\n"
     "create pod j-master-0 attempt 0\n"},
    {"what an earlier job of our name left without an owner is told of as such", 1, 1, "OnFailure",
     "", "orphan worker-0; pass",
     "status Created=T Waiting=T(FailedCreateService: Error creating: service \"j-worker-0\" already exists and has no owner: delete it (kubectl delete service j-worker-0), or make this job its controller (metadata.ownerReferences)) Master=0/0/0 Worker=0/0/0 start=1000\n"
     "event Warning FailedCreateService: Error creating: service \"j-worker-0\" already exists and has no owner: delete it (kubectl delete service j-worker-0), or make this job its controller (metadata.ownerReferences)\n"
     "create service j-master-0\n"
     "create pod j-master-0 attempt 0\n"},
    {"X16 nor counted", 0, 1, "OnFailure", "", "foreign worker-0; pass; exit worker-0 0; pass", ""},
    {"X20 the pods of an earlier job of our name are waited for", 1, 0, "OnFailure", "",
     "foreign master-0; delete master-0; pass; gone master-0; pass",
     "create pod j-master-0 attempt 0\n"},
    {"X20 and waited for without a word", 1, 0, "OnFailure", "",
     "foreign master-0; pass; delete master-0; pass", ""},
    {"X16 and the job goes on when the name is free", 0, 1, "OnFailure", "",
     "foreign worker-0; pass; gone worker-0; pass", "create pod j-worker-0 attempt 0\n"},
    {"X17 a foreign service is told of as well", 0, 2, "OnFailure", "",
     "foreign worker-1; gone worker-1; pass; run worker-0; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/0/0 start=1000\n"},
    {"what pods wait for is told", 1, 2, "OnFailure", "",
     "settle; stuck worker-1 Unschedulable; pass",
     "status Created=T Waiting=T(Unschedulable: Pod j-worker-1 is waiting: Unschedulable) Master=0/0/0 Worker=0/0/0 start=1000\n"
     "event Warning Unschedulable: Pod j-worker-1 is waiting: Unschedulable\n"},
    {"and told once", 1, 2, "OnFailure", "",
     "settle; stuck worker-1 Unschedulable; pass; wait 5; pass", ""},
    {"and no more when it is over", 1, 2, "OnFailure", "",
     "settle; stuck worker-1 Unschedulable; pass; gone worker-1; pass; state",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Master=0/0/0 Worker=0/0/0 start=1000\n"},
    {"a job that runs runs, though a pod waits", 1, 2, "OnFailure", "",
     "settle; run *; stuck worker-1 CrashLoopBackOff; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000\n"
     "event Warning CrashLoopBackOff: Pod j-worker-1 is waiting: CrashLoopBackOff\n"},
    {"a pod on its way out waits for nothing", 1, 2, "OnFailure", "",
     "settle; stuck worker-1 Unschedulable; delete worker-1; pass", ""},
    {"a spoilt edit is told once and stops nothing", 1, 1, "OnFailure", "",
     "settle; run *; settle; spoil; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000\n"
     "event Warning PyTorchJobFailedValidation: spec.x: wrong\n"},
    {"and is forgotten when it is mended", 1, 1, "OnFailure", "",
     "settle; run *; settle; spoil; settle; mend; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=1/0/0 start=1000\n"},
    {"its counts follow, and nothing is made or deleted", 1, 2, "OnFailure", "",
     "settle; run *; settle; spoil; settle; exit worker-0 1; gone worker-1; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/1 start=1000\n"},
    {"nor are there fewer replicas for it", 1, 2, "OnFailure", "",
     "settle; run *; settle; spoil; scale 1; settle; state",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000\n"},
    {"its master ends it", 1, 1, "OnFailure", "",
     "settle; run *; settle; spoil; settle; exit master-0 0; pass",
     "status Created=T Running=F Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully completed.) Master=0/1/0 Worker=1/0/0 start=1000 completion=1000 done:master-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob j is successfully completed.\n"},
    {"what its worker has done is remembered", 0, 2, "OnFailure", "",
     "settle; run *; settle; spoil; settle; exit * 0; settle; gone *; pass; mend; pass; state",
     "status Created=T Running=F Succeeded=T(PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.) Worker=0/2/0 start=1000 completion=1000 done:worker-0 done:worker-1\n"},
    {"its failures count once it is mended", 1, 0, "Never", "",
     "settle; run *; settle; spoil; exit master-0 1; settle; mend; pass; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: PyTorchJob j is failed because 1 Master replica(s) failed. (last failure: pod j-master-0, container pytorch, exit code 1)) Master=0/0/1 start=1000 completion=1000 failures=1 restarts=0 master-0:u2:1+0\n"},
    {"its deadline comes", 1, 0, "OnFailure", "activeDeadlineSeconds: 2",
     "settle; run *; settle; spoil; settle; pass", "requeue 3000\n"},
    {"and ends it", 1, 0, "OnFailure", "activeDeadlineSeconds: 2",
     "settle; run *; settle; spoil; settle; wait 2000; pass; state",
     "status Created=T Running=F Failed=T(PyTorchJobFailed: Job j has failed because it was active longer than specified deadline) Master=1/0/0 start=1000 completion=3000\n"},
    {"not while it sleeps", 1, 0, "OnFailure", "activeDeadlineSeconds: 2",
     "settle; suspend; settle; spoil; resume; wait 2000; pass",
     "status Created=T Suspended=T Waiting=T(PyTorchJobFailedValidation: spec.x: wrong) Master=0/0/0 start=1000\n"
     "event Warning PyTorchJobFailedValidation: spec.x: wrong\n"},
    {"a sleeping job tells it, too", 1, 1, "OnFailure", "", "suspend; settle; spoil; pass",
     "status Created=T Suspended=T Waiting=T(PyTorchJobFailedValidation: spec.x: wrong) Master=0/0/0 Worker=0/0/0\n"
     "event Warning PyTorchJobFailedValidation: spec.x: wrong\n"},
    {"one that has run as well", 1, 0, "OnFailure", "",
     "settle; run *; settle; suspend; settle; spoil; pass",
     "status Created=T Running=F Suspended=T Waiting=T(PyTorchJobFailedValidation: spec.x: wrong) Master=0/0/0 start=1000\n"
     "event Warning PyTorchJobFailedValidation: spec.x: wrong\n"},
    {"and starts once it is mended", 1, 0, "OnFailure", "",
     "suspend; settle; spoil; settle; resume; settle; mend; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Master=0/0/0 start=1000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-master-0\n"
     "create pod j-master-0 attempt 0\n"},
    {"a finished job does not mind", 1, 1, "OnFailure", "",
     "settle; run *; exit master-0 0; settle; spoil; pass", ""},
    {"a second pod in a place goes, the one with the right name stays", 1, 1, "OnFailure", "",
     "settle; double worker-0; pass", "delete pod other-worker-0 u5\n"},
};

static void jobs_live(void **state)
{
    (void)state;
    cluster_tell(life, array_length(life));
}

static void jobs_are_not_decided_blindly(void **state)
{
    (void)state;
    cluster_tell(sight, array_length(sight));
}

static void jobs_scale(void **state)
{
    (void)state;
    cluster_tell(scaling, array_length(scaling));
}

static void jobs_suspend_and_resume(void **state)
{
    (void)state;
    cluster_tell(suspension, array_length(suspension));
}

static void jobs_know_their_own(void **state)
{
    (void)state;
    cluster_tell(owners, array_length(owners));
}

static void the_order_of_what_is_seen_does_not_matter(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 4, "OnFailure", "backoffLimit: 9", "");
    cluster_do(cluster, "settle; run *; exit worker-3 1; exit worker-1 2; restart worker-0; "
                        "delete worker-2");
    auto_str struct str forward, backward;
    str_init(&forward, 1 << 16);
    str_init(&backward, 1 << 16);
    cluster_plan(cluster);
    plan_print(cluster->plan, &forward);
    for (size_t i = 0, k = cluster->pod_count - 1; i < k; i++, k--) {
        struct pod pod = cluster->pods[i];
        cluster->pods[i] = cluster->pods[k];
        cluster->pods[k] = pod;
    }
    cluster_plan(cluster);
    plan_print(cluster->plan, &backward);
    assert_string_equal(str_text(&forward), str_text(&backward));
    cluster_close(cluster);
}

/* Once, when the job starts; a template's own restart policy means nothing. */
static void overruled_templates_are_told_of(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 1, "OnFailure", "", "");
    cluster->job->replicas[REPLICA_WORKER].template_.restart_policy = "Always";
    cluster_plan(cluster);
    const struct action *event = &cluster->plan->actions[1];
    assert_int_equal(event->kind, ACTION_EVENT);
    assert_int_equal(event->event_type, EVENT_WARNING);
    assert_string_equal(event->reason, "SetPodTemplateRestartPolicy");
    assert_int_not_equal(cluster->plan->actions[2].kind, ACTION_EVENT);
    cluster_do(cluster, "pass; gone *; pass");
    assert_int_equal(cluster->plan->actions[0].kind, ACTION_CREATE_POD);
    cluster_close(cluster);
}

static void an_invalid_job_fails_before_it_starts(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster->job->invalid = "spec.x: wrong";
    cluster_do(cluster, "pass; state");
    assert_int_equal(cluster->pod_count, 0);
    const struct condition *last = condition_last(&cluster->status);
    assert_int_equal(last->type, CONDITION_FAILED);
    assert_string_equal(last->reason, "PyTorchJobFailedValidation");
    assert_string_equal(last->message, "spec.x: wrong");
    cluster_plan(cluster); /* which is all */
    assert_int_equal(cluster->plan->count, 0);
    cluster_close(cluster);
}

static void a_running_job_survives_a_spoilt_edit(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 1, "OnFailure", "", "");
    cluster_do(cluster, "settle; run *; settle");
    cluster->job->invalid = "spec.x: wrong";
    cluster_do(cluster, "pass");
    assert_int_equal(cluster->pod_count, 2);
    assert_int_equal(condition_last(&cluster->status)->type, CONDITION_RUNNING);
    cluster_close(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_live),
        cmocka_unit_test(jobs_are_not_decided_blindly),
        cmocka_unit_test(jobs_scale),
        cmocka_unit_test(jobs_suspend_and_resume),
        cmocka_unit_test(jobs_know_their_own),
        cmocka_unit_test(the_order_of_what_is_seen_does_not_matter),
        cmocka_unit_test(overruled_templates_are_told_of),
        cmocka_unit_test(an_invalid_job_fails_before_it_starts),
        cmocka_unit_test(a_running_job_survives_a_spoilt_edit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
