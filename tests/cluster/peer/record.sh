#!/bin/bash
# record.sh PROGRAM CRD: lets the real training operator (its program, and its CustomResourceDefinition of PyTorchJobs) work on
# tests/data/training-operator-1.9.4/jobs.yaml on the test control plane, with this script as kubelet and gang scheduler, and writes what it
# left beside that file. As root. Done by hand: no test needs it, README.md there tells more.
# shellcheck source=tests/cluster/peer/peer.sh
. "$(dirname "$0")/peer.sh"
peer_alone "$@"
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
# shellcheck source=tests/cluster/peer/jobs.sh
. tests/cluster/peer/jobs.sh
data=tests/data/training-operator-1.9.4

# All that there is, less what the API server, the controller manager and the player added.
record() { # NAME
    local path
    for path in "$jobs_path" "$pods_path" "$services_path" "$autoscalers_path" "$groups_path" /api/v1/namespaces/default/events; do
        api GET "$path" || return
    done | jq -s --sort-keys -f tests/cluster/peer/record.jq >"$data/$1.json"
}

peer_world >"$work/world.log" 2>&1 || { cat "$work/world.log"; exit 1; }
peer_start --gang-scheduler-name=volcano || exit
peer_jobs
check "recorded: before" record before

peer_moves
check "recorded: after" record after
peer_stop
tap_done
