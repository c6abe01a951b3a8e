#!/bin/bash
# Ranks that meet at an address of a network, as pods do, and at the loopback, and who reaches them: in a network of the
# test's own, where every port is free.
unshare=(unshare --net)
[ "$(id -u)" -eq 0 ] || unshare+=(--map-root-user)
network=(ip link add eth0 type veth peer name far)
if [ $# -eq 0 ] && "${unshare[@]}" "${network[@]}" >/dev/null 2>&1; then
    exec "${unshare[@]}" "$0" inside
fi
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
if [ $# -eq 0 ]; then
    skip "ranks that meet at an address of a network" "this machine gives us no network of our own"
    tap_done
fi
master=10.77.0.1
ip link set lo up
"${network[@]}"
ip addr add $master/24 dev eth0
ip link set eth0 up && ip link set far up
port=$(free_port 20000)
few_images
small=(--preset mnist --data.root "$data" --train_size 8 --eval_size 2 --epochs 1 --batch_size 1)

# Interfaces by the variables of Gloo and NCCL. Savers and HYBRID's groups part from all ranks, and use the same.
saves() { # VARIABLE RANKS ARG...
    local variable=$1 ranks=$2
    shift 2
    rm -rf "$work/ck"
    env "$variable" shoal-agent torchrun --nnodes=1 --nproc_per_node="$ranks" --rdzv_endpoint="$master:$port" FSDP_mnist.py \
        "${small[@]}" --prometheus_port=0 --checkpoint_dir="$work/ck" "$@" && find "$work/ck" -name COMPLETE | grep .
}
for variable in NCCL_SOCKET_IFNAME=^lo NCCL_SOCKET_IFNAME==eth0 NCCL_SOCKET_IFNAME=eth NCCL_SOCKET_IFNAME=^docker,lo,veth \
    NCCL_SOCKET_IFNAME==eth GLOO_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0,eth1; do
    check "$variable with checkpoints" saves "$variable" 2
done
check "... with HYBRID's groups" saves NCCL_SOCKET_IFNAME=^lo 4 --sharding_strategy HYBRID_SHARD --shard_group_size 2
no_such_interface() { # says so once, and which there are
    fails 2 'GLOO_SOCKET_IFNAME: no network interface "ib0" with an address here; there are lo' saves GLOO_SOCKET_IFNAME=ib0 3 &&
        [ "$(saves GLOO_SOCKET_IFNAME=ib0 3 2>&1 | grep -c 'no network interface')" -eq 1 ]
}
check "... with an interface that is not there" no_such_interface

# Who may join: nodes that were told the same.
node() { # RANK SECRET
    env "$2" shoal-agent "${small[@]}" --prometheus_port=0 --nproc_per_node 2 --nnodes 2 --node_rank "$1" \
        --master_addr "$master" --master_port "$port"
}
meet() { # SECRET SECRET: of two launchers
    node 1 "$2" >"$work/other" 2>&1 &
    node 0 "$1" && wait $!
}
check "launchers of two nodes meet" meet A=1 A=1
check "... with an id" meet SHOAL_RUN_ID=a SHOAL_RUN_ID=a
check "... with a secret" meet SHOAL_RUN_SECRET=s SHOAL_RUN_SECRET=s

# Who serves the run, and where.
served() { curl -sf --noproxy '*' --max-time 20 -o "$work/page" "http://$1:9401/metrics"; } # HOST
serves() { # HOST,... OTHER,... COMMAND...: while the command runs, at the first hosts and not at the others
    local hosts others host result=0
    IFS=, read -ra hosts <<<"$1"
    IFS=, read -ra others <<<"$2"
    shift 2
    "$@" >"$work/log" 2>&1 &
    local run=$!
    for host in "${hosts[@]}"; do
        wait_for 300 served_or_gone "$host" "$run" && served "$host" || result=1
    done
    for host in "${others[@]}"; do
        ! served "$host" || { echo "served at $host"; result=1; }
    done
    kill "$run"
    wait "$run"
    [ "$result" -eq 0 ] || tail "$work/log"
    return "$result"
}
served_or_gone() { served "$1" || ! kill -0 "$2"; } # HOST PID
endless=("${small[@]}" --epochs 100000)
two_nodes=("${endless[@]}" --nproc_per_node 1 --nnodes 2 --master_addr "$master" --master_port "$port")
check "a run of one process is served on the loopback" serves 127.0.0.1 "$master" exec shoal-agent "${endless[@]}"
check "... where localhost is asked for, too" serves 127.0.0.1 "$master" \
    exec shoal-agent "${endless[@]}" --prometheus_addr localhost
check "... elsewhere if that is asked for" serves "$master" 127.0.0.1 \
    exec shoal-agent "${endless[@]}" --prometheus_addr "$master"
check "... as in a pod: whoever scrapes asks the pod's address" serves "127.0.0.1,$master,[::1]" "" \
    exec env KUBERNETES_SERVICE_HOST=10.96.0.1 shoal-agent "${endless[@]}" --standalone
shoal-agent "${two_nodes[@]}" --node_rank 1 --prometheus_port 9402 >"$work/other" 2>&1 &
check "ranks that meet on a network are served there" serves "127.0.0.1,$master,[::1]" "" \
    exec shoal-agent "${two_nodes[@]}" --node_rank 0
wait $!
shoal-agent "${endless[@]}" >"$work/first" 2>&1 &
first=$!
wait_for 300 served_or_gone 127.0.0.1 "$first"
second_run() { # TEXT FLAG...: says so
    local text=$1
    shift
    shoal-agent "${small[@]}" "$@" >"$work/second" 2>&1 || { cat "$work/second"; return 1; }
    contains "$work/second" "$text"
}
check "a second run on the machine has the next port" second_run \
    "info port 9401 is in use: this run is served at http://127.0.0.1:9402/"
check "... without a warning" lacks "$work/second" "is in use by another process"
check "... but if the port was asked for it goes on without, and names the flags" second_run \
    "port 9401 is in use by another process: end it or choose another port; the run is not served over HTTP (--prometheus_port, --prometheus_addr)" \
    --prometheus_port=9401
kill "$first"
wait "$first"
sed 's/--epochs=3/--epochs=1000/' deploy/demo/mnist.yaml >"$work/job.yaml"
check "the replicas of shoal run are served once" serves 127.0.0.1 "$master" \
    exec shoal run -f "$work/job.yaml" --log-dir "$work/logs" --progress never
check "... which says where" contains "$work/log" "mnist: served at http://127.0.0.1:9401/"
check "... by rank 0, under the job's name" grep -q '^fsdp_memory_.*{job_name="mnist",rank="0",' "$work/page"
check "... none complains of another's port" lacks <(cat "$work"/logs/*/*.log) "is in use"
tells_page() { shoal get --local mnist 2>&1 | tee "$work/story" | grep -qx '  page        http://127.0.0.1:9401/'; }
page_is_told() {
    local run result=0
    shoal run -f "$work/job.yaml" --log-dir "$work/logs" --progress never >"$work/log" 2>&1 &
    run=$!
    wait_for 300 tells_page || { cat "$work/story"; result=1; }
    kill "$run"
    wait "$run"
    return "$result"
}
check "... and shoal get --local tells where" page_is_told

# A host has hundreds of interfaces where it runs containers.
for i in 1 2 3 4; do
    ip link add "a$i" type veth peer name "b$i" && ip addr add "10.78.$i.1/24" dev "a$i" && ip addr add "10.79.$i.1/24" dev "b$i"
done
the_first_eight() {
    saves GLOO_SOCKET_IFNAME=ib0 2 2>&1 | grep -qE 'with an address here; there are lo( [a-z0-9]+){7} \.\.\.$'
}
check "of many interfaces eight are told" the_first_eight
tap_done
