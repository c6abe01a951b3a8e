#!/bin/bash
# up.sh control-plane|node DIR OWNER: starts a real Kubernetes in the folder DIR and returns when it is ready to use
# with DIR/kubeconfig. `control-plane` is etcd, API server and controller manager and needs no root; `node` adds a
# scheduler, containerd, a kubelet, a pod network and DNS for services on this machine, as root. `down.sh DIR` ends it,
# and so does the end of the process OWNER: a test gives its own $$; 0 is nobody. Several clusters may run at once.
# CLUSTER_WITHOUT=NAME: a controller of the controller manager that does not run.
# With SHOAL_TEST_KUBECONFIG=FILE nothing is started and DIR/kubeconfig is that cluster's.
# shellcheck source-path=SCRIPTDIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
. "$here/control_plane.sh"
. "$here/node.sh"

die() {
    echo "up.sh: $*" >&2
    exit 1
}

kind=${1:-}
case $kind in
control-plane) ;;
node) [ "$(id -u)" -eq 0 ] || die "a node needs root" ;;
*) kind= ;;
esac
if [ -z "$kind" ] || [ $# -ne 3 ]; then
    die "usage: tests/cluster/up.sh control-plane|node DIR OWNER"
fi
mkdir -p "$2"
cluster=$(realpath "$2")
owner=$3
[ -z "$(ls -A "$cluster")" ] || die "$cluster is not empty: choose another folder, or run down.sh and remove it"

if [ -n "${SHOAL_TEST_KUBECONFIG:-}" ]; then
    KUBECONFIG=$SHOAL_TEST_KUBECONFIG kubectl config view --raw --flatten --minify >"$cluster/kubeconfig"
    exit
fi

programs=$("$here/build.sh" "$kind")
PATH=$programs:$PATH
mkdir "$cluster/run" "$cluster/log" "$cluster/pki"
trap '[ $? -eq 0 ] || "$here/down.sh" "$cluster"' EXIT
trap 'exit 1' HUP INT TERM
if [ "$owner" != 0 ]; then
    # shellcheck disable=SC2016 # expands in that shell
    SHOAL_CLUSTER=$cluster setsid bash -c 'tail --pid="$0" -f /dev/null; exec env -u SHOAL_CLUSTER "$1" "$2"' \
        "$owner" "$here/down.sh" "$cluster" >"$cluster/log/watchdog" 2>&1 </dev/null &
    disown
fi

service_network=10.97.0
[ "$kind" = control-plane ] || claim_bridge
start_control_plane
[ "$kind" = control-plane ] || start_node
