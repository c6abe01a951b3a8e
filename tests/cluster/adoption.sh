# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # tests read essence; paths and api are of operator.sh, which is sourced before
# What tests of the change from the training operator and back look at.

everything() { # UIDs of all that jobs own
    local path
    for path in "$pods_path" "$services_path" "$autoscalers_path" "$groups_path"; do
        api GET "$path" | jq -r '.items[] | select(.metadata.ownerReferences) | "\(.kind) \(.metadata.name) \(.metadata.uid)"' || return
    done
}
# What the training operator decides about a pod. Kubernetes before 1.27 repeats an init container's seccomp profile in an annotation.
essence='{labels: .metadata.labels, annotations: (.metadata.annotations | del(.["container.seccomp.security.alpha.kubernetes.io/init-pytorch"])),
    owners: .metadata.ownerReferences, restarts: .spec.restartPolicy, scheduler: .spec.schedulerName, waits: [.spec.initContainers[]?.name],
    containers: [.spec.containers[] | {name, image, ports, env: [.env[] | select(.name | startswith("SHOAL_") | not)]}]}'
# And about a service.
service_essence='{labels: .metadata.labels, owners: .metadata.ownerReferences, spec: (.spec | {clusterIP, selector, ports})}'
adopted() { # PATH: names of what bears our labels there
    api GET "$1?labelSelector=training.kubeflow.org/operator-name=pytorchjob-controller" | jq -r '.items[].metadata.name' | sort | xargs
}
