# shellcheck shell=bash
# Jobs with a queue, and their Workloads as the API server shows them: for whoever plays Kueue, or has a real one. Source operator.sh
# before.
kueue_version=v1beta2
workloads_path() { echo "/apis/kueue.x-k8s.io/$kueue_version/namespaces/default/workloads"; }

# queued NAME MASTERS WORKERS [RUN_POLICY [SPEC [LABELS]]]: a job for the queue $in_queue; LABELS is more of a flow mapping.
in_queue=team
queued() {
    manifest "$1" "$2" "$3" OnFailure "${4-}" "${5-}" 'resources: {requests: {cpu: 1}}' |
        sed "s/metadata: {name: $1}/metadata: {name: $1, labels: {kueue.x-k8s.io\\/queue-name: $in_queue${6:+, $6}}}/" | kubectl create -f - >/dev/null
}

# The job's Workloads, and a field of its first one.
workloads_of() { api GET "$(workloads_path)" | jq -r --arg job "$1" '[.items[] | select(.metadata.ownerReferences[0].name == $job) | .metadata.name] | join(" ")'; }
workload() { api GET "$(workloads_path)" | jq -r --arg job "$1" "[.items[] | select(.metadata.ownerReferences[0].name == \$job)][0] | $2"; }
has_workload() { [ -n "$(workloads_of "$1")" ]; }
condition_of() { workload "$1" ".status.conditions // [] | map(select(.type == \"$2\"))[0] | \"\\(.status) \\(.reason)\""; } # JOB TYPE
