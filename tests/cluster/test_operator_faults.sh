#!/bin/bash
# shellcheck disable=SC2119 # operator_start and operator_stop without arguments are meant so
# What may break around jobs that go on: the operator, its leader, the API server, etcd; and objects that are in the
# way or make no sense. What may become of nodes is in test_operator_nodes.sh. Names in capitals are those of the peer
# operator's behaviour that a check repeats or betters.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
operator_world
operator_start
check "the operator is ready" operator_ready

# ---- the operator is killed
pod_count() { pods "$1" | wc -w; }
service_count() { services "$1" | wc -w; }
at_least() { # NUMBER COMMAND...
    local least=$1
    shift
    [ "$("$@")" -ge "$least" ]
}
# One pod for each index and no other, alive or not.
indices() {
    api GET "$pods_path$(of_job "$1")" |
        jq -r '[.items[].metadata.labels | ."training.kubeflow.org/replica-type" + ."training.kubeflow.org/replica-index"] | unique | length'
}
kill_and_follow() {
    operator_stop KILL
    operator_start
}

# interrupted JOB: the operator is killed when it has begun to make the job's children. Whether it has not ended yet, too, is
# luck on a busy machine.
interrupted() {
    job "$1" 1 63 ExitCode "restartScope: Job"
    wait_for 60 at_least 1 service_count "$1"
    operator_stop KILL
    [ "$(pod_count "$1")" -lt 64 ]
}
x19=x19
until interrupted $x19 || [ $x19 = x19aaa ]; do
    operator_start
    delete_job $x19
    x19=${x19}a
done
check "X19 killed in the middle of it" test "$(pod_count $x19)" -lt 64
operator_start
wait_for 60 at_least 5 pod_count $x19
kill_and_follow
check "X19 another one makes the rest: 64 pods" comes 64 pod_count $x19
check "X19 64 services" comes 64 service_count $x19
check "X19 one for each index" is 64 indices $x19
check "X19 no failure is counted" is null field $x19 .status.history.failures
play_all $x19 running
check "X19 running" comes "Created Running" conditions $x19
sleep 1.1 # metrics are published once a second
check "X19 it is not created twice" is 0 jobs_created

before=$(uids $x19)
play $x19-worker-7 exit 137
attempt() { field "$x19" .status.history.attempt; }
wait_for 60 is 1 attempt
kill_and_follow
fresh() { # all 64 are there, and none of them from before
    local now
    now=$(uids "$x19")
    [ "$(wc -l <<<"$now")" -eq 64 ] && [ -z "$(comm -12 <(echo "$before") <(echo "$now"))" ]
}
check "X19 killed while it restarts a group: 64 new pods" wait_for 60 fresh
check "X19 one failure" is 1 field $x19 .status.history.failures
check "X19 one attempt more" is 1 attempt
play_all $x19 running
check "X19 running again" comes "Created Running" conditions $x19
delete_job $x19

# ---- pods that do not go at once
owner_of() { pod "$1" '.metadata.ownerReferences[0].uid'; }
job x20 1 1 Never
check "X20 pods" comes "x20-master-0 x20-worker-0" pods x20
play_all x20 running
hold x20-worker-0
hold x20-master-0
kubectl delete pytorchjob x20 --wait=false >/dev/null
kubectl delete pod x20-master-0 x20-worker-0 --wait=false >/dev/null
job x20 1 1 Never
check "X20 the new job is taken up" comes Created conditions x20
check "X20 the old pod is not its" is "null null null" counts x20 Worker
check "X20 while the old pods end no new ones are made" stays "" pods x20
let_go x20-worker-0
let_go x20-master-0
check "X20 then they are" comes "x20-master-0 x20-worker-0" pods x20
check "X20 and are of the new job" is "$(field x20 .metadata.uid)" owner_of x20-worker-0
play_all x20 running
if has_controllers; then # the collector takes up to half a minute for the old job's services, whose names it waits for
    check "X20 which runs" wait_for 120 is "Created Running" conditions x20
fi
check "X20 and has not failed" is null field x20 .status.history.failures

job x21 1 1 Never
check "X21 pods" comes "x21-master-0 x21-worker-0" pods x21
play_all x21 running
check "X21 running" comes "Created Running" conditions x21
hold x21-worker-0
edit_job x21 '{"spec": {"runPolicy": {"suspend": true}}}'
check "X21 suspended" comes "Created Running=False Suspended" conditions x21
check "X21 a pod hangs" comes "" pods x21
edit_job x21 '{"spec": {"runPolicy": {"suspend": false}}}'
at_the_end() { echo "$(conditions x21): $(pods x21)"; }
check "X21 resumed, but its old pods come first" stays "Created Running=False Suspended: " at_the_end
let_go x21-worker-0
check "X21 both" comes "x21-master-0 x21-worker-0" pods x21
play_all x21 running
check "X21 runs again" comes "Created Suspended=False Running" conditions x21
check "X21 and has not failed" is null field x21 .status.history.failures
uid=$(pod x21-worker-0 .metadata.uid)
kubectl delete pod x21-worker-0 --wait=false >/dev/null
check "a deleted pod of policy Never comes again" wait_for 60 is_new x21-worker-0 "$uid"
play x21-worker-0 running
check "and is no failure" comes Running field x21 '.status.conditions[-1].type'
operator_stop

# ---- an idle operator, which asks for nothing but its watches until its other connection is given up
check "two idle minutes can be made a second" gcc -D_GNU_SOURCE -shared -fPIC -o "$work/idle.so" tests/cluster/idle.c -ldl
LD_PRELOAD=$work/idle.so ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" operator_start
check "an operator whose idle connections are given up is ready" operator_ready
for idle in idle-a idle-b; do
    sleep 3 # longer than a connection may be idle
    job $idle 0 2 OnFailure
    check "$idle: a job after a pause gets its pods" comes 2 pod_count $idle
    check "... and its status" comes Created conditions $idle
done
check "no request waited behind a watch" lacks "$work/operator-$((${#operators[@]} - 1)).log" "no whole answer"
operator_stop

# ---- large jobs of one tenant: 65 MB of them, an operator that may have 128 MiB of data, and somebody else's small job
large() { # NAME SUSPENDED: a job of a megabyte
    {
        printf '{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "%s"},
            "spec": {"runPolicy": {"suspend": %s}, "pytorchReplicaSpecs": {"Worker": {"replicas": 1,
            "restartPolicy": "Never", "template": {"spec": {"containers": [
            {"name": "pytorch", "image": "image:1", "env": [{"name": "SCRIPT", "value": "' "$@"
        cat "$work/megabyte"
        printf '"}]}]}}}}}}'
    } | curl -sS --fail-with-body --max-time 60 --unix-socket "$socket" \
        -H 'Content-Type: application/json' -H 'Accept-Encoding: identity' --data-binary @- \
        "http://localhost$jobs_path" >/dev/null
}
head -c 740000 /dev/urandom | base64 -w 0 >"$work/megabyte"
all_large() {
    local number
    for number in {1..60}; do large "asleep-$number" true || return; done
    for number in {1..5}; do large "awake-$number" false || return; done
}
check "65 jobs of a megabyte" all_large
# a sanitizer's shadow is terabytes: another build that is there, or no limit
without_sanitizer() {
    local folder
    for folder in "$BUILD" build/release build/debug; do
        [ ! -x "$folder/shoal-operator" ] || grep -qE '__[at]san_init' "$folder/shoal-operator" || { realpath "$folder"; return; }
    done
    return 1
}
if folder=$(without_sanitizer); then
    operator_limit=(ulimit -s 512 -d $((128 * 1024)))
    PATH=$folder:$PATH operator_start
else
    skip "an operator's memory is limited" "no build without a sanitizer"
    operator_start
fi
check "an operator with 128 MiB reads them" operator_ready
job modest 0 2 OnFailure
check "a small job gets its pods" wait_for 300 is 2 pod_count modest
check "so does a large one" wait_for 300 is 1 pod_count awake-5
has_script() { [ "$(env_of "$1" SCRIPT | wc -c)" -gt 900000 ]; }
check "with all of its script" has_script awake-5-worker-0
check "which is told what it costs" tells awake-5 "KiB of text"
check "one that is woken has all of it, too" edit_job asleep-60 '{"spec": {"runPolicy": {"suspend": false}}}'
check "... in its pod" wait_for 300 is 1 pod_count asleep-60
check "... whole" has_script asleep-60-worker-0
check "it is still the same operator" kill -0 "$operator"
operator_stop
for number in {1..60}; do delete_job "asleep-$number"; done # what follows would read and write all of them again
for number in {1..5}; do delete_job "awake-$number"; done
operator_limit=(true)

# ---- two operators
kubectl create namespace shoal-system >/dev/null
metrics_of=()
first=${#operators[@]}
log=$work/operator-$first.log
leads() { curl -s --max-time 20 "http://127.0.0.1:${metrics_of[$1]}/metrics" | sed -n 's/^shoal_operator_leader //p'; }
for replica in 0 1; do
    operator_start --leader-elect
    metrics_of[replica]=$metrics
    check "operator $replica is ready" operator_ready
    check "operator $replica leads: $((1 - replica))" comes $((1 - replica)) leads $replica
done
# Every state of the Lease, one a line.
curl -sSN --unix-socket "$socket" "http://localhost/apis/coordination.k8s.io/v1/namespaces/shoal-system/leases?watch=1" >"$work/leases" &
watcher=$!
operators+=("$watcher")
# leaseTransitions, whose it was, and for how many seconds the one before had not been heard of; for each holder in turn, of
# whom the first is "a".
terms() {
    jq -r '.object.spec | [.leaseTransitions, if .holderIdentity == "" then "nobody" else .holderIdentity end,
        (.renewTime | (.[:19] + "Z" | fromdate) + (.[19:-1] | "0" + . | tonumber))] | join(" ")' "$work/leases" |
        awk 'NR == 1 { name[$2] = "a" } NR > 1 && !name[$2] { name[$2] = $2 == "nobody" ? $2 : "b" }
            $2 != holder { print $1, name[$2], NR == 1 ? 0 : int($3 - at) } { holder = $2; at = $3 }' | xargs
}
job lead 1 0 ExitCode
check "two operators: one makes the pod" comes lead-master-0 pods lead
play lead-master-0 running

kill -STOP "${operators[first]}"
check "the leader hangs: the other takes over" wait_for 60 is 1 leads 1
uid=$(pod lead-master-0 .metadata.uid)
play lead-master-0 exit 137
check "and goes on" wait_for 60 is_new lead-master-0 "$uid"
play lead-master-0 running
kill -CONT "${operators[first]}"
check "the first one wakes and does not lead" comes 0 leads 0
check "one failure" comes 1 field lead .status.history.failures

warnings() { grep -c ' warning ' "$log"; }
frozen_while() { # NAME COMMAND...: while the command runs
    local result=0
    cluster_signal "$1" STOP
    "${@:2}" || result=$?
    cluster_signal "$1" CONT
    return "$result"
}
few() { # MOST BEFORE: warnings since
    local told=$(($(warnings) - $2))
    tail -n "$((told + 5))" "$log"
    [ "$told" -ge 1 ] && [ "$told" -le "$1" ]
}
uid=$(pod lead-master-0 .metadata.uid)
operator_stop TERM "$((first + 1))"
check "SIGTERM hands over" wait_for 60 is 1 leads 0
# each time: the one before had believed in itself for 10 s and was not heard of for 15, or it had let go of the Lease
in_turn() {
    local silent='(1[5-9]|[2-9][0-9]|[0-9]{3,})'
    terms | grep -E "^0 a 0( [0-9]+ [ab] $silent| [0-9]+ nobody [0-9]+ [0-9]+ [ab] [0-9]+)+\$" | grep -E ' nobody [0-9]+ [0-9]+ a '
}
check "never could both lead: the Lease went from hand to hand" eval 'wait_for 60 in_turn || { terms; false; }'
kill "$watcher"
wait "$watcher" 2>/dev/null
operators[-1]=
play lead-master-0 exit 137
check "the job goes on" wait_for 60 is_new lead-master-0 "$uid"
play lead-master-0 running

# ---- the API server and etcd, one operator
told=$(warnings)
check "the API server hangs: it leads no more" frozen_while kube-apiserver wait_for 60 is 0 leads 0
check "the API server hung: it leads again" wait_for 60 is 1 leads 0
check "said, but not in floods" few 3 "$told"
told=$(warnings)
cluster_stop kube-apiserver KILL
sleep 3
check "the API server is gone: said, but not in floods" wait_for 30 few 2 "$told"
GODEBUG=http2debug=2 cluster_start kube-apiserver # from now on its log has what comes by HTTP/2
wait_for 120 api GET /readyz
check "it serves PyTorchJobs again" wait_for 120 crd_served
uid=$(pod lead-master-0 .metadata.uid)
play lead-master-0 exit 137
check "it is back: the job goes on" wait_for 60 is_new lead-master-0 "$uid"
check "that is what was counted" comes 3 field lead .status.history.failures
check "said once more" wait_for 60 grep "watching .* again" "$log"
job slow 1 31 OnFailure
frozen_while etcd sleep 12
check "etcd hung: the job's pods come" wait_for 120 is 32 pod_count slow
check "and nothing is counted" is null field slow .status.history.failures
by_http2() { grep -c 'http2: decoded hpack field .*"user-agent" = "shoal-operator/' "$cluster/log/kube-apiserver"; }
check "its pods and services were asked for by HTTP/2" at_least 64 by_http2
check "it is the same process" kill -0 "${operators[first]}"

# ---- the leader is killed while it makes a job's pods
another_waits() {
    operator_start --leader-elect
    metrics_of[1]=$metrics
    comes 0 leads 1
}
leader=$first
another_waits >"$work/waits"
check "another operator waits" is 0 leads 1
some() { [ "$(pod_count "$1")" -gt 0 ]; }
still_there() { [ -z "$(comm -23 <(echo "$1") <(uids "$killed"))" ]; } # UIDS
half_made() { # JOB: it is interrupted, as above
    job "$1" 1 255 OnFailure
    wait_for 60 some "$1"
    operator_stop KILL "$leader"
    made=$(uids "$1")
    [ "$(wc -l <<<"$made")" -lt 256 ]
}
killed=killed
until half_made $killed || [ $killed = killedaa ]; do
    leader=$((${#operators[@]} - 1)) # soon
    wait_for 60 is 1 leads 1
    another_waits >"$work/waits"
    delete_job $killed
    killed=${killed}a
done
check "the leader was killed half-way" test "$(wc -l <<<"$made")" -lt 256
check "SIGKILL: the other takes over when the lease is over" wait_for 60 is 1 leads 1
check "and makes what is missing" wait_for 120 is 256 pod_count $killed
check "what was there is still there" still_there "$made"
check "no more than one of each" stays 256 pod_count $killed
failures() { grep -F Failed; } # nor that what was made already exists, of which a busy server tells late
untroubled() { # what was made is told, and no failure
    local all
    all=$(events "$killed") && grep -E "Created ([0-9]+ pods|pod)" <<<"$all" | head -n 1 && answers_no failures <<<"$all"
}
check "nobody was told of a failure" untroubled
operator_stop

# ---- a CustomResourceDefinition that drops what is Shoal's own, as Kubeflow's does, or what is of this version, as that of 0.1
shape='.spec.versions[0].schema.openAPIV3Schema.properties'
without() { # FIELD...: of the definition that is there
    local fields
    fields=$(printf ", $shape.%s" "$@")
    crd_kubectl get crd pytorchjobs.kubeflow.org -o json |
        jq "{apiVersion, kind, spec, metadata: (.metadata | {name, labels, annotations})} | del(${fields#, })" |
        crd_kubectl replace -f -
}
restart_scope() { # that the server would store of one that says Job; fails without its answer
    local job
    job=$(api POST "$jobs_path?dryRun=All" "$(manifest dropped 0 1 Never "restartScope: Job" | kubectl create --dry-run=client --validate=false -o json -f -)") &&
        jq -e -r 'select(.kind == "PyTorchJob") | .spec.runPolicy | .restartScope // "dropped"' <<<"$job"
}
check "Kubeflow's definition takes the place of ours" without status.properties.history spec.properties.runPolicy.properties.restartScope spec.properties.backoffLimit
check "what is ours is dropped" comes dropped restart_scope
operator_start
check "the operator is ready" operator_ready
job pruned 0 1 ExitCode "backoffLimit: 1"
is_running() { conditions "$1" | grep -w Running | grep -vw Running=False; }
for failure in 1 2; do
    check "pod $failure" comes pruned-worker-0 pods pruned
    play pruned-worker-0 running
    check "... runs" wait_for 60 is_running pruned
    uid=$(pod pruned-worker-0 .metadata.uid)
    play pruned-worker-0 exit 137
    [ $failure = 2 ] || check "failure 1: a new pod" wait_for 60 is_new pruned-worker-0 "$uid"
done
has_failed() { last pruned | grep -F "PyTorchJobFailed"; }
check "failure 2: the limit is reached, though no history is kept" wait_for 60 has_failed
check "the server did not keep it" is null field pruned .status.history
check "the job tells why that ends with the operator" tells pruned "does not keep all of status.history"
not_kept() { metric shoal_operator_history_not_kept; }
check "so does the gauge" comes 1 not_kept
told_once() { grep -c "warning The CustomResourceDefinition" "$work/operator-$((${#operators[@]} - 1)).log"; }
check "and the log, once" is 1 told_once
check "nothing is written over and over" requests_rest
check "our definition again" install_crd
check "it is served" comes Job restart_scope
job kept 0 1 Never
check "its history is kept" comes 0 not_kept
history=status.properties.history.properties
check "the definition of 0.1 takes the place of ours" without $history.{incidents,incidentTime,incidentsWithoutCause} $history.replicas.items.properties.{incidents,left} spec.properties.runPolicy.properties.restartScope
check "it is served" comes dropped restart_scope
job part 0 1 Never
check "a part of the history is not kept" comes 1 not_kept
check "the rest of it is" comes 0 field part .status.history.restarts
check "the job tells" tells part "does not keep all of status.history"
check "nothing is written over and over" requests_rest
tap_done
