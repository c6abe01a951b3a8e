# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # tap.sh sets work, tests read exit_code
# For tests of shoal-operator on a real API server: a control plane with our CustomResourceDefinition, the operator as a
# process of this machine, and the test as scheduler and kubelet, which writes the pods' status. Source tap.sh and lib.sh
# before. Objects are in namespace default; a test gives its jobs names of their own.
cluster=$work/cluster
export KUBECONFIG=$cluster/kubeconfig
socket=$work/api.sock
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/tests/world # of tests/sieve and tests/acto
operators=()
operator_limit=(true) # of ulimit, say: run before the next ones
proxy=

# Ends what was started, in every case.
operator_world_end() {
    local pid
    for pid in "${operators[@]}" $proxy; do
        [ -n "$pid" ] || continue
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null # else bash tells "Killed"
    done
    tests/cluster/down.sh "$cluster" >"$work/down.log" 2>&1
    rm -rf "$work"
}
trap operator_world_end EXIT

# With SHOAL_TEST_NEWER on a new server (tests/newer/server.sh). `installed` is what a user of that server would install,
# unless the test says otherwise.
if [ -n "${SHOAL_TEST_NEWER:-}" ]; then
    # shellcheck source=tests/newer/server.sh
    . tests/newer/server.sh
    crd_program=apiextensions-apiserver # which has the CustomResourceDefinition
    crd_server() { newer_start; }
    crd_kubectl() { newer_kubectl "$@"; } # to that server
    export CRD_KUBECONFIG=$cluster/newer.kubeconfig
    install_crd() { newer_crd "${installed:=deploy}/crd"; }
    remove_crd() { newer_crd_end "$installed/crd"; }
    # after a restart the old server looks anew whether the other one is there
    crd_served() { kubectl wait --for=condition=Available --timeout=1s apiservice/v1.kubeflow.org && kubectl get pytorchjobs; }
else
    crd_program=kube-apiserver
    crd_server() { :; }
    crd_kubectl() { kubectl "$@"; }
    install_crd() {
        : "${installed:=$(deploy_folder)}"
        # asked of a CRD so new that it has no conditions yet, `kubectl wait` fails at once; what is served is told later
        kubectl apply -k "$installed/crd" && wait_for 60 kubectl wait --for=condition=Established --timeout=5s crd/pytorchjobs.kubeflow.org &&
            wait_for 60 kubectl get pytorchjobs
    }
    remove_crd() { kubectl delete -k "$installed/crd"; }
    crd_served() { kubectl get pytorchjobs; }
fi

# heed_arguments TOOL ARGUMENTS...: ends with what the tool says of wrong arguments, or of --help, before a cluster is made for it.
heed_arguments() {
    local said
    said=$(python3 "$1" --check "${@:2}") || exit
    [ -z "$said" ] || { echo "$said" && exit; }
}

# operator_world [podgc]: podgc is the garbage collector of pods, which does not run then. It ends each pod without a node that
# is being deleted, in 1.20 by its name alone: on a slow machine that meets the next pod of this name, so that two jobs which
# are compared differ. It is needed where a client dies amid a delete, which the API server may leave half done.
operator_world() {
    CLUSTER_WITHOUT=${1:-} tests/cluster/up.sh control-plane "$cluster" $$ >"$work/up.log" 2>&1 || { cat "$work/up.log"; exit 1; }
    { crd_server && install_crd; } >"$work/crd.log" 2>&1 || { cat "$work/crd.log"; exit 1; }
    kubectl proxy --unix-socket="$socket" >"$work/proxy.log" 2>&1 &
    proxy=$!
    wait_for 60 api GET /readyz
}

# api METHOD PATH [BODY [TYPE]]: fails on an error of the server; prints its answer. Its way is short: kubectl proxy would ask
# for a compressed one, which takes longer than to send it.
api() {
    local type=${4-application/json}
    [ "$1" != PATCH ] || type=application/merge-patch+json
    curl -sS --fail-with-body --max-time 20 --unix-socket "$socket" -X "$1" \
        -H "Content-Type: $type" -H 'Accept-Encoding: identity' ${3:+--data-binary "$3"} "http://localhost$2"
}
jobs_path=/apis/kubeflow.org/v1/namespaces/default/pytorchjobs
pods_path=/api/v1/namespaces/default/pods
services_path=/api/v1/namespaces/default/services
autoscalers_path=/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers

# operator_start [FLAGS...]: the last one started is $operator; it serves health on $health, metrics on $metrics and the page on $ui. Not
# within a check, whose variables are lost.
operator_start() {
    local number=${#operators[@]}
    health=$(free_port)
    metrics=$(free_port "$health")
    ui=$(free_port "$health" "$metrics")
    ("${operator_limit[@]}" && exec shoal-operator --kubeconfig "$KUBECONFIG" --health-probe-bind-address "127.0.0.1:$health" \
        --metrics-bind-address "127.0.0.1:$metrics" --ui-bind-address "127.0.0.1:$ui" "$@") >"$work/operator-$number.log" 2>&1 &
    operator=$!
    operators+=("$operator")
}
operator_ready() { wait_for 60 curl -sf "http://127.0.0.1:$health/readyz"; }
operator_stop() { # [SIGNAL [NUMBER]]: the last one, or the one of that number; leaves its exit code in $exit_code
    local number=${2:-$((${#operators[@]} - 1))}
    kill "-${1:-TERM}" "${operators[number]}"
    wait "${operators[number]}" 2>/dev/null
    exit_code=$?
    operators[number]= # the process number may soon be another's
}

# manifest NAME MASTERS WORKERS POLICY [RUN_POLICY [SPEC [CONTAINER]]]: prints a job; RUN_POLICY and CONTAINER are the inside of a
# flow mapping, such as "backoffLimit: 2, cleanPodPolicy: All"; SPEC is one line below spec, such as "nprocPerNode: '4'".
manifest() {
    local name=$1 masters=$2 workers=$3 policy=$4 run_policy=${5-} spec=${6-} container=${7-} type count
    printf -- '---\napiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: %s}\nspec:\n' "$name"
    [ -z "$run_policy" ] || printf '  runPolicy: {%s}\n' "$run_policy"
    [ -z "$spec" ] || printf '  %s\n' "$spec"
    printf '  pytorchReplicaSpecs:\n'
    for type in Master Worker; do
        count=$([ $type = Master ] && echo "$masters" || echo "$workers")
        [ "$count" -gt 0 ] || continue
        printf '    %s:\n      replicas: %s\n      restartPolicy: %s\n' $type "$count" "$policy"
        printf '      template: {spec: {containers: [{name: pytorch, image: "image:1"%s}]}}\n' "${container:+, $container}"
    done
}
# job, with manifest's arguments: creates it. Not by kubectl, whose start and whose look at all of the server's OpenAPI cost
# twenty times as much.
job() {
    local said
    said=$(api POST "$jobs_path" "$(manifest "$@")" application/yaml) || { echo "$said" >&2; return 1; }
}
# edit_job NAME JSON: merges it into the object.
edit_job() { api PATCH "$jobs_path/$1" "$2" >/dev/null; }
delete_job() { api DELETE "$jobs_path/$1" >/dev/null; }
# What elasticPolicy says of a job with an autoscaler, for manifest.
metered='elasticPolicy: {minReplicas: 1, maxReplicas: 3, rdzvBackend: c10d, maxRestarts: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}'

pod_groups() { # GROUP VERSION: installs the API of a gang scheduler; leaves $groups_path
    kubectl apply -f - <<END && wait_for 60 kubectl wait --for=condition=Established --timeout=5s "crd/podgroups.$1"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.$1, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: $1
  scope: Namespaced
  names: {plural: podgroups, singular: podgroup, kind: PodGroup, listKind: PodGroupList}
  versions:
  - name: $2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
END
    groups_path=/apis/$1/$2/namespaces/default/podgroups
}

# play POD STATE: writes the pod's status as a kubelet would. STATE: running | exit CODE | restarted N [CODE [REASON
# [CONTAINER]]] (running again after N restarts, the last after its container, pytorch unless said, had ended so) | ended CODE N (its container has ended after N restarts, and another one follows) | crashing N [NAME]
# (its init container of that name, or the user's own, was started again N times) | hardware TEXT (it has ended so) | gave_up (the operator's init container ended) | evicted | waiting REASON MESSAGE
play() {
    local pod=$1 status phase
    case $2 in
    running) status='"phase": "Running", "containerStatuses": [{"name": "pytorch", "image": "image:1", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}]' ;;
    restarted)
        local last='{}'
        [ -z "${4-}" ] || last='{"terminated": {"exitCode": '$4', "reason": "'${5:-Error}'", "finishedAt": "'$(date -u +%FT%TZ)'"}}'
        status='"phase": "Running", "containerStatuses": [{"name": "'${6:-pytorch}'", "image": "image:1", "imageID": "", "ready": true, "restartCount": '$3', "state": {"running": {}}, "lastState": '$last'}]'
        ;;
    ended) status='"phase": "Running", "containerStatuses": [{"name": "pytorch", "image": "image:1", "imageID": "", "ready": false, "restartCount": '$4', "state": {"terminated": {"exitCode": '$3', "finishedAt": "'$(date -u +%FT%TZ)'"}}}]' ;;
    exit)
        phase=$([ "$3" -eq 0 ] && echo Succeeded || echo Failed)
        status='"phase": "'$phase'", "containerStatuses": [{"name": "pytorch", "image": "image:1", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": '$3', "finishedAt": "'$(date -u +%FT%TZ)'"}}}]'
        ;;
    hardware) status='"phase": "Running", "containerStatuses": [{"name": "pytorch", "image": "image:1", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 144, "message": "bad hardware: '$3'", "finishedAt": "'$(date -u +%FT%TZ)'"}}}]' ;;
    crashing) status='"phase": "Pending", "initContainerStatuses": [{"name": "'${4:-prepare}'", "image": "image:1", "imageID": "", "ready": false, "restartCount": '$3', "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]' ;;
    gave_up) status='"phase": "Failed", "initContainerStatuses": [{"name": "init-pytorch", "image": "image:1", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 1, "finishedAt": "'$(date -u +%FT%TZ)'"}}}]' ;;
    evicted) status='"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."' ;;
    waiting) status='"phase": "Pending", "containerStatuses": [{"name": "pytorch", "image": "image:1", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "'$3'", "message": "'$4'"}}}]' ;;
    esac
    wait_for 60 api PATCH "$pods_path/$pod/status" "{\"status\": {$status}}"
}
play_all() { # JOB STATE...: all its pods
    local name=$1 pod
    shift
    for pod in $(pods "$name"); do play "$pod" "$@"; done
}

hold() { api PATCH "$pods_path/$1" '{"metadata": {"finalizers": ["test.shoal/hold"]}}' >/dev/null; } # until let_go the pod can only be on its way out
let_go() { api PATCH "$pods_path/$1" '{"metadata": {"finalizers": null}}' >/dev/null; }

# A pod as if an operator had made it.
labels() { # JOB TYPE INDEX
    printf '{"training.kubeflow.org/operator-name": "pytorchjob-controller", "training.kubeflow.org/job-name": "%s",
        "training.kubeflow.org/replica-type": "%s", "training.kubeflow.org/replica-index": "%s"}' "$@"
}
owned_pod() { # NAME JOB TYPE INDEX
    api POST "$pods_path" '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "'"$1"'", "labels": '"$(labels "${@:2}")"',
        "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "'"$2"'", "controller": true,
        "uid": "'"$(field "$2" .metadata.uid)"'"}]}, "spec": {"containers": [{"name": "pytorch", "image": "i:1"}]}}' >/dev/null
}
set_status() { api PATCH "$jobs_path/$1/status" "{\"status\": $2}" >/dev/null; } # JOB JSON

# What there is, for checks and for wait_for.
of_job() { echo "?labelSelector=training.kubeflow.org/job-name=$1"; }
# picked PATH FILTER: what jq makes of the server's answer. A start of jq costs more than the answer, and most who wait ask for
# what has not changed since: what a filter made of an answer is kept.
picked() {
    local answer kept=$work/picked.${1//\//%}
    answer=$(api GET "$1")
    if [ ! -e "$kept" ] || [ "$2"$'\n'"$answer" != "$(<"$kept")" ]; then
        rm -f "$kept"
        jq -r "$2" <<<"$answer" >"$kept.out" || return
        printf '%s\n%s' "$2" "$answer" >"$kept"
    fi
    cat "$kept.out"
}
pods() {
    picked "$pods_path$(of_job "$1")" \
        '[.items[] | select(.metadata.deletionTimestamp == null) | .metadata.name] | sort | join(" ")'
}
services() { picked "$services_path$(of_job "$1")" '[.items[].metadata.name] | sort | join(" ")'; }
uids() { picked "$pods_path$(of_job "$1")" '[.items[].metadata.uid] | sort | .[]'; }
pod() { picked "$pods_path/$1" "$2"; }
env_of() { pod "$1" "[.spec.containers[${3-0}].env[] | select(.name == \"$2\") | .value] | join(\" \")"; } # POD NAME [CONTAINER]
is_new() { # POD UID: there is one, and it is not that one
    local uid
    uid=$(pod "$1" .metadata.uid)
    [ -n "$uid" ] && [ "$uid" != null ] && [ "$uid" != "$2" ]
}
service() { picked "$services_path/$1" "$2"; }
autoscaler() { picked "$autoscalers_path/$1" "$2"; }
group() { picked "$groups_path/$1" "$2"; }
gone() { [ "$(picked "$1" .code)" = 404 ]; } # PATH
field() { picked "$jobs_path/$1" "$2"; }
# "Created Running=False Suspended": in order, those that are True by name alone.
conditions() { field "$1" '[.status.conditions[]? | if .status == "True" then .type else .type + "=" + .status end] | join(" ")'; }
told() { field "$1" '[.status.conditions[]? | "\(.type)=\(.status) \(.reason): \(.message)"] | join(" ")'; } # all of it
counts() { field "$1" ".status.replicaStatuses.$2 | \"\\(.active) \\(.succeeded) \\(.failed)\""; } # JOB TYPE
waits_for() { # JOB TEXT; more than 1 if the server does not tell
    local all
    all=$(api GET "$jobs_path/$1") || return
    all=$(jq -r '.status.conditions[] | select(.type == "Waiting" and .status == "True") | .message' <<<"$all") || return
    grep -F -- "$2" <<<"$all"
}
last() { field "$1" '.status.conditions[-1] | "\(.type) \(.reason): \(.message)"'; }
owners() {
    picked "$1" '[.metadata.ownerReferences[] |
        "\(.apiVersion) \(.kind) \(.name) \(.uid) \(.controller) \(.blockOwnerDeletion)"] | join(", ")'
}
events() {
    picked "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=$1" \
        '.items[] | .type + " " + .reason + " " + .message'
}

# Checks: "is TEXT COMMAND...": its output is TEXT; "comes" waits up to a minute for it, which only a busy machine needs;
# "stays" looks for 3 s, ten times a second: without a pause it would take a processor from what it looks at.
is() {
    local want=$1 got
    shift
    got=$("$@")
    [ "$got" = "$want" ] || { echo "is '$got', not '$want'"; return 1; }
}
comes() { wait_for 60 is "$@" || { is "$@"; tail -n 5 "$work"/operator-*.log; return 1; }; }
stays() {
    local end=$((SECONDS + 3))
    while [ "$SECONDS" -lt "$end" ]; do
        is "$@" || return
        sleep 0.1
    done
}
belongs_to() { is "kubeflow.org/v1 PyTorchJob $1 $(field "$1" .metadata.uid) true true" owners "$2"; } # JOB PATH: it and nobody else owns it
tells() { wait_for 60 has_event "$@" || { events "$1"; return 1; }; } # JOB TEXT
has_event() { events "$1" | grep -F -- "$2"; }
jobs_created() { # as the last operator counts them; fails without the page or the counter
    local page
    page=$(curl -sf "http://127.0.0.1:$metrics/metrics") && grep -q '^# TYPE training_operator_jobs_created_total ' <<<"$page" &&
        awk '/^training_operator_jobs_created_total/ { sum += $2 } END { print sum + 0 }' <<<"$page"
}
metric() { curl -s "http://127.0.0.1:$metrics/metrics" | sed -n "s/^$1 //p"; }
# For 3 s nothing is asked of the API server, but for what a watch asks anew. On a busy machine that takes its time to come.
requests_rest() {
    local before after round
    sleep 2 # the page is published once a second
    for round in {1..5}; do
        before=$(metric shoal_operator_api_requests_total)
        sleep 3
        after=$(metric shoal_operator_api_requests_total)
        echo "$round: $before requests, then $after"
        [ -z "$before" ] || [ $((after - before)) -gt 1 ] || return 0
    done
    return 1
}
