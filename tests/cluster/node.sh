# shellcheck shell=bash
# shellcheck disable=SC2154 # cluster, here, pki, api: of up.sh and control_plane.sh
# The part of up.sh that makes this machine a node. containerd and the kubelet live in a mount and a PID namespace of
# their own: what they write under /run, /var/lib and /var/log lies in $cluster/node, what they mount is seen by nobody
# else, and all pods end when the namespace's first process does. The bridge, its network and the control groups carry
# a number of the cluster's own, so that clusters do not meet.

# claim_bridge: makes the first free bridge shoalN (which is what claims N); leaves `node`, `network`, `service_network`
claim_bridge() {
    local n
    for n in {0..99}; do
        node=shoal$n
        network=10.88.$n
        service_network=10.97.$n
        # with an address of its own: else it takes the lowest of its ports', and each new pod may cut off the others
        ip link add "$node" address "$(printf '0a:58:0a:58:%02x:01' "$n")" type bridge 2>/dev/null || continue
        ip link set "$node" alias "$cluster" up
        ip address add "$network.1/24" dev "$node"
        return
    done
    die "cannot make a bridge: $(ip link add shoal99 type bridge 2>&1)"
}

# in the control group file systems of version 1 (one per controller) and 2 (one for all)
make_control_groups() {
    local root name
    for root in $(findmnt -rn -o TARGET -t cgroup,cgroup2); do
        mkdir "$root/$node"
        for name in cpuset.cpus cpuset.mems; do # a group of version 1 starts with none and can then run nothing
            [ ! -e "$root/cgroup.clone_children" ] || [ ! -e "$root/$name" ] || cat "$root/$name" >"$root/$node/$name"
        done
        # all pods together else get as much of a busy machine as one process outside
        [ ! -e "$root/$node/cpu.shares" ] || echo 8192 >"$root/$node/cpu.shares"
    done
}

inside() { # NAME COMMAND...: cluster_start in the node's namespace
    local name=$1 first
    shift
    first=$(pgrep --parent "$(<"$cluster/run/namespace.pid")")
    cluster_start "$name" nsenter --target "$first" --mount --pid -- "$(command -v "$1")" "${@:2}"
}

write_containerd_config() {
    cat <<END
version = 2
root = "$cluster/node/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
address = "$cluster/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "shoal.test/pause:1"
restrict_oom_score_adj = true # a machine may deny runc to lower it
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$cluster/node/cni"
END
}

write_network() {
    cat <<END
{"cniVersion": "0.4.0", "name": "$node", "plugins": [
  {"type": "bridge", "bridge": "$node", "ipam": {"type": "host-local", "dataDir": "/run/ipam",
   "ranges": [[{"subnet": "$network.0/24", "gateway": "$network.1"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
}

write_kubelet_config() {
    cat <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $network.1
port: $(free_port)
healthzPort: 0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /$node
enforceNodeAllocatable: []
nodeStatusUpdateFrequency: 2s # sooner ready
kubeAPIQPS: 50 # with the default of old kubelets, 5, what becomes of twenty pods is told late
kubeAPIBurst: 100
failSwapOn: false
makeIPTablesUtilChains: false # the machine's firewall is not the test's
evictionHard: {memory.available: 100Mi}
imageGCHighThresholdPercent: 100
clusterDNS: [$network.1]
clusterDomain: cluster.local
resolvConf: $cluster/node/resolv.conf
volumePluginDir: $cluster/node/plugins
END
}

# a static program that waits for a signal, in an image: what holds a pod's namespaces
make_pause_image() {
    gcc -Os -static -s -o "$cluster/pause" "$here/pause.c"
    "$here/../../deploy/image/pack.sh" shoal.test/pause:1 "$cluster/pause.tar" "$cluster/pause"
    cluster_import "$cluster/pause.tar" >/dev/null
}

start_kubelet() {
    local flags
    # since 1.35 a kubelet has to be told that control groups of version 1 are what this machine has
    mapfile -t flags < <(known_flag kubelet --container-runtime=remote && known_flag kubelet --fail-cgroupv1=false)
    inside kubelet kubelet --config "$cluster/node/kubelet.yaml" --kubeconfig "$KUBECONFIG" \
        --container-runtime-endpoint "unix://$cluster/containerd.sock" --root-dir /var/lib/kubelet \
        --cert-dir /var/lib/kubelet/pki --hostname-override "$node" --node-ip "$network.1" "${flags[@]}"
}

start_scheduler() {
    local flags
    mapfile -t flags < <(known_flag kube-scheduler --port=0)
    cluster_start kube-scheduler kube-scheduler --kubeconfig "$KUBECONFIG" --leader-elect=false \
        --bind-address 127.0.0.1 --secure-port "$(free_port)" --cert-dir "$pki" "${flags[@]}"
}

# In pods the API server is $service_network.1:443, the service `kubernetes`: there is no proxy here for any other.
start_network() {
    ip address add "$service_network.1/32" dev "$node"
    cluster_start api-relay socat "TCP-LISTEN:443,bind=$service_network.1,fork,reuseaddr" "TCP:127.0.0.1:$api"
    printf 'nameserver %s\n' "$network.1" >"$cluster/node/resolv.conf"
    cluster_start dns "$here/dns.sh" "$cluster" "$network.1" "https://127.0.0.1:$api" "$service_network.1"
}

start_node() {
    make_control_groups
    mkdir -p "$cluster/node/cni" "$cluster/node/plugins"
    write_containerd_config >"$cluster/node/containerd.toml"
    write_network >"$cluster/node/cni/net.conflist"
    write_kubelet_config >"$cluster/node/kubelet.yaml"
    cluster_start namespace unshare --mount --pid --fork --kill-child --mount-proc \
        "$here/namespace.sh" "$cluster"
    cluster_wait 60 namespace [ -e "$cluster/node/ready" ]
    start_network
    inside containerd containerd --config "$cluster/node/containerd.toml"
    cluster_wait 180 containerd ctr --address "$cluster/containerd.sock" version
    make_pause_image
    start_scheduler
    start_kubelet
    cluster_wait 300 kubelet kubectl wait --timeout=1s --for=condition=Ready "node/$node"
}
