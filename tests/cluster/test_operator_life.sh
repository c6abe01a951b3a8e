#!/bin/bash
# shellcheck disable=SC2119 # operator_start and operator_stop without arguments are meant so
# The life of jobs on a real API server; the test plays scheduler and kubelet. Names in capitals (P01, X10, ...) are
# those of the peer operator's behaviour that a check repeats or betters.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
operator_world
operator_start
check "the operator is ready" operator_ready

# ---- what is made
job p01 1 2 OnFailure "" "" 'ports: [{name: pytorchjob-port, containerPort: 8080}]'
check "P01 pods" comes "p01-master-0 p01-worker-0 p01-worker-1" pods p01
check "P01 services" comes "p01-master-0 p01-worker-0 p01-worker-1" services p01
check "P01 the container's port" is "pytorchjob-port 8080 TCP" pod p01-master-0 \
    '[.spec.containers[0].ports[] | "\(.name) \(.containerPort) \(.protocol)"] | join(", ")'
check "P01 the service's port" is 8080 service p01-master-0 '[.spec.ports[].port] | join(" ")'
check "P01 MASTER_PORT is that" is 8080 env_of p01-master-0 MASTER_PORT
check "P01 MASTER_ADDR is the service's name" is p01-master-0 env_of p01-master-0 MASTER_ADDR
check "P01 the worker's, too" is p01-master-0 env_of p01-worker-1 MASTER_ADDR
check "P01 RANK" is 2 env_of p01-worker-1 RANK
check "P01 WORLD_SIZE" is 3 env_of p01-worker-1 WORLD_SIZE
check "P01 PET_NPROC_PER_NODE" is auto env_of p01-master-0 PET_NPROC_PER_NODE
check "a service has no address and tells of pods that are not ready" is "None true" service p01-master-0 \
    '"\(.spec.clusterIP) \(.spec.publishNotReadyAddresses)"'
check "P02 the pod's owner" belongs_to p01 "$pods_path/p01-master-0"
check "P02 the service's owner" belongs_to p01 "$services_path/p01-master-0"
check "I02 a worker waits for its master" is init-pytorch pod p01-worker-0 '[.spec.initContainers[].name] | join(" ")'
check "I03 a master does not" is null pod p01-master-0 .spec.initContainers
check "created is told" is Created conditions p01
play_all p01 running
check "running" comes "Created Running" conditions p01
play p01-master-0 exit 0
check "P03 succeeded" comes "Created Running=False Succeeded" conditions p01
check "P03 counted" comes 1 field p01 .status.replicaStatuses.Master.succeeded
check "X23 columns" is "NAME STATE AGE" bash -c "kubectl get pytorchjob p01 | head -n 1 | xargs"
check "events tell of pods" tells p01 "SuccessfulCreatePod Created pod: p01-worker-1"

# ---- suspend and resume
children() { pods "$1" && services "$1"; }
started() { field "$1" '.status.startTime // ""'; }
active() { field "$1" '.status.replicaStatuses | "\(.Master.active // 0) \(.Worker.active // 0)"'; }
told_created() { echo "Created=True PyTorchJobCreated: PyTorchJob $1 is created."; }
told_suspended() { echo "Suspended=True PyTorchJobSuspended: PyTorchJob $1 is suspended."; }
job p05 1 1 OnFailure "suspend: true"
job p06 1 1 OnFailure
job p09 1 1 OnFailure 'suspend: true, managedBy: kueue.x-k8s.io/multikueue'
check "P05 suspended from the start" comes "$(told_created p05) $(told_suspended p05)" told p05
check "P06 pods" comes "p06-master-0 p06-worker-0" pods p06
play_all p06 running
check "P06 running" comes "$(told_created p06) Running=True PyTorchJobRunning: PyTorchJob p06 is running." told p06
check "P06 counted" comes "1 1" active p06
first=$(started p06)
check "P06 startTime is set" test -n "$first"
is_anothers() { children p09 && field p09 '.status // ""'; }
check "P09 suspended, and another's: nothing" is "" is_anothers
edit_job p09 '{"spec": {"runPolicy": {"suspend": false}}}'
edit_job p06 '{"spec": {"runPolicy": {"suspend": true}}}'
check "P07 suspended" comes \
    "$(told_created p06) Running=False PyTorchJobSuspended: PyTorchJob p06 is suspended. $(told_suspended p06)" told p06
check "P07 C04 None: pods and services go all the same" comes "" children p06
nothing() { children p05 && started p05 && children p06 && is_anothers; }
check "P05 P07 P09 and nothing comes" stays "" nothing
check "P07 none is active" is "0 0" active p06
check "P07 startTime is as it was" is "$first" started p06
# as Kueue does when it lets a job run
edit_job p06 '{"spec": {"runPolicy": {"suspend": false}, "pytorchReplicaSpecs": {"Worker": {"template": {
    "metadata": {"labels": {"flavor": "spot"}}, "spec": {"nodeSelector": {"zone": "a"}}}}}}}'
check "P08 pods return" comes "p06-master-0 p06-worker-0" pods p06
check "P08 as the template was edited meanwhile" is "spot a" pod p06-worker-0 '"\(.metadata.labels.flavor) \(.spec.nodeSelector.zone)"'
check "P08 services return" comes "p06-master-0 p06-worker-0" services p06
play_all p06 running
check "P08 running" comes "$(told_created p06) Suspended=False PyTorchJobResumed: PyTorchJob p06 is resumed. \
Running=True PyTorchJobRunning: PyTorchJob p06 is running." told p06
check "P08 startTime is another" test "$(started p06)" != "$first"

# ---- failures
job x01 1 1 OnFailure
check "X01 pods" comes "x01-master-0 x01-worker-0" pods x01
play_all x01 running
check "X01 running" comes "Created Running" conditions x01
uid=$(pod x01-worker-0 .metadata.uid)
play x01-worker-0 exit 1
check "X01 another worker" wait_for 60 is_new x01-worker-0 "$uid"
check "X01 the restart is told" tells x01 "Warning PyTorchJobRestarting"
play x01-worker-0 running
check "X01 running again" comes "Created Running" conditions x01
check "X01 one failure" comes 1 field x01 .status.history.failures
wide() { kubectl get pytorchjob "$1" -o wide --no-headers | awk '{ print $NF }'; }
check "X01 one restart in the wide table" is 1 wide x01
check "P01 none in its" is 0 wide p01
life_of() { # JOB REASON...: those that the operator's log tells of it
    comes "${*:2}" bash -c "sed -n 's/.* info default\/$1: \(PyTorchJob\)\?\([A-Za-z]*\): .*/\2/p' '$work/operator-0.log' | xargs"
}
check "X01 the log tells its life" life_of x01 Created Running ExitedWithCode Restarting Running

job x02 1 1 Never
check "X02 pods" comes "x02-master-0 x02-worker-0" pods x02
play_all x02 running
play x02-worker-0 exit 3
check "X02 failed" comes "PyTorchJob x02 is failed because 1 Worker replica(s) failed. (last failure: pod x02-worker-0, container pytorch, exit code 3)" field x02 '.status.conditions[-1].message'
check "X02 completionTime" is string field x02 '.status.completionTime | type'

job c20 1 1 ExitCode
check "C20 pods" comes "c20-master-0 c20-worker-0" pods c20
check "C13 the kubelet does not restart" is Never pod c20-worker-0 .spec.restartPolicy
play_all c20 running
uid=$(pod c20-worker-0 .metadata.uid)
play c20-worker-0 exit 130
check "C19 a retryable code: another pod" wait_for 60 is_new c20-worker-0 "$uid"
uid_of_c20=$(pod c20-worker-0 .metadata.uid)
play c20-worker-0 exit 1
check "C20 C21 1 is permanent" comes 'Failed PyTorchJobFailed: job "c20" is failing because "Worker" replica(s) failed. (last failure: pod c20-worker-0, container pytorch, exit code 1)' last c20

job x13 1 1 ExitCode "backoffLimit: 2"
check "X13 pods" comes "x13-master-0 x13-worker-0" pods x13
for failure in 1 2 3; do
    uid=$(pod x13-worker-0 .metadata.uid)
    play x13-worker-0 exit 137
    [ "$failure" -eq 3 ] || check "X13 restart $failure" wait_for 60 is_new x13-worker-0 "$uid"
done
check "X13 the third failure is one too many" comes \
    "Job x13 has failed because it has reached the specified backoff limit (last failure: pod x13-worker-0, container pytorch, exit code 137)" field x13 '.status.conditions[-1].message'
job x14 1 1 OnFailure "" "backoffLimit: 2" # which is read there, too
check "X14 pods" comes "x14-master-0 x14-worker-0" pods x14
play x14-worker-0 crashing 2
check "X14 crashes of an init container count" comes 2 field x14 .status.history.failures
play x14-worker-0 crashing 3
check "X14 the third is one too many" comes \
    "Failed PyTorchJobFailed: Job x14 has failed because it has reached the specified backoff limit (last failure: pod x14-worker-0)" last x14
job x15 1 1 ExitCode
check "X15 pods" comes "x15-master-0 x15-worker-0" pods x15
play_all x15 running
uid=$(pod x15-worker-0 .metadata.uid)
play x15-worker-0 evicted
check "X15 evicted: another pod" wait_for 60 is_new x15-worker-0 "$uid"
check "X15 and no failure" is null field x15 '.status.history.failures'

# ---- the master takes its time: workers that give up waiting for it have not failed
untouched() { field "$1" '"\(.status.history.failures // 0) \(.status.history.attempt // 0) \(.status.conditions[-1].type) \(.status.replicaStatuses.Worker.failed // 0)"'; }
job n50 1 7 OnFailure
job n51 1 2 ExitCode "backoffLimit: 0"
job n52 1 1 Never
job n53 1 2 OnFailure "restartScope: Job, backoffLimit: 0"
for name in n50 n51 n52 n53; do check "$name its last pod" wait_for 60 pod "$name-worker-$(($(field $name .spec.pytorchReplicaSpecs.Worker.replicas) - 1))" .metadata.uid; done
for i in {0..6}; do play "n50-worker-$i" crashing 2 init-pytorch; done
master=$(pod n53-master-0 .metadata.uid)
for pod in n51-worker-0 n51-worker-1 n52-worker-0 n53-worker-0 n53-worker-1; do
    uid=$(pod "$pod" .metadata.uid)
    play "$pod" gave_up
    check "$pod waits anew" wait_for 60 is_new "$pod" "$uid"
done
check "n53 the master that waits for its node stays" is "$master" pod n53-master-0 .metadata.uid
check "n50 nothing has failed" stays "0 0 Waiting 0" untouched n50
for name in n51 n52 n53; do check "$name nothing has failed" stays "0 0 Created 0" untouched "$name"; done
check "n51 it is told" tells n51 "PodDisrupted Pod n51-worker-0 did not fail, the system terminated it: MasterNotFound"

# ---- a namespace that has a least size for containers (N09)
limit_range() { # METHOD PATH [SPEC]
    api "$1" "/api/v1/namespaces/default/limitranges$2" ${3:+"{\"apiVersion\": \"v1\", \"kind\": \"LimitRange\", \"metadata\": {\"name\": \"n09\"}, \"spec\": $3}"} >/dev/null
}
limit_range POST "" '{"limits": [{"type": "Container", "min": {"memory": "64Mi", "cpu": "100m"}}]}'
job n09 1 1 OnFailure "" "" 'resources: {requests: {cpu: 200m, memory: 128Mi}, limits: {cpu: 200m, memory: 128Mi}}'
job n09b 1 1 OnFailure
check "N09 a wait as large as what waits" comes "n09-master-0 n09-worker-0" pods n09
check "N09 and where nothing is said" comes "n09b-master-0 n09b-worker-0" pods n09b
check "N09 the pod's class is its user's" is Guaranteed pod n09-worker-0 .status.qosClass
limit_range DELETE /n09
delete_job n09
delete_job n09b

# ---- one incident is one count, and people learn whose it was
job f07 1 3 OnFailure "backoffLimit: 1"
job n41 1 1 OnFailure
job n42 0 1 Always "backoffLimit: 0"
job c22 0 2 OnFailure
check "f07 pods" comes "f07-master-0 f07-worker-0 f07-worker-1 f07-worker-2" pods f07
for name in n41-worker-0 n42-worker-0 c22-worker-1; do check "its pod $name" wait_for 60 pod $name .metadata.uid; done
for name in f07 n41 n42 c22; do play_all $name running; done
check "f07 running" comes "Created Running" conditions f07
play f07-master-0 restarted 1 138
play f07-worker-2 restarted 1 138
play f07-worker-1 restarted 1 137 OOMKilled
play f07-worker-0 restarted 1 138
check "f07 why it was killed is told" tells f07 "ExitedWithCode Pod: default.f07-worker-1 exited with code 137: OOMKilled"
check "f07 and of its peers" tells f07 "ExitedWithCode Pod: default.f07-worker-0 exited with code 138"
check "f07 four ends are one failure" is "1 Running" field f07 '"\(.status.history.failures) \(.status.conditions[-1].type)"'
play n41-worker-0 restarted 7 2 Error side
check "N41 a sidecar fails a job, by name" comes "Failed PyTorchJobFailed: Job n41 has failed because it has reached the \
specified backoff limit (last failure: pod n41-worker-0, container side, exit code 2)" last n41
check "N41 so it is told before" tells n41 "ExitedWithCode Pod: default.n41-worker-0, container side exited with code 2"
tell_too() { # JOB CONDITION: somebody parks one of a type of his own
    api PATCH "$jobs_path/$1/status" "$(field "$1" '{status: {conditions: (.status.conditions + ['"$2"'])}} | tojson')" >/dev/null
}
check "N17 a condition of somebody else" tell_too n42 '{"type": "Audited", "status": "True", "reason": "Done", "message": "by me"}'
play n42-worker-0 restarted 7 0 Completed
check "N42 it is told" tells n42 "ExitedWithCode Pod: default.n42-worker-0 exited with code 0"
check "N42 what does its work again and again has not failed; N17 what others say is kept, and not last" \
    comes "Created Audited Running" conditions n42
hold c22-worker-0
kubectl delete pod c22-worker-0 --wait=false >/dev/null
check "C22 a deletion is told as one" tells c22 "Normal PyTorchJobRestarting PyTorchJob c22 is restarting because 1 Worker pod(s) are being deleted."
nobody_failed() { # and something is told
    local all
    all=$(events "$1") && [ -n "$all" ] && answers_no grep -i fail <<<"$all"
}
check "C22 and nothing has failed" nobody_failed c22
let_go c22-worker-0

# ---- ends
job x05 1 2 OnFailure "cleanPodPolicy: Running"
job c24 1 0 OnFailure "ttlSecondsAfterFinished: 3"
job x11 1 0 ExitCode "ttlSecondsAfterFinished: 3"
job x12 1 1 OnFailure "activeDeadlineSeconds: 5"
check "X12 pods" comes "x12-master-0 x12-worker-0" pods x12
play_all x12 running
check "C01 X05 pods" comes "x05-master-0 x05-worker-0 x05-worker-1" pods x05
play_all x05 running
play x05-master-0 exit 0
check "C01 X05 those that run go, the one that succeeded stays" comes x05-master-0 pods x05
check "C01 X05 their services too" comes x05-master-0 services x05
check "C24 pods" comes c24-master-0 pods c24
check "X11 pods" comes x11-master-0 pods x11
play x11-master-0 exit 1
ended=$(date +%s)
play c24-master-0 exit 0
check "C24 the job goes" wait_for 60 gone "$jobs_path/c24"
check "C24 not before its time" test $(($(date +%s) - ended)) -ge 3
check "X11 a failed job goes too" wait_for 60 gone "$jobs_path/x11"
check "X12 the deadline comes by itself" comes \
    "Failed PyTorchJobFailed: Job x12 has failed because it was active longer than specified deadline" last x12
check "X12 not before it is due" is true field x12 '.status | (.completionTime | fromdate) - (.startTime | fromdate) >= 5'
delete_job p06
if has_controllers; then
    check "X18 pods go with their job" wait_for 120 is "" pods p06 # the collector looks for new kinds every 30 s
    check "X18 services go with their job" comes "" services p06
fi

# ---- scaling
job x10 1 5 OnFailure
check "X10 pods" comes "x10-master-0 x10-worker-0 x10-worker-1 x10-worker-2 x10-worker-3 x10-worker-4" pods x10
api PATCH "$jobs_path/x10/scale" '{"spec": {"replicas": 2}}' >/dev/null
check "X10 down" comes "x10-master-0 x10-worker-0 x10-worker-1" pods x10
check "X10 the services, too" comes "x10-master-0 x10-worker-0 x10-worker-1" services x10
check "X10 and stays" stays "x10-master-0 x10-worker-0 x10-worker-1" pods x10
made_of() { events x10 | grep -F "Created 6 pods: " | grep -o "x10-worker-[234]" | wc -l; }
check "X10 none was made again, not even for a moment" comes 3 made_of
api PATCH "$jobs_path/x10/scale" '{"spec": {"replicas": 3}}' >/dev/null
check "X10 up" comes "x10-master-0 x10-worker-0 x10-worker-1 x10-worker-2" pods x10
selected() { kubectl get pods -l "$(api GET "$jobs_path/x10/scale" | jq -er .status.selector)" -o jsonpath='{.items[*].metadata.name}'; }
check "X10 an autoscaler finds them by the selector" comes "x10-worker-0 x10-worker-1 x10-worker-2" selected
check "X10 new pods know the new size" is 4 env_of x10-worker-2 WORLD_SIZE

# ---- a template is edited while its pods run
uid=$(pod x10-worker-1 .metadata.uid)
edit_job x10 '{"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "pytorch", "image": "image:2"}]}}}}}}'
check "an edited template leaves pods alone" stays "image:1 $uid" pod x10-worker-1 '"\(.spec.containers[0].image) \(.metadata.uid)"'
kubectl delete pod x10-worker-1 --wait=false >/dev/null
check "a pod that is made later follows it" comes image:2 pod x10-worker-1 '.spec.containers[0].image'
check "and no other" is image:1 pod x10-worker-0 '.spec.containers[0].image'

# ---- in the way
owner_of() { api GET "$1" | jq -r .metadata.ownerReferences; }
taken() { # PATH KIND NAME SPEC: an object of somebody else
    api POST "$1" '{"apiVersion": "v1", "kind": "'"$2"'", "metadata": {"name": "'"$3"'"}, "spec": {'"$4"'}}' >/dev/null
}
nothing_waits() { answers_no waits_for "$@"; }
taken "$pods_path" Pod x16-worker-0 '"containers": [{"name": "c", "image": "i:1"}]'
taken "$services_path" Service x16s-worker-0 '"clusterIP": "None", "ports": [{"port": 80}]'
job x16 1 1 OnFailure
job x16s 1 1 OnFailure
check "X16 the master is made" comes x16-master-0 pods x16
check "X16 beside a foreign service the pods are, too" comes "x16s-master-0 x16s-worker-0" pods x16s
for row in "x16 pods $pods_path" "x16s services $services_path"; do
    read -r name kind path <<<"$row"
    check "X16 the foreign one of $kind is named" tells "$name" "$kind \"$name-worker-0\" already exists"
    check "X16 and the job says that it waits" wait_for 60 waits_for "$name" "$name-worker-0"
    check "X16 it is not adopted" is null owner_of "$path/$name-worker-0"
    api DELETE "$path/$name-worker-0" >/dev/null
done
for row in "x16 pods" "x16s services"; do
    read -r name kind <<<"$row"
    check "X16 once that of $kind is gone ours comes" comes "$name-master-0 $name-worker-0" "$kind" "$name"
    check "X16 and it waits no more" wait_for 60 nothing_waits "$name" "$name-worker-0"
done

check "C20 the pod has stayed" is "$uid_of_c20" pod c20-worker-0 .metadata.uid
check "at rest it makes no request" requests_rest
operator_stop
check "SIGTERM ends it with 0" test "$exit_code" -eq 0

# ---- a job that another operator began, which knows no limit unless there is one
job o04 0 2 OnFailure
owned_pod o04-worker-0 o04 worker 0
owned_pod o04-worker-1 o04 worker 1
play_all o04 restarted 4 1
set_status o04 '{"conditions": [
    {"type": "Created", "status": "True", "reason": "PyTorchJobCreated", "message": "PyTorchJob o04 is created."},
    {"type": "Running", "status": "True", "reason": "PyTorchJobRunning", "message": "PyTorchJob default/o04 is running."}],
    "replicaStatuses": {"Worker": {"active": 2}}, "startTime": "2026-01-31T12:00:00Z"}'
uid=$(uids o04)
taken_over() { field o04 '"\(.status.history.failures // 0) \(.status.conditions[-1].type)"'; }
operator_start
check "the next operator is ready" operator_ready
check "o04 its services are made" comes "o04-worker-0 o04-worker-1" services o04
check "o04 what was before is no failure" stays "0 Running" taken_over
play o04-worker-0 restarted 5 1
check "o04 what comes is" comes "1 Running" taken_over
check "o04 its pods are as they were" is "$uid" uids o04
operator_stop
tap_done
