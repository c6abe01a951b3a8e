# What record.sh writes: its input is the lists of all kinds, as the API server gives them. The UID of the job NAME becomes NAME-uid.
# Left out is what others added: the API server (uid, resourceVersion, defaults of its admission), the controller manager (the account's
# token, the autoscaler's state) and the player (the pods' status). Of who wrote a job (managedFields) the name stays.
(.[] | select(.kind == "PyTorchJobList") | [.items[].metadata | {key: .uid, value: "\(.name)-uid"}] | from_entries) as $uids |
[.[] | (.kind | rtrimstr("List")) as $kind | .apiVersion as $version | .items[] | select(.metadata.labels.provider != "kubernetes") |
    {apiVersion: $version, kind: $kind} + .] |
{
    jobs: [.[] | select(.kind == "PyTorchJob") | del(.metadata.uid, .metadata.resourceVersion, .metadata.selfLink) |
        .metadata.managedFields |= map({manager, operation})],
    children: [.[] | select(.kind | IN("PyTorchJob", "Event") | not) |
        del(.metadata | .uid, .resourceVersion, .selfLink, .creationTimestamp, .managedFields, .generation) |
        if .kind == "PodGroup" then . else del(.status) end |
        if .kind == "HorizontalPodAutoscaler" then del(.metadata.annotations) else . end |
        if .kind == "Pod" then
            del(.spec.volumes, .spec.containers[].volumeMounts, .spec.initContainers[]?.volumeMounts, .spec.tolerations, .spec.priority,
                .spec.serviceAccount, .spec.serviceAccountName, .spec.enableServiceLinks, .spec.preemptionPolicy) else . end |
        del(.spec.clusterIPs)],
    events: [.[] | select(.kind == "Event") | select(.source.component | test("pytorchjob")) |
        {job: .involvedObject.name, type, reason, message, count, source}] | sort_by(.job, .reason, .message)
} | walk(if type == "string" and $uids[.] then $uids[.] else . end)
