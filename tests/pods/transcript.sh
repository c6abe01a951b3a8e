#!/bin/bash
# Records what people see while a rank, a pod and a node's kubelet are killed beside a training: `make transcript`. Each line has
# its time and where it is from: a command, `kubectl get -w`, the master's log. docs/recovery.md shows a part of one. Behind it
# a language model trains for a minute and loses a rank: docs/pytorchjob.md shows what `kubectl get -o wide` tells of it.
# shellcheck source=tests/pods/node.sh
. "$(dirname "$0")/node.sh"
# shellcheck source=tests/pods/jobs.sh
. tests/pods/jobs.sh
# shellcheck source=tests/e2e/tokens.sh
. tests/e2e/tokens.sh
job=mnist
timeline=$work/timeline
record() { # SOURCE: each line of standard input as it comes
    local line
    while IFS= read -r line; do
        printf '%s %-4s %s\n' "$(date -u +%T.%3N)" "$1" "$line" >>"$timeline"
    done
}
do_it() { # TEXT COMMAND...: which stands there as TEXT
    echo "\$ $1" | record you
    row "$job" "$@"
}
pass() { local n; for n in 0 1 2 3; do touch "$work/$job/go/mnist_cnn-$(($1 + n))steps"; done; } # beyond that checkpoint
at() { wait_for 400 compgen -G "$work/$job/*/mnist_cnn-$1steps/COMPLETE"; }                       # STEPS
kill_rank() { kill -KILL "$(victim "$(uid "$1")" rank)"; }

check "apply" apply "$job" 'workers(1) | held | containers(.args += ["--memory_every_steps=1", "--memory_buddies"])'
mkdir "$work/$job/go" && chmod 777 "$work/$job/go"
kubectl get pytorchjob -o wide -w > >(record get) &
watch=$!
row "$job" "step 4 is saved" at 4
do_it "kill -9 RANK    # of $job-worker-0" kill_rank "$job-worker-0"
pass 4
row "$job" "step 8 is saved" at 8
deleted=$(uid "$job-worker-0")
do_it "kubectl delete pod $job-worker-0" kubectl delete pod "$job-worker-0" --wait=false
row "$job" "... which its kubelet asks to end" wait_for 200 is_killed "$deleted" # while it stands still
pass 8
row "$job" "step 12 is saved" at 12
do_it "kill -9 KUBELET" cluster_stop kubelet KILL
pass 12
row "$job" "step 16 is saved without a kubelet" at 16
do_it "kubelet ..." cluster_start kubelet
rm -r "$work/$job/go" && touch "$work/$job/go"
row "$job" "the job succeeds" ends "$job" Succeeded

mkdir "$work/llm" && cp "$work/tokens.bin" "$work/llm"
check "llm: apply" apply llm 'workers(1) | containers(.args = ["--model.type=gpt2", "--hidden_size=64", "--num_hidden_layers=4", "--num_attention_heads=4",
    "--vocab_size=32", "--max_position_embeddings=64", "--max_seq_length=64", "--dataset=/workspace/checkpoints/tokens.bin", "--data.format=llmc_bin",
    "--batch_size=8", "--num_train_epochs=1000", "--lr=0.001", "--threads=1", "--save_steps=500", "--checkpoint.dir=/workspace/checkpoints/gpt2",
    "--memory_every_steps=1", "--memory_buddies"])'
told() { [ "$(kubectl get pytorchjob llm -o jsonpath='{.status.training.step}')" -gt "$1" ]; } # STEPS
row llm "steps are told" wait_for 200 told 0
do_it "kill -9 RANK    # of llm-worker-0" kill_rank llm-worker-0
row llm "the job succeeds" ends llm Succeeded
kill "$watch"
kubectl logs --timestamps "$job-master-0" | grep -v ' Configuration: \|Train Epoch' |
    sed -E 's/^[^T]*T([0-9:]*\.[0-9]{3})[0-9]*Z /\1 log  /' >>"$timeline"
sort -s -k1,1 "$timeline"
tap_done
