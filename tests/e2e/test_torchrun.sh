#!/bin/bash
# The command lines of manifests: the agent under the name of torchrun, and the arguments of the overlays.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/aws.sh
. tests/e2e/aws.sh
few_images
mnist=(--data.root="$data" --train_size=16 --eval_size=4 --epochs=1 --batch_size=2)
ln -s "$BUILD/shoal-agent" "$work/torchrun"
ln -s "$BUILD/shoal-agent" "$work/python3"
PATH=$work:$PATH

trains() { "$@" "${mnist[@]}" >"$work/out" 2>&1 || { tail "$work/out"; return 1; }; }
check "torchrun trains two ranks" trains torchrun --standalone --nproc_per_node=2 FSDP_mnist.py
check "... and names the meeting place in a line of its own" grep -qx '  master_addr=127.0.0.1' "$work/out"
check "... as the tutorial prints it" grep -q '^Test set: Average loss: ' "$work/out"
check "tee names the ranks, at a free port as PyTorch asks for it" trains shoal-agent torchrun --rdzv-backend=c10d --rdzv-endpoint=localhost:0 --nnodes=1 --nproc-per-node 2 -t 3 --log_dir="$work/logs" DDP_mnist.py
check "... before each line" grep -q '^\[default0\]:Test set: ' "$work/out"
check "... and keeps the lines in files" grep -q '^Test set: ' "$work/logs/none/attempt_0/0/stdout.log"
check "... as the document's DDP" grep -qE '^DistributedDataParallel\($' "$work/logs/none/attempt_0/0/stdout.log"
check "... with the seconds as Python has them" grep -qE '^CPU elapsed time on training loop [0-9]+\.[0-9]{7,}sec$' "$work/logs/none/attempt_0/0/stdout.log"
check "python runs the tutorial too" trains python3 mnist-ddp.py

mkdir "$work/edited"
sed 's/model = FSDP(model)/model = FSDP(model, fsdp_auto_wrap_policy=my_auto_wrap_policy, cpu_offload=CPUOffload(offload_params=True))/' \
    tests/data/tutorial/FSDP_mnist.py >"$work/edited/FSDP_mnist.py"
check "an edited script" trains torchrun --standalone --nproc_per_node=2 "$work/edited/FSDP_mnist.py"
check "... is told to be none" contains "$work/out" "info $work/edited/FSDP_mnist.py is not run: preset mnist-fsdp stands in for it"
check "... nor its policy" contains "$work/out" "say --auto_wrap_policy SIZE_BASED_WRAP --min_num_params 100"
check "... nor its offload" contains "$work/out" "which is not read: say --cpu_offload"
sed 's/dataset1 = datasets.MNIST/dataset1 = datasets.CIFAR10/' tests/data/tutorial/FSDP_mnist.py >"$work/edited/FSDP_mnist.py"
check "a script of other data" fails 2 "FSDP_mnist.py has CIFAR10 in line " torchrun --standalone "$work/edited/FSDP_mnist.py"
check "a wrong value ends before any work" fails 2 "--lr: 'x' is not a number" torchrun --standalone FSDP_mnist.py --lr x
other_model() { (cd "$work" && torchrun train.py --head masked_lm); }
check "a head that the preset's model has not" fails 2 "model.head: masked_lm is not for a llama model" other_model
first_says() { other_model 2>&1 | head -n 1 | grep -q "info train.py .there is no such file here. is not run: preset hyperpod .* a Llama"; }
check "... behind whose place is taken" first_says
mkfifo "$work/train.py"
check "a FIFO for a script is not waited for" fails 2 "train.py is not a regular file" torchrun "$work/train.py"
rm "$work/train.py"
check "a script nobody knows" fails 2 "it knows train.py FSDP_mnist.py DDP_mnist.py mnist-ddp.py t5-fsdp.py" torchrun model.py
check "a model that is not there" fails 2 "google-t5/t5-small" torchrun t5-fsdp.py
check "no data: reported with rank, process and code" fails 2 "exit code 2" \
    torchrun --standalone --max_restarts=3 FSDP_mnist.py --data.root=/nonexistent
diverge() {
    torchrun --standalone --nproc_per_node=2 --max_restarts=3 FSDP_mnist.py "${mnist[@]}" --optim=sgd --lr=1e6 --epochs=4 --nan_policy=abort \
        --prometheus_port=0 >"$work/diverged" 2>&1 || { local code=$?; cat "$work/diverged"; return "$code"; }
}
check "NaN: reported likewise" fails 1 "the gradient's norm is no number" diverge
check "... and not tried again" lacks "$work/diverged" "start again"

port=$(free_port 21000)
# Two nodes of two ranks on this machine. A rank of the second is killed: all four start again, and go on.
node() { # RANK
    torchrun --nnodes=2 --node_rank="$1" --nproc_per_node=2 --master_addr=127.0.0.1 --master_port="$port" \
        --max_restarts=1 FSDP_mnist.py "${mnist[@]}" --train_size=64 --epochs=10 --batch_size=16 --checkpoint.dir="$work/ck" --save_steps=2 \
        --prometheus_port=0 >"$work/node$1" 2>&1
}
two_ranks() { mapfile -t ranks < <(pgrep -P "$(pgrep -P "$1")") && [ "${#ranks[@]}" -eq 2 ]; } # NODE
kill_one_rank() {
    local first second
    node 0 & first=$!
    node 1 & second=$!
    wait_for 200 two_ranks "$second" || return 1
    wait_for 200 test -e "$work/ck/mnist_cnn-2steps" || return 1
    kill -KILL "${ranks[1]}" # at once: on a busy machine the run may soon be over
    wait "$first" || { cat "$work/node0"; return 1; }
    wait "$second" || { cat "$work/node1"; return 1; }
}
check "a rank that is killed does not end the run" kill_one_rank
check "... its end is told" grep -qE 'rank [23] \(local rank [01], pid [0-9]+\) on .* failed at .*: signal 9' "$work/node1"
check "... as is the new start" contains "$work/node1" "all local ranks start again, 1 of 1 times"
check "... that of the others, too" contains "$work/node0" "all local ranks start again, 1 of 1 times"
check "... which goes on from the checkpoint" grep -q "^Resumed at step " "$work/node0"

# The job of AWS's sample with small sizes: elastic workers without a master, on a mirror of C4 and a cache of the hub.
# As upstream has it, it names no folder to work in: its ./checkpoints lie where the job is started.
aws=$work/aws
aws_place "$aws" || exit
mkdir -p "$aws/checkpoints/llama_v3-9steps"
sed "s|HERE|$aws|" tests/data/adt/llama-fsdp.yaml >"$aws/job.yaml"
run_aws() { (cd "$aws" && shoal run -f "$aws/job.yaml" --log-dir "$aws/logs" --progress never) >"$aws/out" 2>&1 || { cat "$aws/out"; return 1; }; }
check "the job of AWS's sample trains" run_aws
check "... on four ranks" contains "$aws/out" "4 ranks on 2 nodes, master_addr=127.0.0.1"
check "... with a leader to be found" grep -qx '  master_addr=127.0.0.1' "$aws/logs/llama-fsdp/llama-fsdp-worker-0.log"
check "... its steps told as the sample tells them" grep -q 'Loss: ' "$aws/logs/llama-fsdp/llama-fsdp-worker-0.log"
check "... and what has no manifest is passed over, in its words" contains "$aws/logs/llama-fsdp/llama-fsdp-worker-0.log" \
    "checkpoints/llama_v3-9steps/.metadata not found. Skipping this incomplete checkpoint"
check "... into checkpoints of its names" test -d "$aws/checkpoints/llama_v3-4steps"
check "... and without its token in the log" lacks "$aws/out" "hf_never_told"

# The overlays' arguments, less what only their volume has.
plan() { # OVERLAY: what --dry_run says of its arguments
    mapfile -t arguments < <(sed -n 's/^ *- \(--[^ ]*\).*/\1/p' "kustomize/overlays/$1/pytorchjob.yaml")
    shoal-agent "${arguments[@]}" --data.tokenizer= --strict --dry_run
}
check "overlay llama3-1b" fails 0 "1235814400 parameters in 17 units" plan llama3-1b
check "overlay llama3-8b" fails 0 "8030261248 parameters in 35 units" plan llama3-8b
check "overlay llama-single-gpu" fails 0 "172508160 parameters in 11 units" plan llama-single-gpu
check "overlay gpt2" fails 0 "124439808 parameters in 13 units" plan gpt2
check "overlay mnist" fails 0 "1199882 parameters in 1 unit" plan mnist
tap_done
