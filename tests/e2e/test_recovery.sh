#!/bin/bash
# Ranks that are killed while their launchers live on: the launchers start them again, in the same two processes throughout, and
# the run ends with the weights of one that nothing happened to.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
few_images
check "a run can be held" gcc -D_GNU_SOURCE -shared -fPIC -o "$work/hold.so" tests/e2e/hold.c -ldl

# node NAME NUMBER [VARIABLE=VALUE...]: becomes the launcher of one of two pods of two ranks, with the operator's variables.
node() {
    local name=$1
    exec env MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" WORLD_SIZE=4 RANK="$2" PET_NODE_RANK="$2" PET_NNODES=2 PET_NPROC_PER_NODE=2 \
        SHOAL_RESTART_COUNT=0 SHOAL_RUN_ID="$name" "${@:3}" shoal-agent --preset=mnist --data.root="$data" --train_size=64 \
        --eval_size=16 --batch_size=2 --epochs=2 --prometheus_port=0 --checkpoint_dir="$work/$name/ck" --save_steps=3 \
        --save-model="$work/$name/model.safetensors" >"$work/$name/log$2" 2>&1
}
hold() { # NAME: prints the variables with which it stands still after each checkpoint until let go
    mkdir -p "$work/$1/go"
    printf '%s\n' "LD_PRELOAD=$work/hold.so" "HOLD_UNTIL=$work/$1/go" "ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0"
}
start() { # NAME [VARIABLE=VALUE...]: both, as $first and $second; the second with $behind as well
    port=$(free_port 21000)
    mkdir -p "$work/$1"
    node "$1" 0 "${@:2}" & first=$!
    node "$1" 1 "${@:2}" ${behind:+"$behind"} & second=$!
}
end() { # waits for both; their exit codes in $ended
    wait "$first"
    ended=$?
    wait "$second"
    ended="$ended $?"
}
with() { [ "$ended" = "$2 $3" ] || { echo "they left with $ended"; tail "$work/$1"/log?; return 1; }; } # NAME STATUS STATUS
committed() { test -e "$work/$1/ck/mnist_cnn-$2steps"; }
let_go() { touch "$work/$1/go/mnist_cnn-$2steps"; } # beyond that checkpoint
let_end() { rm -r "$work/$1/go" && touch "$work/$1/go"; }
kill_rank() { pkill -KILL -n -P "$1"; } # LAUNCHER: the youngest of its own
same() { cmp "$work/calm/model.safetensors" "$work/$1/model.safetensors"; }
lost_peers() { [ "$(grep -c "a peer was lost" "$work/$1/log0")" = $(($2 / 3)) ]; } # NAME STEP: as often as at that checkpoint
says() { contains "$work/$1/log$2" "$3"; }

start calm
end
check "two launchers of two ranks" with calm 0 0
check "... have nothing to say" lacks "$work/calm/log0" "shoal-agent: "

mapfile -t held < <(hold twice)
behind=CLOCK_AHEAD_S=-600000000 start twice "${held[@]}" # 19 years
check "a checkpoint appears" wait_for 200 committed twice 3
check "a rank of the second is killed" kill_rank "$second"
let_go twice 3
check "... another checkpoint appears" wait_for 200 committed twice 6
check "a rank of the first is killed" kill_rank "$first"
let_go twice 6
check "... the next checkpoint appears" wait_for 200 committed twice 9
check "the launchers are those of before" kill -0 "$first" "$second"
let_end twice
end
check "they end as if nothing had happened" with twice 0 0
check "... after two new starts" says twice 0 "all local ranks start again, 2 of 3 times"
check "... both of them" says twice 1 "all local ranks start again, 2 of 3 times"
check "... from the last checkpoints" grep -q "^Resumed at step 6 from " "$work/twice/log0"
check "... with the calm run's weights" same twice
check "... though the second's clock is behind the first's" grep -q "failed at 20[01]" "$work/twice/log1"

# Two at once, and another while they start again: before they meet, while they do, or in their first steps.
mapfile -t held < <(hold more)
start more "${held[@]}"
check "a checkpoint appears before two ranks are killed" wait_for 200 committed more 3
mapfile -t ranks < <(pgrep -P "$first,$second")
check "one of each launcher is killed, at once" kill -KILL "$(pgrep -n -P "$first")" "$(pgrep -n -P "$second")"
let_go more 3
new_rank() { victim=$(pgrep -n -P "$second") && [[ " ${ranks[*]} " != *" $victim "* ]]; }
wait_for 200 new_rank
new_rank
check "one that has just started again is killed" kill -KILL "$victim"
let_end more
end
check "they end as if nothing had happened" with more 0 0
check "... with the calm run's weights" same more

# During the meeting itself: rank 3 is kept away from it, so the others have joined and are not welcome yet. One of them is
# killed, then rank 0, which the others join at.
check "a meeting can be held" gcc -D_GNU_SOURCE -shared -fPIC -o "$work/hold_meeting.so" tests/e2e/hold_meeting.c -ldl
mapfile -t held < <(hold meeting)
meet=$work/meeting/meet
mkdir "$meet" && touch "$meet/go"
start meeting "${held[@]}" "LD_PRELOAD=$work/hold.so:$work/hold_meeting.so" "HOLD_MEETING=$meet" HOLD_RANK=3
joined() { compgen -G "$meet/joined.$1.*" >/dev/null; }                          # RANK
most_joined() { joined 0 && joined 1 && joined 2 && answers_no joined 3; } # and one is not there: nobody is welcome
kill_joined() {                                                            # RANK
    local files=("$meet/joined.$1."*)
    rm "${files[@]}" && kill -KILL "${files[-1]##*.}"
}
check "a checkpoint appears" wait_for 200 committed meeting 3
rm "$meet/go" "$meet"/joined.*
check "a rank is killed, and the next meeting held" kill_rank "$first"
let_go meeting 3
check "... all but one have joined" wait_for 200 most_joined
check "... of which one is killed" kill_joined 2
check "... they meet again, and all but one have joined" wait_for 200 most_joined
check "... of which the one that the others meet at is killed" kill_joined 0
check "... they meet once more" wait_for 200 most_joined
touch "$meet/go"
let_end meeting
end
check "they end as if nothing had happened" with meeting 0 0
check "... after two new starts: who had joined at another launcher waited on" says meeting 0 "all local ranks start again, 2 of 3 times"
check "... and as many of the other" says meeting 1 "all local ranks start again, 2 of 3 times"
check "... with the calm run's weights" same meeting

# A pod that is deleted gets SIGTERM, and another one comes in its place.
mapfile -t held < <(hold replaced)
start replaced "${held[@]}"
check "a checkpoint appears before a pod is replaced" wait_for 200 committed replaced 3
check "the second is asked to end" kill -TERM "$second"
let_go replaced 3
check "... it saves, or comes to its next checkpoint" wait_for 200 compgen -G "$work/replaced/ck/*-[4-6]steps"
let_end replaced
wait "$second"
check "... and ends as asked" test $? -eq 143
check "... the first starts its ranks again" wait_for 200 says replaced 0 "a peer was asked to stop"
node replaced 1 SHOAL_RESTART_COUNT=0 >/dev/null & second=$!
end
check "... and goes on with a new second" with replaced 0 0
check "... at the cost of no restart" lacks "$work/replaced/log0" " of 3 times"
check "... with the calm run's weights" same replaced

# A launcher is lost twice, and its pod made anew. That is no failure of a rank.
mapfile -t held < <(hold gone)
start gone "${held[@]}"
for step in 3 6; do
    check "a checkpoint appears before a launcher is lost: $step" wait_for 200 committed gone "$step"
    check "... it is killed" kill -KILL "$second"
    wait "$second"
    let_go gone "$step"
    check "... which the other's ranks miss" wait_for 200 lost_peers gone "$step"
    node gone 1 "${held[@]}" & second=$!
done
let_end gone
end
check "they end as if nothing had happened" with gone 0 0
check "... the first loss is not counted" says gone 0 "a launcher was lost and is back: the restart for it is not counted"
check "... nor the second" lacks "$work/gone/log0" "2 of 3 times"
check "... with the calm run's weights" same gone

mapfile -t held < <(hold never)
start never "${held[@]}" PET_MAX_RESTARTS=0
check "PET_MAX_RESTARTS=0: a checkpoint appears" wait_for 200 committed never 3
check "... a rank is killed" kill_rank "$second"
let_end never
end
check "... and both launchers end, one with the cause's code and one with that of a lost peer" with never 138 137

# A rank that dies in the same step again and again, with nothing that remembers steps but its launcher.
mapfile -t held < <(hold poisoned)
let_end poisoned
start poisoned "${held[@]}" PET_MAX_RESTARTS=1 AGENT_CHECKPOINT_MEMORY_EVERY_STEPS=0 DIE_RANK=3 "DIE_WHERE=in step 5,"
end
check "a rank that no restart mends ends both launchers, one with the cause's code" with poisoned 138 137
check "... it names the step and its samples" says poisoned 1 \
    "shoal-agent: the run has ended 2 times in a row in step 5, which trains on samples 33 to 40 of epoch 1, in the order of the epoch"
check "... where the cause was, alone" lacks "$work/poisoned/log0" "times in a row"
check "... and how the last restart went" says poisoned 1 "shoal-agent: no restart is left of 1: ends with exit code 137"

# A launcher that waits for the other, after a rank has been killed, is asked to end: that is its end, not the rank's.
mapfile -t held < <(hold asked)
start asked "${held[@]}" AGENT_RUNTIME_MONITOR_INTERVAL=1000 # so that the launcher is met without ranks
check "a checkpoint appears before a pod is deleted while it recovers" wait_for 200 committed asked 3
check "... the second stands still" kill -STOP "$second"
check "... a rank of the first is killed" kill_rank "$first"
let_end asked
check "... which the first tells" wait_for 200 says asked 0 ": signal 9"
check "... its ranks are gone" wait_for 200 answers_no pgrep -P "$first"
kill -TERM "$first"
wait "$first"
check "... it ends as asked" test $? -eq 143
check "... and keeps the checkpoint" test -e "$work/asked/ck/mnist_cnn-3steps/COMPLETE"
check "Ctrl-C while a launcher recovers: it goes on" kill -CONT "$second"
check "... its ranks start again" wait_for 200 says asked 1 "all local ranks start again, 1 of 3 times"
kill -INT "$second"
wait "$second"
check "... it ends as asked" test $? -eq 130
check "... and leaves no rank" answers_no pgrep -f -- "--checkpoint_dir=$work/asked/"
tap_done
