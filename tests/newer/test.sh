#!/bin/bash
# shellcheck disable=SC2119 # operator_start and operator_stop without arguments are meant so
# A new API server (tests/newer/server.sh) and a new kubectl: they take the CRD with its rules in CEL and every overlay,
# each rule refuses what it is for in words that name the field and nothing else, what was stored before the rules came can
# still be worked on, and the operator lists in pages, watches and comes back when the server does.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
installed=deploy/before-1.23 # first the CRD as on an old server
operator_world

kubectl=crd_kubectl # the new one
# quietly COMMAND...: it succeeds and warns of nothing
quietly() {
    "$@" 2>"$work/warnings" || { cat "$work/warnings"; return 1; }
    answers_no grep . "$work/warnings"
}
pod='{spec: {containers: [{name: pytorch, image: i}]}}'
nameless='{spec: {containers: [{name: main, image: i}]}}'
master="Master: {replicas: 1, template: $pod}"
worker="Worker: {replicas: 2, template: $pod}"
both="pytorchReplicaSpecs: {$master, $worker}"
apply() { # NAME SPEC: the inside of a flow mapping
    $kubectl apply -f - <<END
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: $1}
spec: {$2}
END
}
refused() { # NAME SPEC TEXT
    fails 1 "$3" apply "$1" "$2"
}
stored_field() { is "$1" crd_kubectl get pytorchjob "$2" -o "jsonpath={$3}"; } # VALUE JOB FIELD
status_is_written() { # JOB: as the operator does it
    api PATCH "$jobs_path/$1/status" '{"status": {"conditions": [{"type": "Created", "status": "True"}]}}'
}

# ---- without the rules, and then with them ----
elastic='elasticPolicy: {minReplicas: 3, maxReplicas: 2}'
check "without the rules a wrong job is taken" apply early "$elastic, pytorchReplicaSpecs: {$master}"
early=$(printf 'n%.0s' {1..54})
check "... whatever its name" apply "$early" "pytorchReplicaSpecs: {Worker: {replicas: 20, template: $pod}}"
check "kubectl apply -k deploy/crd, without a warning" quietly $kubectl apply -k deploy/crd
rules_are_there() { $kubectl get crd pytorchjobs.kubeflow.org -o yaml | grep -q x-kubernetes-validations; }
check "the server keeps the rules" rules_are_there
rules_hold() { refused probe "$elastic, $both" "must be configured if elastic policy is used" || { $kubectl delete pytorchjob probe --ignore-not-found; return 1; }; }
check "... and applies them" wait_for 60 rules_hold
check "once more changes nothing" is "customresourcedefinition.apiextensions.k8s.io/pytorchjobs.kubeflow.org unchanged" \
    $kubectl apply -k deploy/crd
check "its schema breaks no rule of structure" is "" $kubectl get crd pytorchjobs.kubeflow.org \
    -o 'jsonpath={.status.conditions[?(@.type=="NonStructuralSchema")].message}'
check "the status of a job of before is written" status_is_written early
check "... and its labels can be changed" $kubectl label pytorchjob early a=b
check "... but an edit of its spec has to mend it" fails 1 "must be configured if elastic policy is used" \
    $kubectl patch pytorchjob early --type merge -p '{"spec": {"runPolicy": {"suspend": true}}}'
check "the status of one with too long a name is written, too" status_is_written "$early"

# ---- each rule ----
path=spec.pytorchReplicaSpecs
long=$(printf 'a%.0s' {1..54})
check "a name that ten workers leave room for" apply "$long" "pytorchReplicaSpecs: {Worker: {replicas: 10, template: $pod}}"
check "... and eleven do not, not even later" refused "$long" "pytorchReplicaSpecs: {Worker: {replicas: 11, template: $pod}}" \
    "metadata.name: the service of its last worker"
check "... when the operator has seen it" status_is_written "$long"
check "... either" refused "$long" "pytorchReplicaSpecs: {Worker: {replicas: 11, template: $pod}}" \
    "metadata.name: the service of its last worker"
check "... nor at once" refused "b${long#a}" "pytorchReplicaSpecs: {Worker: {replicas: 11, template: $pod}}" \
    "metadata.name: the service of its last worker"
check "elastic with workers" apply elastic "elasticPolicy: {minReplicas: 2, maxReplicas: 2}, $both"
check "W11 ... without" refused e "elasticPolicy: {minReplicas: 1}, pytorchReplicaSpecs: {$master}" \
    "${path}[Worker]: must be configured if elastic policy is used"
check "... with the wrong bounds" refused e "$elastic, $both" "minReplicas must not be greater than maxReplicas"
check "... that names its field" refused e "$elastic, $both" "spec.elasticPolicy: Invalid value"
check "processes per node, once" apply procs "elasticPolicy: {nProcPerNode: 2}, $both"
check "W08 ... twice" refused procs "nprocPerNode: \"2\", elasticPolicy: {nProcPerNode: 2}, $both" \
    "spec.elasticPolicy.nProcPerNode: must not be used with spec.nprocPerNode"
check "W05 a master without our container" refused m "pytorchReplicaSpecs: {Master: {replicas: 1, template: $nameless}}" \
    "$path.Master.template.spec: Invalid value"
check "W05 a worker without" refused m "pytorchReplicaSpecs: {Worker: {template: $nameless}}" \
    "must have at least one container with name pytorch"
check "a manager" apply managed "runPolicy: {managedBy: kueue.x-k8s.io/multikueue, suspend: true}, $both"
check "... that stays, while the rest changes" apply managed "runPolicy: {managedBy: kueue.x-k8s.io/multikueue, suspend: false}, $both"
check "W10 ... changed" refused managed "runPolicy: {managedBy: kubeflow.org/training-operator}, $both" \
    "spec.runPolicy.managedBy: field is immutable"
check "W10 ... taken away" refused managed "$both" "spec.runPolicy.managedBy: field is immutable"
check "W10 ... come late" refused elastic "runPolicy: {managedBy: kueue.x-k8s.io/multikueue}, $both" "spec.runPolicy.managedBy: field is immutable"
check "a queue" apply queued "runPolicy: {schedulingPolicy: {queue: a}}, $both"
check "... that stays, while the rest changes" apply queued "runPolicy: {schedulingPolicy: {queue: a, minAvailable: 2}}, $both"
check "P04 ... changed" refused queued "runPolicy: {schedulingPolicy: {queue: b}}, $both" "spec.runPolicy.schedulingPolicy.queue is immutable"
check "P04 ... and is as it was" stored_field a queued .spec.runPolicy.schedulingPolicy.queue

# ---- what the old server's tests look at, as a new kubectl asks for it ----
check "a misspelt field" refused k "runPolicy: {backoffLimits: 1}, $both" 'unknown field "spec.runPolicy.backoffLimits"'
slip='{spec: {containers: [{name: pytorch, image: i, volumeMount: []}]}}'
check "... of a container" refused k "pytorchReplicaSpecs: {Worker: {template: $slip}}" \
    "unknown field \"$path.Worker.template.spec.containers[0].volumeMount\""
check "what typed clients leave empty" apply typed "nprocPerNode: \"\", runPolicy: {cleanPodPolicy: \"\"}, pytorchReplicaSpecs: {Worker: {restartPolicy: \"\", \
    template: {metadata: {creationTimestamp: null}, spec: {containers: [{name: pytorch, image: i, resources: {limits: {cpu: 0.5}}}]}}}}"
check "an unknown word" refused k "pytorchReplicaSpecs: {Worker: {restartPolicy: onFailure, template: $pod}}" \
    "$path.Worker.restartPolicy: Unsupported value"
check "columns" is "NAME STATE AGE WORKERS RESTARTS" eval "$kubectl get pytorchjob early -o wide | awk 'NR == 1 {\$1 = \$1; print}'"
check "a status" $kubectl patch pytorchjob elastic --subresource=status --type merge -p \
    '{"status": {"conditions": [{"type": "Running", "status": "True"}], "replicaStatuses": {"Worker": {"active": 2, "selector": "a=b"}}}}'
check "... is shown" is "elastic Running" eval "$kubectl get pytorchjob elastic --no-headers | awk '{print \$1, \$2}'"
check "... and left alone by a new spec" apply elastic "elasticPolicy: {minReplicas: 1, maxReplicas: 2}, $both"
check "... " stored_field Running elastic '.status.conditions[0].type'
check "scale" $kubectl scale pytorchjob elastic --replicas=5
check "... counts workers" stored_field 5 elastic .spec.pytorchReplicaSpecs.Worker.replicas
check "... tells how many there are, and their selector" is "2 a=b" $kubectl get pytorchjob elastic --subresource=scale \
    -o 'jsonpath={.status.replicas} {.status.selector}'
check "... not to none" fails 1 "$path.Worker.replicas" $kubectl scale pytorchjob elastic --replicas=0
explained() { $kubectl explain pytorchjob.spec.runPolicy.restartScope | grep -q 'itself (the default)'; }
check "kubectl explain" explained
kubectl create namespace pytorch >/dev/null
for overlay in kustomize/overlays/*; do
    # those of the first document say `bases`, as kubectl 1.20 needs it; a new kubectl has words about that
    applied() { $kubectl apply -k "$overlay" 2>"$work/warnings" && answers_no grep -vE "'(bases|patchesJson6902)' is deprecated" "$work/warnings"; }
    check "kubectl apply -k $overlay" applied
    $kubectl delete -k "$overlay" >/dev/null 2>&1
done
$kubectl delete pytorchjobs --all >/dev/null

# ---- the operator ----
speaks_http2() {
    is 2 curl -s -o "$work/answer" -w '%{http_version}' --http2 --cacert "$cluster/pki/ca.crt" --cert "$cluster/pki/admin.crt" \
        --key "$cluster/pki/admin.key" "$($kubectl config view -o 'jsonpath={.clusters[0].cluster.server}')/apis/kubeflow.org/v1"
}
check "the server speaks HTTP/2" speaks_http2
for i in {1..300}; do manifest "many-$i" 1 0 OnFailure "suspend: true"; done | $kubectl create -f - >/dev/null
operator_start
check "the operator is ready" operator_ready
jobs_seen() { metric shoal_operator_jobs; }
check "... has seen the jobs of all pages" comes 300 jobs_seen
suspended() { $kubectl get pytorchjobs -o json | jq '[.items[] | select(.status.conditions[-1].type == "Suspended")] | length'; }
check "... and written each one's status" wait_for 60 is 300 suspended
check "jobs that are deleted are missed" $kubectl delete pytorchjob many-1 many-2
check "... soon" comes 298 jobs_seen
cluster_stop "$crd_program" KILL
sleep 1
cluster_start "$crd_program"
cluster_wait 300 "$crd_program" $kubectl get --raw /readyz
check "after a restart of the server a new job is seen" wait_for 60 job again 1 2 OnFailure
check "... and has its pods" comes "again-master-0 again-worker-0 again-worker-1" pods again
play_all again running
check "... runs" comes "Created Running" conditions again
for p in again-worker-0 again-worker-1 again-master-0; do play $p exit 0; done
check "... and succeeds" comes "Created Running=False Succeeded" conditions again
check "a deadline, told to kubectl" $kubectl wait --for=condition=Succeeded --timeout=10s pytorchjob/again
check "it rests" requests_rest
operator_stop
check "SIGTERM ends it with 0" test "$exit_code" -eq 0
tap_done
