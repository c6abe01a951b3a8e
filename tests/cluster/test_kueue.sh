#!/bin/bash
# shellcheck disable=SC2119 # operator_stop without arguments is meant so
# Jobs in Kueue's queues on a real API server, with the test as Kueue: kueue.sh says what that is, and what it is not.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
# shellcheck source=tests/cluster/kueue.sh
. tests/cluster/kueue.sh
operator_world

said() { grep -c -- "$1" "$work/operator-$((${#operators[@]} - 1)).log" | grep -qx "$2"; } # TEXT TIMES: in the operator's log

# ---- a cluster without Kueue
operator_start --kueue
check "ready where there is no Kueue" operator_ready
check "which one line says" wait_for 60 said "is Kueue installed?" 1
job plain 0 1 OnFailure
check "a job without a queue runs as ever" comes plain-worker-0 pods plain
queued early 0 1
check "one with a queue is told why it waits" wait_for 60 waits_for early "the API server shows no Workloads"
check "and has no pods" stays "" pods early
kueue_install >"$work/kueue.log" 2>&1 || cat "$work/kueue.log"
check "when Kueue comes, it gets its Workload" wait_for 120 has_workload early
check "still said once" said "is Kueue installed?" 1

# ---- the life of a job
queued life 1 2 "" "" "kueue.x-k8s.io\\/max-exec-time-seconds: '600'"
check "a job gets its Workload" wait_for 60 has_workload life
check "under the name that Kueue gives it" is "pytorchjob-life-$(printf 'PyTorchJob\nkubeflow.org\nlife\n%s' "$(field life .metadata.uid)" | sha1sum | cut -c-5)" workloads_of life
check "which goes with the job" is "$(field life .metadata.uid) true" workload life '.metadata.ownerReferences[0] | "\(.uid) \(.controller)"'
check "for its queue" is "team true 600" workload life '.spec | "\(.queueName) \(.active) \(.maximumExecutionTimeSeconds)"'
check "with its pods" is "master 1 1, worker 2 1" workload life \
    '[.spec.podSets[] | "\(.name) \(.count) \(.template.spec.containers[0].resources.requests.cpu)"] | join(", ")'
check "whose rank it can read" is training.kubeflow.org/replica-index workload life '.spec.podSets[1].topologyRequest.podIndexLabel'
check "it sleeps meanwhile" comes "Created Suspended Waiting" conditions life
check "without pods" stays "" pods life
check "its spec is as its user wrote it" is null field life .spec.runPolicy.suspend
kueue_waits life "couldn't assign flavors to pod set worker: insufficient unused quota for cpu"
check "what Kueue says is told" wait_for 60 waits_for life "insufficient unused quota for cpu"
kueue_admits life spot
check "a flavor that is not there yet is waited for" wait_for 60 waits_for life 'ResourceFlavor "spot" of the admission is not known'
check "without pods, too" stays "" pods life
flavor spot '{"nodeLabels": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]}'
check "then its pods are made" comes "life-master-0 life-worker-0 life-worker-1" pods life
check "for the flavor's nodes" is '{"pool":"spot"} spot NoSchedule' pod life-worker-1 \
    '"\(.spec.nodeSelector | tojson) \(.spec.tolerations[] | select(.key == "spot") | "\(.key) \(.effect)")"'
check "marked as the Workload's" is "worker $(workloads_of life)" pod life-worker-1 \
    '"\(.metadata.labels["kueue.x-k8s.io/podset"]) \(.metadata.annotations["kueue.x-k8s.io/workload"])"'
check "and as its queues'" is "team all" pod life-worker-1 \
    '.metadata.labels | "\(.["kueue.x-k8s.io/local-queue-name"]) \(.["kueue.x-k8s.io/cluster-queue-name"])"'
play_all life running
check "the job runs" wait_for 60 is true field life '[.status.conditions[] | select(.type == "Running")][0].status == "True"'
check "and Kueue knows" comes "True Started" condition_of life PodsReady
check "what others wrote is kept" is "True QuotaReserved" condition_of life QuotaReserved
check "life is at rest" requests_rest

# ---- eviction
before=$(uids life)
hold life-worker-0
kueue_evicts life Preempted
check "an evicted job loses its pods" comes "" pods life
check "its quota stays while one is on its way out" stays "True QuotaReserved" condition_of life QuotaReserved
let_go life-worker-0
check "and goes back with the last one" comes "False Pending" condition_of life QuotaReserved
check "admission and all" comes "null False" workload life '"\(.status.admission) \(.status.conditions[] | select(.type == "Admitted") | .status)"'
check "the time that it ran is added up" is number workload life '.status.accumulatedPastExecutionTimeSeconds | type'
check "to be tried again" is "True Preempted" condition_of life Requeued
check "as Kueue asks for it" kueue_approves life
check "the job sleeps again" comes "Suspended" field life '[.status.conditions[] | select(.type == "Suspended" and .status == "True")][0].type'
check "life is at rest without pods" requests_rest
kueue_admits life spot
check "admitted anew it has pods" comes "life-master-0 life-worker-0 life-worker-1" pods life
is_other() { [ "$(uids life)" != "$before" ]; }
check "others than before" is_other
play_all life running
check "and runs" comes "True Started" condition_of life PodsReady

# ---- the operator begins anew
before=$(uids life)
operator_stop
operator_start --kueue
check "another operator is ready" operator_ready
check "and disturbs nothing" stays "$before" uids life
play life-master-0 exit 0
check "the end is told" comes "True Succeeded" condition_of life Finished
check "with the job's words" is "PyTorchJob life is successfully completed." workload life '.status.conditions[] | select(.type == "Finished") | .message'

# ---- quota that is given back
queued shrink 0 3
wait_for 60 has_workload shrink
kueue_admits shrink spot
check "three workers" comes "shrink-worker-0 shrink-worker-1 shrink-worker-2" pods shrink
play_all shrink running
comes "True Started" condition_of shrink PodsReady >/dev/null
play shrink-worker-2 exit 0
check "a worker that is done gives its quota back" comes "worker 1" workload shrink '.status.reclaimablePods[]? | "\(.name) \(.count)"'
check "as Kueue asks for it, too" kueue_approves shrink
play_all shrink exit 0
check "and all of it at the end" comes "True Succeeded" condition_of shrink Finished

# ---- partial admission
queued part 0 4 "" "elasticPolicy: {minReplicas: 2, maxReplicas: 4}"
wait_for 60 has_workload part
check "an elastic job may be admitted in part" is "4 2" workload part '.spec.podSets[0] | "\(.count) \(.minCount)"'
kueue_admits part spot 2
check "it has the pods that are admitted" comes "part-worker-0 part-worker-1" pods part
check "and tells them how many they are" is 2 env_of part-worker-0 SHOAL_NNODES
play_all part running
check "those are all" comes "True Started" condition_of part PodsReady
check "part is at rest" requests_rest
first=$(workload part .metadata.uid)
edit_job part '{"spec": {"elasticPolicy": {"maxReplicas": 6}, "pytorchReplicaSpecs": {"Worker": {"replicas": 6}}}}'
is_replaced() { [ "$(workload part .spec.podSets[0].count)" = 6 ] && [ "$(workload part .metadata.uid)" != "$first" ]; }
check "more than was asked for is another Workload" wait_for 60 is_replaced
check "for which it waits without pods" comes "" pods part

# ---- priority
kubectl create -f - >/dev/null <<END
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 1000}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: pods-high}, value: 77}
END
queued first 0 1 "" "" "kueue.x-k8s.io\\/priority-class: high"
check "Kueue's priority class" comes "1000 WorkloadPriorityClass high" workload first '.spec | "\(.priority) \(.priorityClassRef.kind) \(.priorityClassRef.name)"'
queued second 0 1 "schedulingPolicy: {priorityClass: pods-high}"
check "one of pods" comes "77 PriorityClass pods-high" workload second '.spec | "\(.priority) \(.priorityClassRef.kind) \(.priorityClassRef.name)"'
queued third 0 1 "" "" "kueue.x-k8s.io\\/priority-class: none-such"
check "one that is not there is told of" wait_for 60 waits_for third 'WorkloadPriorityClass "none-such" is not known'
edit_job third '{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "high"}}}'
check "until the label is mended" comes 1000 workload third .spec.priority
edit_job second '{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}}'
check "another queue while it waits" comes other workload second .spec.queueName

# ---- what admission checks and topologies say
manifest placed 0 1 OnFailure | sed 's/metadata: {name: placed}/metadata: {name: placed, labels: {kueue.x-k8s.io\/queue-name: team}}/
    s/template: {spec/template: {metadata: {annotations: {kueue.x-k8s.io\/podset-required-topology: rack}}, spec/' | kubectl create -f - >/dev/null
check "a topology request" comes "rack training.kubeflow.org/replica-index" workload placed \
    '.spec.podSets[0].topologyRequest | "\(.required) \(.podIndexLabel)"'
kueue_writes placed '.admissionChecks = [{name: "prov", state: "Ready", message: "booked", lastTransitionTime: (now | todate),
    podSetUpdates: [{name: "worker", nodeSelector: {booking: "b1"}, annotations: {consume: "r1"}}]}]'
kueue_admits placed spot
check "what a check adds is in the pods" comes 'b1 spot r1' pod placed-worker-0 \
    '"\(.spec.nodeSelector.booking) \(.spec.nodeSelector.pool) \(.metadata.annotations.consume)"'

# ---- its user
queued mine 0 1
wait_for 60 has_workload mine
kueue_admits mine spot
check "a job of a user" comes mine-worker-0 pods mine
edit_job mine '{"spec": {"runPolicy": {"suspend": true}}}'
check "suspended, it has no pods" comes "" pods mine
check "and no Workload" comes "" workloads_of mine
edit_job mine '{"spec": {"runPolicy": {"suspend": false}}}'
check "resumed, it queues" wait_for 60 has_workload mine
check "and waits" stays "" pods mine

# ---- Kueue's own integration
queued theirs 0 1 "suspend: true"
check "a job that Kueue's own integration suspends" comes "Created Suspended" conditions theirs
check "gets no Workload of ours" stays "" workloads_of theirs
their=pytorchjob-theirs-$(printf 'PyTorchJob\nkubeflow.org\ntheirs\n%s' "$(field theirs .metadata.uid)" | sha1sum | cut -c-5)
api POST "$(workloads_path)" '{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "'"$their"'", "ownerReferences": [
    {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "theirs", "uid": "'"$(field theirs .metadata.uid)"'", "controller": true}]},
    "spec": {"queueName": "team", "podSets": [{"name": "worker", "count": 1, "template": {"spec": {"containers": [{"name": "pytorch", "image": "i:1"}]}}}]}}' >/dev/null
edit_job theirs '{"spec": {"runPolicy": {"suspend": false}}}'
check "unsuspended by it, it runs" comes theirs-worker-0 pods theirs
play theirs-worker-0 exit 0
check "to its end" wait_for 60 is true field theirs '[.status.conditions[] | select(.type == "Succeeded")][0].status == "True"'
check "and its Workload is as it was" is null workload theirs .status
operator_stop

# ---- an older Kueue
kueue_serve v1beta1
operator_start --kueue
check "ready with v1beta1 alone" operator_ready
queued older 0 1 "" "" "kueue.x-k8s.io\\/priority-class: high"
check "its words for priority" comes "1000 high kueue.x-k8s.io/workloadpriorityclass" workload older \
    '.spec | "\(.priority) \(.priorityClassName) \(.priorityClassSource)"'
kueue_admits older spot
check "and its admission" comes older-worker-0 pods older
play older-worker-0 exit 0
check "to the end" comes "True Succeeded" condition_of older Finished
operator_stop

# ---- without the flag
operator_start
check "ready without the flag" operator_ready
queued unqueued 0 1
check "a queue is no reason to wait then" comes unqueued-worker-0 pods unqueued
check "and there is no Workload" is "" workloads_of unqueued
operator_stop
check "it leaves in good order" is 0 echo "$exit_code"
tap_done
