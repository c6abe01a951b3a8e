#!/bin/bash
# What deploy/ installs, on a real API server: it is taken by a plain `kubectl apply`, wrong jobs are refused with the
# field's path, columns and subresources work, and the operator's rights are those it needs and no others.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
cluster=$work/cluster
export KUBECONFIG=$cluster/kubeconfig
trap 'tests/cluster/down.sh "$cluster" >/dev/null 2>&1; rm -rf "$work"' EXIT

unchanged() {
    local all
    all=$(kubectl apply -k "$installed") && answers_no grep -v ' unchanged$' <<<"$all"
}
# Helm sends the CRD so, without a look at it: the server drops the rules if it does not know them
rules_kept() { kubectl get crd pytorchjobs.kubeflow.org -o json | jq '[.. | objects | select(has("x-kubernetes-validations"))] | length'; }

# ---- jobs ----

pod='{spec: {containers: [{name: pytorch, image: i}]}}'
master="Master: {replicas: 1, template: $pod}"
worker="Worker: {replicas: 3, template: $pod}"

apply() { # NAME SPEC: the inside of a flow mapping
    kubectl apply -f - <<END
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: $1}
spec: {$2}
END
}
refused() { # NAME SPEC TEXT
    fails 1 "$3" apply "$1" "$2"
}

shown() { # COLUMNS OPTION...: of the job j, without its age
    local columns=$1
    shift
    diff <(kubectl get pytorchjob j --no-headers "$@" | awk '{$3 = "-"; print}') <(echo "$columns")
}
headed() { # NAMES OPTION...
    local names=$1
    shift
    diff <(kubectl get pytorchjob j "$@" | awk 'NR == 1 {$1 = $1; print}') <(echo "$names")
}
# what the operator writes; kubectl has no way to a status until 1.24
set_status() {
    local server=$work/api.sock
    kubectl proxy --unix-socket="$server" >/dev/null &
    wait_for 60 curl -sf --unix-socket "$server" http://localhost/readyz || return
    curl -sS --fail-with-body --unix-socket "$server" -X PATCH -H 'Content-Type: application/merge-patch+json' \
        --data-binary @- http://localhost/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/j/status <<'END'
{"status": {
  "conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "True"}],
  "replicaStatuses": {"Master": {"active": 1}, "Worker": {"active": 2, "selector": "a=b"}},
  "restarts": 4, "history": {"failures": 5, "restarts": 4, "attempt": 1, "completed": {"Worker": "0-1"},
    "replicas": [{"type": "Worker", "index": 2, "uid": "u", "counted": 1, "earlier": 3}]}}}
END
    local result=$?
    kill %%
    return "$result"
}
field() { diff <(kubectl get pytorchjob j -o jsonpath="{$2}") <(printf %s "$1"); }
scales() { kubectl scale pytorchjob j --replicas=5 && field 5 .spec.pytorchReplicaSpecs.Worker.replicas; }
explains() { kubectl explain pytorchjob.spec.runPolicy.restartScope | grep -q 'itself (the default)'; }
explains_pods() {
    kubectl explain pytorchjob.spec.pytorchReplicaSpecs.Worker.template.spec.containers.volumeMounts | grep -q 'mountPath.*<string>'
}
# each field that this server's own pods have: the CRD may have more, and lacks what has never meant anything
fields_of() { grep -oE '^ +[a-zA-Z-]+:|[{ ][a-zA-Z-]+: \{' "$1" | tr -d ' {:' | sort -u; }
knows_this_servers_pods() {
    local unknown
    kubectl get --raw /openapi/v2 >"$work/swagger.json" &&
        jq --raw-output --argjson indent 26 --from-file deploy/crd/pod_template.jq "$work/swagger.json" >"$work/pods.yaml" &&
        grep -q 'volumeMounts:$' "$work/pods.yaml" &&
        unknown=$(comm -23 <(fields_of "$work/pods.yaml") <(fields_of deploy/crd/pytorchjobs.yaml)) && { [ -z "$unknown" ] || answers_no grep -vx clusterName <<<"$unknown"; }
}

# ---- rights ----

# may ANSWER GROUP RESOURCE VERBS NAMESPACE [NAME]: the answer for each of the verbs. RESOURCE may have a /subresource.
may() {
    local verb subresource
    subresource=$(cut -s -d/ -f2 <<<"$3")
    for verb in $4; do
        cat <<END
---
apiVersion: authorization.k8s.io/v1
kind: SubjectAccessReview
spec:
  user: ${user:-system:serviceaccount:shoal-system:shoal-operator}
  resourceAttributes: {group: "$2", resource: ${3%%/*}, subresource: "$subresource", verb: $verb, namespace: "$5", name: "${6-}"}
END
    done >"$work/questions"
    kubectl create -f "$work/questions" -o jsonpath='{.spec.resourceAttributes.verb} {.status.allowed}{"\n"}' >"$work/answers"
    diff "$work/answers" <(for verb in $4; do echo "$verb $1"; done)
}

check "a control plane" tests/cluster/up.sh control-plane "$cluster" $$
installed=$(deploy_folder)
check "the CRD as Helm sends it" kubectl create --validate=false -f deploy/crd/pytorchjobs.yaml
check "... with the rules that this server knows" test "$(rules_kept)" -eq "$(if knows_cel; then echo 6; else echo 0; fi)"
check "kubectl delete -k deploy/crd" kubectl delete -k "$installed/crd"
check "kubectl apply -k $installed" kubectl apply -k "$installed"
check "... once more changes nothing" wait_for 60 unchanged
check "the CRD is established" wait_for 60 kubectl wait --for=condition=Established --timeout=5s crd/pytorchjobs.kubeflow.org

check "... and served" wait_for 60 kubectl get pytorchjobs
# by it kubectl finds what is misspelt; the server tells of a new CRD a second or more after it has it
check "kubectl explain" wait_for 60 explains
check "... of pods" wait_for 60 explains_pods
check "the CRD has what this server's pods have" knows_this_servers_pods
check "a job" apply j "backoffLimit: 6, runPolicy: {}, pytorchReplicaSpecs: {$master, $worker}"
check "its backoffLimit stays" field 6 .spec.backoffLimit
check "runPolicy.suspend is written" field false .spec.runPolicy.suspend
check "columns" headed "NAME STATE AGE"
check "columns -o wide" headed "NAME STATE AGE WORKERS RESTARTS STEP LOSS TOK/S ETA GOODPUT" -o wide
check "a status" set_status
check "... is kept" field 'u 3 0-1' \
    ".status.history.replicas[0].uid} {.status.history.replicas[0].earlier} {.status.history.completed.Worker"
check "... is shown" shown "j Running -"
check "... -o wide" shown "j Running - 2 4" -o wide
check "kubectl scale" scales

path=spec.pytorchReplicaSpecs
check "W06 two masters" refused k "pytorchReplicaSpecs: {Master: {replicas: 2, template: $pod}}" $path.Master.replicas
check "a master without a number" refused k "pytorchReplicaSpecs: {Master: {template: $pod}}" replicas
check "W12 no worker" refused k "pytorchReplicaSpecs: {Worker: {replicas: 0, template: $pod}}" $path.Worker.replicas
check "... by scale" fails 1 $path.Worker.replicas kubectl scale pytorchjob j --replicas=0
check "a misspelt role" refused k "pytorchReplicaSpecs: {$master, worker: {template: $pod}}" worker
check "no role" refused k "pytorchReplicaSpecs: {}" $path
check "a misspelt field" refused k "runPolicy: {backoffLimits: 1}, pytorchReplicaSpecs: {$master}" backoffLimits
worker_with() { echo "pytorchReplicaSpecs: {Worker: {template: {spec: {$1 containers: [{name: pytorch, image: i, $2}]}}}}"; }
for slip in 'volumeMount: [{name: v, mountPath: /v}]' 'resorces: {limits: {nvidia.com/gpu: 1}}' 'env: [{name: A, valu: b}]'; do
    check "a misspelt field of a container: ${slip%%:*}" refused k "$(worker_with "" "$slip")" "$(grep -oE 'volumeMount|resorces|valu' <<<"$slip" | head -n 1)"
done
check "... of a pod" refused k "$(worker_with "nodeSelectr: {a: b}," "args: []")" nodeSelectr
check "... of its metadata" refused k "pytorchReplicaSpecs: {Worker: {template: {metadata: {label: {a: b}}, spec: {containers: [{name: pytorch, image: i}]}}}}" label
check "a field of another type" refused k "$(worker_with 'hostNetwork: "yes",' "args: []")" hostNetwork
check "a quantity that is none" refused k "$(worker_with "" "resources: {limits: {cpu: lots}}")" "resources.limits.cpu"
check "a variable twice" refused k "$(worker_with "" "env: [{name: A, value: a}, {name: A, value: b}]")" 'Duplicate value'
check "a port without a protocol" apply ported "$(worker_with "volumes: [{name: v, emptyDir: {}}]," \
    "ports: [{containerPort: 80}], resources: {limits: {cpu: 0.5, memory: 1Gi}}, livenessProbe: {httpGet: {path: /, port: 80}}")"
check "an object without a spec" fails 1 spec kubectl apply -f - <<<'{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "bare"}}'
check "an unknown word" refused k "pytorchReplicaSpecs: {Worker: {restartPolicy: onFailure, template: $pod}}" \
    "$path.Worker.restartPolicy: Unsupported value: \"onFailure\": supported values: \"Always\", \"OnFailure\""
check "a negative limit" refused k "runPolicy: {backoffLimit: -2}, pytorchReplicaSpecs: {$master}" spec.runPolicy.backoffLimit
check "W09 another's controller" refused k "runPolicy: {managedBy: x}, pytorchReplicaSpecs: {$master}" spec.runPolicy.managedBy
check "W03 no containers" refused k "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: []}}}}" \
    $path.Worker.template.spec.containers
check "W04 no image" refused k "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch}]}}}}" image
check "W04 an empty one" refused k 'pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: ""}]}}}}' \
    'image: Invalid value'
check "W02 a wrong name" refused 0-test "pytorchReplicaSpecs: {$master}" metadata.name
check "a name too long for a service" refused "$(printf 'a%.0s' {1..55})" "pytorchReplicaSpecs: {$master}" metadata.name
check "the overlay's job" kubectl apply -k kustomize/overlays/mnist

check "the operator sees jobs" may true kubeflow.org pytorchjobs "list watch delete" ""
check "... but changes only their status" may false kubeflow.org pytorchjobs "create update patch" ""
check "..." may true kubeflow.org pytorchjobs/status update ""
check "it makes and removes pods" may true "" pods "list watch create delete" ""
check "... but changes none" may false "" pods "update patch deletecollection" ""
check "... nor runs in them" may false "" pods/exec "create get" ""
check "it makes and removes services" may true "" services "list watch create delete" ""
check "... but changes none" may false "" services "update patch" ""
check "it looks at no nodes" may false "" nodes "get list watch" ""
check "... without the right to" kubectl apply -f deploy/watch-nodes/role.yaml
check "... with which it sees them" wait_for 60 may true "" nodes "list watch" ""
check "... and no more" may false "" nodes "get create update patch delete" ""
check "it makes no Workloads" may false kueue.x-k8s.io workloads "list watch create patch delete" ""
check "... without the right to" kubectl apply -f deploy/kueue/role.yaml -f deploy/kueue/role_binding.yaml
check "... with which it does" wait_for 60 may true kueue.x-k8s.io workloads "list watch create patch delete" ""
check "... and tells their status" may true kueue.x-k8s.io workloads/status patch ""
check "... and sees what they mean" may true kueue.x-k8s.io "resourceflavors" "list watch" ""
check "... and no more" may false kueue.x-k8s.io clusterqueues "list watch create patch delete" ""
check "it reads no secrets" may false "" secrets "get list watch" shoal-system
check "it tells events" may true "" events create ""
check "its autoscalers" may true autoscaling horizontalpodautoscalers "list watch create patch delete" ""
for group in scheduling.volcano.sh scheduling.x-k8s.io; do
    check "its pod groups of $group" may true $group podgroups "list watch create patch delete" ""
done
check "its Lease" may true coordination.k8s.io leases "create get update" shoal-system shoal-operator
check "... and no other" may false coordination.k8s.io leases "get update delete" shoal-system other
check "... nor elsewhere" may false coordination.k8s.io leases "create get update" kube-system shoal-operator

kubectl create namespace training >/dev/null
check "in one namespace: kubectl apply" kubectl apply -f deploy/one-namespace/role_binding.yaml
kubectl delete clusterrolebinding shoal-operator >/dev/null
check "... it makes pods there" wait_for 60 may true "" pods "list watch create delete" training
check "... and sees its jobs" may true kubeflow.org pytorchjobs "list watch delete" training
check "... but none elsewhere" wait_for 60 may false "" pods "list watch create delete" default
check "... nor in all" may false kubeflow.org pytorchjobs "list watch" ""
kubectl apply -k "$installed" >/dev/null

if has_controllers; then
    kubectl create rolebinding editor --clusterrole=edit --user=editor >/dev/null
    kubectl create rolebinding viewer --clusterrole=view --user=viewer >/dev/null
    user=editor check "who may edit a namespace may edit its jobs" wait_for 60 may true kubeflow.org pytorchjobs "create delete patch" default
    user=viewer check "who may view it may view them" wait_for 60 may true kubeflow.org pytorchjobs "get list watch" default
    user=viewer check "... and no more" may false kubeflow.org pytorchjobs "create delete patch" default
    check "kubectl delete -k $installed" kubectl delete -k "$installed"
else
    check "kubectl delete -k $installed" kubectl delete -k "$installed" --wait=false
fi
tap_done
