# shellcheck shell=bash
# shellcheck disable=SC2154 # data: of the script
# The history that record.sh records and live.sh repeats: six jobs of tests/data/training-operator-1.9.4/jobs.yaml, and what happens to them.
# Source peer.sh and operator.sh before.

# Jobs under way: mnist (a pod has restarted in place), elastic (with an autoscaler), suspended, ended, failed, and restarting, whose worker was
# made again.
peer_jobs() {
    local name old
    check "jobs" kubectl create -f "$data/jobs.yaml"
    for name in mnist elastic ended failed restarting; do
        check "the group of $name" let_in "$name"
    done
    for name in mnist-master-0 mnist-worker-0 mnist-worker-1 elastic-worker-0 elastic-worker-1 restarting-master-0 restarting-worker-0; do
        check "$name runs" play "$name" running
    done
    play mnist-worker-1 restarted 8 1
    play ended-worker-0 running
    check "ended runs" comes "Created Running" conditions ended
    play ended-worker-0 exit 0
    play failed-worker-0 running
    check "failed runs" comes "Created Running" conditions failed
    play failed-worker-0 exit 1
    check "mnist runs" comes "1 null null 2 null null" counts_of mnist
    check "elastic runs" comes "2 null null" counts elastic Worker
    check "restarting runs" comes "Created Running" conditions restarting
    old=$(pod restarting-worker-0 .metadata.uid)
    play restarting-worker-0 exit 138
    check "a worker is made again" wait_for 60 is_new restarting-worker-0 "$old"
    play restarting-worker-0 running
    check "and runs" comes "1 null null 1 null null" counts_of restarting
    check "the suspended job" comes "Created Suspended" conditions suspended
    check "ended" comes "Created Running=False Succeeded" conditions ended
    check "failed" comes "Created Running=False Failed" conditions failed
    check "all is at rest" peer_rests
}

# They go on: a pod of mnist fails, elastic grows, suspended is resumed. Whoever is the operator.
peer_moves() {
    local old
    old=$(pod mnist-worker-0 .metadata.uid)
    play mnist-worker-0 exit 1
    check "a pod that fails is made again" wait_for 60 is_new mnist-worker-0 "$old"
    play mnist-worker-0 running
    edit_job elastic '{"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}}}'
    check "elastic grows" play elastic-worker-2 running
    edit_job suspended '{"spec": {"runPolicy": {"suspend": false}}}'
    check "the group of suspended" let_in suspended
    check "suspended runs" play suspended-worker-0 running
    check "mnist runs" comes "1 null null 2 null null" counts_of mnist
    check "elastic runs" comes "3 null null" counts elastic Worker
    check "suspended runs" comes "1 null null" counts suspended Worker
    check "all is at rest" peer_rests
}
