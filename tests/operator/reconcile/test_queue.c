/* Kueue: the life of a job's Workload, and the pods that its admission allows. What is expected of
 * the Workload is what Kueue's API reference and its job framework say. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/cluster.h"

static const struct story life[] = {
    {"a job with a queue sleeps, and its Workload is made", 1, 2, "OnFailure", "", "queue q; pass",
     "status Created=T Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q) Master=0/0/0 Worker=0/0/0\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q\n"
     "create workload pytorchjob-j-0509c queue=q master=1 worker=2\n"},
    {"once", 1, 2, "OnFailure", "", "queue q; settle; pass", ""},
    {"why it waits is told in Kueue's words", 0, 2, "OnFailure", "",
     "queue q; settle; say full; pass",
     "status Created=T Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c waits in queue q: full) Worker=0/0/0\n"},
    {"and so are other words, without an event: they may change all day", 0, 2, "OnFailure", "",
     "queue q; settle; say full; settle; say fuller; pass",
     "status Created=T Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c waits in queue q: fuller) Worker=0/0/0\n"},
    {"quota alone is no admission", 0, 2, "OnFailure", "", "queue q; settle; reserve; pass",
     "status Created=T Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c waits in queue q: its quota is reserved, and its admission checks go on) Worker=0/0/0\n"},
    {"its pods are made when it is admitted, with what is admitted", 0, 2, "OnFailure", "",
     "queue q; settle; admit; place {'a':1}; wait 5000; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Worker=0/0/0 start=6000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-worker-0\n"
     "create service j-worker-1\n"
     "create pod j-worker-0 attempt 0 with {'a':1}\n"
     "create pod j-worker-1 attempt 0 with {'a':1}\n"},
    {"Kueue is told that all pods run", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; pass",
     "status Created=T Suspended=F Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000\n"
     "tell workload pytorchjob-j-0509c ready=Started\n"},
    {"and not while one is missing", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run worker-0; pass",
     "status Created=T Suspended=F Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/0/0 start=1000\n"},
    {"that one is lost", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; fail worker-0; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.) Worker=1/0/1 start=1000 failures=1 worker-0:u5:1+0\n"
     "event Warning PyTorchJobRestarting: PyTorchJob j is restarting because 1 Worker replica(s) failed.\n"
     "delete pod j-worker-0 u5\n"
     "tell workload pytorchjob-j-0509c ready=WaitForRecovery\n"},
    {"and that all are there again", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; fail worker-0; settle; run *; pass",
     "status Created=T Suspended=F Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 start=1000 failures=1 worker-0:u5:1+0\n"
     "tell workload pytorchjob-j-0509c ready=Recovered\n"},
    {"it rests", 0, 2, "OnFailure", "", "queue q; settle; admit; settle; run *; settle; pass", ""},
    {"its end is told", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; exit * 0; pass",
     "status Created=T Suspended=F Running=F Succeeded=T(PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.) Worker=0/2/0 start=1000 completion=1000 done:worker-0 done:worker-1\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-1 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.\n"
     "tell workload pytorchjob-j-0509c finished=Succeeded: PyTorchJob ns/j successfully completed.\n"},
    {"once too", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; exit * 0; settle; pass", ""},
    {"and a failure", 0, 1, "OnFailure", "backoffLimit: 0",
     "queue q; settle; admit; settle; run *; settle; restart *; pass",
     "status Created=T Suspended=F Running=F Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)) Worker=1/0/0 start=1000 completion=1000 failures=1 restarts=0 worker-0:u4:1+0\n"
     "event Normal PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)\n"
     "tell workload pytorchjob-j-0509c finished=Failed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)\n"},
    {"the deadline does not run in the queue", 0, 1, "OnFailure", "activeDeadlineSeconds: 2",
     "queue q; settle; wait 9000; pass", ""},
    {"a job without a queue is as ever", 0, 1, "OnFailure", "", "queue; pass",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Worker=0/0/0 start=1000\n"
     "create service j-worker-0\n"
     "create pod j-worker-0 attempt 0\n"},
};

static const struct story eviction[] = {
    {"pods go when it is evicted", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; preempt Preempted; pass",
     "status Created=T Running=F Suspended=T Waiting=T(QueueEvicted: Workload pytorchjob-j-0509c is evicted from queue q (Preempted): make way) Worker=2/0/0 start=1000\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal QueueEvicted: Workload pytorchjob-j-0509c is evicted from queue q (Preempted): make way\n"
     "delete pod j-worker-0 u5\n"
     "delete pod j-worker-1 u6\n"
     "delete service j-worker-0 u3\n"
     "delete service j-worker-1 u4\n"
     "tell workload pytorchjob-j-0509c ready=WaitForStart\n"},
    {"quota is kept while a pod is left", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; preempt Preempted; pass; gone worker-0; pass",
     "status Created=T Running=F Suspended=T Waiting=T(QueueEvicted: Workload pytorchjob-j-0509c is evicted from queue q (Preempted): make way) Worker=1/0/0 start=1000\n"},
    {"and released with the last one", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; preempt Preempted; pass; gone *; pass",
     "status Created=T Running=F Suspended=T Waiting=T(QueueEvicted: Workload pytorchjob-j-0509c is evicted from queue q (Preempted): make way) Worker=0/0/0 start=1000\n"
     "tell workload pytorchjob-j-0509c released=Preempted requeued=T\n"},
    {"a job at fault is not tried again at once", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; preempt PodsReadyTimeout; pass; gone *; pass",
     "status Created=T Running=F Suspended=T Waiting=T(QueueEvicted: Workload pytorchjob-j-0509c is evicted from queue q (PodsReadyTimeout): make way) Worker=0/0/0 start=1000\n"
     "tell workload pytorchjob-j-0509c released=PodsReadyTimeout requeued=F\n"},
    {"it waits again", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; preempt Preempted; settle; pass", ""},
    {"and comes back", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; preempt Preempted; settle; wait 3000; admit; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Worker=0/0/0 start=4000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-worker-0\n"
     "create service j-worker-1\n"
     "create pod j-worker-0 attempt 0 with {}\n"
     "create pod j-worker-1 attempt 0 with {}\n"},
    {"deactivated it stays away", 0, 1, "OnFailure", "", "queue q; settle; deactivate; pass",
     "status Created=T Suspended=T Waiting=T(QueueDeactivated: Workload pytorchjob-j-0509c is deactivated; its spec.active true would bring it back into queue q) Worker=0/0/0\n"
     "event Normal QueueDeactivated: Workload pytorchjob-j-0509c is deactivated; its spec.active true would bring it back into queue q\n"},
    {"a Workload that somebody deletes takes the pods along", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; unmake; pass",
     "status Created=T Running=F Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q) Worker=1/0/0 start=1000\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q\n"
     "delete pod j-worker-0 u4\n"
     "delete service j-worker-0 u3\n"},
    {"and is made anew without them", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; unmake; pass; gone *; pass",
     "status Created=T Running=F Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q) Worker=0/0/0 start=1000\n"
     "create workload pytorchjob-j-0509c queue=q worker=1\n"},
    {"one that was finished by another does not begin", 0, 1, "OnFailure", "",
     "queue q; settle; conclude; pass",
     "status Created=T Suspended=T Waiting=T(WorkloadFinished: Workload pytorchjob-j-0509c says that it has finished, and the job has not; delete the Workload, and it is made anew) Worker=0/0/0\n"
     "event Warning WorkloadFinished: Workload pytorchjob-j-0509c says that it has finished, and the job has not; delete the Workload, and it is made anew\n"},
};

static const struct story changes[] = {
    {"what needs more quota waits for it without pods", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; scale 3; pass",
     "status Created=T Running=F Suspended=T Waiting=T(WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it) Worker=2/0/0 start=1000\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it\n"
     "delete pod j-worker-0 u5\n"
     "delete pod j-worker-1 u6\n"
     "delete service j-worker-0 u3\n"
     "delete service j-worker-1 u4\n"},
    {"its Workload goes with the last pod", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; scale 3; pass; gone *; pass",
     "status Created=T Running=F Suspended=T Waiting=T(WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it) Worker=0/0/0 start=1000\n"
     "delete workload pytorchjob-j-0509c u1\n"},
    {"and another one is made", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; scale 3; settle; unmake; pass",
     "status Created=T Running=F Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q) Worker=0/0/0 start=1000\n"
     "create workload pytorchjob-j-0509c queue=q worker=3\n"},
    {"a job that shrinks gives quota back when the pod is gone", 0, 3, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; scale 2; pass; pass; gone worker-2; pass",
     "tell workload pytorchjob-j-0509c reclaimed-master=0 reclaimed-worker=1\n"},
    {"and not before", 0, 3, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; scale 2; pass; pass", ""},
    {"what was given back is not taken again", 0, 3, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; scale 2; settle; scale 3; pass",
     "status Created=T Running=F Suspended=T Waiting=T(WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it) Worker=2/0/0 start=1000\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it\n"
     "delete pod j-worker-0 u6\n"
     "delete pod j-worker-1 u7\n"
     "delete service j-worker-0 u3\n"
     "delete service j-worker-1 u4\n"},
    {"nor for a stray pod, which goes", 0, 3, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; scale 2; settle; double worker-1; pass",
     "delete pod other-worker-1 u11\n"},
    {"a replica that is done gives quota back", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; exit worker-1 0; pass; pass",
     "tell workload pytorchjob-j-0509c reclaimed-master=0 reclaimed-worker=1\n"},
    {"a group that restarts needs that again, and queues for it", 0, 2, "OnFailure",
     "restartScope: Job",
     "queue q; settle; admit; settle; run *; settle; exit worker-1 0; settle; fail worker-0; pass; pass",
     "status Created=T Suspended=T Waiting=T(WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it) Worker=0/1/1 start=1000 failures=1 attempt=1 worker-0:u5:1+0\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it\n"
     "delete service j-worker-0 u3\n"
     "delete service j-worker-1 u4\n"},
    {"after an eviction all is needed again", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; exit worker-1 0; settle; preempt Preempted; pass; gone *; pass",
     "status Created=T Running=F Suspended=T Waiting=T(QueueEvicted: Workload pytorchjob-j-0509c is evicted from queue q (Preempted): make way) Worker=0/1/0 start=1000 done:worker-1\n"
     "tell workload pytorchjob-j-0509c released=Preempted requeued=T reclaimed-master=0 reclaimed-worker=0\n"},
    {"in the queue a change of size is another Workload", 0, 2, "OnFailure", "",
     "queue q; settle; scale 1; pass",
     "status Created=T Suspended=T Waiting=T(WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it) Worker=0/0/0\n"
     "event Normal WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it\n"
     "delete workload pytorchjob-j-0509c u1\n"},
    {"a template that changed is another one, too", 0, 2, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; template t2; pass",
     "status Created=T Running=F Suspended=T Waiting=T(WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it) Worker=2/0/0 start=1000\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it\n"
     "delete pod j-worker-0 u5\n"
     "delete pod j-worker-1 u6\n"
     "delete service j-worker-0 u3\n"
     "delete service j-worker-1 u4\n"},
    {"another queue without quota is an update", 0, 1, "OnFailure", "",
     "queue q; settle; queue r; pass", "update workload pytorchjob-j-0509c queue=r worker=1\n"},
    {"with quota it is another Workload", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; queue r; pass",
     "status Created=T Suspended=T Waiting=T(WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it) Worker=1/0/0 start=1000\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it\n"
     "delete pod j-worker-0 u4\n"
     "delete service j-worker-0 u3\n"},
    {"no queue any more: the pods run on", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; queue; pass",
     "delete workload pytorchjob-j-0509c u1\n"},
    {"suspended by its user it keeps its quota while it has pods", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; suspend; pass",
     "status Created=T Running=F Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Worker=1/0/0 start=1000\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"
     "delete pod j-worker-0 u4\n"
     "delete service j-worker-0 u3\n"},
    {"and no longer", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; suspend; pass; gone *; pass",
     "status Created=T Running=F Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Worker=0/0/0 start=1000\n"
     "delete workload pytorchjob-j-0509c u1\n"},
    {"resumed it queues again", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; suspend; settle; resume; pass",
     "status Created=T Running=F Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q) Worker=0/0/0 start=1000\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q\n"
     "create workload pytorchjob-j-0509c queue=q worker=1\n"},
    {"an invalid edit of a job that runs changes nothing", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; spoil; pass",
     "status Created=T Waiting=T Suspended=F Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/0/0 start=1000\n"
     "event Warning PyTorchJobFailedValidation: spec.x: wrong\n"},
};

static const struct story priority[] = {
    {"the class and its value", 0, 1, "OnFailure", "", "class high; queue q; pass",
     "status Created=T Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q) Worker=0/0/0\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q\n"
     "create workload pytorchjob-j-0509c queue=q worker=1 priority=high:100\n"},
    {"a class that is not known is waited for", 0, 1, "OnFailure", "",
     "class high; classless T; queue q; pass",
     "status Created=T Suspended=T Waiting=T(WorkloadPriorityUnknown: WorkloadPriorityClass \"high\" is not known; its Workload waits for it) Worker=0/0/0\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Warning WorkloadPriorityUnknown: WorkloadPriorityClass \"high\" is not known; its Workload waits for it\n"},
    {"until it is", 0, 1, "OnFailure", "",
     "class high; classless T; queue q; settle; classless F; pass",
     "status Created=T Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q) Worker=0/0/0\n"
     "event Normal QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q\n"
     "create workload pytorchjob-j-0509c queue=q worker=1 priority=high:100\n"},
    {"another class changes it in place, even with quota", 0, 1, "OnFailure", "",
     "class high; queue q; settle; admit; settle; class low; pass",
     "update workload pytorchjob-j-0509c queue=q worker=1 priority=low:100\n"},
    {"a first class with quota must wait", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; class low; pass", ""},
};

static const struct story left[] = {
    {"the API server shows no Workloads: no pods, and why", 0, 1, "OnFailure", "",
     "queue q; unseen; pass",
     "status Created=T Waiting=T(QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?) Worker=0/0/0\n"
     "event Warning QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?\n"},
    {"nor what stands beside them, as how many there are to be is not known", 0, 1, "OnFailure", "",
     "gang volcano; queue q; unseen; pass",
     "status Created=T Waiting=T(QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?) Worker=0/0/0\n"
     "event Warning QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?\n"},
    {"pods that run are left alone then", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; unseen; pass",
     "status Created=T Waiting=T Suspended=F Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/0/0 start=1000\n"
     "event Warning QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?\n"},
    {"a job that waits goes on waiting", 0, 1, "OnFailure", "activeDeadlineSeconds: 2",
     "queue q; settle; unseen; wait 9000; pass",
     "status Created=T Suspended=T Waiting=T(QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?) Worker=0/0/0\n"
     "event Warning QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?\n"},
    {"for as long as it takes", 0, 1, "OnFailure", "activeDeadlineSeconds: 2",
     "queue q; settle; unseen; settle; wait 9000; pass", ""},
    {"and so does one whose pods still end", 0, 2, "OnFailure", "activeDeadlineSeconds: 2",
     "queue q; settle; admit; settle; run *; settle; preempt Preempted; pass; gone worker-0; unseen; wait 9000; pass",
     "status Created=T Running=F Suspended=T Waiting=T(QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?) Worker=1/0/0 start=1000\n"
     "event Warning QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?\n"},
    {"resumed nothing is made", 0, 1, "OnFailure", "",
     "queue q; suspend; settle; unseen; resume; pass",
     "status Created=T Suspended=T Waiting=T(QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?) Worker=0/0/0\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Warning QueueUnseen: the job is for queue q, and the API server shows no Workloads: is Kueue installed, and are the roles of deploy/kueue bound?\n"},
    {"an admission that cannot be followed", 0, 1, "OnFailure", "",
     "queue q; settle; admit; obstruct noflavor; pass",
     "status Created=T Suspended=F Restarting=T Waiting=T(AdmissionNotFollowed: noflavor) Worker=0/0/0 start=1000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "event Warning AdmissionNotFollowed: noflavor\n"},
    {"is no reason to end what runs", 0, 1, "OnFailure", "",
     "queue q; settle; admit; settle; run *; settle; obstruct noflavor; pass",
     "status Created=T Waiting=T Suspended=F Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=1/0/0 start=1000\n"
     "event Warning AdmissionNotFollowed: noflavor\n"},
    {"a job of Kueue's own integration is left to it", 0, 1, "OnFailure", "",
     "queue q; other w; pass",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Worker=0/0/0 start=1000\n"
     "create service j-worker-0\n"
     "create pod j-worker-0 attempt 0\n"},
    {"suspended by it nothing is made", 0, 1, "OnFailure", "", "queue q; suspend; pass",
     "status Created=T Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Worker=0/0/0\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"},
    {"and ours goes before it", 0, 1, "OnFailure", "", "queue q; settle; other w; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Worker=0/0/0 start=1000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "delete workload pytorchjob-j-0509c u1\n"
     "create service j-worker-0\n"
     "create pod j-worker-0 attempt 0\n"},
    {"a refused Workload is told of", 0, 1, "OnFailure", "", "queue q; deny webhook; pass",
     "status Created=T Suspended=T Waiting=T(Refused: webhook) Worker=0/0/0\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Warning Refused: webhook\n"
     "create workload pytorchjob-j-0509c queue=q worker=1\n"},
};

static const struct story partial[] = {
    {"fewer workers than asked for may be admitted", 1, 4, "OnFailure", "", "queue q; pass",
     "status Created=T Suspended=T Waiting=T(QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q) Master=0/0/0 Worker=0/0/0\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal QueuePending: Workload pytorchjob-j-0509c is not made yet; its queue is q\n"
     "create workload pytorchjob-j-0509c queue=q master=1 worker=4 min=2\n"},
    {"and only those are made", 1, 4, "OnFailure", "", "queue q; settle; admit 2; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Master=0/0/0 Worker=0/0/0 start=1000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-master-0\n"
     "create service j-worker-0\n"
     "create service j-worker-1\n"
     "create pod j-master-0 attempt 0 with {}\n"
     "create pod j-worker-0 attempt 0 with {}\n"
     "create pod j-worker-1 attempt 0 with {}\n"},
    {"they are all there is", 1, 4, "OnFailure", "",
     "queue q; settle; admit 2; settle; run *; pass",
     "status Created=T Suspended=F Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=2/0/0 start=1000\n"
     "tell workload pytorchjob-j-0509c ready=Started\n"},
    {"it rests so", 1, 4, "OnFailure", "", "queue q; settle; admit 2; settle; run *; settle; pass",
     ""},
    {"one that is done gives its quota back", 1, 4, "OnFailure", "",
     "queue q; settle; admit 3; settle; run *; settle; exit worker-2 0; pass; pass",
     "tell workload pytorchjob-j-0509c reclaimed-master=0 reclaimed-worker=2\n"},
    {"more than was asked for is another Workload", 1, 4, "OnFailure", "",
     "queue q; settle; admit 2; settle; run *; settle; scale 6; pass",
     "status Created=T Running=F Suspended=T Waiting=T(WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it) Master=1/0/0 Worker=2/0/0 start=1000\n"
     "event Normal PyTorchJobQueued: PyTorchJob j waits in its queue.\n"
     "event Normal WorkloadReplaced: Workload pytorchjob-j-0509c does not fit the job any more, and another one follows it\n"
     "delete pod j-master-0 u6\n"
     "delete pod j-worker-0 u7\n"
     "delete pod j-worker-1 u8\n"
     "delete service j-master-0 u3\n"
     "delete service j-worker-0 u4\n"
     "delete service j-worker-1 u5\n"},
    {"less than was admitted gives back as well", 1, 4, "OnFailure", "",
     "queue q; settle; admit 3; settle; run *; settle; scale 2; pass; gone worker-2; pass",
     "tell workload pytorchjob-j-0509c reclaimed-master=0 reclaimed-worker=2\n"},
};

static void a_job_sleeps_until_it_is_admitted(void **state)
{
    (void)state;
    cluster_tell(life, array_length(life));
}

static void eviction_is_followed(void **state)
{
    (void)state;
    cluster_tell(eviction, array_length(eviction));
}

static void a_workload_fits_its_job(void **state)
{
    (void)state;
    cluster_tell(changes, array_length(changes));
}

static void priority_is_kueues(void **state)
{
    (void)state;
    cluster_tell(priority, array_length(priority));
}

static void what_is_not_ours_is_left(void **state)
{
    (void)state;
    cluster_tell(left, array_length(left));
}

static void fewer_workers_are_admitted(void **state)
{
    (void)state;
    cluster_tell_of("elasticPolicy: {minReplicas: 2, maxReplicas: 8}", partial,
                    array_length(partial));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_sleeps_until_it_is_admitted),
        cmocka_unit_test(eviction_is_followed),
        cmocka_unit_test(a_workload_fits_its_job),
        cmocka_unit_test(priority_is_kueues),
        cmocka_unit_test(what_is_not_ours_is_left),
        cmocka_unit_test(fewer_workers_are_admitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
