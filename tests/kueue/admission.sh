#!/bin/bash
# shellcheck disable=SC2119 # kueue_world and operator_stop without arguments are meant so
# Jobs in the queues of a real Kueue (server.sh), with the test as its administrator, and as scheduler and kubelet:
# admission checks and topologies, and what is left when the operator or Kueue was not there for a while.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/kueue/server.sh
. tests/kueue/server.sh
kueue_world

# ---- an admission check
kubectl apply -f - >/dev/null <<<'{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: booking}, spec: {controllerName: test.shoal/booking}}'
kubectl patch admissioncheck booking --subresource=status --type merge -p '{"status": {"conditions": [
    {"type": "Active", "status": "True", "reason": "Active", "message": "the test", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}' >/dev/null
queue checked 1 spot 'admissionChecksStrategy: {admissionChecks: [{name: booking}]}'
in_queue=checked
check_says() { # JOB STATE [UPDATE]
    wait_for 60 is booking workload "$1" '.status.admissionChecks[]?.name' && wait_for 60 check_writes "$@"
}
check_writes() {
    local name
    name=$(workloads_of "$1")
    api PATCH "$(workloads_path)/$name/status" "$(workload "$1" '{metadata: {resourceVersion: .metadata.resourceVersion}, status: {admissionChecks: [.status.admissionChecks[] |
        .state = "'"$2"'" | .message = "so it says" | .lastTransitionTime = (now | todate) '"${3:+| .podSetUpdates = [$3]}"']}}')"
}
queued checked 0 1
check "a job with an admission check has quota" comes "True QuotaReserved" condition_of checked QuotaReserved
check "and waits for it" wait_for 60 waits_for checked "its admission checks go on"
check "without pods" is "" pods checked
check_says checked Ready '{name: "worker", nodeSelector: {booking: "b1"}, annotations: {consume: "r1"}, labels: {booked: "yes"}, tolerations: [{key: "booked", operator: "Exists"}]}' >/dev/null
check "then it has its pod" comes checked-worker-0 pods checked
check "with what the check adds" is 'b1 spot r1 yes booked' pod checked-worker-0 \
    '"\(.spec.nodeSelector.booking) \(.spec.nodeSelector.pool) \(.metadata.annotations.consume) \(.metadata.labels.booked) \(.spec.tolerations[] | select(.key == "booked") | .key)"'
runs checked >/dev/null
check_says checked Retry >/dev/null
check "a check that is to be tried again evicts it" comes "" pods checked
check "which begins anew" wait_for 60 is Pending workload checked '.status.admissionChecks[0].state'
check "with quota" comes "True QuotaReserved" condition_of checked QuotaReserved
check_says checked Ready '{name: "worker", nodeSelector: {booking: "b2"}}' >/dev/null
check "and what it adds then" comes b2 pod checked-worker-0 .spec.nodeSelector.booking
check_says checked Rejected >/dev/null
check "a check that refuses it deactivates it" comes "QueueDeactivated" field checked '.status.conditions[] | select(.type == "Waiting") | .reason'
check "without pods, too" comes "" pods checked
delete_job checked

# ---- a topology
node() { # NAME RACK
    kubectl apply -f - <<<'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "'"$1"'", "labels": {"pool": "racks", "rack": "'"$2"'", "kubernetes.io/hostname": "'"$1"'"}}}' &&
        kubectl patch node "$1" --subresource=status --type merge -p '{"status": {"allocatable": {"cpu": "1", "pods": "10"}, "capacity": {"cpu": "1", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}' &&
        kubectl patch node "$1" --type merge -p '{"spec": {"taints": null}}'
}
{ node a1 a && node b1 b && node b2 b; } >/dev/null
kubectl apply -f - >/dev/null <<<'{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: racks}, spec: {levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}}'
flavor racks '{"nodeLabels": {"pool": "racks"}, "topologyName": "racks"}'
queue racks 8 racks
in_queue=racks
# placed NAME WORKERS ANNOTATIONS: a job whose workers ask for a place.
placed() {
    manifest "$1" 0 "$2" OnFailure "" "" 'resources: {requests: {cpu: 1}}' |
        sed "s/metadata: {name: $1}/metadata: {name: $1, labels: {kueue.x-k8s.io\\/queue-name: racks}}/; s#template: {spec#template: {metadata: {annotations: {$3}}, spec#" |
        kubectl create -f - >/dev/null
}
places() { # JOB: node of each pod, gates
    api GET "$pods_path$(of_job "$1")" | jq -r '[.items | sort_by(.metadata.name)[] | "\(.spec.nodeSelector["kubernetes.io/hostname"])\(.spec.schedulingGates // [] | map(" " + .name) | add // "")"] | join(", ")'
}
placed tight 2 "kueue.x-k8s.io/podset-required-topology: rack"
check "a job that needs one rack" admitted tight
check "has its pods there, by their rank, and no gate" comes "b1, b2" places tight
check "they run" runs tight
kubectl delete pod tight-worker-1 >/dev/null
check "a pod that is lost goes to its place again" comes "b1, b2" places tight
placed wide 2 "kueue.x-k8s.io/podset-required-topology: rack"
check "another one waits" wait_for 60 waits_for wide "opology"
delete_job tight
check "until there is room" comes "b1, b2" places wide
delete_job wide
placed loose 3 "kueue.x-k8s.io/podset-preferred-topology: rack"
hosts() { api GET "$pods_path$(of_job "$1")" | jq -r '[.items[].spec.nodeSelector["kubernetes.io/hostname"] // "none"] | unique | length'; } # JOB: how many
check "one that prefers a rack has all nodes" comes 3 hosts loose
delete_job loose
placed free 2 "kueue.x-k8s.io/podset-unconstrained-topology: 'true'"
check "one that takes any" comes 2 hosts free
delete_job free
queued implied 0 2
check "and one that says nothing" comes 2 hosts implied
delete_job implied

# ---- the operator or Kueue is not there for a while
queue again 1 plain 'preemption: {withinClusterQueue: LowerPriority}'
in_queue=again
queued victim 0 1 "" "" "kueue.x-k8s.io\\/priority-class: low"
comes victim-worker-0 pods victim >/dev/null
runs victim >/dev/null
hold victim-worker-0
queued winner 0 1 "" "" "kueue.x-k8s.io\\/priority-class: high"
check "a job is on its way out" comes "" pods victim
operator_stop KILL
let_go victim-worker-0
operator_start --kueue
check "an operator that begins then" operator_ready
check "gives its quota back" comes winner-worker-0 pods winner
check "at rest" requests_rest
cluster_stop kueue KILL
kubectl delete pod winner-worker-0 --wait=false >/dev/null
check "while Kueue is away nobody makes pods" stays "" pods winner
kueue_start >"$work/kueue.log" 2>&1
check "then they come" comes winner-worker-0 pods winner
ends winner >/dev/null
check "and quota is given again" comes victim-worker-0 pods victim
delete_job victim

operator_stop
check "SIGTERM ends it with 0" test "$exit_code" -eq 0
tap_done
