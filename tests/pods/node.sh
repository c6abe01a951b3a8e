# shellcheck shell=bash
# A node of this machine with the operator on it, for tests that train in real pods: `. "$(dirname "$0")/node.sh"` in their
# place of tests/tap.sh. Leaves where there cannot be one.
# shellcheck source=tests/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
if [ "$(id -u)" -ne 0 ]; then
    skip "training in real pods" "needs root to run a node"
    tap_done
fi
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
cluster=$work/cluster
export KUBECONFIG=$cluster/kubeconfig
trap 'tests/cluster/down.sh "$cluster" >"$work/down.log" 2>&1; rm -rf "$work"' EXIT

make --no-print-directory image >"$work/image.log" 2>&1 || { tail "$work/image.log"; exit 1; }
tests/cluster/up.sh node "$cluster" $$ >"$work/up.log" 2>&1 || { tail "$work/up.log"; exit 1; }
cluster_import build/image/shoal-agent.tar build/image/shoal-operator.tar >/dev/null || exit
check "kubectl apply -k deploy/" kubectl apply -k deploy/
check "the operator becomes available" \
    kubectl -n shoal-system wait --for=condition=Available --timeout=120s deployment/shoal-operator

# of jobs in the namespace of the context
state() { kubectl get pytorchjob "$1" -o jsonpath='{.status.conditions[-1:].type}'; }
is_state() { [ "$(state "$1")" = "$2" ]; }
ends() { # JOB STATE
    wait_for 240 is_state "$1" "$2" || {
        kubectl describe pytorchjob "$1" | tail -n 30
        kubectl get pods
        kubectl logs "$1-master-0" --tail=10
        return 1
    }
}
# agent JOB POD: the process of that pod's agent, by its hostname.
agent() {
    local pid
    for pid in $(pgrep -x shoal-agent); do
        tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qx "HOSTNAME=$1" && echo "$pid" && return
    done
    return 1
}
