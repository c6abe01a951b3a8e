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
env_of() { pod "$1" "[.spec.containers[0].env[] | select(.name == \"$2\") | .value] | join(\",\")"; }
check "P01 MASTER_PORT" is 8080 env_of p01-master-0 MASTER_PORT
check "P01 MASTER_ADDR" is p01-master-0 env_of p01-worker-1 MASTER_ADDR
check "P01 RANK" is 2 env_of p01-worker-1 RANK
check "P01 WORLD_SIZE" is 3 env_of p01-worker-1 WORLD_SIZE
check "P01 PET_NPROC_PER_NODE" is auto env_of p01-master-0 PET_NPROC_PER_NODE
check "P01 service" is "8080 None true" service p01-master-0 \
    '"\(.spec.ports[0].port) \(.spec.clusterIP) \(.spec.publishNotReadyAddresses)"'
check "P02 owner" is "$(field p01 .metadata.uid) true" pod p01-worker-0 '.metadata.ownerReferences[0] | "\(.uid) \(.controller)"'
check "I02 a worker waits for its master" is init-pytorch pod p01-worker-0 '[.spec.initContainers[].name] | join(" ")'
check "I03 a master does not" is null pod p01-master-0 .spec.initContainers
check "created is told" is Created conditions p01
play_all p01 running
check "P06 running" comes "Created Running" conditions p01
check "P06 counted" comes "1 2" field p01 '.status.replicaStatuses | "\(.Master.active) \(.Worker.active)"'
play p01-master-0 exit 0
check "P03 succeeded" comes "Created Running=False Succeeded" conditions p01
check "P03 counted" comes 1 field p01 .status.replicaStatuses.Master.succeeded
check "X23 columns" is "NAME STATE AGE" bash -c "kubectl get pytorchjob p01 | head -n 1 | xargs"
check "events tell of pods" tells p01 "SuccessfulCreatePod Created pod: p01-worker-1"

# ---- suspend and resume
job p05 1 1 OnFailure "suspend: true"
check "P05 suspended from the start" comes "Created Suspended" conditions p05
check "P05 no pods" stays "" pods p05
job p07 1 1 OnFailure
check "P07 pods" comes "p07-master-0 p07-worker-0" pods p07
play_all p07 running
check "P07 running" comes "Created Running" conditions p07
edit_job p07 '{"spec": {"runPolicy": {"suspend": true}}}'
check "P07 suspended" comes "Created Running=False Suspended" conditions p07
check "P07 no pods" comes "" pods p07
check "P07 no services" comes "" services p07
edit_job p07 '{"spec": {"runPolicy": {"suspend": false}}}'
check "P08 pods return" comes "p07-master-0 p07-worker-0" pods p07
play_all p07 running
check "P08 running" comes "Created Suspended=False Running" conditions p07
job p09 1 1 OnFailure 'managedBy: kueue.x-k8s.io/multikueue'
check "P09 another's job: no pods" stays "" pods p09
check "P09 another's job: no status" is null field p09 .status

# ---- failures
job x01 1 1 OnFailure
check "X01 pods" comes "x01-master-0 x01-worker-0" pods x01
play_all x01 running
check "X01 running" comes "Created Running" conditions x01
uid=$(pod x01-worker-0 .metadata.uid)
play x01-worker-0 exit 1
is_new() { [ "$(pod "$1" .metadata.uid)" != "$2" ]; }
check "X01 another worker" wait_for 20 is_new x01-worker-0 "$uid"
check "X01 the restart is told" tells x01 "Warning PyTorchJobRestarting"
play x01-worker-0 running
check "X01 running again" comes "Created Running" conditions x01
check "X01 one failure" comes 1 field x01 .status.history.failures
wide() { kubectl get pytorchjob "$1" -o wide --no-headers | awk '{ print $NF }'; }
check "X01 one restart in the wide table" is 1 wide x01
check "P01 none in its" is 0 wide p01
life_of() { # JOB REASON...: those that the operator's log tells of it
    is "${*:2}" bash -c "sed -n 's/.* info default\/$1: \(PyTorchJob\)\?\([A-Za-z]*\): .*/\2/p' '$work/operator-0.log' | xargs"
}
check "X01 the log tells its life" life_of x01 Created Running ExitedWithCode Restarting Running

job x02 1 1 Never
check "X02 pods" comes "x02-master-0 x02-worker-0" pods x02
play_all x02 running
play x02-worker-0 exit 3
check "X02 failed" comes "PyTorchJob x02 is failed because 1 Worker replica(s) failed." field x02 '.status.conditions[-1].message'
check "X02 completionTime" is string field x02 '.status.completionTime | type'

job c20 1 1 ExitCode
check "C20 pods" comes "c20-master-0 c20-worker-0" pods c20
check "C13 the kubelet does not restart" is Never pod c20-worker-0 .spec.restartPolicy
play_all c20 running
uid=$(pod c20-worker-0 .metadata.uid)
play c20-worker-0 exit 130
check "C19 a retryable code: another pod" wait_for 20 is_new c20-worker-0 "$uid"
play c20-worker-0 exit 1
check "C20 a permanent code fails the job" comes Failed field c20 '.status.conditions[-1].type'

job x13 1 1 ExitCode "backoffLimit: 2"
check "X13 pods" comes "x13-master-0 x13-worker-0" pods x13
for failure in 1 2 3; do
    uid=$(pod x13-worker-0 .metadata.uid)
    play x13-worker-0 exit 137
    [ "$failure" -eq 3 ] || check "X13 restart $failure" wait_for 20 is_new x13-worker-0 "$uid"
done
check "X13 the third failure is one too many" comes \
    "Job x13 has failed because it has reached the specified backoff limit" field x13 '.status.conditions[-1].message'
job x14 1 1 OnFailure "" "backoffLimit: 1"
check "X14 spec.backoffLimit" comes "x14-master-0 x14-worker-0" pods x14
play_all x14 restarted 1
check "X14 in-place restarts count" comes Failed field x14 '.status.conditions[-1].type'
job x15 1 1 ExitCode
check "X15 pods" comes "x15-master-0 x15-worker-0" pods x15
play_all x15 running
uid=$(pod x15-worker-0 .metadata.uid)
play x15-worker-0 evicted
check "X15 evicted: another pod" wait_for 20 is_new x15-worker-0 "$uid"
check "X15 and no failure" is null field x15 '.status.history.failures'

# ---- ends
job x05 1 2 OnFailure "cleanPodPolicy: Running"
check "X05 pods" comes "x05-master-0 x05-worker-0 x05-worker-1" pods x05
play_all x05 running
play x05-master-0 exit 0
check "X05 workers go, the master stays" comes x05-master-0 pods x05
check "X05 their services too" comes x05-master-0 services x05
job c24 1 0 OnFailure "ttlSecondsAfterFinished: 3"
check "C24 pods" comes c24-master-0 pods c24
play c24-master-0 exit 0
gone() { ! api GET "$jobs_path/$1"; }
check "C24 the job goes" wait_for 20 gone c24
job x11 1 0 ExitCode "ttlSecondsAfterFinished: 3"
check "X11 pods" comes x11-master-0 pods x11
play x11-master-0 exit 1
check "X11 a failed job goes too" wait_for 20 gone x11
job x12 1 1 OnFailure "activeDeadlineSeconds: 3"
check "X12 pods" comes "x12-master-0 x12-worker-0" pods x12
play_all x12 running
check "X12 the deadline comes by itself" comes "Job x12 has failed because it was active longer than specified deadline" \
    field x12 '.status.conditions[-1].message'
delete_job p07
check "X18 pods go with their job" wait_for 60 is "" pods p07 # the collector looks for new kinds every 30 s
check "X18 services go with their job" comes "" services p07

# ---- scaling
job x10 1 5 OnFailure
check "X10 pods" comes "x10-master-0 x10-worker-0 x10-worker-1 x10-worker-2 x10-worker-3 x10-worker-4" pods x10
api PATCH "$jobs_path/x10/scale" '{"spec": {"replicas": 2}}' >/dev/null
check "X10 down" comes "x10-master-0 x10-worker-0 x10-worker-1" pods x10
check "X10 and stays" stays "x10-master-0 x10-worker-0 x10-worker-1" pods x10
api PATCH "$jobs_path/x10/scale" '{"spec": {"replicas": 3}}' >/dev/null
check "X10 up" comes "x10-master-0 x10-worker-0 x10-worker-1 x10-worker-2" pods x10
check "X10 new pods know the new size" is 4 env_of x10-worker-2 WORLD_SIZE

# ---- a template is edited while its pods run
uid=$(pod x10-worker-1 .metadata.uid)
edit_job x10 '{"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "pytorch", "image": "image:2"}]}}}}}}'
check "an edited template leaves pods alone" stays "image:1 $uid" pod x10-worker-1 '"\(.spec.containers[0].image) \(.metadata.uid)"'
kubectl delete pod x10-worker-1 --wait=false >/dev/null
check "a pod that is made later follows it" comes image:2 pod x10-worker-1 '.spec.containers[0].image'
check "and no other" is image:1 pod x10-worker-0 '.spec.containers[0].image'

# ---- in the way
api POST "$pods_path" '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x16-worker-0"}, "spec": {"containers":
    [{"name": "c", "image": "i:1"}]}}' >/dev/null
job x16 1 1 OnFailure
check "X16 the master is made" comes x16-master-0 pods x16
check "X16 the foreign pod is named" tells x16 'pods "x16-worker-0" already exists'
waits_for() { field "$1" '.status.conditions[] | select(.type == "Waiting" and .status == "True") | .message' | grep -F -- "$2"; }
check "X16 and the job says that it waits" wait_for 20 waits_for x16 x16-worker-0
api DELETE "$pods_path/x16-worker-0" >/dev/null
check "X16 once it is gone ours comes" comes "x16-master-0 x16-worker-0" pods x16
nothing_waits() { ! waits_for "$@"; }
check "X16 and it waits no more" wait_for 20 nothing_waits x16 x16-worker-0

check "a no-op pass makes no request" requests_rest
operator_stop
check "SIGTERM ends it with 0" test "$exit_code" -eq 0
tap_done
