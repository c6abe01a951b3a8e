#!/bin/bash
# The first document's commands on a node of this machine: its overlay, with a tiny T5 on a folder and without GPUs. What
# people see is read back, a worker is killed in the middle of an epoch, and the job is deleted.
# shellcheck source=tests/pods/node.sh
. "$(dirname "$0")/node.sh"
# shellcheck source=tests/e2e/t5.sh
. tests/e2e/t5.sh
t5_place "$work/fsx" 320 || exit
job=pytorch-dist-job

# The overlay asks for nodes of these kinds; this one becomes such.
label() { kubectl label node --all karpenter.sh/nodepool=gpu node.kubernetes.io/instance-type=g5.12xlarge; }
check "the node is of the kind that is asked for" label
check "kubectl create ns pytorch" kubectl create ns pytorch

# overlay FLAGS: by jq, as no patch of a kustomization works with every kubectl since 1.20.
overlay() {
    kubectl kustomize kustomize/overlays/fsdp | kubectl create --dry-run=client -o json -f - |
        jq --arg folder "$work/fsx" --arg flags "$*" '.spec.runPolicy.backoffLimit = 20 |
            .spec.pytorchReplicaSpecs |= map_values(.template.spec.volumes[0] = {name: "fsx", hostPath: {path: $folder}} |
                .template.spec.containers[0] |= (del(.resources) | .args[0] |= sub("t5-fsdp.py"; "t5-fsdp.py " + $flags)))' |
        kubectl apply -f -
}
check "kubectl apply -k kustomize/overlays/fsdp" overlay --max_source_length 48 --max_target_length 16 --epochs 12 --save_steps 7
kubectl config set-context --current --namespace pytorch >/dev/null

listed() { kubectl get pytorchjob -n pytorch | grep -qE "^$1 +$2 +[0-9]+[smh0-9]*$"; }
check "kubectl get pytorchjob shows NAME STATE AGE" wait_for 120 listed $job 'Created|Running'
everything() { # what kubectl get all is to show
    local lines pod
    lines=$(kubectl get all -n pytorch)
    for pod in master-0 worker-0 worker-1 worker-2; do
        grep -qE "^pod/$job-$pod +[01]/1 +[A-Za-z]" <<<"$lines" || return 1
        grep -qE "^service/$job-$pod +ClusterIP +None +<none> +23456/TCP " <<<"$lines" || return 1
    done
}
check "kubectl get all shows four pods and their services" wait_for 120 everything
together() { # by the workers' affinity to the master
    [ "$(kubectl get pod "$job-worker-2" -o jsonpath='{.spec.affinity.podAffinity}' | grep -c job-name)" -eq 1 ] &&
        [ -z "$(kubectl get pod "$job-master-0" -o jsonpath='{.spec.affinity.podAffinity}')" ]
}
check "the workers follow the master, which follows nobody" together

lines() { kubectl logs "pod/$job-master-0" -n pytorch; }
says() { lines | grep -qE -- "$1" || { lines | tail; return 1; }; }
check "the log tells steps" wait_for 180 says '^Epoch [0-9]+ \| Step [0-9]*0 \| Loss: [0-9.]+ \| Strategy: FULL_SHARD$'
check "... on four pods" says '4 ranks on 4 nodes, master_addr='
check "... and where it starts from" says '^--- (There is no checkpoint. Training starts from the beginning|Loaded a checkpoint. .*). ---$'
saved() { says '^--- Checkpoint saved: /fsx/checkpoints/t5-fsdp/checkpoint_FULL_SHARD-[0-9]+steps \(Epoch: [0-9]+\) ---$'; }
check "... and checkpoints" wait_for 120 saved

# the process of a pod's rank, by what its environment says
rank_of() {
    local environment
    grep -slzx "HOSTNAME=$1" /proc/[0-9]*/environ | while read -r environment; do
        grep -qzx LOCAL_RANK=0 "$environment" && cut -d/ -f3 <<<"$environment" && return
    done
}
restarts() { kubectl get pod "$job-worker-1" -o jsonpath='{.status.containerStatuses[0].restartCount}'; }
kill_worker() { kill -KILL "$(rank_of "$job-worker-1")"; }
before=$(restarts)
check "a worker is killed in the middle of an epoch" kill_worker
restarted() { [ "$(restarts)" -gt "$before" ]; } # told by the node a while after it is so
check "... its container is started again" wait_for 120 restarted
resumed() { says '^--- Loaded a checkpoint. Training goes on from epoch [0-9]+. ---$'; }
check "... it goes on from the checkpoint" wait_for 180 resumed
check "... and the job succeeds all the same" ends $job Succeeded
check "the log ends with the time it took" says '^Elapsed time of the code block: [0-9]+\.[0-9]{4} seconds$'
check "... after the last epoch" says '\(Epoch: 11\) ---$'
check "the whole model was saved" test -e "$work/fsx/checkpoints/t5-fsdp/model/model.safetensors"

check "kubectl delete pytorchjob" kubectl delete pytorchjob $job -n pytorch
none() { [ -z "$(kubectl get pods,services -n pytorch -l training.kubeflow.org/operator-name -o name)" ]; }
check "removes all pods and services" wait_for 90 none
tap_done
