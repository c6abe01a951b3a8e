#!/bin/bash
# shellcheck disable=SC2119 # kueue_world and operator_stop without arguments are meant so
# Jobs in the queues of a real Kueue (server.sh), with the test as its administrator, and as scheduler and kubelet:
# what docs/kueue.md promises of quota, priority, queues that stop, other sizes, and people.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/kueue/server.sh
. tests/kueue/server.sh
kueue_world

both() { echo "$(pods "$1")+$(pods "$2")"; } # JOB JOB

# ---- the life of a job, and quota that is not there
queue team 4 spot
queued life 1 2
check "Kueue admits a job" admitted life
check "its pods are made" comes "life-master-0 life-worker-0 life-worker-1" pods life
check "for the flavor's nodes" is '{"pool":"spot"} spot NoSchedule' pod life-worker-1 \
    '"\(.spec.nodeSelector | tojson) \(.spec.tolerations[] | select(.key == "spot") | "\(.key) \(.effect)")"'
check "they run, and Kueue is told" runs life
queued late 0 2
check "a job without quota is told so in Kueue's words" wait_for 60 waits_for late "insufficient unused quota for cpu in flavor spot"
check "and has no pods" stays "" pods late
check "at rest" requests_rest
play life-worker-1 exit 0
check "a worker that is done gives its quota back" comes "worker 1" workload life '.status.reclaimablePods[]? | "\(.name) \(.count)"'
check "which the other job gets" comes "late-worker-0 late-worker-1" pods late
play life-master-0 exit 0
check "the end is told" comes "True Succeeded" condition_of life Finished
check "the other one's, too" ends late
queued bad 0 1 "backoffLimit: 0"
check "a job that is to fail" comes bad-worker-0 pods bad
play bad-worker-0 exit 1
check "does, and Kueue is told" comes "True Failed" condition_of bad Finished

# ---- priority and preemption
queue prio 2 plain 'preemption: {withinClusterQueue: LowerPriority}'
in_queue=prio
queued small 0 2 "" "" "kueue.x-k8s.io\\/priority-class: low"
check "a job of low priority" comes "small-worker-0 small-worker-1" pods small
check "runs" runs small
before=$(uids small)
hold small-worker-0
queued urgent 0 2 "" "" "kueue.x-k8s.io\\/priority-class: high"
check "is preempted" comes "" pods small
check "its quota stays while a pod is on its way out" stays "True QuotaReserved" condition_of small QuotaReserved
check "so the other one waits" is "" pods urgent
let_go small-worker-0
check "and goes to the other one with the last pod" comes "urgent-worker-0 urgent-worker-1" pods urgent
check "which it is told in Kueue's words" tells small "Preempted to accommodate a workload"
check "and sleeps" comes "Suspended" field small '[.status.conditions[] | select(.type == "Suspended" and .status == "True")][0].type'
check "the time that it ran is added up" is number workload small '.status.accumulatedPastExecutionTimeSeconds | type'
runs urgent >/dev/null
ends urgent >/dev/null
check "then it has its quota again" comes "small-worker-0 small-worker-1" pods small
is_other() { [ "$(uids small)" != "$before" ]; }
check "with other pods" is_other
check "and runs anew" runs small
queued third 0 2 "" "" "kueue.x-k8s.io\\/priority-class: low"
check "another one of low priority waits" wait_for 60 waits_for third quota
edit_job third '{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "high"}}}'
check "until it gets a higher one" comes "third-worker-0 third-worker-1" pods third
check "which is the Workload's" is "1000 WorkloadPriorityClass high" workload third '.spec | "\(.priority) \(.priorityClassRef.kind) \(.priorityClassRef.name)"'
runs third >/dev/null
edit_job third '{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "low"}}}'
check "a job that runs may have another one" comes "1 low" workload third '.spec | "\(.priority) \(.priorityClassRef.name)"'
priority low 2
check "whose value its administrator may change" comes 2 workload third .spec.priority
check "at rest" requests_rest
kubectl create priorityclass pods-high --value=77 >/dev/null
queued fourth 0 1 "schedulingPolicy: {priorityClass: pods-high}"
check "a priority class of pods" comes "77 PriorityClass pods-high" workload fourth '.spec | "\(.priority) \(.priorityClassRef.kind) \(.priorityClassRef.name)"'
for name in small third fourth; do delete_job $name; done

# ---- queues that are stopped, are not there, or cannot work
queue halt 2
in_queue=halt
queued goes 0 1
comes goes-worker-0 pods goes >/dev/null
check "a job runs" runs goes
edit_queue halt '{"spec": {"stopPolicy": "Hold"}}'
queued held 0 1
check "a ClusterQueue on hold admits none" wait_for 60 waits_for held "ClusterQueue halt is inactive"
check "and leaves what runs" stays goes-worker-0 pods goes
edit_queue halt '{"spec": {"stopPolicy": "HoldAndDrain"}}'
check "drained, it evicts that, too" comes "" pods goes
check "which is told" wait_for 60 waits_for goes "ClusterQueue"
edit_queue halt '{"spec": {"stopPolicy": "None"}}'
check "when it goes on, the first has its pod" comes goes-worker-0 pods goes
check "and the second" comes held-worker-0 pods held
runs goes >/dev/null
edit_local_queue halt '{"spec": {"stopPolicy": "HoldAndDrain"}}'
check "so does a LocalQueue" comes + both goes held
edit_local_queue halt '{"spec": {"stopPolicy": "None"}}'
check "and gives them back" comes goes-worker-0+held-worker-0 both goes held
in_queue=nowhere
queued lost 0 1
check "a LocalQueue that is not there" wait_for 60 waits_for lost "LocalQueue nowhere"
queue broken 1 no-such-flavor
in_queue=broken
queued stuck 0 1
check "a ClusterQueue without its flavor" wait_for 60 waits_for stuck "ClusterQueue broken is inactive"
flavor no-such-flavor '{}'
check "which comes" comes stuck-worker-0 pods stuck
edit_job lost '{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "halt"}}}'
delete_job goes
check "another queue while it waits" comes lost-worker-0 pods lost
edit_job lost '{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "broken"}}}'
check "another queue while it runs: it waits there" wait_for 60 waits_for lost "queue broken"
check "without pods" comes "" pods lost
for name in held lost stuck; do delete_job $name; done

# ---- a Workload that is deactivated
queue idle 2
in_queue=idle
queued idle 0 2
comes "idle-worker-0 idle-worker-1" pods idle >/dev/null
runs idle >/dev/null
edit_workload idle '{"spec": {"active": false}}'
check "a deactivated Workload loses its pods" comes "" pods idle
check "which is told" comes QueueDeactivated field idle '.status.conditions[] | select(.type == "Waiting") | .reason'
check "its quota is free" comes "False" workload idle '.status.conditions[] | select(.type == "QuotaReserved") | .status'
check "at rest" requests_rest
edit_workload idle '{"spec": {"active": true}}'
check "activated, it comes back" comes "idle-worker-0 idle-worker-1" pods idle
delete_job idle
queued limited 0 1 "" "" "kueue.x-k8s.io\\/max-exec-time-seconds: '20'"
check "a limit of execution time" comes limited-worker-0 pods limited
runs limited >/dev/null
check "ends it" comes "" pods limited
check "in Kueue's words" wait_for 60 waits_for limited "is deactivated"
check "none of its time is kept" is null workload limited '.status.accumulatedPastExecutionTimeSeconds'
edit_workload limited '{"spec": {"active": true}}'
check "activated, it has the whole time again" comes limited-worker-0 pods limited
check "and runs anew" runs limited
delete_job limited

# ---- partial admission, and other sizes
queue part 4
in_queue=part
queued part 0 6 "" "elasticPolicy: {minReplicas: 2, maxReplicas: 6}"
check "an elastic job is admitted in part" comes "part-worker-0 part-worker-1 part-worker-2 part-worker-3" pods part
check "and tells its pods how many they are" is 4 env_of part-worker-0 SHOAL_NNODES
check "those are all" runs part
check "at rest" requests_rest
first=$(workload part .metadata.uid)
edit_job part '{"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}}}'
check "smaller, it keeps its Workload" comes "part-worker-0 part-worker-1 part-worker-2" pods part
check "and gives quota back" comes "worker 3" workload part '.status.reclaimablePods[]? | "\(.name) \(.count)"'
check "of the same Workload" is "$first" workload part .metadata.uid
edit_job part '{"spec": {"elasticPolicy": {"maxReplicas": 8}, "pytorchReplicaSpecs": {"Worker": {"replicas": 8}}}}'
check "larger, it queues anew and is admitted in part" comes "part-worker-0 part-worker-1 part-worker-2 part-worker-3" pods part
is_new_workload() { [ "$(workload part .metadata.uid)" != "$first" ] && is 8 workload part .spec.podSets[0].count; }
check "with another Workload" is_new_workload
delete_job part

# ---- its user, and someone else
queue mine 2
in_queue=mine
queued mine 0 2
comes "mine-worker-0 mine-worker-1" pods mine >/dev/null
runs mine >/dev/null
edit_job mine '{"spec": {"runPolicy": {"suspend": true}}}'
check "suspended by its user, a job has no Workload" comes "" workloads_of mine
check "and no pods" is "" pods mine
queued other 0 2
check "its quota is another's" comes "other-worker-0 other-worker-1" pods other
edit_job mine '{"spec": {"runPolicy": {"suspend": false}}}'
check "resumed, it waits" wait_for 60 waits_for mine quota
runs other >/dev/null
first=$(workload other .metadata.uid)
kubectl delete workload "$(workloads_of other)" >/dev/null
is_made_anew() { has_workload other && [ "$(workload other .metadata.uid)" != "$first" ]; }
check "a Workload that someone deletes is made anew" wait_for 60 is_made_anew
has_either() { case $(both mine other) in "mine-worker-0 mine-worker-1+" | "+other-worker-0 other-worker-1") ;; *) false ;; esac; }
check "one of both jobs has the quota" wait_for 60 has_either
for name in mine other; do delete_job $name; done

operator_stop
check "SIGTERM ends it with 0" test "$exit_code" -eq 0
tap_done
