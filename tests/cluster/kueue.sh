# shellcheck shell=bash
# shellcheck disable=SC2154 # operator.sh sets work
# A player of Kueue for tests: its objects on the real API server, by CustomResourceDefinitions of our own, and what its scheduler and
# its webhooks do to a Workload, as Kueue's API reference says. No program of Kueue runs. Source operator.sh before.
# shellcheck source=tests/cluster/workloads.sh
. tests/cluster/workloads.sh
kueue_crds=(workloads resourceflavors workloadpriorityclasses)

kueue_install() {
    local name
    kubectl apply -f tests/data/kueue/crds.yaml || return
    for name in "${kueue_crds[@]}"; do
        wait_for 60 kubectl wait --for=condition=Established --timeout=5s "crd/$name.kueue.x-k8s.io" || return
    done
    wait_for 60 api GET "$(workloads_path)"
}

# kueue_serve VERSION: that one alone, from now on, and stored so: nobody converts what the versions say in other words.
kueue_serve() {
    local name index patch='[]'
    kueue_version=$1
    for index in 0 1; do
        patch=$(jq -c --argjson index $index --argjson on "$([[ $index-$1 = 0-v1beta2 || $index-$1 = 1-v1beta1 ]] && echo true || echo false)" \
            '. + [{op: "replace", path: "/spec/versions/\($index)/served", value: $on}, {op: "replace", path: "/spec/versions/\($index)/storage", value: $on}]' <<<"$patch")
    done
    for name in "${kueue_crds[@]}"; do
        kubectl patch "crd/$name.kueue.x-k8s.io" --type=json -p "$patch" >/dev/null || return
    done
    wait_for 60 api GET "$(workloads_path)"
}

flavor() { # NAME SPEC
    api POST "/apis/kueue.x-k8s.io/$kueue_version/resourceflavors" \
        '{"apiVersion": "kueue.x-k8s.io/'$kueue_version'", "kind": "ResourceFlavor", "metadata": {"name": "'"$1"'"}, "spec": '"$2"'}' >/dev/null
}

# kueue_writes JOB FILTER: the status of its Workload becomes what the filter of jq makes of it; tried again where the operator wrote
# meanwhile.
kueue_writes() { wait_for 60 kueue_writes_once "$@"; }
kueue_writes_once() {
    local object name
    object=$(api GET "$(workloads_path)" | jq -c --arg job "$1" '[.items[] | select(.metadata.ownerReferences[0].name == $job)][0]') || return
    [ "$object" != null ] || return
    name=$(jq -r .metadata.name <<<"$object")
    api PATCH "$(workloads_path)/$name/status" "$(jq -c "def condition(t; s; r; m): .conditions = ([.conditions[]? | select(.type != t)] +
        [{type: t, status: s, reason: r, message: m, lastTransitionTime: (now | todate)}]);
        . as \$whole | {metadata: {resourceVersion: .metadata.resourceVersion}, status: (.status // {} | $2)}" <<<"$object")" >/dev/null
}
kueue_waits() { kueue_writes "$1" "condition(\"QuotaReserved\"; \"False\"; \"Pending\"; \"$2\")"; } # JOB MESSAGE
# kueue_admits JOB FLAVOR [WORKERS]: as many as were asked for, or so many.
# shellcheck disable=SC2016 # jq's
kueue_admits() {
    kueue_writes "$1" 'condition("QuotaReserved"; "True"; "QuotaReserved"; "Quota reserved in ClusterQueue all") |
        condition("Admitted"; "True"; "Admitted"; "The workload is admitted") |
        (if any(.conditions[]; .type == "Evicted") then condition("Evicted"; "False"; "QuotaReserved"; "Previously: evicted") else . end) |
        .admission = {clusterQueue: "all", podSetAssignments: [$whole.spec.podSets[] | {name, flavors: {cpu: "'"$2"'", memory: "'"$2"'"},
            count: (if .name == "worker" then '"${3:-.count}"' else .count end)}]}'
}
kueue_evicts() { kueue_writes "$1" "condition(\"Evicted\"; \"True\"; \"$2\"; \"to make way\")"; } # JOB REASON

# What Kueue's webhooks ask of a status, beyond the schema: quota and admission go together, no more is given back than there is.
# shellcheck disable=SC2016 # jq's
kueue_approves() { # JOB
    is true workload "$1" '(.status.conditions // [] | any(.type == "QuotaReserved" and .status == "True")) as $reserved |
        ($reserved == (.status.admission != null)) and
        ([.status.reclaimablePods[]? as $given | .spec.podSets[] | select(.name == $given.name) | $given.count <= .count] | all)'
}
