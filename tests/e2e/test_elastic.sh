#!/bin/bash
# Elastic runs: launchers that are killed for good, asked to end and started again; the others go on without them and with them.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
few_images
check "a run can be held" gcc -D_GNU_SOURCE -shared -fPIC -o "$work/hold.so" tests/e2e/hold.c -ldl

trains=(--preset=mnist --data.root="$data" --train_size=48 --eval_size=16 --batch_size=1 --epochs=2 --prometheus_port=0 --save_steps=3)

# node NAME NUMBER [VARIABLE=VALUE...]: becomes the launcher of one of the workers of an elastic job, with the operator's variables.
node() {
    local name=$1
    exec env PET_RDZV_ENDPOINT="127.0.0.1:$port" PET_RDZV_BACKEND=c10d PET_NNODES=2:3 PET_NPROC_PER_NODE=1 POD_NAME="$name-worker-$2" \
        SHOAL_NNODES=3 SHOAL_SHRINK_AFTER=1000 SHOAL_RESTART_COUNT=0 SHOAL_RUN_ID="$name" "${@:3}" \
        shoal-agent "${trains[@]}" --checkpoint_dir="$work/$name/ck" --save-model="$work/$name/model.safetensors" >>"$work/$name/log$2" 2>&1
}
hold() { # NAME: prints the variables with which it stands still after each checkpoint until let go
    mkdir -p "$work/$1/go"
    printf '%s\n' "LD_PRELOAD=$work/hold.so" "HOLD_UNTIL=$work/$1/go" "ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0"
}
nodes=()
meet() { # NAME: has a place to meet
    port=$(free_port 22000)
    mkdir -p "$work/$1"
}
start() { # NAME [VARIABLE=VALUE...]: three, as ${nodes[@]}
    meet "$1"
    for number in 0 1 2; do
        node "$1" "$number" "${@:2}" & nodes[number]=$!
    done
}
end() { # waits for all three; their exit codes in $ended
    ended=
    for number in 0 1 2; do
        wait "${nodes[number]}"
        ended="$ended $?"
    done
}
with() { [ "$ended" = " ${*:2}" ] || { echo "they left with$ended"; tail -n 20 "$work/$1"/log?; return 1; }; } # NAME STATUS...
committed() { compgen -G "$work/$1/ck/*-$2steps" >/dev/null; }
let_go() { # NAME STEP...: beyond these checkpoints
    local step
    for step in "${@:2}"; do
        touch "$work/$1/go/mnist_cnn-${step}steps"
    done
}
let_end() { rm -r "$work/$1/go" && touch "$work/$1/go"; }
twice() { [ "$(grep -c -- "$3" "$work/$1/log$2")" = 2 ]; } # NAME NUMBER TEXT
same() { cmp "$work/calm/model.safetensors" "$work/$1/model.safetensors"; }
says() { contains "$work/$1/log$2" "$3"; }

few_slots() {
    PET_RDZV_ENDPOINT=localhost:23456 PET_NNODES=2:3 PET_NODE_RANK=0 shoal-agent --preset=mnist --data.root="$data" --parallel.reduction_slots=1
}
check "fewer slots than ranks are refused" fails 2 "parallel.reduction_slots: 1 slots for at least 2 nodes of 1 ranks: give at least 2" few_slots

start calm
end
check "three nodes" with calm 0 0 0
check "... have nothing to say" lacks "$work/calm/log0" "shoal-agent: "
check "... but that a step's samples stay, whoever comes or goes" says calm 0 "parallel.reduction_slots=3: this elastic run computes as on so many ranks"

# The slots of a checkpoint hold as the key does: three are those of one node of two ranks. Two nodes would begin with four.
saved() { # NODE LEAST: becomes the launcher of one of LEAST to three such nodes
    node saved "$1" "${held[@]}" PET_NNODES="$2:3" PET_NPROC_PER_NODE=2 SHOAL_NNODES=2 \
        AGENT_CHECKPOINT_RESUME_FROM_CHECKPOINT="$work/calm/ck/mnist_cnn-24steps"
}
mapfile -t held < <(hold saved)
meet saved
saved 0 2 & wait $!
check "a checkpoint of fewer slots than two nodes have ranks is refused" test $? -eq 2
check "... which says why" says saved 0 "the checkpoint: parallel.reduction_slots: 3 slots for at least 2 nodes of 2 ranks: give at least 4"
saved 0 1 & nodes[0]=$!
saved 1 1 & nodes[1]=$!
check "of a checkpoint's slots one node trains" wait_for 200 committed saved 27
check "... the other waits" wait_for 200 says saved 1 "1 node trains, and no more may: this one is in reserve"
let_end saved
wait "${nodes[0]}"
check "... to the end" test $? -eq 0
wait "${nodes[1]}"
check "... for nothing" test $? -eq 0
check "... as it says" says saved 1 "the run has come to its end without this node"
check "... with the calm run's weights" same saved

# The second comes late for certain, as none waits a second for a slow one.
mapfile -t held < <(hold lost)
held+=(SHOAL_SHRINK_AFTER=1)
meet lost
node lost 0 "${held[@]}" & nodes[0]=$!
node lost 2 "${held[@]}" & nodes[2]=$!
check "two of three nodes begin" wait_for 200 committed lost 3
node lost 1 "${held[@]}" & nodes[1]=$!
check "... the other comes" wait_for 200 says lost 0 "more nodes are here: all local ranks end with a step, to start again"
let_go lost 3 6 9 10 # image models look every ten steps whether they are to end
check "... and goes on with them" wait_for 200 says lost 0 "3 nodes instead of 2: node 1 (lost-worker-1) joined; 3 ranks"
check "... to the next checkpoint" wait_for 200 committed lost 12
check "the third launcher is killed" kill -KILL "${nodes[2]}"
let_go lost 12
check "... the others go on without it" wait_for 200 says lost 0 "2 nodes instead of 3: node 2 (lost-worker-2) was lost and not back within"
check "... and save" wait_for 200 committed lost 15
wait "${nodes[2]}"
node lost 2 "${held[@]}" & nodes[2]=$!
check "it comes back" wait_for 200 twice lost 0 "more nodes are here: all local ranks end with a step, to start again"
let_end lost
end
check "all end as if nothing had happened" with lost 0 0 0
check "... with three nodes" says lost 0 "3 nodes instead of 2: node 2 (lost-worker-2) joined; 3 ranks"
check "... with the calm run's weights" same lost
check "... from what the two had in memory, both times" twice lost 0 "^Resumed at step .* from memory of 2 ranks (0 steps lost)"
check "... at the cost of no restart" lacks "$work/lost/log0" " of 3 times"

# kubectl scale takes the pod with the highest number away, and brings it again.
mapfile -t held < <(hold scaled)
start scaled "${held[@]}" AGENT_CHECKPOINT_MEMORY_BUDDIES=true
check "a checkpoint appears before the job is scaled down" wait_for 200 committed scaled 3
kill_rank() { pkill -KILL -n -P "$1"; } # LAUNCHER: the youngest of its own
check "a rank of the second is killed" kill_rank "${nodes[1]}"
let_go scaled 3
check "... it costs a restart" wait_for 200 says scaled 0 "all local ranks start again, 1 of 3 times"
check "... another checkpoint appears" wait_for 200 committed scaled 6
check "the third is asked to end" kill -TERM "${nodes[2]}"
let_end scaled
end
check "... and the others go on at once" with scaled 0 0 143
check "... which is told" says scaled 0 "2 nodes instead of 3: node 2 (scaled-worker-2) was asked to end; 2 ranks"
check "... with the calm run's weights" same scaled
check "... from the memory of all three" grep -q "^Resumed at step .* from memory of 3 ranks (0 steps lost)" "$work/scaled/log0"
check "... for nothing" lacks "$work/scaled/log0" "2 of 3 times"

# They meet at node 0's: it is waited for.
mapfile -t held < <(hold first)
start first "${held[@]}"
check "a checkpoint appears before the first launcher is killed" wait_for 200 committed first 3
check "it is killed" kill -KILL "${nodes[0]}"
check "... and missed" wait_for 200 says first 1 "node 0 is lost"
wait "${nodes[0]}"
let_end first
node first 0 & nodes[0]=$!
end
check "it comes back, and all end as if nothing had happened" with first 0 0 0
check "... with the calm run's weights" same first
check "... at the cost of no restart to the others" lacks "$work/first/log1" " of 3 times"

# By hand, with torchrun's flags, and nobody who names the run: the one that is left alone knows it all the same.
by_hand() { # NUMBER
    exec env "${held[@]}" shoal-agent "${trains[@]}" --nnodes=1:2 --nproc_per_node=1 --rdzv_backend=c10d --rdzv_endpoint="127.0.0.1:$port" \
        --node_rank="$1" --checkpoint_dir="$work/hand/ck" >>"$work/hand/log$1" 2>&1
}
mapfile -t held < <(hold hand)
meet hand
by_hand 0 & nodes[0]=$!
by_hand 1 & nodes[1]=$!
check "two nodes by torchrun's flags" wait_for 200 committed hand 3
check "... of which one is asked to end" kill -TERM "${nodes[1]}"
let_end hand
wait "${nodes[0]}"
check "... the other goes on" test $? -eq 0
wait "${nodes[1]}"
check "... by itself" grep -E "1 node instead of 2: node 1 \(.*\) was asked to end" "$work/hand/log0"
check "... from where they were" grep -E "^Resumed at step [0-9]+ .*\(0 steps lost\)" "$work/hand/log0"
check "... as the run that has saved" lacks "$work/hand/log0" "starts anew"
tap_done
