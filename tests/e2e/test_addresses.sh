#!/bin/bash
# Ranks that meet at an address of a network, as pods do, and not at the loopback: in a network of the test's own.
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
small=(--preset mnist --data.root /usr/share/datasets/fashion-mnist --train_size 256 --eval_size 64 --epochs 1 --batch_size 32)

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
check "... with an interface that is not there" fails 2 'GLOO_SOCKET_IFNAME: no network interface "ib0" with an address here' \
    saves GLOO_SOCKET_IFNAME=ib0 2
tap_done
