#!/bin/bash
# down.sh DIR: ends the test cluster that up.sh started in DIR and removes all of it but DIR/log. Needs nothing of what
# is in DIR, so it also clears away after a test that removed its folder, and is harmless when there is no cluster.
set -eu

[ $# -eq 1 ] || {
    echo "usage: tests/cluster/down.sh DIR" >&2
    exit 2
}
cluster=$(realpath -m "$1")

processes() { grep -lszxF "SHOAL_CLUSTER=$cluster" /proc/[0-9]*/environ | cut -d/ -f3 | grep .; }

control_groups() { find /sys/fs/cgroup -depth -type d -path "*/$1/*" -o -type d -name "$1" | grep .; }

# shellcheck source=tests/wait.sh
. "$(dirname "$0")/../wait.sh"
test_clock
deadline=$((now + 120))
pause() { # WHAT is still there: not for ever
    test_clock
    [ "$now" -lt "$deadline" ] || {
        echo "down.sh: still there: $1" >&2
        exit 1
    }
    sleep 0.05
}

while pids=$(processes); do
    # killed, not asked: nothing here is worth saving. What runs in the node's PID namespace ends with its first process.
    # shellcheck disable=SC2086 # a list of numbers
    kill -KILL $pids 2>/dev/null || true
    pause "$pids"
done

# the node's name is that of its bridge and of its control groups; the bridge's alias is the cluster's folder
if bridge=$(grep -lsxF "$cluster" /sys/class/net/shoal*/ifalias); then
    node=$(basename "$(dirname "$bridge")")
    while groups=$(control_groups "$node"); do
        # shellcheck disable=SC2086 # a list of folders without spaces
        rmdir $groups 2>/dev/null || pause "$groups"
    done
    ip link delete "$node"
fi
[ ! -d "$cluster" ] || find "$cluster" -mindepth 1 -maxdepth 1 ! -name log -exec rm -rf {} +
