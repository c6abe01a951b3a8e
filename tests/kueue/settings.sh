#!/bin/bash
# shellcheck disable=SC2119 # kueue_world and operator_stop without arguments are meant so
# Jobs in the queues of a real Kueue (server.sh), with the test as its administrator, and as scheduler and kubelet:
# Kueue's own settings: it counts how long pods take, or has the older version alone, or its own integration.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/kueue/server.sh
. tests/kueue/server.sh
kueue_world

# ---- Kueue counts how long pods take
kueue_restart "$kueue_ours
waitForPodsReady: {timeout: 20s, recoveryTimeout: 20s, requeuingStrategy: {backoffBaseSeconds: 1, backoffLimitCount: 2}}" >"$work/kueue.log" 2>&1 || cat "$work/kueue.log"
queue ready 2
in_queue=ready
queued slow 0 2
check "pods are made" comes "slow-worker-0 slow-worker-1" pods slow
before=$(uids slow)
was_evicted() { events "$1" | grep -F "$2"; }
is_another() { [ -n "$(pods slow)" ] && [ "$(uids slow)" != "$before" ]; }
check "that take too long are evicted, and tried again" wait_for 60 is_another
check "which is told" was_evicted slow "PodsReadyTimeout"
check "this time they run" runs slow
before=$(uids slow)
play slow-worker-1 waiting ContainerCreating x
check "one that is lost" comes "False WaitForRecovery" condition_of slow PodsReady
check "and does not come back in time" wait_for 60 is_another
play_all slow running
check "evicts the job, which runs anew" comes "True Started" condition_of slow PodsReady
delete_job slow

# ---- an operator that finds the older version alone, with Kueue's conversion behind it
operator_stop
older=$(free_port)
cluster_start older python3 tests/kueue/older.py "$socket" "$older"
cluster_wait 60 older curl -sf "http://127.0.0.1:$older/readyz"
printf '%s\n' 'apiVersion: v1' 'kind: Config' 'current-context: older' 'contexts: [{name: older, context: {cluster: older}}]' \
    "clusters: [{name: older, cluster: {server: 'http://127.0.0.1:$older'}}]" >"$work/older.kubeconfig"
KUBECONFIG=$work/older.kubeconfig operator_start --kueue
check "an operator that finds v1beta1 is ready" operator_ready
queue older 4 spot 'preemption: {withinClusterQueue: LowerPriority}'
in_queue=older
queued older 0 6 "" "elasticPolicy: {minReplicas: 2, maxReplicas: 6}" "kueue.x-k8s.io\\/priority-class: low"
check "a job is admitted in part" comes "older-worker-0 older-worker-1 older-worker-2 older-worker-3" pods older
writes_older() { workload older '[.metadata.managedFields[] | select(.apiVersion == "kueue.x-k8s.io/v1beta1")] | length > 0'; }
check "by a Workload in that version" is true writes_older
check "with its priority" is "1 WorkloadPriorityClass low" workload older '.spec | "\(.priority) \(.priorityClassRef.kind) \(.priorityClassRef.name)"'
check "for the flavor's nodes" is spot pod older-worker-0 .spec.nodeSelector.pool
check "it runs" runs older
queued newer 0 4 "" "" "kueue.x-k8s.io\\/priority-class: high"
check "and is preempted" comes "newer-worker-0 newer-worker-1 newer-worker-2 newer-worker-3" pods newer
check "the time that it ran is added up" is number workload older '.status.accumulatedPastExecutionTimeSeconds | type'
play newer-worker-3 exit 0
check "quota is given back" comes "worker 1" workload newer '.status.reclaimablePods[]? | "\(.name) \(.count)"'
ends newer >/dev/null
has_pods() { [ -n "$(pods "$1")" ]; }
check "and taken again" wait_for 60 has_pods older # as many as there is room for then
check "at rest" requests_rest
delete_job older
operator_stop
operator_start --kueue
check "the operator as before" operator_ready
# What Kueue asks of a pod: that it gives to those of its own integration.
asked_of() { pod "$1" '{nodeSelector: .spec.nodeSelector, gates: .spec.schedulingGates, tolerations: [.spec.tolerations[] | select(.key | startswith("node.") | not)],
    labels: (.metadata.labels | with_entries(select(.key | contains("kueue"))) | del(.["kueue.x-k8s.io/local-queue-name", "kueue.x-k8s.io/cluster-queue-name"])),
    annotations: (.metadata.annotations // {} | keys | map(select(contains("kueue"))))} | tojson'; }
queue ours 1 spot
in_queue=ours
queued ours 0 1
comes ours-worker-0 pods ours >/dev/null
check "pods tell their queues" is "ours ours" pod ours-worker-0 '.metadata.labels | "\(.["kueue.x-k8s.io/local-queue-name"]) \(.["kueue.x-k8s.io/cluster-queue-name"])"'
ours=$(asked_of ours-worker-0)
ends ours >/dev/null

# ---- Kueue's own integration
kueue_restart 'integrations: {frameworks: [pod, kubeflow.org/pytorchjob]}' >"$work/kueue.log" 2>&1 || cat "$work/kueue.log"
queue theirs 1 spot 'preemption: {withinClusterQueue: LowerPriority}'
in_queue=theirs
queued theirs 0 1 "" "" "kueue.x-k8s.io\\/priority-class: low"
check "Kueue's own integration queues a job" wait_for 60 has_workload theirs
their=$(workloads_of theirs)
check "with a Workload that is not ours" is null workload theirs '.metadata.labels["training.kubeflow.org/job-name"]'
check "which is admitted" comes theirs-worker-0 pods theirs
check "with its flavor" is spot pod theirs-worker-0 .spec.nodeSelector.pool
check "made as our operator makes it" is "$ours" asked_of theirs-worker-0
play_all theirs running
check "runs" wait_for 60 is true field theirs '[.status.conditions[] | select(.type == "Running")][0].status == "True"'
queued theirs-too 0 1 "" "" "kueue.x-k8s.io\\/priority-class: high"
check "is preempted" comes theirs-too-worker-0 pods theirs-too
check "and sleeps" comes "" pods theirs
play_all theirs-too exit 0
check "the end of the other one" comes "True Succeeded" condition_of theirs-too Finished
check "gives it its pod again" comes theirs-worker-0 pods theirs
check "by one Workload" is "$their" workloads_of theirs
check "at rest" requests_rest

operator_stop
check "SIGTERM ends it with 0" test "$exit_code" -eq 0
tap_done
