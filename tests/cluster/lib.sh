# shellcheck shell=bash
# shellcheck disable=SC2154 # cluster is the caller's
# The programs of a test cluster: up.sh and down.sh stand on this, and tests source it to stop, restart or freeze one.
# `cluster` is the cluster's folder, an absolute path. Each program runs in a process group of its own, writes to
# $cluster/log/NAME, and has SHOAL_CLUSTER=$cluster in its environment, by which down.sh finds it without any file.
# $cluster/run/NAME is its command, $cluster/run/NAME.pid its process group.
# shellcheck source=tests/wait.sh
. "${BASH_SOURCE[0]%/*}/../wait.sh"

free_port() { # [PORT...]: none of those, on which nobody listens yet
    local port
    while :; do
        port=$((RANDOM % 20000 + 10000)) # below the ports that connections take
        [[ " $* " != *" $port "* ]] || continue
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

cluster_start() { # NAME [COMMAND...]: without a command, the one it was last started with
    local name=$1 pid
    shift
    [ $# -eq 0 ] || printf '%q ' exec "$(command -v "$1")" "${@:2}" >"$cluster/run/$name"
    SHOAL_CLUSTER=$cluster setsid bash "$cluster/run/$name" >>"$cluster/log/$name" 2>&1 </dev/null 9>&- &
    pid=$!
    disown "$pid" # its end is no news for this shell
    echo "$pid" >"$cluster/run/$name.pid"
    until ! kill -0 "$pid" || kill -0 -- "-$pid"; do sleep 0.01; done 2>/dev/null # it has its group
}

cluster_signal() { # NAME SIGNAL
    kill "-$2" -- "-$(<"$cluster/run/$1.pid")" 2>/dev/null
}

cluster_running() { # NAME
    kill -0 -- "-$(<"$cluster/run/$1.pid")" 2>/dev/null
}

cluster_stop() { # NAME [SIGNAL]: returns when the program has ended; after 10 s it is killed
    local now end
    cluster_signal "$1" "${2:-TERM}" || return 0
    test_clock
    end=$((now + 10))
    while cluster_running "$1"; do
        test_clock
        [ "$now" -lt "$end" ] || cluster_signal "$1" KILL || true
        sleep 0.05
    done
}

# cluster_wait SECONDS NAME COMMAND...: until the command succeeds; fails, with NAME's last lines, if that takes longer
# or if NAME has ended.
cluster_wait() {
    local now end name=$2
    test_clock
    end=$((now + $1))
    shift 2
    until "$@" >/dev/null 2>&1; do
        test_clock
        if [ "$now" -ge "$end" ] || ! cluster_running "$name"; then
            echo "cluster: in vain: $*; the end of $cluster/log/$name:" >&2
            tail -n 20 "$cluster/log/$name" >&2
            return 1
        fi
        sleep 0.1
    done
}

# Which of our installations is for the cluster of $KUBECONFIG, as docs/install.md says; and whether its API server applies
# the CustomResourceDefinition's rules in CEL, and to what has not changed, too.
server_minor() { kubectl get --raw /version | jq -r '.minor | gsub("[^0-9]"; "")'; }
deploy_folder() { if [ "$(server_minor)" -lt 23 ]; then echo deploy/before-1.23; else echo deploy; fi; }
knows_cel() { [ -n "${SHOAL_TEST_NEWER:-}" ] || [ "$(server_minor)" -ge 25 ]; }
minds_old_faults() { [ -z "${SHOAL_TEST_NEWER:-}" ] && [ "$(server_minor)" -lt 30 ]; }
# The programs of KUBEBUILDER_ASSETS are an API server and etcd: nobody collects garbage there, empties namespaces or fills
# aggregated roles.
has_controllers() { [ -n "${SHOAL_TEST_KUBECONFIG:-}" ] || [ -e "$cluster/run/kube-controller-manager" ]; }

cluster_import() { # FILE...: makes the images of OCI or Docker archives known to the node
    local file
    for file; do
        ctr --address "$cluster/containerd.sock" --namespace k8s.io images import "$file"
    done
}
