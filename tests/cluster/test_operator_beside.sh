#!/bin/bash
# shellcheck disable=SC2119 # operator_stop without arguments is meant so
# What stands beside the pods on a real API server: autoscalers, and PodGroups with the test as gang scheduler. Names in
# capitals are those of the peer operator's behaviour that a check repeats or betters.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
operator_world
operator_start
check "the operator is ready" operator_ready

# ---- autoscalers
autoscalers_path=/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers
autoscaler() { api GET "$autoscalers_path/$1" | jq -r "$2"; }
no_autoscaler() { ! api GET "$autoscalers_path/$1" >/dev/null 2>&1; }
metered='elasticPolicy: {minReplicas: 1, maxReplicas: 3, rdzvBackend: c10d, maxRestarts: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}'
job p10 0 1 OnFailure "" "$metered"
check "P10 autoscaler" comes "1-3 PyTorchJob/p10 p10" autoscaler p10 \
    '"\(.spec.minReplicas)-\(.spec.maxReplicas) \(.spec.scaleTargetRef.kind)/\(.spec.scaleTargetRef.name) \(.metadata.ownerReferences[0].name)"'
check "P10 pod" comes p10-worker-0 pods p10
check "P10 is at rest" requests_rest
api PATCH "$autoscalers_path/p10" '{"metadata": {"annotations": {"team": "a"}, "labels": {"team": "a"}}}' >/dev/null
edit_job p10 '{"spec": {"elasticPolicy": {"maxReplicas": 5}}}'
check "the autoscaler follows" comes 5 autoscaler p10 .spec.maxReplicas
check "and keeps what others wrote" is "a a" autoscaler p10 '"\(.metadata.annotations.team) \(.metadata.labels.team)"'
edit_job p10 '{"spec": {"elasticPolicy": {"metrics": []}}}'
check "another list of metrics" comes 1 field p10 '.spec.elasticPolicy | select(.metrics == []) | .minReplicas'
check "P10 is at rest after it" requests_rest
edit_job p10 '{"spec": {"runPolicy": {"suspend": true}}}'
check "P12 suspending deletes it" wait_for 20 no_autoscaler p10
edit_job p10 '{"spec": {"runPolicy": {"suspend": false}}}'
check "resuming makes it again" comes 1 autoscaler p10 .spec.minReplicas
check "and the pod" comes p10-worker-0 pods p10
play p10-worker-0 exit 0
check "P11 one success is the job's" comes 1 field p10 .status.replicaStatuses.Worker.succeeded
check "X22 and its autoscaler goes" wait_for 20 no_autoscaler p10
operator_stop

# ---- gangs
kubectl apply -f - >/dev/null <<'END'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.volcano.sh, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: scheduling.volcano.sh
  scope: Namespaced
  names: {plural: podgroups, singular: podgroup, kind: PodGroup, listKind: PodGroupList}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
END
kubectl wait --for=condition=Established --timeout=30s crd/podgroups.scheduling.volcano.sh >/dev/null
groups_path=/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups
group() { api GET "$groups_path/$1" | jq -r "$2"; }
no_group() { ! api GET "$groups_path/$1" >/dev/null 2>&1; }
set_group() { api PATCH "$groups_path/$1" "{\"status\": $2}" >/dev/null; }
operator_start --gang-scheduler-name=volcano
check "ready with a gang scheduler" operator_ready

job x24 1 2 OnFailure "schedulingPolicy: {queue: q, priorityClass: high}" "" 'resources: {requests: {cpu: 500m, memory: 1Gi}}'
check "X24 the group is made" comes "3 q high 1500m 3221225472" group x24 \
    '"\(.spec.minMember) \(.spec.queue) \(.spec.priorityClassName) \(.spec.minResources.cpu) \(.spec.minResources.memory)"'
check "X24 and no pod" stays "" pods x24
set_group x24 '{"phase": "Pending", "conditions": [{"type": "Unschedulable", "status": "True", "message": "3/3 tasks in gang unschedulable"}]}'
check "X24 the scheduler's reason is told" tells x24 "PodGroup x24 is not admitted yet: 3/3 tasks in gang unschedulable"
check "X24 and is the state" comes "Created Waiting" conditions x24
check "X24 no pod while it is pending" stays "" pods x24
edit_job x24 '{"spec": {"runPolicy": {"schedulingPolicy": {"queue": "other"}}}}' # refused only with deploy/cel
set_group x24 '{"phase": "Inqueue", "conditions": []}'
check "X24 all pods after it" comes "x24-master-0 x24-worker-0 x24-worker-1" pods x24
check "X24 they are marked" comes "volcano x24 worker" pod x24-worker-0 \
    '"\(.spec.schedulerName) \(.metadata.annotations["scheduling.k8s.io/group-name"]) \(.metadata.annotations["volcano.sh/task-spec"])"'
play_all x24 running
check "X24 and the job runs" comes "Created Running" conditions x24
check "X24 at rest" requests_rest
check "P04 the group keeps its queue" is q group x24 .spec.queue
play x24-master-0 exit 0
check "X25 the group goes when the job is finished" wait_for 20 no_group x24

for scheduler in volcano other; do
    manifest "c14-$scheduler" 0 1 OnFailure | sed "s/spec: {containers/spec: {schedulerName: $scheduler, containers/" | kubectl create -f - >/dev/null
    check "C14 $scheduler: the group" comes 1 group "c14-$scheduler" .spec.minMember
    set_group "c14-$scheduler" '{"phase": "Inqueue"}'
    check "C14 $scheduler: the pod has it" comes $scheduler pod "c14-$scheduler-worker-0" .spec.schedulerName
done
check "C14 another scheduler is told of" tells c14-other "Warning SetPodTemplateSchedulerName"
check "C14 its own is not" lacks <(events c14-volcano) SetPodTemplateSchedulerName

job c31 0 2 OnFailure "schedulingPolicy: {minAvailable: 10}"
check "C31 more than there is" comes 10 group c31 .spec.minMember
edit_job c31 '{"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}}'
check "C31 and then less" comes 2 group c31 .spec.minMember

api POST "$groups_path" '{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "taken"}, "spec": {"minMember": 1}}' >/dev/null
job taken 0 1 OnFailure
check "a foreign group is told of" tells taken '"taken" already exists'
check "and waited for" stays "" pods taken
api DELETE "$groups_path/taken" >/dev/null
check "until it is gone" comes 1 group taken .spec.minMember

operator_stop
check "it leaves in good order" is 0 echo "$exit_code"
tap_done
