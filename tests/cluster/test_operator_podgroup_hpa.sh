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
job p10 0 1 OnFailure "" "$metered" 'ports: [{name: pytorchjob-port, containerPort: 8080}]'
check "P10 autoscaler" comes "1-3 80 kubeflow.org/v1 PyTorchJob p10" autoscaler p10 '.spec |
    "\(.minReplicas)-\(.maxReplicas) \(.targetCPUUtilizationPercentage) \(.scaleTargetRef.apiVersion) \(.scaleTargetRef.kind) \(.scaleTargetRef.name)"'
check "P10 pod" comes p10-worker-0 pods p10
check "P10 service" comes p10-worker-0 services p10
for row in "PET_RDZV_BACKEND c10d" "PET_NNODES 1:3" "PET_RDZV_ENDPOINT p10-worker-0:8080" "PET_MAX_RESTARTS 3"; do
    check "P10 ${row% *}" is "${row#* }" env_of p10-worker-0 "${row% *}"
done
for path in "$pods_path/p10-worker-0" "$services_path/p10-worker-0" "$autoscalers_path/p10"; do
    check "P10 owner of ${path#*default/}" belongs_to p10 "$path"
done
check "P10 is at rest" requests_rest
api PATCH "$autoscalers_path/p10" '{"metadata": {"annotations": {"team": "a"}, "labels": {"team": "a"}}}' >/dev/null
edit_job p10 '{"spec": {"elasticPolicy": {"maxReplicas": 5}}}'
check "the autoscaler follows" comes 5 autoscaler p10 .spec.maxReplicas
check "and keeps what others wrote" is "a a" autoscaler p10 '"\(.metadata.annotations.team) \(.metadata.labels.team)"'
edit_job p10 '{"spec": {"elasticPolicy": {"metrics": []}}}'
check "another list of metrics" comes 1 field p10 '.spec.elasticPolicy | select(.metrics == []) | .minReplicas'
check "P10 is at rest after it" requests_rest
edit_job p10 '{"spec": {"runPolicy": {"suspend": true}}}'
check "P12 suspending deletes it" wait_for 60 gone "$autoscalers_path/p10"
edit_job p10 '{"spec": {"runPolicy": {"suspend": false}}}'
check "resuming makes it again" comes 1 autoscaler p10 .spec.minReplicas
check "and the pod" comes p10-worker-0 pods p10
play p10-worker-0 exit 0
check "P11 one success is the job's" comes "Succeeded PyTorchJobSucceeded: PyTorchJob default/p10 successfully completed." last p10
check "P11 counted" is 1 field p10 .status.replicaStatuses.Worker.succeeded
check "X22 and its autoscaler goes" wait_for 60 gone "$autoscalers_path/p10"
operator_stop

# ---- autoscalers of another operator: the job's own, and of its name alone
job o08 0 1 OnFailure "" "$metered"
job o09 0 1 OnFailure "" "$metered"
old_autoscaler() { # NAME [OWNER_UID]
    local owners=
    [ -z "${2-}" ] || owners=', "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "'$1'", "uid": "'$2'", "controller": true}]'
    api POST "$autoscalers_path" '{"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "'"$1\"$owners"'},
        "spec": {"maxReplicas": 7, "scaleTargetRef": {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "'"$1"'"}}}'
}
check "an autoscaler as the training operator makes it" old_autoscaler o08 "$(field o08 .metadata.uid)"
check "one of somebody else" old_autoscaler o09
uid=$(autoscaler o08 .metadata.uid)
operator_start
check "the next operator is ready" operator_ready
check "the job's own is taken over" comes "$uid o08 3" autoscaler o08 \
    '"\(.metadata.uid) \(.metadata.labels["training.kubeflow.org/job-name"]) \(.spec.maxReplicas)"'
check "and its job does not wait" comes Created conditions o08
check "that of somebody else is left alone" wait_for 60 waits_for o09 '"o09" already exists'
check "without a label" is null autoscaler o09 .metadata.labels
operator_stop

# ---- gangs
pod_groups scheduling.volcano.sh v1beta1 >/dev/null
set_group() { api PATCH "$groups_path/$1" "{\"status\": $2}" >/dev/null; }
operator_start --gang-scheduler-name=volcano
check "ready with a gang scheduler" operator_ready

job x18 0 1 OnFailure "" "$metered"
check "X18 the group" wait_for 60 belongs_to x18 "$groups_path/x18"
set_group x18 '{"phase": "Inqueue"}'
check "X18 the pod" comes x18-worker-0 pods x18
check "X18 the service" comes x18-worker-0 services x18
check "X18 the autoscaler" comes 1 autoscaler x18 .spec.minReplicas
delete_job x18 # what becomes of it is looked at last: the collector looks for new kinds every 30 s
job c31 0 2 OnFailure "schedulingPolicy: {minAvailable: 10}"
check "C31 the group needs more than there is" comes 10 group c31 .spec.minMember
set_group c31 '{"phase": "Pending"}'

job x24 1 2 OnFailure "schedulingPolicy: {queue: q, priorityClass: high}" "" 'resources: {requests: {cpu: 500m, memory: 1Gi}}'
check "X24 the group is made" comes "3 q high 1500m 3221225472" group x24 \
    '"\(.spec.minMember) \(.spec.queue) \(.spec.priorityClassName) \(.spec.minResources.cpu) \(.spec.minResources.memory)"'
no_pods() { pods x24 && pods c31; }
check "X24 C31 and no pod" stays "" no_pods
set_group x24 '{"phase": "Pending", "conditions": [{"type": "Unschedulable", "status": "True", "message": "3/3 tasks in gang unschedulable"}]}'
check "X24 the scheduler's reason is told" tells x24 "PodGroup x24 is not admitted yet: 3/3 tasks in gang unschedulable"
check "X24 and is the state" comes "Created Waiting" conditions x24
check "X24 C31 no pod while it is pending" stays "" no_pods
other_queue='{"spec": {"runPolicy": {"schedulingPolicy": {"queue": "other"}}}}'
if knows_cel; then
    check "P04 another queue is refused" fails 22 "spec.runPolicy.schedulingPolicy.queue is immutable" \
        api PATCH "$jobs_path/x24" "$other_queue"
    check "P04 and what is stored stays" is q field x24 .spec.runPolicy.schedulingPolicy.queue
else
    edit_job x24 "$other_queue"
fi
set_group x24 '{"phase": "Inqueue", "conditions": []}'
check "X24 all pods after it" comes "x24-master-0 x24-worker-0 x24-worker-1" pods x24
check "X24 they are marked" comes "volcano x24 worker" pod x24-worker-0 \
    '"\(.spec.schedulerName) \(.metadata.annotations["scheduling.k8s.io/group-name"]) \(.metadata.annotations["volcano.sh/task-spec"])"'
play_all x24 running
check "X24 and the job runs" comes "Created Running" conditions x24
check "X24 at rest" requests_rest
check "P04 where the edit was not refused the group keeps its queue" is q group x24 .spec.queue
play x24-master-0 exit 0
check "X25 the group goes when the job is finished" wait_for 60 gone "$groups_path/x24"

schedulers() { api GET "$pods_path$(of_job "$1")" | jq -r '[.items[] | .spec.schedulerName] | join(" ")'; } # of master and worker
scheduled() { # NAME SCRIPT SCHEDULERS: the job whose manifest sed makes has pods with these
    manifest "$1" 1 1 OnFailure | sed "$2" | kubectl create -f - >/dev/null
    wait_for 60 is 2 group "$1" .spec.minMember
    set_group "$1" '{"phase": "Inqueue"}'
    comes "$3" schedulers "$1"
}
own='s/spec: {containers/spec: {schedulerName: volcano, containers/'
check "C14 unset" scheduled c14-unset "" "volcano volcano"
check "C14 equal" scheduled c14-equal "$own" "volcano volcano"
check "C14 other" scheduled c14-other "${own/volcano/other}" "other other"
check "C14 other in one type" scheduled c14-one "/Worker:/,$ ${own/volcano/other}" "volcano other"
for name in c14-other c14-one; do
    check "C14 $name is told of it" tells $name "Warning SetPodTemplateSchedulerName"
done
never_told() { # JOB REASON
    local all
    all=$(events "$1") && [ -n "$all" ] && answers_no grep -F -- "$2" <<<"$all"
}
for name in c14-unset c14-equal; do
    check "C14 $name has nothing to be told" never_told $name SetPodTemplateSchedulerName
done

check "C31 it never ran" is "Created Waiting" conditions c31
edit_job c31 '{"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}}'
check "C31 and then less" comes 2 group c31 .spec.minMember
set_group c31 '{"phase": "Inqueue"}'
check "C31 pods" comes "c31-worker-0 c31-worker-1" pods c31
play_all c31 running
check "C31 running" comes "Created Running" conditions c31
play_all c31 exit 0
check "C31 succeeded" comes "Created Running=False Succeeded" conditions c31

api POST "$groups_path" '{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "taken"}, "spec": {"minMember": 1}}' >/dev/null
job taken 0 1 OnFailure
check "a foreign group is told of" tells taken 'Refused POST /apis/scheduling.volcano.sh'
says_taken() { told taken | grep -F 'Waiting=True Refused: POST' | grep -F '"taken" already exists'; }
check "in its condition, too" wait_for 60 says_taken
check "and waited for" stays "" pods taken
api DELETE "$groups_path/taken" >/dev/null
check "until it is gone" comes 1 group taken .spec.minMember
if has_controllers; then
    for path in "$pods_path/x18-worker-0" "$services_path/x18-worker-0" "$autoscalers_path/x18" "$groups_path/x18"; do
        check "X18 ${path#*default/} goes with its job" wait_for 120 gone "$path"
    done
fi
operator_stop

pod_groups scheduling.x-k8s.io v1alpha1 >/dev/null
operator_start --gang-scheduler-name=coscheduler
check "ready with scheduler-plugins" operator_ready
job plugins 1 1 OnFailure "schedulingPolicy: {scheduleTimeoutSeconds: 9}"
check "its group" comes "2 9" group plugins '"\(.spec.minMember) \(.spec.scheduleTimeoutSeconds)"'
check "which no pod waits for" comes "plugins-master-0 plugins-worker-0" pods plugins
check "they are marked" is "coscheduler plugins" pod plugins-worker-0 \
    '"\(.spec.schedulerName) \(.metadata.labels["scheduling.x-k8s.io/pod-group"])"'
play plugins-master-0 exit 0
check "the group goes when the job is finished" wait_for 60 gone "$groups_path/plugins"

operator_stop
check "it leaves in good order" is 0 echo "$exit_code"
tap_done
