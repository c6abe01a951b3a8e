#!/bin/bash
# The first document's commands on a node of this machine, as docs/guides/training-on-eks.md has them: with a tiny T5 on the claim and
# without GPUs. What people see is read back, a rank and a launcher are killed, each in the middle of an epoch, and the job is deleted.
# shellcheck source=tests/pods/node.sh
. "$(dirname "$0")/node.sh"
# shellcheck source=tests/e2e/t5.sh
. tests/e2e/t5.sh
# shellcheck source=tests/e2e/guides.sh
. tests/e2e/guides.sh
job=pytorch-dist-job

# The overlay asks for nodes of these kinds; this one becomes such.
label() { kubectl label node --all karpenter.sh/nodepool=gpu node.kubernetes.io/instance-type=g5.12xlarge; }
check "the node is of the kind that is asked for" label

# The commands are those of the page, as it prints them, but for what this machine is not: the operator is installed already, the
# node's folder lies elsewhere, and by jq, as no patch of a kustomization works with every kubectl since 1.20, pods have no GPUs, the
# small image and the tiny model's lengths, and stand still behind a checkpoint until somebody was killed.
# One thread a rank: eight on two cores would mostly spin, waiting for each other.
flags="--max_source_length 48 --max_target_length 16 --epochs 12 --save_steps 7 --threads 1"
kubectl() {
    case "$*" in
    "apply -k deploy/") command kubectl apply -k "$installed" ;;
    "apply -n pytorch -k kustomize/storage/one-node")
        command kubectl kustomize kustomize/storage/one-node | sed "s|/srv/fsx|$work/fsx|" | command kubectl apply -n pytorch -f - ;;
    "apply -k kustomize/overlays/fsdp/")
        command kubectl kustomize kustomize/overlays/fsdp | command kubectl create --dry-run=client -o json -f - |
            jq --arg flags "$flags" '.spec.pytorchReplicaSpecs |= map_values(.template.spec.containers[0] |=
                (del(.resources) | .env += [{name: "LD_PRELOAD", value: "/fsx/hold.so"}, {name: "HOLD_UNTIL", value: "/fsx/go"}] |
                .image |= sub("-cuda13$"; "") | .args[0] |= sub("t5-fsdp.py"; "t5-fsdp.py " + $flags)))' | command kubectl apply -f - ;;
    *) command kubectl "$@" ;;
    esac
}
export -f kubectl
export work installed flags
guide() { bash -eu -o pipefail -c "$(guide_block training-on-eks cluster "$1")"; } # BLOCK: the first command that fails ends it
guide_names() { contains <(guide_block training-on-eks cluster "$1") "$2"; }
check "the page installs the operator, and makes the namespace" guide 1
check "... $(guide_block training-on-eks cluster 2)" guide 2
served() { command kubectl apply --dry-run=server -n pytorch "$@"; }
check "the pod that fills the volume is one" served -f kustomize/storage/fill.yaml
check "the volume on EKS is one" served -f kustomize/storage/fsx/storageclass.yaml
bound() { [ "$(kubectl get pvc fsx-claim -n pytorch -o jsonpath='{.status.phase}')" = Bound ]; }
check "the claim is bound" wait_for 120 bound
check "$(guide_block training-on-eks cluster 3)" guide 3
kubectl config set-context --current --namespace pytorch >/dev/null

# ---- what the document shows of a job whose master is being created
listed() { kubectl get pytorchjob -n pytorch | grep -qE "^$1 +$2 +[0-9]+[smh0-9]*$"; }
everything() { # MASTER WORKERS: what kubectl get all is to show, STATUS and all
    local lines pod
    lines=$(kubectl get all -n pytorch)
    grep -qE "^pod/$job-master-0 +0/1 +$1 +0 +[0-9]+[smh0-9]*$" <<<"$lines" || { echo "$lines"; return 1; }
    for pod in worker-0 worker-1 worker-2; do
        grep -qE "^pod/$job-$pod +0/1 +$2 +0 +[0-9]+[smh0-9]*$" <<<"$lines" || { echo "$lines"; return 1; }
    done
    for pod in master-0 worker-0 worker-1 worker-2; do
        grep -qE "^service/$job-$pod +ClusterIP +None +<none> +23456/TCP +[0-9]+[smh0-9]*$" <<<"$lines" || { echo "$lines"; return 1; }
    done
}
row $job "kubectl get all: the workers wait for their master" wait_for 240 everything ContainerCreating Init:0/1
row $job "kubectl get pytorchjob: NAME STATE AGE" listed $job Created
check "... by the page's commands" guide 4
columns() { [ "$(kubectl get pytorchjob -n pytorch | head -n 1 | xargs)" = "NAME STATE AGE" ]; }
row $job "... and no more columns" columns
together() { # by the workers' affinity to the master
    [ "$(kubectl get pod "$job-worker-2" -o jsonpath='{.spec.affinity.podAffinity}' | grep -c job-name)" -eq 1 ] &&
        [ -z "$(kubectl get pod "$job-master-0" -o jsonpath='{.spec.affinity.podAffinity}')" ]
}
row $job "the workers follow the master, which follows nobody" together

# ---- the training
t5_place "$work/placed" 320 && cp "$work/hold.so" "$work/placed" && mkdir -p "$work/placed"/go/checkpoint_FULL_SHARD-{7,14}steps &&
    chmod -R a+rwX "$work/placed" && mv "$work/placed" "$work/fsx" || exit # the job's user is not ours
row $job "the job runs" wait_for 240 listed $job Running
row $job "the master's container starts" comes_to 300 -n pytorch --for=condition=Ready "pod/$job-master-0"
check "the page follows the master's log" guide_names 5 "kubectl logs -f pod/$job-master-0 -n pytorch"
guide 5 >"$work/followed" 2>&1 &
follower=$!
disown
lines() { kubectl logs "pod/$job-master-0" -n pytorch; }
says() { lines | grep -qE -- "$1" || { lines | tail; return 1; }; }
row $job "the log tells steps" wait_for 360 says '^Epoch [0-9]+ \| Step [0-9]*0 \| Loss: [0-9.]+ \| Strategy: FULL_SHARD$'
row $job "... on four pods" wait_for 60 says '4 ranks on 4 nodes, master_addr='
row $job "... and where it starts from" wait_for 60 says '^--- There is no checkpoint. Training starts from the beginning. ---$'
saved() { says '^--- Checkpoint saved: /fsx/checkpoints/t5-fsdp/checkpoint_FULL_SHARD-[0-9]+steps \(Epoch: [0-9]+\) ---$'; }
row $job "... and checkpoints" wait_for 240 saved

kill_rank() { kill -KILL "$(rank "$1")"; }
kill_launcher() { kill -KILL "$(processes shoal-agent "$1" | head -n 1)"; }
let_on() { touch "$work/fsx/go/checkpoint_FULL_SHARD-$1steps"; } # STEPS: beyond that checkpoint
uids "$job" >"$work/uids"
counted() { [ "$(kubectl get pytorchjob "$job" -o jsonpath='{.status.history.restarts}')" = "$1" ]; } # RESTARTS
same_containers() { diff "$work/uids" <(uids "$job") && counted 0; }
row $job "a rank is killed in the middle of an epoch" kill_rank "$job-worker-1"
let_on 21 # who is held does not see that a peer is lost
resumed() { [ "$(lines | grep -cE '^Resumed at step [0-9]+ from ')" -ge "$1" ]; } # TIMES
row $job "... all go on" wait_for 360 resumed 1
row $job "... in the same containers" same_containers
row $job "a launcher is killed in the middle of an epoch" kill_launcher "$job-worker-2"
let_on 28
container_again() { [ "$(restarts "$job-worker-2")" = 1 ]; }
row $job "... its container starts again" wait_for 240 container_again
row $job "... all go on" wait_for 360 resumed 2
row $job "... from the checkpoint" says '^--- Loaded a checkpoint. Training goes on from epoch [0-9]+. ---$'
others_stay() { diff "$work/uids" <(uids "$job") && [ "$(restarts "$job-master-0")$(restarts "$job-worker-0")$(restarts "$job-worker-1")" = 000 ]; }
row $job "... the other pods in the containers that they had" others_stay
rm -r "$work/fsx/go" && touch "$work/fsx/go"
row $job "the job succeeds all the same" ends $job Succeeded
row $job "... after one restart, of the six that it may have" counted 1
row $job "the log that was followed ends with the job" wait_for 120 eval "! kill -0 $follower"
row $job "... and has what was told" grep -qE '^Epoch [0-9]+ \| Step [0-9]+ ' "$work/followed"
row $job "the log ends with the time it took" wait_for 60 says '^Elapsed time of the code block: [0-9]+\.[0-9]{4} seconds$'
row $job "... after the last epoch" wait_for 60 says '\(Epoch: 11\) ---$'
row $job "the whole model was saved" test -e "$work/fsx/checkpoints/t5-fsdp/model/model.safetensors"

check "$(guide_block training-on-eks cluster 6)" guide 6
none() { [ -z "$(kubectl get pods,services -n pytorch -l training.kubeflow.org/operator-name -o name)" ]; }
check "removes all pods and services" wait_for 180 none
tap_done
