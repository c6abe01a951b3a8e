#!/bin/bash
# Does the test cluster itself work? A custom resource is made and watched; pods run, are logged and find each other and
# the API server by name; and nothing is left behind. `smoke.sh control-plane` leaves the pods out.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
kind=${1:-node}
cluster=$work/cluster
export KUBECONFIG=$cluster/kubeconfig
trap 'tests/cluster/down.sh "$cluster"; rm -rf "$work"' EXIT

timed() { # COMMAND...: says how long it took
    local start=${EPOCHREALTIME/./}
    "$@" || return
    echo "# $(((${EPOCHREALTIME/./} - start) / 1000)) ms: $*" >&3
}
exec 3>&1

custom_resource_is_watched() {
    kubectl apply -f - <<'END' || return
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shoals.test.shoal}
spec:
  group: test.shoal
  scope: Namespaced
  names: {kind: Shoal, plural: shoals, singular: shoal}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
END
    wait_for 30 kubectl wait --for=condition=Established --timeout=5s crd/shoals.test.shoal || return
    kubectl get shoals --watch -o name >"$work/watched" &
    wait_for 20 kubectl create -f - <<<'{"apiVersion": "test.shoal/v1", "kind": "Shoal", "metadata": {"name": "one"}}' ||
        return
    wait_for 20 grep one "$work/watched" || return
    kill %%
}

pods_run() {
    gcc -O1 -o "$work/probe" tests/cluster/probe.c || return
    deploy/image/pack.sh shoal.test/probe:1 "$work/probe.tar" "$work/probe" || return
    cluster_import "$work/probe.tar" || return
    kubectl apply -f - <<'END' || return
apiVersion: v1
kind: Service
metadata: {name: target}
spec: {clusterIP: None, selector: {name: target}, ports: [{port: 23456}]}
---
apiVersion: v1
kind: Pod
metadata: {name: target, labels: {name: target}}
spec: {containers: [{name: main, image: shoal.test/probe:1, args: [localhost]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: peer}
spec: {containers: [{name: main, image: shoal.test/probe:1, args: [target]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec: {containers: [{name: main, image: shoal.test/probe:1, args: [kubernetes.default.svc, "443"]}]}
END
    wait_for 60 kubectl wait --for=condition=Ready --timeout=10s pod/target pod/peer pod/client
}

logs() { # POD TEXT
    kubectl logs "$1" >"$work/log" && grep -qF -- "$2" "$work/log"
}
logs_soon() { # POD TEXT
    wait_for 20 logs "$@" || { # what it said, and what DNS knows
        tail "$work/log" "$cluster/node/hosts/hosts"
        kubectl get endpoints,pods -o wide
        return 1
    }
}
address_of() { kubectl get pod "$1" -o jsonpath='{.status.podIP}'; }

# what a node may leave on the machine
traces() {
    sort /proc/self/mountinfo
    ls -d /run/containerd /run/netns /var/lib/kubelet /var/lib/cni /var/log/pods 2>/dev/null
    iptables-save 2>/dev/null | grep ^-
    sysctl vm.overcommit_memory kernel.panic net.ipv4.ip_forward
}

nothing_is_left() {
    tests/cluster/down.sh "$cluster" || return
    ! grep -lszxF "SHOAL_CLUSTER=$cluster" /proc/[0-9]*/environ || return
    ! grep -lsxF "$cluster" /sys/class/net/*/ifalias || return
    [ -z "${node:-}" ] || [ -z "$(find /sys/fs/cgroup -name "$node")" ] || return
    [ "$(ls "$cluster")" = log ] || return
    diff "$work/traces" <(traces)
}

traces >"$work/traces"
check "$kind comes up" timed tests/cluster/up.sh "$kind" "$cluster" $$
check "a custom resource is made and watched" timed custom_resource_is_watched
if [ "$kind" = node ]; then
    node=$(kubectl get nodes -o jsonpath='{.items[0].metadata.name}')
    check "pods run" timed pods_run
    check "a pod finds another by its service's name" logs_soon peer "target is $(address_of target)"
    check "a pod reaches the API server" logs_soon client "kubernetes.default.svc is 10.97"
    check "a pod ends in time" timed kubectl delete pod peer --timeout=20s
fi
check "the API server can be restarted" timed eval 'cluster_stop kube-apiserver KILL && cluster_start kube-apiserver &&
    cluster_wait 60 kube-apiserver kubectl get --raw /readyz'
check "down leaves nothing behind" timed nothing_is_left
tap_done
