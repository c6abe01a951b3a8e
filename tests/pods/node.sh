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
# shellcheck disable=SC2034 # wait_for reads it
wait_pause=1 # most tries are kubectl, a tenth of a second of a processor each
trap 'tests/cluster/down.sh "$cluster" >"$work/down.log" 2>&1; rm -rf "$work"' EXIT

make --no-print-directory image-small >"$work/image.log" 2>&1 || { tail "$work/image.log"; exit 1; }
tests/cluster/up.sh node "$cluster" $$ >"$work/up.log" 2>&1 || { tail "$work/up.log"; exit 1; }
cluster_import build/image/shoal-agent.tar build/image/shoal-operator.tar >/dev/null || exit
installed=$(deploy_folder)
check "kubectl apply -k $installed" kubectl apply -k "$installed"
# comes_to SECONDS ARGUMENTS...: `kubectl wait`, on the test's own clock. By a watch: asking again and again takes a core from
# those that train.
comes_to() { wait_for "$1" kubectl wait --timeout=20s "${@:2}"; }
check "the operator becomes available" comes_to 300 -n shoal-system --for=condition=Available deployment/shoal-operator

# ---- jobs in the namespace of the context
of_job() { echo "training.kubeflow.org/job-name=$1"; }
state() { kubectl get pytorchjob "$1" -o jsonpath='{.status.conditions[-1:].type}'; }
is_state() { [ "$(state "$1")" = "$2" ]; }
uids() { kubectl get pods -l "$(of_job "$1")" -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}'; }
restarts() { kubectl get pod "$1" -o jsonpath='{.status.containerStatuses[0].restartCount}'; }
logs() { kubectl logs "$1-master-0" | grep -qE -- "$2"; } # JOB REGEX
ends() { comes_to 500 --for="condition=$2" "pytorchjob/$1" && is_state "$1" "$2"; } # JOB STATE

# row JOB WHAT COMMAND...: a check that, if it fails, also shows what a stranger needs to see of the job.
row() { check "$1: $2" explained "$1" "${@:3}"; }
explained() {
    "${@:2}" || {
        why "$1"
        return 1
    }
}
why() {
    local pod
    kubectl get pytorchjob "$1" -o wide
    kubectl get pytorchjob "$1" -o jsonpath='{range .status.conditions[*]}{.type}={.status} {.message}{"\n"}{end}'
    kubectl get pods -l "$(of_job "$1")"
    echo "--- events"
    kubectl get events --sort-by=.lastTimestamp | grep -F "/$1" | tail -n 16
    for pod in $(kubectl get pods -l "$(of_job "$1")" -o name); do
        echo "--- the log of $pod, and before it that of the container before"
        kubectl logs "$pod" --previous --tail=5 2>/dev/null
        kubectl logs "$pod" --tail=8
    done
    echo "--- the operators' logs"
    kubectl -n shoal-system logs -l app.kubernetes.io/component=operator --tail=8 --prefix
}

# A run that is held stands still after a checkpoint until it is let go: a script might find it ended.
check "runs can be held" gcc -D_GNU_SOURCE -shared -fPIC -o "$work/hold.so" tests/e2e/hold.c -ldl

# ---- processes of pods, known by their control groups: no other cluster on this machine has the pod's uid
# processes PROGRAM POD [KUBECTL_FLAGS]: by their PIDs, which are not in the order of age
processes() {
    local uid
    uid=$(kubectl get pod "${@:2}" -o jsonpath='{.metadata.uid}') && [ -n "$uid" ] && processes_of "$1" "$uid"
}
processes_of() { # PROGRAM UID: the same, without asking the API server
    local pid
    grep -lsF "/pod$2/" /proc/[0-9]*/cgroup | cut -d/ -f3 | sort -n | while read -r pid; do
        [[ $(readlink "/proc/$pid/exe") != */"$1" ]] || echo "$pid"
    done | grep .
}
# what an agent that launches has started as local rank 0
rank() {
    local pid
    for pid in $(processes shoal-agent "$1"); do
        grep -qszx LOCAL_RANK=0 "/proc/$pid/environ" && echo "$pid" && return
    done
    return 1
}
