#!/bin/bash
# shellcheck disable=SC2119 # operator_stop without arguments is meant so
# live.sh PROGRAM CRD: what tests/cluster/test_adoption.sh does with recorded objects, with the real training operator: it makes jobs,
# Shoal takes them over and works on, it takes them back and works on, and both run at once. As root. Done by hand: no test needs it.
# shellcheck source=tests/cluster/peer/peer.sh
. "$(dirname "$0")/peer.sh"
peer_alone "$@"
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
# shellcheck source=tests/cluster/adoption.sh
. tests/cluster/adoption.sh
# shellcheck source=tests/cluster/peer/jobs.sh
. tests/cluster/peer/jobs.sh
data=tests/data/training-operator-1.9.4

peer_world >"$work/world.log" 2>&1 || { cat "$work/world.log"; exit 1; }
peer_start --gang-scheduler-name=volcano || exit
peer_jobs

# ---- there
before=$(everything)
peer_stop
check "our CustomResourceDefinition" install_crd
operator_start --gang-scheduler-name=volcano
check "Shoal is ready" operator_ready
check "it adopts the groups" comes "elastic mnist restarting" adopted "$groups_path"
check "and the autoscaler" comes elastic adopted "$autoscalers_path"
check "it rests" requests_rest
check "nothing was made, deleted or made again" is "$before" everything
for name in mnist elastic restarting; do check "$name goes on" is "Created Running" conditions "$name"; done
check "ended stays so" is "Created Running=False Succeeded" conditions ended
check "failed stays so" is "Created Running=False Failed" conditions failed
check "suspended stays so" is "Created Suspended" conditions suspended
peer_moves

# ---- back
before=$(everything)
operator_stop
check "its CustomResourceDefinition" kubectl replace --validate=false -f "$peer_crd"
peer_start --gang-scheduler-name=volcano || exit
check "it rests" peer_rests
check "it has made, deleted or made again nothing" is "$before" everything
for name in mnist elastic restarting suspended; do
    check "$name goes on" is Running field "$name" '[.status.conditions[] | select(.status == "True") | .type][-1]'
done
check "ended stays so" is Succeeded field ended '.status.conditions[-1].type'
check "failed stays so" is Failed field failed '.status.conditions[-1].type'
old=$(pod mnist-worker-0 .metadata.uid)
play mnist-worker-0 exit 1
check "it makes a failed pod again" wait_for 60 is_new mnist-worker-0 "$old"
play mnist-worker-0 running
edit_job elastic '{"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}}'
check "it takes a pod away" wait_for 60 gone "$pods_path/elastic-worker-2"
check "it rests" peer_rests

# ---- both at once, on our CustomResourceDefinition
check "our CustomResourceDefinition again" install_crd
operator_start --gang-scheduler-name=volcano
check "Shoal is ready beside it" operator_ready
old=$(pod mnist-worker-1 .metadata.uid)
play mnist-worker-1 exit 1
check "one of them makes a failed pod again" wait_for 60 is_new mnist-worker-1 "$old"
play mnist-worker-1 running
check "Shoal sees the other" comes 1 metric shoal_operator_standing_aside
old=$(pod elastic-worker-1 .metadata.uid)
play elastic-worker-1 exit 1
check "the other works" wait_for 60 is_new elastic-worker-1 "$old"
play elastic-worker-1 running
play mnist-master-0 exit 0
check "and ends a job" comes Succeeded field mnist '.status.conditions[-1].type'
peer_stop
same_pod() { pod elastic-worker-1 .metadata.uid; }
old=$(same_pod)
play elastic-worker-1 exit 1
check "when that has gone, Shoal waits" stays "$old" same_pod
operator_stop
tap_done
