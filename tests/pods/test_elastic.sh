#!/bin/bash
# Elastic jobs in real pods: `kubectl scale` takes a worker away and brings it again while it trains, then one is lost and cannot
# be made again. Of another the master is lost, and finds no room but a worker's; of a third, which has none, worker 0. All end
# with the weights of a single worker that nothing happened to.
# shellcheck source=tests/pods/node.sh
. "$(dirname "$0")/node.sh"
# shellcheck source=tests/pods/jobs.sh
. tests/pods/jobs.sh
kubectl create namespace elastic >/dev/null
kubectl config set-context --current --namespace elastic >/dev/null
elastic='scope("Replica") | containers(.args += ["--parallel.reduction_slots=3"]) |
    .spec.elasticPolicy = {minReplicas: 1, maxReplicas: 3, shrinkAfterSeconds: 2}'
no_master='del(.spec.pytorchReplicaSpecs.Master)'
for job in scaled moved given; do mkdir -p "$work/$job/go" && chmod 777 "$work/$job/go"; done
check "scaled: apply" apply scaled "held | workers(3) | $elastic | $no_master"

# Each checkpoint is held. Who waits for the end of a step lets the run on meanwhile, one checkpoint at a time.
held() { # JOB
    local path
    for path in "$work/$1"/*/*steps; do
        [ ! -e "$path/COMPLETE" ] || [ -e "$work/$1/go/${path##*/}" ] || echo "${path##*/}"
    done | grep .
}
let_on() { local name; for name in $(held "$1"); do touch "$work/$1/go/$name"; done; } # JOB
let_end() { rm -r "$work/$1/go" && touch "$work/$1/go"; } # JOB
soon() { "${@:2}" || { let_on "$1"; return 1; }; } # JOB COMMAND...
says() { kubectl logs "$1" | grep -F -- "shoal-agent: $2"; } # POD TEXT
ending() { kubectl get pod "scaled-worker-$1" -o jsonpath="{.metadata.deletionTimestamp}" | grep -q .; } # NUMBER
scale() { kubectl scale pytorchjob/scaled --replicas="$1"; }
pods() { [ "$(uids scaled | sed 's/ .*//' | xargs)" = "$*" ]; } # NAME...

row scaled "a checkpoint appears" wait_for 300 held scaled
row scaled "kubectl scale to two" scale 2
row scaled "... the last worker goes" wait_for 120 ending 2
row scaled "... the others go on" wait_for 200 soon scaled says scaled-worker-0 "goes on with 2 nodes instead of 3: node 2 (scaled-worker-2) was asked to end; 2 ranks"
row scaled "... its pod is gone" wait_for 120 pods scaled-worker-0 scaled-worker-1
row scaled "... the next checkpoint appears" wait_for 300 held scaled
row scaled "kubectl scale to three" scale 3
row scaled "... it joins" wait_for 200 says scaled-worker-0 "more nodes are here: all local ranks end with a step, to start again"
row scaled "... and trains" wait_for 200 soon scaled says scaled-worker-0 "goes on with 3 nodes instead of 2: node 2 (scaled-worker-2) joined; 3 ranks"
row scaled "... the next checkpoint appears" wait_for 300 held scaled
kubectl create quota few --hard=pods=2 >/dev/null
# Its launcher stands still until the pod is deleted: the kubelet would start the container of a dead one again, and ask that one
# to end.
lost() { # POD, with its launcher
    local process
    process=$(victim "$(uid "$1")" launcher) && kill -STOP "$process" && kubectl delete pod "$1" --force --grace-period=0 &&
        { kill -KILL "$process" || ! kill -0 "$process"; }
}
row scaled "a worker is lost, and no other is made" lost scaled-worker-1
row scaled "... the others go on without it" wait_for 200 soon scaled says scaled-worker-0 "goes on with 2 nodes instead of 3: node 1 (scaled-worker-1) was lost and not back within"
row scaled "... which are two" pods scaled-worker-0 scaled-worker-2
row scaled "... the next checkpoint appears" wait_for 300 held scaled
kubectl delete quota few >/dev/null
again() { [ "$(says scaled-worker-0 "more nodes are here" | wc -l)" -eq 2 ]; }
row scaled "another is made, and joins" wait_for 300 again
let_end scaled
row scaled "... and trains" wait_for 200 says scaled-worker-0 "goes on with 3 nodes instead of 2: node 1 (scaled-worker-1) joined; 3 ranks"
row scaled "the job succeeds" ends scaled Succeeded
check "calm: apply" apply calm "workers(1) | $elastic | $no_master"
row calm "the job succeeds" ends calm Succeeded
row scaled "the weights are those of the undisturbed run" same scaled calm

# ---- no room for node 0: its pod's priority is higher than the workers' ----
kubectl proxy --unix-socket="$work/api" >"$work/proxy.log" 2>&1 & proxy=$!
places() { # NUMBER: the node has room for so many pods that ask for one
    local node
    node=$(kubectl get nodes -o jsonpath='{.items[0].metadata.name}') &&
        curl -sS --fail-with-body --max-time 20 --unix-socket "$work/api" -X PATCH -H "Content-Type: application/merge-patch+json" \
            --data-binary "{\"status\": {\"capacity\": {\"shoal.test/place\": \"$1\"}, \"allocatable\": {\"shoal.test/place\": \"$1\"}}}" \
            "http://localhost/api/v1/nodes/$node/status" >/dev/null
}
workers_that() { # PHASE
    kubectl get pods -l "$(of_job moved),training.kubeflow.org/replica-type=worker" \
        -o jsonpath="{range .items[?(@.status.phase==\"$1\")]}{.metadata.name}{\"\n\"}{end}" | grep .
}
phase() { kubectl get pod "$1" -o jsonpath='{.status.phase}'; } # POD
is_in_place() { # the new master runs, and one of two workers waits for room
    [ "$(phase moved-master-0)" = Running ] && [ "$(uid moved-master-0)" != "$first" ] &&
        [ "$(workers_that Running | wc -l)" -eq 1 ] && [ "$(workers_that Pending | wc -l)" -eq 1 ]
}
check "there is a class for node 0" kubectl create priorityclass node-0 --value=1000
check "the node has room for three pods" wait_for 60 places 3
check "moved: apply" apply moved "held | workers(2) | $elastic | containers(.resources = {limits: {\"shoal.test/place\": \"1\"}}) |
    .spec.pytorchReplicaSpecs.Master.template.spec.priorityClassName = \"node-0\""
row moved "a checkpoint appears" wait_for 300 held moved
first=$(uid moved-master-0)
check "the node has room for two" wait_for 60 places 2
row moved "node 0 is lost" lost moved-master-0
row moved "... another takes the place of a worker" wait_for 200 is_in_place
stays=$(workers_that Running)
row moved "... and the other worker goes on with it" wait_for 200 soon moved says "$stays" "goes on with 2 nodes instead of 3; 2 ranks"
row moved "... the next checkpoint appears" wait_for 300 held moved
check "the node has room for three again" wait_for 60 places 3
row moved "the worker is back, and joins" wait_for 300 says "$stays" "more nodes are here: all local ranks end with a step, to start again"
let_end moved
row moved "... and trains" wait_for 200 says "$stays" "goes on with 3 nodes instead of 2"
row moved "the job succeeds" ends moved Succeeded
row moved "the weights are those of the undisturbed run" same moved calm

# ---- the same without a Master: the operator preempts the last worker ----
gone_on() { # the new worker 0 runs, beside the same worker 1, and the last one waits for room
    [ "$(phase given-worker-0)" = Running ] && [ "$(uid given-worker-0)" != "$first" ] &&
        [ "$(uid given-worker-1)" = "$second" ] && [ "$(phase given-worker-2)" = Pending ]
}
told() { kubectl get events --field-selector reason=WorkerPreempted -o jsonpath='{range .items[*]}{.message}{"\n"}{end}'; }
preempted() { kubectl get pytorchjob given -o jsonpath='{.status.history.preemptedWorker}'; }
one_went() { [ "$(told | grep -c .)" -eq 1 ] && told | grep -qF 'Pod given-worker-2 is deleted to make room for pod given-worker-0'; }
check "given: apply" apply given "held | workers(3) | $elastic | containers(.resources = {limits: {\"shoal.test/place\": \"1\"}}) | $no_master"
row given "a checkpoint appears" wait_for 300 held given
first=$(uid given-worker-0) second=$(uid given-worker-1)
check "the node has room for two" wait_for 60 places 2
row given "node 0 is lost" lost given-worker-0
row given "... another takes the place of the last worker" wait_for 200 gone_on
row given "... which an event names, and no other went" one_went
row given "... and nothing is held back any more" [ -z "$(preempted)" ]
row given "... the other worker goes on with it" wait_for 200 soon given says given-worker-1 "goes on with 2 nodes instead of 3; 2 ranks"
row given "... the next checkpoint appears" wait_for 300 held given
check "the node has room for three again" wait_for 60 places 3
row given "the worker is back, and joins" wait_for 300 says given-worker-1 "more nodes are here: all local ranks end with a step, to start again"
let_end given
row given "... and trains" wait_for 200 says given-worker-1 "goes on with 3 nodes instead of 2"
row given "the job succeeds" ends given Succeeded
row given "the weights are those of the undisturbed run" same given calm
kill "$proxy"
tap_done
