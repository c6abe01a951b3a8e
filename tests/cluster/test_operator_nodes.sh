#!/bin/bash
# shellcheck disable=SC2119 # operator_world without arguments is meant so
# Nodes that are lost, that have bad hardware, that others mark, and that are drained: what becomes of pods there.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
operator_world
operator_start --node-lost-seconds=3 --overdue-seconds=1 --watch-nodes
check "the operator is ready, with little patience" operator_ready

# A node that is never heard of again.
bind() { api POST "$pods_path/$1/binding" '{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "'"$1"'"}, "target": {"kind": "Node", "name": "'"$2"'"}}' >/dev/null; }
ready() { # POD True|False: as its node, or the node controller, says it
    wait_for 60 api PATCH "$pods_path/$1/status" '{"status": {"conditions": [{"type": "Ready", "status": "'"$2"'", "lastTransitionTime": "'"$(date -u +%FT%TZ)"'"},
        {"type": "ContainersReady", "status": "True"}]}}'
}
on_node() { # JOB NODE: a job of one worker, which runs there
    job "$1" 0 1 Never
    comes "$1-worker-0" pods "$1" && bind "$1-worker-0" "$2" && play "$1-worker-0" running && ready "$1-worker-0" True
}
node() { api POST /api/v1/nodes '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "'"$1"'"}}' >/dev/null; }
node dying
api PATCH /api/v1/nodes/dying/status '{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": "'"$(date -u +%FT%TZ)"'"}]}}' >/dev/null
check "a pod on a node" on_node dying dying
dying=$(pod dying-worker-0 .metadata.uid)
if has_controllers; then # the node controller finds out
    check "its node died: the pod is made again" wait_for 180 is_new dying-worker-0 "$dying"
    check "which is told" tells dying "Pod dying-worker-0 is deleted by force: its node is lost"
    check "and is no failure" is null field dying .status.history.failures
fi
node well
check "a pod on another node" on_node stuck well
uid=$(pod stuck-worker-0 .metadata.uid)
kubectl delete pod stuck-worker-0 --grace-period=1 --wait=false >/dev/null
check "that does not end is told of" tells stuck "PodTerminating Pod stuck-worker-0 is past its deletion grace period"
check "and not deleted by force" stays "$uid" pod stuck-worker-0 .metadata.uid
ready stuck-worker-0 False
check "until its node is lost" wait_for 60 is_new stuck-worker-0 "$uid"

# bad hardware, as the pod's agent says; with this limit any failure would end the job
node ill
job sick 1 2 OnFailure "backoffLimit: 0"
check "sick: pods" comes "sick-master-0 sick-worker-0 sick-worker-1" pods sick
for name in master-0 worker-1; do bind sick-$name well; done
bind sick-worker-0 ill
play_all sick running
uid=$(pod sick-worker-0 .metadata.uid)
others() { pod sick-master-0 .metadata.uid && pod sick-worker-1 .metadata.uid; }
before=$(others)
affinity() { pod "$1" '.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[].matchFields[] | "\(.key) \(.operator) \(.values[])"'; }
check "bad hardware" play sick-worker-0 hardware "GPU 3 reports Xid 79"
asked_to_end() { [ "$(pod sick-worker-0 .metadata.deletionTimestamp)" != null ]; }
check "the pod is deleted" wait_for 60 asked_to_end
kubectl delete pod sick-worker-0 --grace-period=0 --force >/dev/null 2>&1 # as its kubelet would end it
check "and made again" wait_for 60 is_new sick-worker-0 "$uid"
check "away from its node" is "metadata.name NotIn ill" affinity sick-worker-0
check "which is told" tells sick "NodeAvoided Node ill is avoided for 3600 s, and pod sick-worker-0 is made again elsewhere: bad hardware: GPU 3 reports Xid 79"
check "and remembered" is ill field sick '.status.history.avoidedNodes | keys[]'
check "and no failure" is null field sick .status.history.failures
check "the others stay" is "$before" others

# a node that others mark as bad, by a real taint, while another one like it is there: its kubelet, which renews it, is this shell
node marked
node spare
beats() { # NODE
    api PATCH "/api/v1/nodes/$1" '{"spec": {"taints": null}}' >/dev/null &&
        api PATCH "/api/v1/nodes/$1/status" '{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": "'"$(date -u +%FT%TZ)"'"}]}}' >/dev/null
}
job shy 1 2 Never "backoffLimit: 0"
check "shy: pods" comes "shy-master-0 shy-worker-0 shy-worker-1" pods shy
for name in master-0 worker-1; do bind shy-$name well; done
bind shy-worker-0 marked
play_all shy running
uid=$(pod shy-worker-0 .metadata.uid)
others() { for name in shy-master-0 shy-worker-1; do pod $name '.metadata.uid, .status.containerStatuses[].restartCount'; done; }
before=$(others)
check "a node like it" beats spare
check "kubectl taint" kubectl taint nodes marked nvidia.com/gpu-xid-error=true:NoSchedule
leaves() { beats spare; [ "$(pod shy-worker-0 .metadata.deletionTimestamp)" != null ]; }
check "the pod is asked to end" wait_for 120 leaves
check "with time to save" is 30 pod shy-worker-0 .metadata.deletionGracePeriodSeconds
kubectl delete pod shy-worker-0 --grace-period=0 --force >/dev/null 2>&1 # as its kubelet would end it
check "and made again" wait_for 60 is_new shy-worker-0 "$uid"
check "away from that node" is "metadata.name NotIn marked" affinity shy-worker-0
check "which is told, with the taint" tells shy "NodeAvoided Node marked is avoided for 3600 s, and pod shy-worker-0 is made again elsewhere: taint nvidia.com/gpu-xid-error=true:NoSchedule"
check "and no failure" is null field shy .status.history.failures
check "the others stay as they are" is "$before" others

# an eviction, as of a drain: the same job, and its limit is still 0
uid=$(pod shy-worker-1 .metadata.uid)
others() { pod shy-master-0 '.metadata.uid, .status.containerStatuses[].restartCount'; pod shy-worker-0 .metadata.uid; }
before=$(others)
kubectl drain well --pod-selector=training.kubeflow.org/job-name=shy,training.kubeflow.org/replica-type=worker,training.kubeflow.org/replica-index=1 >"$work/drain" 2>&1 &
drain=$!
evicted() { [ "$(pod shy-worker-1 .metadata.deletionTimestamp)" != null ]; }
check "kubectl drain evicts a pod" wait_for 60 evicted
kubectl delete pod shy-worker-1 --grace-period=0 --force >/dev/null 2>&1 # as its kubelet would end it
wait "$drain"
check "... and is done" test $? -eq 0
check "it is made again" wait_for 60 is_new shy-worker-1 "$uid"
check "and that is no failure" is null field shy .status.history.failures
check "nor is the job over" comes Running field shy '.status.conditions[-1].type'
check "the others stay as they are" is "$before" others
tap_done
