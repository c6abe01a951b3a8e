#!/bin/bash
# Ranks that are killed go on from memory that their launcher holds, without any checkpoint on disk: the run ends with the
# weights of one that nobody disturbed.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
few_images
ln -s "$BUILD/shoal-agent" "$work/torchrun"
PATH=$work:$PATH
RANDOM=20261123 # the seed of who is killed and when

run() { # NAME EPOCHS FLAGS...: two ranks, 20 steps an epoch
    local name=$1 epochs=$2
    shift 2
    exec torchrun --standalone --nproc_per_node=2 --max_restarts=12 FSDP_mnist.py --data.root="$data" --train_size=160 \
        --eval_size=16 --epochs="$epochs" --batch_size=4 --device=cpu --prometheus_port=0 --save_model="$work/$name.safetensors" "$@" >"$work/$name" 2>&1
}
# memory LAUNCHER: the memory that it holds for its first rank; its fourth number is the last step that the rank has done.
memory() { find "/proc/$1/fd" -lname '/memfd:shoal-rank-0*' 2>/dev/null; }
has_done() { [ "$(od -An -t d8 -j 24 -N 8 "$(memory "$1")" 2>/dev/null || echo -1)" -ge "$2" ] || ! kill -0 "$1"; } # LAUNCHER STEP
starts_again() { [ "$(grep -c 'start again' "$work/$1")" -ge "$2" ] || ! kill -0 "$3"; } # NAME TIMES LAUNCHER
has_ranks() { mapfile -t ranks < <(pgrep -P "$1") && [ "${#ranks[@]}" -eq 2 ] || ! kill -0 "$1"; } # LAUNCHER

# disturbed WHAT NAME ...: WHAT disturbs the run NAME of $epochs epochs, and leaves with 3 if the run was over before: a busy
# machine may see that late. Then it is tried with more epochs.
disturbed() {
    local epochs status
    for epochs in 2 6 18 54; do
        status=0
        "$@" || status=$?
        echo "$epochs" >"$work/$2.epochs"
        [ "$status" -eq 3 ] || return "$status"
    done
}

# killed NAME FLAGS...: one of two ranks is killed, three times: in the middle of whatever it does, and then before it has begun.
killed() {
    local name=$1 i launcher faster=0
    run "$name" "$epochs" "${@:2}" &
    launcher=$!
    for i in 1 2 3; do
        wait_for 300 starts_again "$name" $((i - 1)) "$launcher" && wait_for 300 has_ranks "$launcher" || return 1
        [ "$i" -eq 3 ] || wait_for 300 has_done "$launcher" $((8 * i)) || return 1
        sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
        has_ranks "$launcher"
        if [ "${#ranks[@]}" -ne 2 ] || ! kill -KILL "${ranks[RANDOM % 2]}"; then
            faster=3
            break
        fi
    done
    wait "$launcher" || { cat "$work/$name"; return 1; }
    return "$faster"
}
calm() { # EPOCHS: trained once
    [ -e "$work/calm-$1.safetensors" ] || (run "calm-$1" "$1" --memory_every_steps=0)
}
same() { # NAME: as the run that nobody disturbs
    local epochs
    read -r epochs <"$work/$1.epochs" && calm "$epochs" && cmp "$work/calm-$epochs.safetensors" "$work/$1.safetensors"
}
lost_at_most() { # NAME STEPS: at each start that went on from memory
    grep '^Resumed at step [0-9]* from memory ([0-9]* steps\? lost)$' "$work/$1" || return 1
    # shellcheck disable=SC2016 # awk's
    answers_no awk -F'[( ]' -v most="$2" '/^Resumed/ && $8 > most { wrong = 1 } END { exit !wrong }' "$work/$1"
}

check "the run that nobody disturbs" calm 2
for every in 1 3 auto; do
    check "ranks are killed, a snapshot each $every" disturbed killed "every-$every" --memory_every_steps=$every
    check "... the weights are those of the undisturbed run" same "every-$every"
done
check "at most the step in flight is lost" lost_at_most every-1 1
check "... or the two before it" lost_at_most every-3 3
check "nothing is lost without a word" lacks "$work/every-1" "passed over"

# a language model, whose lines are another program's
# shellcheck source=tests/e2e/tokens.sh
. tests/e2e/tokens.sh
# a port that another process of the machine takes meanwhile costs a restart, too
shoal-agent --standalone --nproc_per_node=2 --max_restarts=12 --model.name_or_path tests/data/pretrained/llama_sharded \
    --data.dataset "$work/tokens.bin" --data.format llmc_bin --max_seq_length 16 --train_batch_size 2 --num_train_epochs 1000000 --eval_strategy no \
    --logging_steps 1 --device cpu --prometheus_port 0 --memory_every_steps=1 >"$work/llama" 2>&1 &
launcher=$!
check "a language model makes steps" wait_for 300 has_done "$launcher" 3
wait_for 300 has_ranks "$launcher" && kill -KILL "${ranks[1]}"
check "... goes on from memory, which a line says" wait_for 300 lost_at_most llama 1
kill -TERM "$launcher"
wait "$launcher"
check "... and stops as ever" test $? -eq 143

# Four pods on two nodes. One node is lost with the memory of both its pods, which are made again on a third one: their ranks
# get their snapshots from the first.
pod() { # NAME NUMBER NODE FLAGS...: $epochs epochs; becomes the launcher of a pod, with the operator's variables
    exec env MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" WORLD_SIZE=4 RANK="$2" PET_NODE_RANK="$2" PET_NNODES=4 PET_NPROC_PER_NODE=1 \
        NODE_NAME="$3" SHOAL_RESTART_COUNT=0 SHOAL_RUN_ID="$1" shoal-agent --preset=mnist --data.root="$data" --train_size=160 --eval_size=16 \
        --batch_size=2 --epochs="$epochs" --device=cpu --prometheus_port=0 --save_model="$work/$1.safetensors" "${@:4}" >>"$work/$1.$2" 2>&1
}
pods() { # NAME FLAGS...: all, in $launchers
    local number nodes=(a a b b)
    port=$(free_port 21000)
    for number in 0 1 2 3; do
        pod "$1" "$number" "node-${nodes[number]}" "${@:2}" & launchers[number]=$!
    done
}
all_done() { # NAME
    local launcher ended=0
    for launcher in "${launchers[@]}"; do
        wait "$launcher" || ended=$?
    done
    [ "$ended" -eq 0 ] || { echo "one left with $ended"; tail -n 20 "$work/$1".[0-3]; return 1; }
}
calm_pods() {
    [ -e "$work/calm-pods-$epochs.safetensors" ] || { pods "calm-pods-$epochs" --memory_every_steps=0 && all_done "calm-pods-$epochs"; }
}
lost_node() { # NAME
    local keeps=(--memory_every_steps=1 --memory_buddies) number
    rm -f "$work/$1".[0-3] # of fewer epochs
    pods "$1" "${keeps[@]}"
    wait_for 300 has_done "${launchers[0]}" 12
    if ! kill -0 "${launchers[0]}" || ! kill -KILL "${launchers[2]}" "${launchers[3]}"; then
        all_done "$1" && return 3
        return 1
    fi
    wait "${launchers[2]}" "${launchers[3]}"
    for number in 2 3; do
        pod "$1" "$number" node-c "${keeps[@]}" & launchers[number]=$!
    done
    all_done "$1"
}
check "four pods on two nodes, one of which is lost: its pods are made again" disturbed lost_node lost-node
check "... they had kept the snapshots of those on the other node" grep "0 (node node-a) + 2 (node node-b), 1 (node node-a) + 3 (node node-b)$" "$work/lost-node.0"
check "... their ranks go on from the other node's memory" grep "^Resumed at step [0-9]* from memory, for 2 ranks a buddy's ([01] steps\? lost)$" "$work/lost-node.0"
read -r epochs <"$work/lost-node.epochs"
check "four pods that nobody disturbs" calm_pods
check "... end with the same weights" cmp "$work/calm-pods-$epochs.safetensors" "$work/lost-node.safetensors"
tap_done
