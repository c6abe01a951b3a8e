#!/bin/bash
# An elastic job in real pods: `kubectl scale` takes a worker away and brings it again while it trains, then one is lost and cannot
# be made again. It ends with the weights of a single worker that nothing happened to.
# shellcheck source=tests/pods/node.sh
. "$(dirname "$0")/node.sh"
# shellcheck source=tests/pods/jobs.sh
. tests/pods/jobs.sh
kubectl create namespace elastic >/dev/null
kubectl config set-context --current --namespace elastic >/dev/null
elastic='scope("Replica") | del(.spec.pytorchReplicaSpecs.Master) | containers(.args += ["--parallel.reduction_slots=3"]) |
    .spec.elasticPolicy = {minReplicas: 1, maxReplicas: 3, shrinkAfterSeconds: 2}'
mkdir -p "$work/scaled/go" && chmod 777 "$work/scaled/go"
check "scaled: apply" apply scaled "held | workers(3) | $elastic"

# Each checkpoint is held. Who waits for the end of a step lets the run on meanwhile, one checkpoint at a time.
held() {
    local path
    for path in "$work"/scaled/*/*steps; do
        [ ! -e "$path/COMPLETE" ] || [ -e "$work/scaled/go/${path##*/}" ] || echo "${path##*/}"
    done | grep .
}
let_on() { local name; for name in $(held); do touch "$work/scaled/go/$name"; done; }
soon() { "$@" || { let_on; return 1; }; }
says() { kubectl logs scaled-worker-0 | grep -F -- "shoal-agent: $1"; }
ending() { kubectl get pod "scaled-worker-$1" -o jsonpath="{.metadata.deletionTimestamp}" | grep -q .; } # NUMBER
scale() { kubectl scale pytorchjob/scaled --replicas="$1"; }
pods() { [ "$(uids scaled | sed 's/ .*//' | xargs)" = "$*" ]; } # NAME...

row scaled "a checkpoint appears" wait_for 300 held
row scaled "kubectl scale to two" scale 2
row scaled "... the last worker goes" wait_for 120 ending 2
row scaled "... the others go on" wait_for 200 soon says "goes on with 2 nodes instead of 3: node 2 (scaled-worker-2) was asked to end; 2 ranks"
row scaled "... its pod is gone" wait_for 120 pods scaled-worker-0 scaled-worker-1
row scaled "... the next checkpoint appears" wait_for 300 held
row scaled "kubectl scale to three" scale 3
row scaled "... it joins" wait_for 200 says "more nodes are here: all local ranks end with a step, to start again"
row scaled "... and trains" wait_for 200 soon says "goes on with 3 nodes instead of 2: node 2 (scaled-worker-2) joined; 3 ranks"
row scaled "... the next checkpoint appears" wait_for 300 held
kubectl create quota few --hard=pods=2 >/dev/null
lost() { # a worker, with its launcher
    local uid
    uid=$(kubectl get pod scaled-worker-1 -o jsonpath='{.metadata.uid}') && kill -KILL "$(victim "$uid" launcher)" &&
        kubectl delete pod scaled-worker-1 --force --grace-period=0
}
row scaled "a worker is lost, and no other is made" lost
row scaled "... the others go on without it" wait_for 200 soon says "goes on with 2 nodes instead of 3: node 1 (scaled-worker-1) was lost and not back within"
row scaled "... which are two" pods scaled-worker-0 scaled-worker-2
row scaled "... the next checkpoint appears" wait_for 300 held
kubectl delete quota few >/dev/null
again() { [ "$(says "more nodes are here" | wc -l)" -eq 2 ]; }
row scaled "another is made, and joins" wait_for 300 again
rm -r "$work/scaled/go" && touch "$work/scaled/go"
row scaled "... and trains" wait_for 200 says "goes on with 3 nodes instead of 2: node 1 (scaled-worker-1) joined; 3 ranks"
row scaled "the job succeeds" ends scaled Succeeded
check "calm: apply" apply calm "workers(1) | $elastic"
row calm "the job succeeds" ends calm Succeeded
row scaled "the weights are those of the undisturbed run" same scaled calm
tap_done
