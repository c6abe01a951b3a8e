#!/bin/bash
# shellcheck disable=SC2119 # operator_stop without arguments is meant so
# Jobs under way of the training operator 1.9.4, as they were recorded from it (tests/data/training-operator-1.9.4), on a real API
# server: taken over without a restart or a person's label, worked on, and left so that it could go on with them; and both operators at
# once.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
# shellcheck source=tests/cluster/adoption.sh
. tests/cluster/adoption.sh
data=tests/data/training-operator-1.9.4
operator_world
pod_groups scheduling.volcano.sh v1beta1 >/dev/null

# ---- what the training operator left
# The API server takes the field manager from the User-Agent: its image runs /manager.
as_training_operator() { # PATH BODY
    curl -sS --fail-with-body --max-time 20 --unix-socket "$socket" -X PATCH -A manager/v0.0.0 \
        -H 'Content-Type: application/merge-patch+json' --data-binary "$2" "http://localhost$1"
}
jobs="mnist elastic suspended ended failed restarting"
running="mnist-master-0 mnist-worker-0 elastic-worker-0 elastic-worker-1 restarting-master-0 restarting-worker-0"
recorded() { jq --arg name "$2" ".jobs[] | select(.metadata.name == \$name) | $3" "$data/$1.json"; } # before|after JOB FILTER
# recorded_children FILE FILTER: of the children that FILE has, with the UIDs that their jobs have here.
recorded_children() {
    # shellcheck disable=SC2016 # jq's
    kubectl get pytorchjobs -o json | jq -c --slurpfile recorded "$data/$1.json" '
        ([.items[].metadata | {key: "\(.name)-uid", value: .uid}] | from_entries) as $uids |
        $recorded[0].children | walk(if type == "string" then $uids[.] // . else . end) | '"$2"
}
left() {
    local name
    kubectl create -f "$data/jobs.yaml" || return
    recorded_children before '{apiVersion: "v1", kind: "List", items: .}' | kubectl create --field-manager=manager -f - || return
    for name in $jobs; do
        as_training_operator "$jobs_path/$name/status" "$(recorded before "$name" '{status}')" || return
    done
    for name in $running; do play "$name" running || return; done
    play mnist-worker-1 restarted 8 1 && play ended-worker-0 exit 0 && play failed-worker-0 exit 1
}
check "jobs under way" left
check "their autoscaler has a label of its user" api PATCH "$autoscalers_path/elastic" '{"metadata": {"labels": {"team": "speech"}}}'

before=$(everything)
ended_before=$(field ended .metadata.resourceVersion)
failed_before=$(field failed .metadata.resourceVersion)

# ---- taken over
operator_start --gang-scheduler-name=volcano
check "the operator is ready" operator_ready
check "the groups have our labels" comes "elastic mnist restarting" adopted "$groups_path"
check "so has the autoscaler" comes elastic adopted "$autoscalers_path"
check "beside those of its user" is "speech elastic" autoscaler elastic \
    '"\(.metadata.labels.team) \(.metadata.labels["training.kubeflow.org/job-name"])"'
check "which is told as it is" tells elastic "SuccessfulAdoptAutoscaler Adopted Autoscaler: elastic"
check "likewise for the group" tells mnist "SuccessfulAdoptPodGroup Adopted PodGroup: mnist"
check "a running job goes on" is "Created Running" conditions mnist
check "so does an elastic one" is "Created Running" conditions elastic
check "so does one with a worker made again" is "Created Running" conditions restarting
check "restarts of before do not count" is "0 0" field mnist '"\(.status.history.failures // 0) \(.status.history.restarts // 0)"'
check "at rest" requests_rest
check "nothing was made, deleted or made again" is "$before" everything
check "the group keeps its phase" is Running group mnist .status.phase
check "what is suspended stays so" is "Created Suspended" conditions suspended
check "what has ended is left as it was" is "$ended_before" field ended .metadata.resourceVersion
check "what has failed, too" is "$failed_before" field failed .metadata.resourceVersion

# ---- worked on
others() { everything | grep -v ' mnist-worker-0 '; }
others_before=$(others)
old=$(pod mnist-worker-0 .metadata.uid)
play mnist-worker-0 exit 1
check "a pod that fails is made again" wait_for 60 is_new mnist-worker-0 "$old"
check "and counted once" comes 1 field mnist .status.history.failures
is_others() { [ "$(others | grep -v 'Pod mnist-worker-0')" = "$others_before" ]; }
check "nothing else is" is_others
play mnist-worker-0 running
check "the job runs again" comes "Created Running" conditions mnist
edit_job elastic '{"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}}}'
check "a job grows" comes "elastic-worker-0 elastic-worker-1 elastic-worker-2" pods elastic
check "with its service" comes "elastic-worker-0 elastic-worker-1 elastic-worker-2" services elastic
play elastic-worker-2 running
check "and runs" comes "3 null null" counts elastic Worker
edit_job suspended '{"spec": {"runPolicy": {"suspend": false}}}'
check "a suspended job is resumed" comes 1 group suspended .spec.minMember
api PATCH "$groups_path/suspended" '{"status": {"phase": "Inqueue"}}' >/dev/null
check "and gets its pod" comes suspended-worker-0 pods suspended
play suspended-worker-0 running
check "and runs, too" comes "1 null null" counts suspended Worker

# ---- as the training operator does it: what it was recorded to make when the same happened to the same jobs
likewise() { # PATH KIND NAME FILTER
    local there
    there=$(recorded_children after ".[] | select(.kind == \"$2\" and .metadata.name == \"$3\") | $4" | jq -Sc .)
    [ -n "$there" ] && is "$there" sorted "$1/$3" "$4"
}
sorted() { api GET "$1" | jq -Sc "$2"; } # PATH FILTER
for name in mnist-worker-0 elastic-worker-2 suspended-worker-0; do
    check "$name is made as there" likewise "$pods_path" Pod "$name" "$essence"
    check "so is its service" likewise "$services_path" Service "$name" "$service_essence"
done
# Here the gang of an elastic job is minReplicas.
for name in mnist suspended; do
    check "the group of $name is as there" likewise "$groups_path" PodGroup "$name" '{owners: .metadata.ownerReferences, spec: (.spec | {minMember, queue})}'
done
check "that of elastic, too" likewise "$groups_path" PodGroup elastic '{owners: .metadata.ownerReferences, queue: .spec.queue}'
check "the autoscaler as well" likewise "$autoscalers_path" HorizontalPodAutoscaler elastic '{owners: .metadata.ownerReferences, spec}'
for name in mnist elastic suspended restarting; do
    check "so are the counts of $name" is "$(recorded after "$name" .status.replicaStatuses | jq -Sc .)" sorted "$jobs_path/$name" .status.replicaStatuses
done

# ---- the way back: what a pass of the training operator looks at
# Of each slot one pod and one service by its selector, owned by the job; its group and autoscaler by name; a status that its types
# can hold. Then its pass makes nothing, deletes nothing and counts what is there.
slots() { # PATH JOB
    api GET "$1?labelSelector=training.kubeflow.org/operator-name=pytorchjob-controller,training.kubeflow.org/job-name=$2" |
        jq -r --arg uid "$(field "$2" .metadata.uid)" '[.items[] | select([.metadata.ownerReferences[] | select(.controller) | .uid] == [$uid])
            | .metadata as {$name, $labels} | "\($labels["training.kubeflow.org/job-name"])-\($labels["training.kubeflow.org/replica-type"])-\($labels["training.kubeflow.org/replica-index"] | tonumber)"
            | if . == $name then . else error("\($name) claims to be \(.)") end] | sort | join(" ")'
}
check "back: its selector finds the pods" is "mnist-master-0 mnist-worker-0 mnist-worker-1" slots "$pods_path" mnist
check "back: and the services" is "mnist-master-0 mnist-worker-0 mnist-worker-1" slots "$services_path" mnist
check "back: of a job that grew" is "elastic-worker-0 elastic-worker-1 elastic-worker-2" slots "$pods_path" elastic
check "back: the first one has the role of the master" is master pod elastic-worker-0 '.metadata.labels["training.kubeflow.org/job-role"]'
check "back: the autoscaler is as it wants it" is "1 3 80 kubeflow.org/v1 PyTorchJob elastic" autoscaler elastic '.spec |
    "\(.minReplicas) \(.maxReplicas) \(.targetCPUUtilizationPercentage) \(.scaleTargetRef | "\(.apiVersion) \(.kind) \(.name)")"'
check "back: and its owner" belongs_to elastic "$autoscalers_path/elastic"
check "back: the group as well" is "3 default" group mnist '"\(.spec.minMember) \(.spec.queue)"'
# By its types: conditions of six texts each, replicaStatuses of three numbers and a selector; it passes over what it does not know.
# shellcheck disable=SC2016 # jq's
typed() {
    field "$1" '.status | [(.conditions[] | to_entries[] | select((.value | type) != "string" or
            (.key | IN("type", "status", "reason", "message", "lastUpdateTime", "lastTransitionTime") | not)) | "condition \(.)"),
        (.replicaStatuses | to_entries[] | .key as $type | .value | to_entries[] |
            select(if .key == "selector" then .value | type != "string" else (.value | type != "number") or
                (.key | IN("active", "succeeded", "failed") | not) end) | "\($type) \(.)"),
        (keys[] | select(IN("conditions", "replicaStatuses", "startTime", "completionTime", "lastReconcileTime", "history", "training", "restarts") | not))] | join(" ")'
}
for name in $jobs; do check "back: it can read the status of $name" is "" typed "$name"; done
selector=training.kubeflow.org/job-name=mnist,training.kubeflow.org/operator-name=pytorchjob-controller,training.kubeflow.org/replica-type=worker
check "back: with its selector" is "2 $selector" field mnist '.status.replicaStatuses.Worker | "\(.active) \(.selector)"'
check "back: and when the job started" is "$(recorded before mnist .status.startTime | jq -r .)" field mnist .status.startTime

# ---- both at once
# Its client has types without our fields: what it writes lacks them.
# Whoever may update a job may write there who wrote it, and when. He changes no status with that; what comes after is ours.
forge() { # COUNT: of entries in place of those that are there
    local entries
    entries=$(jq -n '[range('"$1"') | {manager: "evil\(.)", operation: "Update", apiVersion: "kubeflow.org/v1",
        time: "2099-01-01T00:00:00Z", fieldsType: "FieldsV1", fieldsV1: {"f:status": {"f:replicaStatuses": {"f:Zed": {}}}}}]') || return
    api PATCH "$jobs_path/suspended" "{\"metadata\": {\"managedFields\": $entries}}"
}
check "somebody forges an entry" forge 1
edit_job suspended '{"spec": {"runPolicy": {"suspend": true}}}'
check "ours writes that status" comes Suspended field suspended '.status.conditions[-1].type'
check "beside the entry" is "evil0 shoal-operator" field suspended '[.metadata.managedFields[] | select(.fieldsV1["f:status"]) | .manager |
    select(IN("evil0", "shoal-operator"))] | unique | join(" ")'
check "and does not stand aside" stays 0 metric shoal_operator_standing_aside
check "nobody stands aside yet" is 0 metric shoal_operator_standing_aside
check "the other operator writes" as_training_operator "$jobs_path/mnist/status" \
    '{"status": {"history": null, "training": null, "replicaStatuses": {"Worker": {"active": 1}}}}'
check "ours tells it" tells mnist 'Warning AnotherOperator Another operator (field manager "manager") writes the status of PyTorchJobs'
logged() { grep -F 'Another operator (field manager "manager")' "$work/operator-0.log"; }
check "in its log, too" logged
check "and by its metric" comes 1 metric shoal_operator_standing_aside
old=$(pod mnist-worker-1 .metadata.uid)
play mnist-worker-1 exit 1
same_pod() { pod mnist-worker-1 .metadata.uid; }
check "and does nothing" stays "$old" same_pod
check "nothing at all" is null field mnist .status.history
operator_stop
# The API server keeps ten entries of updates and merges the oldest: of an eleventh, ours. The list shows none.
edit_job suspended '{"spec": {"runPolicy": {"suspend": false}}}'
check "somebody forges ten entries" forge 10
operator_start --gang-scheduler-name=volcano
check "the next operator, alone, is ready" operator_ready
check "its first write is that status" comes False field suspended '.status.conditions[] | select(.type == "Suspended") | .status'
check "beside the entries" comes "evil1 evil2 evil3 evil4 evil5 evil6 evil7 evil8 evil9" field suspended '[.metadata.managedFields[] | .manager |
    select(startswith("evil")) | select(. != "evil0")] | join(" ")'
check "it does not stand aside for them" stays 0 metric shoal_operator_standing_aside
check "and works" wait_for 60 is_new mnist-worker-1 "$old"
play mnist-worker-1 running
check "on the same job" comes "Created Running" conditions mnist

# ---- to the end
play mnist-master-0 exit 0
check "success ends the job" comes "Created Running=False Succeeded" conditions mnist
check "and its group goes" wait_for 60 gone "$groups_path/mnist"
edit_job elastic '{"spec": {"runPolicy": {"suspend": true}}}'
check "suspending takes the pods" comes "" pods elastic
check "the group" wait_for 60 gone "$groups_path/elastic"
check "and the autoscaler" wait_for 60 gone "$autoscalers_path/elastic"
operator_stop
check "it leaves in good order" is 0 echo "$exit_code"
tap_done
