# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # operator.sh ends proxy; work, cluster, operators, groups_path: of tap.sh and operator.sh
# The real training operator, from its program: for record.sh and live.sh, whose arguments are its program and the
# CustomResourceDefinition of PyTorchJobs of the same version. Nothing of the project needs it, and nothing here makes it. Source tap.sh,
# lib.sh and operator.sh after.

# peer_alone PROGRAM CRD: the script goes on in a network of its own, as that program's webhook listens on every address, with a folder of its
# own where it wants its certificates, and nothing that it starts outlives it.
peer_alone() {
    [ $# -eq 2 ] || { echo "usage: $0 PROGRAM CRD" >&2; exit 2; }
    peer_program=$(realpath -e "$1") && peer_crd=$(realpath -e "$2") || exit 2
    [ -z "${PEER_ALONE:-}" ] || return 0
    mkdir -p "$peer_folder" || exit
    # shellcheck disable=SC2016 # expands in that shell
    exec env PEER_ALONE=1 unshare --net --pid --fork --kill-child --mount-proc bash -c \
        'ip link set lo up && mount -t tmpfs tmpfs "$0" && exec "$@"' "$peer_folder" "$0" "$@"
}
peer_folder=/tmp/k8s-webhook-server

# peer_world: a control plane with its CustomResourceDefinition and Volcano's, and what its own manifests bring beside its Deployment. Its
# webhook is called by nobody.
peer_world() {
    tests/cluster/up.sh control-plane "$cluster" $$ >"$work/up.log" 2>&1 || { cat "$work/up.log"; return 1; }
    kubectl proxy --unix-socket="$socket" >"$work/proxy.log" 2>&1 &
    proxy=$!
    wait_for 60 api GET /readyz && peer_definition && pod_groups scheduling.volcano.sh v1beta1 && kubectl create -f - <<END
apiVersion: v1
kind: Namespace
metadata: {name: kubeflow}
---
apiVersion: v1
kind: Secret
metadata: {name: training-operator-webhook-cert, namespace: kubeflow}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validator.training-operator.kubeflow.org}
webhooks: []
END
}
# Before 1.25 an API server passes over the definition's rules in CEL, and kubectl refuses them.
peer_definition() {
    kubectl create --validate=false -f "$peer_crd" &&
        wait_for 60 kubectl wait --for=condition=Established --timeout=5s crd/pytorchjobs.kubeflow.org && wait_for 60 kubectl get pytorchjobs
}

# peer_start FLAGS...: leaves $peer, and $peer_metrics, the port of its metrics. Its log is of every start. Not within a check, whose variables are lost; nor is peer_world.
peer_start() {
    local port health_port config=$work/peer.kubeconfig
    port=$(free_port)
    health_port=$(free_port "$port")
    peer_metrics=$(free_port "$port" "$health_port")
    cp "$KUBECONFIG" "$config"
    if [ "$(server_minor)" -lt 23 ]; then
        python3 tests/cluster/peer/autoscaling_v2.py "$KUBECONFIG" "$port" >"$work/adapter.log" 2>&1 &
        operators+=($!)
        wait_for 60 curl -sf "http://127.0.0.1:$port/readyz" >/dev/null || { cat "$work/adapter.log"; return 1; }
        kubectl config --kubeconfig "$config" unset clusters.test.certificate-authority-data >/dev/null
        kubectl config --kubeconfig "$config" set-cluster test --server="http://127.0.0.1:$port" >/dev/null
    fi
    "$peer_program" --kubeconfig "$config" --enable-scheme=pytorchjob "$@" \
        --metrics-bind-address="127.0.0.1:$peer_metrics" --health-probe-bind-address="127.0.0.1:$health_port" >>"$work/peer.log" 2>&1 &
    peer=$!
    operators+=("$peer")
    if ! peer_certificates || ! wait_for 60 curl -sf "http://127.0.0.1:$health_port/readyz" >/dev/null; then
        grep -v healthz "$work/peer.log"
        return 1
    fi
}
# A kubelet would put its secret there, all of it at once.
peer_certificates() {
    local name
    rm -rf "${peer_folder:?}"/*
    mkdir "$peer_folder/new"
    for name in tls.crt tls.key ca.crt; do
        wait_for 60 peer_certificate "$name" || return
    done
    mv "$peer_folder/new" "$peer_folder/serving-certs"
}
peer_certificate() {
    kubectl get -n kubeflow secret training-operator-webhook-cert -o json |
        jq -er --arg name "$1" '.data[$name] | strings | @base64d' >"$peer_folder/new/$1"
}
peer_stop() {
    kill -TERM "$peer"
    wait "$peer" 2>/dev/null
    return 0
}

# The test as gang scheduler: it makes no pod before the phase of its group says so.
let_in() { # JOB
    wait_for 60 is "$1" group "$1" .metadata.name && api PATCH "$groups_path/$1" '{"status": {"phase": "Inqueue"}}' &&
        wait_for 60 play "$1-worker-0" running && api PATCH "$groups_path/$1" '{"status": {"phase": "Running"}}'
}
counts_of() { echo "$(counts "$1" Master) $(counts "$1" Worker)"; } # JOB
# For 5 s nothing of it changes.
peer_rests() {
    local before after round
    for round in {1..10}; do
        before=$(peer_versions)
        sleep 5
        after=$(peer_versions)
        [ -z "$before" ] || [ "$before" != "$after" ] || return 0
        echo "$round: it still works"
    done
    return 1
}
peer_versions() {
    local path
    for path in "$jobs_path" "$pods_path" "$services_path" "$autoscalers_path" "$groups_path"; do
        api GET "$path" | jq -r '.items[] | "\(.metadata.uid) \(.metadata.resourceVersion)"' || return
    done
}
