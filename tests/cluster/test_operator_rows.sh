#!/bin/bash
# shellcheck disable=SC2119 # operator_start and operator_stop without arguments are meant so
# The rest of the peer operator's behaviour, mark by mark, on a real API server; the test plays scheduler and kubelet.
# The marks are those of a table of its tests and of what its code implies: P01-P12 a job's life, W01-W12 what is refused,
# D01-D08 and I01-I03 what pods get, C01-C35 the rest, X01-X25 what it does not test itself. Checks are named after them;
# lint looks that none is missing. Most are here and in test_operator_life.sh; in test_operator_faults.sh X19 to X21, in
# test_operator_podgroup_hpa.sh those of autoscalers and PodGroups, in test_install.sh those of the schema, in
# operator/apply/test_executor_view.c C35, which is inside the operator. P04 W05 W08 W10 W11 are rules in CEL: an API server that
# knows it refuses them (make check-newer; ../newer/test.sh has each rule), elsewhere the operator finds them.
# We answer W05 W07 W08 W10 W11 C07 C08 C28 X04 X21 differently on purpose (docs/pytorchjob.md).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh

ends_so() { last "$1" | grep -F -- "$2"; }
ends() { wait_for 60 ends_so "$@" || { last "$1"; return 1; }; } # JOB TEXT: in its last condition
state() { field "$1" '"\(.status.history.failures) \(.status.conditions[-1].type)"'; }
scale() { api PATCH "$jobs_path/$1/scale" "{\"spec\": {\"replicas\": $2}}" >/dev/null; }
operator_world
operator_start
check "the operator is ready" operator_ready
api POST "$services_path" '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x17-user", "labels": '"$(labels x17 worker 0)"'},
    "spec": {"clusterIP": "None", "ports": [{"port": 80}]}}' >/dev/null

full='elasticPolicy: {minReplicas: 1, maxReplicas: 3, rdzvBackend: c10d, rdzvHost: localhost, rdzvPort: 1234, rdzvId: id, rdzvConf: [{key: a, value: b}, {key: c, value: d}], maxRestarts: 3}'
{
    manifest w01 1 2 Never
    manifest w07 0 1 Never "" 'elasticPolicy: {nProcPerNode: 2}'
    manifest d01 0 2 Always "" 'elasticPolicy: {minReplicas: 1, maxReplicas: 2}'
    manifest d02 0 1 Never "" 'elasticPolicy: {maxReplicas: 1}'
    manifest d03 0 1 OnFailure "" 'elasticPolicy: {minReplicas: 1}'
    manifest d04 0 3 OnFailure "" 'elasticPolicy: {rdzvBackend: c10d}'
    manifest d07 0 1 OnFailure "" "$full"
    manifest d08 0 2 OnFailure
    manifest c05n 1 1 OnFailure "backoffLimit: 0, cleanPodPolicy: None"
    manifest c05a 1 1 OnFailure "backoffLimit: 0, cleanPodPolicy: All"
    manifest c05r 1 1 OnFailure "backoffLimit: 0, cleanPodPolicy: Running"
    manifest c02 1 1 OnFailure "cleanPodPolicy: All"
    manifest c03 1 1 Never "cleanPodPolicy: None"
    manifest c04 1 1 OnFailure "cleanPodPolicy: Running"
    manifest c07 0 1 OnFailure "backoffLimit: 3"
    manifest c08 0 4 OnFailure "backoffLimit: 4"
    manifest c09 1 0 OnFailure "activeDeadlineSeconds: 0"
    manifest c10 1 0 OnFailure "activeDeadlineSeconds: 2, cleanPodPolicy: All"
    manifest c11 1 0 OnFailure "managedBy: kubeflow.org/training-operator"
    manifest c12 1 0 OnFailure "managedBy: kueue.x-k8s.io/multikueue"
    manifest c16 1 2 OnFailure
    manifest c18 0 1 OnFailure
    manifest c21a 0 1 ExitCode
    manifest c21b 0 1 ExitCode
    manifest c21c 0 1 ExitCode
    manifest c22 0 1 OnFailure
    manifest c23 0 1 OnFailure "backoffLimit: 2"
    manifest c25 1 0 Never "ttlSecondsAfterFinished: 3"
    manifest c27 1 0 Never "ttlSecondsAfterFinished: 1, suspend: true"
    manifest c28 1 0 Never
    manifest c29a 1 0 Never
    manifest ended 1 1 Never
    manifest c29b 1 0 Never "ttlSecondsAfterFinished: 0"
    manifest c32 1 1 OnFailure
    manifest x03 0 3 OnFailure
    manifest x04 1 1 OnFailure
    manifest x06 1 2 OnFailure "" 'nprocPerNode: "4"'
    manifest x17 1 1 OnFailure
    cat <<'END'
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: c34, namespace: default}
spec:
  runPolicy: {}
  pytorchReplicaSpecs:
    Worker:
      replicas: 3
      template:
        metadata: {labels: {sidecar.istio.io/inject: "false"}}
        spec:
          containers:
          - name: pytorch
            image: docker.io/pytorch/pytorch:2.1.2-cuda11.8-cudnn8-runtime
            command: [bash, -c]
            args: ["f=$(mktemp) && printf '%s' 'print(1)' >$f && torchrun $f"]
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: x07}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: i}]}}}
    Worker:
      restartPolicy: Never
      template:
        metadata: {labels: {team: a}, annotations: {note: b}}
        spec:
          restartPolicy: Always
          initContainers: [{name: own, image: i}]
          containers:
          - {name: side, image: i, ports: [{name: web, containerPort: 80}]}
          - {name: pytorch, image: i, env: [{name: WORLD_SIZE, value: "7"}], ports: [{name: extra, containerPort: 81}]}
END
} >"$work/jobs.yaml"
without_a_word() { # of warning
    local words
    words=$(kubectl create -f "$1" 2>&1 >/dev/null)
    is "0 " echo "$? $words"
}
check "W01 the jobs are admitted without a warning" without_a_word "$work/jobs.yaml"

# ---- rules
manifest w05 0 1 Never | sed 's/name: pytorch,/name: main,/' >"$work/w05.yaml"
manifest w08 0 1 Never "" "$(printf 'nprocPerNode: "2"\n  elasticPolicy: {nProcPerNode: 2}')" >"$work/w08.yaml"
manifest w11 1 0 Never "" 'elasticPolicy: {minReplicas: 1}' >"$work/w11.yaml"
breaks_rule() { # JOB ENDS REFUSED: the operator fails it with the one text, or the API server refuses it with the other
    if knows_cel; then
        fails 1 "$3" kubectl create -f "$work/$1.yaml"
    else
        kubectl create -f "$work/$1.yaml" && ends "$1" "$2" && is PyTorchJobFailedValidation field "$1" '.status.conditions[-1].reason'
    fi
}
check "W05 no container pytorch" breaks_rule w05 \
    'spec.pytorchReplicaSpecs[Worker].template.spec.containers: Required value: must have at least one container with name pytorch' \
    'must have at least one container with name pytorch'
check "W07 the old nProcPerNode is taken" comes w07-worker-0 pods w07 # only kubectl could show a warning, from a webhook
check "W08 both fields" breaks_rule w08 'spec.elasticPolicy.nProcPerNode: Forbidden: must not be used with spec.nprocPerNode' \
    'spec.elasticPolicy.nProcPerNode: must not be used with spec.nprocPerNode'
check "W11 elastic without workers" breaks_rule w11 \
    'spec.pytorchReplicaSpecs[Worker]: Required value: must be configured if elastic policy is used' \
    'spec.pytorchReplicaSpecs[Worker]: must be configured if elastic policy is used'
check "C12 an empty managedBy" fails 1 spec.runPolicy.managedBy job c12b 1 0 Never 'managedBy: ""'
check "C33 another's" fails 1 spec.runPolicy.managedBy job c33 1 0 Never "managedBy: other-job-controller"

# ---- what is made
check "W01 pods" comes "w01-master-0 w01-worker-0 w01-worker-1" pods w01
check "D01 pods" comes "d01-worker-0 d01-worker-1" pods d01
check "D01 both bounds" is 1:2 env_of d01-worker-1 PET_NNODES
check "C13 Always is copied" is Always pod d01-worker-0 .spec.restartPolicy
check "D02 pod" comes d02-worker-0 pods d02
check "D02 only max" is 1:1 env_of d02-worker-0 PET_NNODES
check "C13 Never is copied" is Never pod d02-worker-0 .spec.restartPolicy
check "D03 pod" comes d03-worker-0 pods d03
check "D03 only min" is 1:1 env_of d03-worker-0 PET_NNODES
check "C13 OnFailure is copied" is OnFailure pod d03-worker-0 .spec.restartPolicy
check "D04 pods" comes "d04-worker-0 d04-worker-1 d04-worker-2" pods d04
check "D04 neither" is 3:3 env_of d04-worker-2 PET_NNODES
check "D06 the elastic number, once" is 2 env_of w07-worker-0 PET_NPROC_PER_NODE
check "D07 pod" comes d07-worker-0 pods d07
for row in "PET_RDZV_ENDPOINT localhost:1234" "PET_RDZV_ID id" "PET_RDZV_CONF a=b,c=d" "PET_MAX_RESTARTS 3" "PET_NNODES 1:3" \
    "PET_RDZV_BACKEND c10d"; do
    check "D07 ${row% *}" is "${row#* }" env_of d07-worker-0 "${row% *}"
done
check "D08 pods" comes "d08-worker-0 d08-worker-1" pods d08
check "D08 no rendezvous" is "" pod d08-worker-1 '[.spec.containers[0].env[].name | select(startswith("PET_RDZV"))] | join(" ")'
check "D05 PET_NPROC_PER_NODE" is auto env_of d08-worker-1 PET_NPROC_PER_NODE
check "I01 nobody to wait for" is null pod d08-worker-1 .spec.initContainers
check "C30 labels" comes "$(labels d08 worker 1 | jq -cS .)" service d08-worker-1 '.metadata.labels | to_entries | sort_by(.key) | from_entries | tojson'
check "C30 the same select" is true service d08-worker-1 '.spec.selector == .metadata.labels'
check "C30 no address of its own, one port" is "None pytorchjob-port 23456 TCP" service d08-worker-1 \
    '"\(.spec.clusterIP) " + ([.spec.ports[] | "\(.name) \(.port) \(.protocol)"] | join(", "))'
check "C30 owner" belongs_to d08 "$services_path/d08-worker-1"
check "X06 pods" comes "x06-master-0 x06-worker-0 x06-worker-1" pods x06
check "X06 the master" is "12 0 3" echo "$(env_of x06-master-0 WORLD_SIZE) $(env_of x06-master-0 RANK) $(env_of x06-master-0 PET_NNODES)"
check "X06 a worker" is "12 1 3" echo "$(env_of x06-worker-0 WORLD_SIZE) $(env_of x06-worker-0 RANK) $(env_of x06-worker-0 PET_NNODES)"
check "X06 the last worker" is "12 2 3" echo "$(env_of x06-worker-1 WORLD_SIZE) $(env_of x06-worker-1 RANK) $(env_of x06-worker-1 PET_NNODES)"
check "all know what their job is called" is default/x06 env_of x06-worker-0 SHOAL_JOB
check "X07 pods" comes "x07-master-0 x07-worker-0" pods x07
check "X07 ours is after the user's" is "7 2" env_of x07-worker-0 WORLD_SIZE 1
check "X08 ours is last" is "own init-pytorch" pod x07-worker-0 '[.spec.initContainers[].name] | join(" ")'
check "X09 a sidecar gets them too" is "2 1" echo "$(env_of x07-worker-0 WORLD_SIZE 0) $(env_of x07-worker-0 RANK 0)"
check "X09 but opens no port" comes "extra pytorchjob-port" service x07-worker-0 '[.spec.ports[].name] | sort | join(" ")'
check "C15 labels and annotations" is "a b" pod x07-worker-0 '"\(.metadata.labels.team) \(.metadata.annotations.note)"'
check "the template's restartPolicy is overruled" is Never pod x07-worker-0 .spec.restartPolicy
check "and that is told" tells x07 "Warning SetPodTemplateRestartPolicy"
check "C11 our name in managedBy" comes c11-master-0 pods c11
check "C34 the SDK's three workers" comes "c34-worker-0 c34-worker-1 c34-worker-2" pods c34
check "X17 ours beside the user's service" comes "x17-master-0 x17-user x17-worker-0" services x17
edit_job x17 '{"spec": {"runPolicy": {"suspend": true}}}'

# ---- slots
check "C16 pods" comes "c16-master-0 c16-worker-0 c16-worker-1" pods c16
owned_pod c16-odd c16 master 1
check "C16 the type's label decides" wait_for 60 gone "$pods_path/c16-odd"
check "C16 no worker is taken for it" is "c16-master-0 c16-worker-0 c16-worker-1" pods c16
owned_pod c16-worker-2 c16 worker 2
check "C17 one too many goes" wait_for 60 gone "$pods_path/c16-worker-2"
check "C17 and no other" is "c16-master-0 c16-worker-0 c16-worker-1" pods c16
check "C18 pod" comes c18-worker-0 pods c18
uid=$(uids c18)
scale c18 3
check "C18 three" comes "c18-worker-0 c18-worker-1 c18-worker-2" pods c18
check "C18 the first is the same" is "$uid" pod c18-worker-0 .metadata.uid
given_away='{"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}}'
if knows_cel; then
    check "W10 a job cannot be given away" fails 22 "spec.runPolicy.managedBy: field is immutable" \
        api PATCH "$jobs_path/c18" "$given_away"
    scale c18 1
    check "W10 and is ours as before" comes c18-worker-0 pods c18
else
    edit_job c18 "$given_away"
    scale c18 1
    check "W10 a job given away is left alone" stays "c18-worker-0 c18-worker-1 c18-worker-2" pods c18
    edit_job c18 '{"spec": {"runPolicy": {"managedBy": null}}}'
    check "W10 and taken up again" comes c18-worker-0 pods c18
fi
check "X17 the user's service is left" comes x17-user services x17

# ---- limits
for name in c05n c05a c05r; do
    play_all $name running
    check "C06 $name: no restart, no failure" comes "Created Running" conditions $name
    play $name-worker-0 restarted 1
    check "C05 $name: one is too many" ends $name "it has reached the specified backoff limit"
done
check "C05 All: none stays" comes "" pods c05a
check "C05 Running: none stays" comes "" pods c05r
check "C05 nor their services" comes "" services c05r
play c07-worker-0 restarted 3
check "C07 as many as granted" comes "3 Running" state c07
play c07-worker-0 ended 1 3
check "C07 one more, seen when it fails" comes "4 Failed" state c07
play_all c08 restarted 1
check "C08 the sum counts" comes "4 Running" state c08
play c08-worker-2 restarted 2
check "C08 one more" comes "5 Failed" state c08
check "C09 a deadline of 0" ends c09 "it was active longer than specified deadline"
check "C10 a deadline of 2" ends c10 "it was active longer than specified deadline"
check "C10 not before it" is true field c10 '(.status.completionTime | fromdate) - (.status.startTime | fromdate) >= 2'
check "C10 the pod was made" tells c10 "Created pod: c10-master-0"
check "C10 and cleaned" comes "" pods c10

# ---- failures
play c21a-worker-0 exit 2
play c21b-worker-0 exit 3
uid=$(uids c21c)
play c21c-worker-0 exit 138
check "C21 2 is permanent" ends c21a 'Failed PyTorchJobFailed: job "c21a" is failing because "Worker" replica(s) failed.'
check "C21 3 is permanent" ends c21b 'Failed PyTorchJobFailed: job "c21b" is failing because "Worker" replica(s) failed.'
check "C21 138 is not" wait_for 60 is_new c21c-worker-0 "$uid"
play c22-worker-0 running
check "C22 running" comes "1 null null" counts c22 Worker
hold c22-worker-0
api DELETE "$pods_path/c22-worker-0" >/dev/null
check "C22 on its way out" comes "null null 1" counts c22 Worker
let_go c22-worker-0
counts_and_failures() { echo "$(counts "$1" Worker) $(field "$1" .status.history.failures)"; }
check "C22 made again, and no failure" comes "null null null null" counts_and_failures c22
play_all c23 running
check "C23 running" comes "Created Running" conditions c23
uid=$(uids c23)
play c23-worker-0 exit 1
check "C23 Restarting takes Running's place" comes "Created Restarting" conditions c23
check "C23 another pod" wait_for 60 is_new c23-worker-0 "$uid"
uid=$(uids c23)
play c23-worker-0 exit 1
check "C23 and another" wait_for 60 is_new c23-worker-0 "$uid"
check "C23 Restarting again" is "2 Created Restarting" echo "$(field c23 .status.history.failures) $(conditions c23)"
play c23-worker-0 running
check "C23 and the reverse" comes "Created Running" conditions c23
play c23-worker-0 exit 1
check "C23 Failed is last" comes "Created Running=False Failed" conditions c23
play_all c03 running
play c03-worker-0 exit 1
check "C03 failed" ends c03 "PyTorchJob c03 is failed because 1 Worker replica(s) failed."

# ---- ends
play_all c02 running
play c02-master-0 exit 0
check "C02 nothing stays" comes "" pods c02
check "C02 no service either" comes "" services c02
play_all c04 running
check "C04 running" comes "Created Running" conditions c04
edit_job c04 '{"spec": {"runPolicy": {"suspend": true}}}'
check "C04 suspended, nothing stays" comes "" pods c04
check "C04 no service either" comes "" services c04
play_all c32 running
check "C32 running" comes "Created Running" conditions c32
play_all c32 exit 0
check "C32 succeeded" comes "Created Running=False Succeeded" conditions c32
play x03-worker-0 exit 0
play x03-worker-1 exit 0
play x03-worker-2 running
check "X03 two of three" comes "1 2 null" counts x03 Worker
check "X03 is running" is "Created Running" conditions x03
play x03-worker-2 exit 0
check "X03 all three" ends x03 "Succeeded PyTorchJobSucceeded: PyTorchJob default/x03 successfully completed."
play_all x04 running
play x04-master-0 exit 0
check "X04 succeeded" ends x04 "Succeeded PyTorchJobSucceeded: PyTorchJob x04 is successfully completed."
check "X04 a worker that runs is active" is "1 null null" counts x04 Worker
play_all c11 exit 0
check "C33 ours succeeds" comes Succeeded field c11 '.status.conditions[-1].type'
ended=$(date +%s)
play_all c25 exit 1
play_all c29b exit 0
check "C29 at once" wait_for 60 gone "$jobs_path/c29b"
play_all c34 exit 0
check "C34 succeeds" ends c34 "Succeeded PyTorchJobSucceeded: PyTorchJob default/c34 successfully completed."
check "C25 the failed job goes" wait_for 60 gone "$jobs_path/c25"
check "C25 not before its time" test $(($(date +%s) - ended)) -ge 3

# ---- another operator takes over
job x19 1 30 OnFailure
begun() { [ "$(uids x19 | wc -l)" -ge 3 ]; }
wait_for 60 begun
some_created() { [ "$(jobs_created)" -gt 0 ]; }
check "X19 new jobs are counted" some_created
operator_stop KILL
uids x19 >"$work/before"
set_status c28 '{"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}], "completionTime": null}'
edit_job c28 '{"spec": {"runPolicy": {"ttlSecondsAfterFinished": 180}}}'
set_status c29a '{"conditions": [{"type": "Failed", "status": "True"}], "completionTime": "'"$(date -u -d '4 minutes ago' +%FT%TZ)"'"}'
edit_job c29a '{"spec": {"runPolicy": {"ttlSecondsAfterFinished": 180}}}'
set_status ended '{"conditions": [{"type": "Created", "status": "True"}, {"type": "Succeeded", "status": "True"}], "replicaStatuses": null}'
as_it_ended=$(field ended .metadata.resourceVersion)
operator_start
check "X19 another operator" operator_ready
all() { [ "$(pods x19 | wc -w)" -eq 31 ] && [ "$(services x19 | wc -w)" -eq 31 ]; }
check "X19 no pod is missing" wait_for 60 all
check "X19 none of before is lost" is "" comm -23 "$work/before" <(uids x19)
check "X19 no job is counted as new" is 0 jobs_created
check "C28 a failed job without completionTime" wait_for 60 gone "$jobs_path/c28"
check "C29 finished long ago" wait_for 60 gone "$jobs_path/c29a"

# ---- what was to stay has stayed
check "C03 None: all stay" is "c03-master-0 c03-worker-0" pods c03
check "C03 their services too" is "c03-master-0 c03-worker-0" services c03
check "C05 None: both stay" is "c05n-master-0 c05n-worker-0" pods c05n
check "C12 C33 another's: no status" is null field c12 .status
check "C12 no pods" is "" pods c12
check "C26 no time to live" is "Created Running=False Succeeded" conditions c32
check "C27 suspended, not finished" is "Created Suspended" conditions c27
check "C27 and no error" is "" grep -h "warning.*c27" "$work"/operator-*.log
check "X04 None: all stay" is "x04-master-0 x04-worker-0" pods x04
check "what another operator finished is not written anew" is "$as_it_ended" field ended .metadata.resourceVersion
operator_stop
check "SIGTERM ends it with 0" test "$exit_code" -eq 0
tap_done
