#!/bin/bash
# Ranks that are killed go on from memory that their launcher holds, without any checkpoint on disk: the run ends with the
# weights of one that nobody disturbed.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
few_images
ln -s "$BUILD/shoal-agent" "$work/torchrun"
PATH=$work:$PATH
RANDOM=20261123 # the seed of who is killed and when

run() { # NAME FLAGS...: two ranks, some hundred steps over two epochs
    local name=$1
    shift
    exec torchrun --standalone --nproc_per_node=2 --max_restarts=12 FSDP_mnist.py --data.root="$data" --train_size=2048 \
        --eval_size=64 --epochs=2 --batch_size=16 --device=cpu --prometheus_port=0 --save_model="$work/$name.safetensors" "$@" >"$work/$name" 2>&1
}
attempt() { tac "$work/$1" | sed '/start again/q'; } # NAME: the last one's lines
starts_again() { [ "$(grep -c 'start again' "$work/$1")" -ge "$2" ] || ! kill -0 "$3"; } # NAME TIMES LAUNCHER
is_training() { grep -q 'First step done' < <(attempt "$1") || ! kill -0 "$2"; } # NAME LAUNCHER
has_ranks() { mapfile -t ranks < <(pgrep -P "$1") && [ "${#ranks[@]}" -eq 2 ] || ! kill -0 "$1"; } # LAUNCHER

# killed NAME KILLS FLAGS...: one of two ranks is killed, again and again: in the middle of whatever it does, and each third
# time before it has begun.
killed() {
    local name=$1 times=$2 i launcher
    shift 2
    run "$name" "$@" &
    launcher=$!
    for ((i = 0; i < times; i++)); do
        wait_for 300 starts_again "$name" "$i" "$launcher" && wait_for 300 has_ranks "$launcher" || return 1
        [ $((i % 3)) -eq 2 ] || wait_for 300 is_training "$name" "$launcher" || return 1
        sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
        has_ranks "$launcher"
        kill -KILL "${ranks[$((RANDOM % 2))]}" || break # the run was faster
    done
    wait "$launcher" || { cat "$work/$name"; return 1; }
    [ "$i" -ge 3 ] || { echo "only $i kills"; return 1; }
}
same() { cmp "$work/calm.safetensors" "$work/$1.safetensors"; }
lost_at_most() { # NAME STEPS: at each start that went on from memory
    grep '^Resumed at step [0-9]* from memory ([0-9]* steps\? lost)$' "$work/$1" || return 1
    # shellcheck disable=SC2016 # awk's
    answers_no awk -F'[( ]' -v most="$2" '/^Resumed/ && $8 > most { wrong = 1 } END { exit !wrong }' "$work/$1"
}

undisturbed() { (run calm --memory_every_steps=0); }
check "the run that nobody disturbs" undisturbed
for every in 1 3 auto; do
    check "ranks are killed, a snapshot each $every" killed "every-$every" 4 --memory_every_steps=$every
    check "... the weights are those of the undisturbed run" same "every-$every"
done
check "at most the step in flight is lost" lost_at_most every-1 1
check "... or the two before it" lost_at_most every-3 3
check "nothing is lost without a word" lacks "$work/every-1" "passed over"

# a language model, whose lines are another program's
# shellcheck source=tests/e2e/tokens.sh
. tests/e2e/tokens.sh
shoal-agent --standalone --nproc_per_node=2 --max_restarts=1 --model.name_or_path tests/data/pretrained/llama_sharded \
    --data.dataset "$work/tokens.bin" --data.format llmc_bin --max_seq_length 16 --train_batch_size 2 --num_train_epochs 1000000 --eval_strategy no \
    --logging_steps 1 --device cpu --prometheus_port 0 --memory_every_steps=1 >"$work/llama" 2>&1 &
launcher=$!
makes_steps() { attempt llama | grep -q "Step 3/"; }
check "a language model makes steps" wait_for 300 makes_steps
has_ranks "$launcher" && kill -KILL "${ranks[1]}"
check "... goes on from memory, which a line says" wait_for 300 lost_at_most llama 1
kill -TERM "$launcher"
wait "$launcher"
check "... and stops as ever" test $? -eq 143
tap_done
