#!/bin/bash
# The life of a job on a real API server; the test plays the kubelet.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
operator_world
check "the operator starts and is ready" operator_start

job p01 1 2 OnFailure "" "" 'ports: [{name: pytorchjob-port, containerPort: 8080}]'
check "P01 pods" comes "p01-master-0 p01-worker-0 p01-worker-1" pods p01
check "P01 services" comes "p01-master-0 p01-worker-0 p01-worker-1" services p01
env_of() { pod "$1" ".spec.containers[0].env[] | select(.name == \"$2\") | .value"; }
check "P01 MASTER_PORT" is 8080 env_of p01-master-0 MASTER_PORT
check "P01 MASTER_ADDR" is p01-master-0 env_of p01-worker-1 MASTER_ADDR
check "P01 RANK" is 2 env_of p01-worker-1 RANK
check "P01 PET_NPROC_PER_NODE" is auto env_of p01-master-0 PET_NPROC_PER_NODE
check "P01 service port" is "8080 None" service p01-master-0 '"\(.spec.ports[0].port) \(.spec.clusterIP)"'
check "P02 owner" is "$(field p01 .metadata.uid) true" pod p01-worker-0 '.metadata.ownerReferences[0] | "\(.uid) \(.controller)"'
play_all p01 running
check "P06 running" comes "Created Running" conditions p01
play p01-master-0 exit 0
check "P03 succeeded" comes "Created Succeeded" conditions p01
check "P03 counted" comes 1 field p01 .status.replicaStatuses.Master.succeeded
tap_done
