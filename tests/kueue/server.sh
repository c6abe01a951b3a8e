# shellcheck shell=bash
# shellcheck disable=SC2154 # operator.sh sets cluster and work
# A real Kueue beside the API server of a test. KUEUE_ASSETS is a folder with `manager`, the program of its image, and manifests.yaml, which
# its release publishes: all of that is installed but for what needs a node. The manager is a process of this machine instead, and
# its webhooks' service leads to it. Source tap.sh before.
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
# shellcheck source=tests/cluster/workloads.sh
. tests/cluster/workloads.sh

# What the API server is to have: names that only a cluster's DNS knows lead to this machine, and nobody serves visibility.
# shellcheck disable=SC2016 # jq's
kueue_objects() {
    kubectl create --dry-run=client --validate=false -o json -f "$KUEUE_ASSETS/manifests.yaml" | jq -c --argjson port "$kueue_port" '
        if .kind == "List" then .items[] else . end |
        select(.kind | IN("Deployment", "APIService", "FlowSchema", "PriorityLevelConfiguration") | not) |
        if .kind == "Service" and .metadata.name == "kueue-webhook-service" then .spec = {type: "ExternalName", externalName: "localhost"} else . end |
        walk(if type == "object" and .service?.name? == "kueue-webhook-service" then .service.port = $port else . end)'
}

kueue_install() {
    kueue_port=$(free_port)
    kueue_objects >"$work/kueue.json" && kubectl apply --server-side --validate=false -f "$work/kueue.json" &&
        kubectl wait --for=condition=Established --timeout=60s crd/workloads.kueue.x-k8s.io
}

# kueue_configuration [LINES]: LINES are more of it, in YAML. Without `integrations` among them Kueue has its own for pods alone.
kueue_configuration() {
    printf '%s\n' 'apiVersion: config.kueue.x-k8s.io/v1beta2' 'kind: Configuration' 'namespace: kueue-system' \
        "health: {healthProbeBindAddress: '127.0.0.1:$kueue_health'}" "metrics: {bindAddress: '0'}" \
        "webhook: {host: localhost, port: $kueue_port, certDir: $work/kueue}" 'leaderElection: {leaderElect: false}' \
        'clientConnection: {qps: 300, burst: 500}' 'featureGates: {VisibilityOnDemand: false}' "${1:-$kueue_ours}"
}
# What docs/kueue.md recommends.
kueue_ours='integrations: {frameworks: [pod], externalFrameworks: [PyTorchJob.v1.kubeflow.org]}'

# The manager makes its certificate and shows it as a Secret, which a kubelet would mount.
kueue_certificate() {
    local secret name
    secret=$(kubectl -n kueue-system get secret kueue-webhook-server-cert -o json) || return
    for name in ca.crt tls.key tls.crt; do
        jq -r --arg name "$name" '.data[$name] // "" | @base64d' <<<"$secret" >"$work/kueue/.$name"
        grep -q BEGIN "$work/kueue/.$name" || return # the Secret is empty at first
    done
    for name in ca.crt tls.key tls.crt; do mv "$work/kueue/.$name" "$work/kueue/$name"; done
}

kueue_start() { # [LINES]: of its configuration
    kueue_health=$(free_port "$kueue_port")
    mkdir -p "$work/kueue"
    kueue_configuration "$@" >"$work/kueue.yaml"
    cluster_start kueue "$KUEUE_ASSETS/manager" --config "$work/kueue.yaml" --zap-log-level 2
    cluster_wait 300 kueue kueue_certificate
    cluster_wait 300 kueue curl -sf "http://127.0.0.1:$kueue_health/readyz"
    cluster_wait 300 kueue kueue_answers
}
kueue_answers() { kubectl create --dry-run=server --validate=false -f - <<<'{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "probe"}}'; }
kueue_restart() { cluster_stop kueue && kueue_start "$@"; }

# ---- what its administrator makes

flavor() { # NAME SPEC
    kubectl apply -f - >/dev/null <<<'{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "'"$1"'"}, "spec": '"$2"'}'
}
# queue NAME CPUS [FLAVOR [MORE]]: a ClusterQueue of so many CPUs and the LocalQueue of its name; MORE is more of the first one's spec.
queue() {
    kubectl apply -f - >/dev/null <<END
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: $1}, spec: {namespaceSelector: {}, resourceGroups: [
  {coveredResources: [cpu], flavors: [{name: ${3:-plain}, resources: [{name: cpu, nominalQuota: $2}]}]}]${4:+, $4}}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: $1, namespace: default}, spec: {clusterQueue: $1}}
END
}
edit_queue() { kubectl patch clusterqueue "$1" --type merge -p "$2" >/dev/null; }        # NAME JSON
edit_local_queue() { kubectl patch localqueue "$1" --type merge -p "$2" >/dev/null; }    # NAME JSON
edit_workload() { kubectl patch workload "$(workloads_of "$1")" --type merge -p "$2" >/dev/null; } # JOB JSON
priority() { # NAME VALUE: a WorkloadPriorityClass
    kubectl apply -f - >/dev/null <<<"{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: $1}, value: $2}"
}

# ---- what the tests begin with

kueue_world() {
    operator_world node-lifecycle-controller # nodes of the tests have no kubelet
    { kueue_install && kueue_start; } >"$work/kueue.log" 2>&1 || { cat "$work/kueue.log"; exit 1; }
    flavor plain '{}'
    flavor spot '{"nodeLabels": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]}'
    priority low 1
    priority high 1000
    operator_start --kueue
    check "the operator is ready" operator_ready
}

# Jobs, as checks.
admitted() { comes "True Admitted" condition_of "$1" Admitted; }
runs() { play_all "$1" running && comes "True Started" condition_of "$1" PodsReady; }
ends() { play_all "$1" exit 0 && comes "True Succeeded" condition_of "$1" Finished; }
