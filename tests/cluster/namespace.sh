#!/bin/bash
# The first process of the node's namespace: `namespace.sh DIR`.
set -eu
for folder in run var/lib var/log; do
    mkdir -p "$1/node/$folder"
    mount --bind "$1/node/$folder" "/$folder"
done
# the kubelet insists on these settings of the kernel: let it see them without having them
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    mkdir -p "$1/node/sysctl/${setting%/*}"
    echo "${setting#*=}" >"$1/node/sysctl/${setting%=*}"
    mount --bind "$1/node/sysctl/${setting%=*}" "/proc/sys/${setting%=*}"
done
mount --make-rshared /
touch "$1/node/ready"
while :; do
    sleep 1000 & wait # bash also reaps what the shims leave behind
done
