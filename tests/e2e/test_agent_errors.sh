#!/bin/bash
# What the agent says to wrong input: one clear line, the right exit code, no debris.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
export AGENT_RUNTIME_DEVICE=cpu # else a line says that there is no GPU
data=/usr/share/datasets/fashion-mnist
small=(--preset mnist --train_size 8 --eval_size 4 --epochs 1 --batch_size 2 --prometheus_port 0)

agent_in() { (cd "$1" && shift && exec env -u RANK -u WORLD_SIZE "$BUILD/shoal-agent" "$@"); } # FOLDER ARG...
agent() { agent_in "$work" "$@"; }
one_line() { # STATUS TEXT COMMAND...: fails with exactly one line on stderr
    fails "$@" || return 1
    shift 2
    local lines
    lines=$("$@" 2>&1 >/dev/null | wc -l)
    [ "$lines" -eq 1 ] || { echo "$lines lines on stderr"; return 1; }
}

check "unknown strategy" one_line 2 "'SOME_SHARD' is not one of: FULL_SHARD" agent --sharding_strategy SOME_SHARD
check "unknown flag names the nearest" one_line 2 "the nearest is schedule.num_train_epochs" agent --strict --num_train_epoch5 3
check "a slip of the keys" one_line 2 "unknown flag --hiden_width (the nearest is hidden_width)" agent --hiden_width 64
pets() { PET_NPROC_PER_NOD=2 agent --strict --preset mnist; }
check "a misspelt variable of torchrun" one_line 2 "PET_NPROC_PER_NOD (the nearest is PET_NPROC_PER_NODE)" pets
check "a flag near nothing" one_line 2 "unknown flag --size; --help lists all" agent --strict --size 3
check "a rank that is missing names its flag" one_line 2 "--node_rank" agent --nnodes 2
check "a beta of 1" one_line 2 "optimizer.beta1 must be below 1" agent --beta1 1
check "an empty data.root" one_line 2 "data.root is empty" agent --data.root ''
check "the version" grep -q "^shoal-agent [0-9]" <(agent --version)
mkdir "$work/pipe" && mkfifo "$work/pipe/train-images-idx3-ubyte"
check "a pipe as data" one_line 2 "train-images-idx3-ubyte" "$BUILD/shoal-agent" "${small[@]}" --data.root "$work/pipe"
check "no data: says where it looked" one_line 2 "train-images-idx3-ubyte" agent "${small[@]}" --data.root "$work/none"

# Data sets with one thing wrong each.
broken() { # NAME: a copy of the real files in $work/NAME
    mkdir -p "$work/$1" && cp "$data"/*.gz "$work/$1"
}
broken magic && printf 'hello, this is no IDX file at all' >"$work/magic/train-images-idx3-ubyte.gz"
check "a wrong magic" one_line 2 "magic" agent "${small[@]}" --data.root "$work/magic"
broken cut && head -c 100000 "$data/train-images-idx3-ubyte.gz" >"$work/cut/train-images-idx3-ubyte.gz"
check "a file cut off" one_line 2 "train-images-idx3-ubyte.gz" agent "${small[@]}" --data.root "$work/cut"
broken counts && cp "$data/t10k-labels-idx1-ubyte.gz" "$work/counts/train-labels-idx1-ubyte.gz"
check "counts that differ" one_line 2 "60000" agent "${small[@]}" --data.root "$work/counts"
broken label && { printf '\0\0\010\001\0\0\352\140'; head -c 60000 /dev/zero | tr '\0' '\012'; } >"$work/label/plain" &&
    gzip -c "$work/label/plain" >"$work/label/train-labels-idx1-ubyte.gz"
check "a label over 9" one_line 2 "label/train-labels-idx1-ubyte.gz: row 0 has label 10; labels are 0 to 9" agent "${small[@]}" --data.root "$work/label"
check "... starts no rank again" lacks <(agent "${small[@]}" --nproc_per_node 2 --max_restarts 3 --data.root "$work/label" 2>&1) "start again"

# Outputs that cannot be written are found before training; four ranks tell it once.
: >"$work/file"
mkdir "$work/folder"
port=$(free_port 20000)
few_images
four=("${small[@]}" --data.root "$data" --nproc_per_node 4 --master_port "$port")
check "a folder as the model's file" one_line 2 "folder is a directory" agent "${four[@]}" --save_model "$work/folder"
check "a model where nothing can be" one_line 2 "make directory /proc/x" agent "${four[@]}" --save_model /proc/x/m.st
check "a checkpoint directory that is a file" one_line 2 "file is not a directory" agent "${four[@]}" --checkpoint_dir "$work/file"
check "a checkpoint directory that cannot be made names it and its flags" one_line 2 \
    "checkpoint.dir (--output_dir, --checkpoint_dir, --save_path): make directory /proc/x" agent "${four[@]}" --output_dir /proc/x
check "they end before training" lacks <(agent "${four[@]}" --save_model "$work/folder" 2>&1) "First step"

# Two runs into one directory: the second is refused; what kills the first frees the directory.
lock=$work/two/.shoal-lock
two() { agent "${small[@]}" --data.root "$data" --output_dir "$work/two" "$@"; }
"$BUILD/shoal-agent" "${small[@]}" --data.root "$data" --output_dir "$work/two" --epochs 100000 --save_steps 1e12 >"$work/two.out" 2>&1 &
pid=$!
check "the first run holds its directory" wait_for 60 grep -qs "^pid=$pid$" "$lock"
check "the second is refused" fails 2 "checkpoint.dir (--output_dir, --checkpoint_dir, --save_path) is in use: process $pid on host $(hostname) writes checkpoints into $work/two" \
    two --runtime.timeout 1s
check "... the first goes on" kill -0 "$pid"
kill -9 "$pid"
wait
check "... and killed, leaves the directory to the next" two
check "no data: once" one_line 2 "train-images-idx3-ubyte" agent "${four[@]}" --data.root "$work/none"

# Few open files: rank 0 has a connection to every other, and room for some more.
few_files() { # COUNT ARG...
    local count=$1
    shift
    (ulimit -n "$count" && agent "$@")
}
check "64 open files are enough for four ranks" few_files 64 "${four[@]}"
check "30 are not, and what to do is told" one_line 2 "4 ranks need 36 open files in rank 0, which may have 30: raise the limit (ulimit -n)" \
    few_files 30 "${four[@]}"
check "8 are not enough for the launcher" fails 1 "Too many open files; raise the limit (ulimit -n)" few_files 8 "${four[@]}"

# Pods with other arguments than the master's.
pod=("${small[@]}" --data.root "$data" --nproc_per_node 1 --nnodes 2 --master_addr 127.0.0.1 --master_port "$port" --node_rank)
node() { agent "${pod[@]}" "$@"; } # RANK ARG...
unlike() {
    node 1 --lr 0.5 &
    fails 2 "optimizer.lr: rank 1 has '0.5', rank 0 has '1'; give all ranks the same" node 0 || return
    wait $!
    test $? = 2
}
check "ranks with other learning rates" unlike

# Pods whose checkpoint directory is a volume of each. The path is one, as in pods; the working directory is not.
mkdir "$work/pod-0" "$work/pod-1"
in_pod() { agent_in "$work/pod-$1" "${pod[@]}" "$@" --checkpoint_dir ck; } # RANK ARG...
apart() { # ARG...
    in_pod 1 "$@" >"$work/pod-1.out" 2>&1 &
    fails 2 "checkpoint.dir: $work/pod-1/ck on host $(hostname) is not the directory of rank 0" in_pod 0 "$@" || return
    wait $!
    test $? = 2
}
check "ranks that save into two directories" apart --sharding_strategy FULL_SHARD
check "... leave nothing there" test -z "$(find "$work/pod-0/ck" -name '*.tmp-*')"
alone() {
    in_pod 1 "$@" >"$work/pod-1.out" 2>&1 &
    in_pod 0 "$@" && wait $!
}
check "under NO_SHARD rank 0 saves alone" alone --sharding_strategy NO_SHARD

# A port in use: the first master waits for a rank that never comes, the second finds the port taken.
taken=$(free_port 26000)
master=("${small[@]}" --data.root "$data" --nproc_per_node 1 --nnodes 2 --node_rank 0 --master_addr 127.0.0.1 --master_port "$taken")
listening() { (exec 4<>"/dev/tcp/127.0.0.1/$taken") 2>/dev/null; }
env -u RANK -u WORLD_SIZE "$BUILD/shoal-agent" "${master[@]}" --join_timeout 600 >/dev/null 2>&1 & # itself, to be killed
first=$!
check "a master listens" wait_for 120 listening
check "a port in use" fails 2 "--master_port; torchrun: --rdzv_endpoint, or --standalone for a free port; accelerate: --main_process_port, 0 for a free port): listen on 127.0.0.1: port $taken is in use" agent "${master[@]}" --join_timeout 60
kill "$first"
wait "$first"
check "... until it ends" eval '! listening'

# The first process of a container has no default actions: it ends by SIGTERM all the same while it waits for others.
first_process() {
    unshare --pid --fork --mount-proc env -u RANK -u WORLD_SIZE "$BUILD/shoal-agent" "${master[@]}" --join_timeout 600 >/dev/null 2>&1 &
    local unshare=$! agent
    wait_for 120 listening || return
    agent=$(pgrep -P "$unshare") && kill -TERM "$agent" && wait "$unshare"
    test $? = 143
}
if unshare --pid --fork --mount-proc true 2>/dev/null; then
    check "the first process of a container can be asked to end" first_process
else
    skip "the first process of a container can be asked to end" "needs root, for a PID namespace"
fi

# Checkpoints.
check "a run with a checkpoint" agent "${small[@]}" --data.root "$data" --checkpoint_dir "$work/ck"
ck=$(dirname "$(find "$work/ck" -name COMPLETE | head -n 1)")
cp -r "$ck" "$work/bare" && rm "$work/bare/COMPLETE"
check "a checkpoint without its manifest" one_line 2 "COMPLETE" \
    agent "${small[@]}" --data.root "$data" --resume_from_checkpoint "$work/bare"
cp -r "$ck" "$work/flipped"
file=$(find "$work/flipped" -name '*.safetensors' | sort | head -n 1)
printf '\377' | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 5)) conv=notrunc status=none
check "a checkpoint with a flipped bit" one_line 2 "$(basename "$file")" \
    agent "${small[@]}" --data.root "$data" --resume_from_checkpoint "$work/flipped"

# Lines that nobody can read are no reason to end a training, and none to be silent.
unread() { { agent "$@" >/dev/full; } 2>&1; }
check "a full disk behind the output" fails 0 "standard output: No space left on device: what is printed is lost" \
    unread "${small[@]}" --data.root "$data" --save_model "$work/unread.safetensors"
check "... is told once" test "$(grep -c "No space left" <(unread "${small[@]}" --data.root "$data"))" -eq 1
check "... and the model is there" test -s "$work/unread.safetensors"
rm -f "$work/unread.safetensors"
check "a launcher tells it of its ranks" fails 0 "local rank 0: its stdout is lost: No space left on device" \
    unread "${small[@]}" --data.root "$data" --tee 1

# A full disk: a small file system of its own, where we may mount one.
mkdir "$work/full"
if mount -t tmpfs -o size=3m none "$work/full" 2>/dev/null; then
    check "a full disk at the end" fails 1 "No space left" agent "${four[@]}" --checkpoint_dir "$work/full/ck"
    agent "${four[@]}" --checkpoint_dir "$work/full/ck" >"$work/full.out" 2>&1
    check "a save that may be tried again is told and the run goes on" grep -q "No space left.*the training goes on without it" "$work/full.out"
    check "each failed save is told once" test "$(grep -c "No space left" "$work/full.out")" -eq 2
    check "a full disk leaves no debris" bash -c "! find '$work/full' -name '*.safetensors' | grep ."
    umount "$work/full"
else
    skip "a full disk while saving" "needs root to mount a file system"
fi
check "no debris" bash -c "! ls '$work'/*.safetensors 2>/dev/null"

mkdir "$work/texts" && seq -f '{"text": "the quick brown fox %g jumps over the lazy dog"}' 20 >"$work/texts/train.jsonl"
joins() { # TOKENIZER: the notice of a run that packs documents with it
    shoal-agent --no_cuda --prometheus_port 0 --model_type llama --hidden_size 32 --num_hidden_layers 1 --num_attention_heads 2 \
        --intermediate_size 64 --vocab_size 1000 --max_position_embeddings 16 --dataset "$work/texts" --tokenizer "tests/data/tokenizers/$1" \
        --max_steps 1 --eval_strategy no 2>&1
}
check "documents that nothing parts are told" fails 0 "the tokenizer has no eos" joins split_next
check "... where an eos parts them, nothing is" lacks <(joins gpt2) "no eos"
tap_done
