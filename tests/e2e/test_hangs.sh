#!/bin/bash
# A rank that stands still is named, with its pod, phase and collective, and shows its stacks.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
few_images
port=$(free_port 26000)
at=http://127.0.0.1:$port
network=(--preset=mnist --nproc_per_node=4 "--data.root=$data" --train_size=512 --eval_size=8 --batch_size=4
    --epochs=1000 --master_port="$(free_port 20000)" --prometheus_addr=127.0.0.1 --prometheus_port="$port")

begin() { # NAME ARG...: a run in the background, $run; its log is $work/NAME.log
    local name=$1
    shift
    shoal-agent "${network[@]}" "$@" 2>"$work/$name.log" >"$work/$name.out" &
    run=$!
}
end() { # asks the run to end; sets $code
    code=0
    kill -TERM "$run"
    wait "$run" || code=$?
}
get() { curl -sf --max-time 10 "$at$1"; }
has_stepped() { get /status | grep -qE '"last_step":\{"step":([3-9]|[1-9][0-9])'; }
rank() { # NUMBER: its process
    local pid
    for pid in $(pgrep -P "$run"); do
        tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qx "RANK=$1" && echo "$pid" && return
    done
    return 1
}
tells_of_ranks() { get /status >"$work/status" && grep -qE '"ranks":\[\{"rank":0,.*"rank":3,' "$work/status"; }
is_hung() { get /metrics | grep -qx "fsdp_hung_ranks $1"; }

# ---- a rank that is stopped ----
begin stopped
check "the status tells of every rank" wait_for 120 tells_of_ranks
check "the run makes steps" wait_for 120 has_stepped
# A loaded machine stops ranks, too: whom it names goes on. tests/agent/test_hang_detector.c counts false alarms.
check "no rank hangs for long" wait_for 120 is_hung 0
victim=$(rank 2)
kill -STOP "$victim"
check "a stopped rank is counted" wait_for 120 is_hung 1
check "it is named, and what the others wait for" grep -qE \
    "warning rank 2 \(.*process $victim\) hangs in phase .* at step [0-9]+: no sign of life for .*; its last collective: [0-9]+, .*; 3 ranks wait in collective [0-9]+, " \
    "$work/stopped.log"
get /status >"$work/status"
check "the status has it, too" grep -qE '"rank":2,[^}]*"state":"hung"' "$work/status"
looked() { grep -q "thread $victim (main): stopped" "$work/stopped.log"; }
check "another rank tells what it does" wait_for 60 looked
kill -CONT "$victim"
check "a rank that goes on hangs no more" wait_for 120 is_hung 0
last_hang() { get "$1" | grep -qE "\"$2\":\{\"rank\":$3,\"step\":[0-9]+,\"time\":\"20[^}]*\"phase\":\"[^}]*\"collective\":[0-9]+,\"op\":\"[a-z_]+\""; }
check "... which the status still tells" last_hang /status last_hang 2
check "... and what the operator asks for" last_hang /progress lastHang 2
check "... and the log says so" grep -qE "info rank 2 \(.*\) goes on" "$work/stopped.log"
once() { test "$(grep -c "process $victim) hangs" "$work/stopped.log")" = "$(grep -c "process $victim) goes on" "$work/stopped.log")"; }
check "each time it was told once" wait_for 60 once
end
check "the run ends as ever" test "$code" = 143

# ---- a rank that is heard, and makes no progress: nobody reads what rank 0 prints, and the pipe is soon full ----
wrote() { grep -A9 "rank 0: thread [0-9]* (main), called from:" "$work/$1.log" | grep -q write; }
goes_on() { is_hung 0 && has_stepped; }
# what a run prints before its first step, and then some steps' lines, still fit into a pipe of 64 KiB
before_steps=$(grep -b "First step done" "$work/stopped.out" | cut -d: -f1)
fill_pipe() { # NAME: what NAME prints
    mkfifo "$work/$1.out"
    exec 3<>"$work/$1.out"
    head -c $((65536 - before_steps - 700)) /dev/zero >&3
}
drain_pipe() {
    cat <&3 >/dev/null &
    reader=$!
}
end_pipe() {
    kill "$reader"
    exec 3>&-
}
fill_pipe blocked
# A process that has NCCL asks NCCL's RAS, too: here one that perl plays. A sanitizer has to be loaded first, NCCL is not.
nccl=$BUILD/emulation/libnccl.so.2
case $BUILD in */asan | */tsan) nccl= ;; esac
ras=$(free_port 28000)
perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$ARGV[0]", Listen => 1) or die; $c = $s->accept;
    for $answer ("SERVER PROTOCOL 2\n", "OK\n", "Job summary\n") { <$c>; print $c $answer }' "$ras" >"$work/ras.log" 2>&1 &
player=$!
export NCCL_RAS_ADDR=127.0.0.1:$ras LD_PRELOAD=$nccl
begin blocked --logging_steps=1 --style=plain # nobody would start a rank again: none is killed
unset LD_PRELOAD NCCL_RAS_ADDR
check "a rank that waits for a pipe is counted" wait_for 120 is_hung 1
check "it is named" grep -qE "warning rank 0 \(.*\) hangs in phase (first )?step at step [0-9]+: no progress for .*; 3 ranks wait in collective " \
    "$work/blocked.log"
check "it writes its stacks: where it waits" wait_for 60 wrote blocked
ras_told() { grep -A1 "NCCL's RAS (127.0.0.1:$ras) says of its processes:" "$work/blocked.log" | grep -qx "Job summary"; }
if [ -e "$nccl" ]; then
    check "it asks NCCL what it knows" wait_for 60 ras_told
else
    skip "what NCCL's RAS says" "this build has no NCCL to load"
fi
kill "$player" 2>/dev/null
drain_pipe
check "it goes on when the pipe is read" wait_for 120 goes_on
end
check "that run ends as ever" test "$code" = 143
check "nobody was killed" answers_no grep -q "is killed" "$work/blocked.log"
end_pipe

# ---- runtime.hang_action ----
# Nothing but the kill ends a rank that is heard and makes no progress.
fill_pipe replaced
begin replaced --logging_steps=1 --style=plain --max_restarts=1 --hang_patience=1
was_killed() { grep -qE "error rank 0 is killed, .*\(runtime.hang_action=restart\): hangs in phase (first )?step at step [0-9]+: no progress" "$work/replaced.log"; }
starts_again() { grep -q "all local ranks start again, 1 of 1 times" "$work/replaced.log"; }
wait_for 120 rank 0 >/dev/null
blocked=$(rank 0)
check "a rank that stays in a write is killed" wait_for 120 was_killed
drain_pipe
check "it is replaced" wait_for 120 starts_again
check "... and nothing is left of it" test ! -e "/proc/$blocked"
check "the new ranks make steps" wait_for 120 goes_on
check "... and their rank 0 tells of the hang of the one before" last_hang /progress lastHang 0
end
check "that run ends as ever, too" test "$code" = 143
end_pipe

names_it() { grep -qE "rank 1 .*no sign of life" "$work/stopped_again.log"; } # whether it was killed or lost
begin stopped_again --max_restarts=1 --dir="$work/ckpt" --save_steps=2 --resume=latest
has_saved() { get /metrics | grep -q '^fsdp_checkpoint_last_step [1-9]'; }
check "a run saves" wait_for 120 has_saved
kill -STOP "$(rank 1)"
resumed() { grep -q "Resumed at step" "$work/stopped_again.out"; }
check "a stopped rank is replaced" wait_for 120 resumed
check "the log says which, and why" names_it
check "the run goes on" wait_for 120 goes_on
end
check "and ends as ever" test "$code" = 143
# A silent rank is killed at its name with so little patience, which is 7 s before its connection is closed. Rank 0 counts its own
# beats up to the former and seconds up to the latter: where a machine lets it not run for so long, another run shows it.
starts_anew() { grep -q "all local ranks start again" "$work/silent.log"; }
kill_comes_first() {
    begin silent --max_restarts=1 --hang_patience=0.1
    wait_for 120 has_stepped && kill -STOP "$(rank 1)" && wait_for 120 starts_anew
    end
    grep -qE "error rank 1 is killed, .*\(runtime.hang_action=restart\): hangs in phase .* at step [0-9]+: no sign of life for" "$work/silent.log"
}
check "a silent rank is killed before it is lost" longer kill_comes_first

# ---- each in a pod of its own: no other rank is there to see one that is stopped ----
meets=$(free_port 22000)
pod() { # NUMBER: becomes the launcher of that pod of one rank, with the operator's variables
    exec env MASTER_ADDR=127.0.0.1 MASTER_PORT="$meets" WORLD_SIZE=2 RANK="$1" PET_NODE_RANK="$1" PET_NNODES=2 PET_NPROC_PER_NODE=1 \
        PET_MAX_RESTARTS=3 SHOAL_RESTART_COUNT=0 SHOAL_RUN_ID=alone shoal-agent --preset=mnist "--data.root=$data" --train_size=512 \
        --eval_size=8 --batch_size=4 --epochs=1000 --prometheus_addr=127.0.0.1 --prometheus_port="$port" >"$work/alone$1.log" 2>&1
}
pod 0 & run=$!
pod 1 & other=$!
only_rank() { pgrep -P "$1"; } # LAUNCHER: its rank's process
has_told() { get /status | grep -qE "\"rank\":$1,[^}]*\"step\":[0-9]+,\"collective\":[1-9]"; } # RANK: of a collective; once a second
both_step() { has_stepped && has_told 0 && has_told 1; }
check "two pods of one rank make steps" wait_for 120 both_step
victim=$(only_rank "$other")
kill -STOP "$victim"
ended_it() { grep -qE "shoal-agent: rank 1 \(local rank 0, pid $victim\) hangs: it has been stopped for 1[0-9].* is killed, .*\(runtime.hang_action=restart\)" "$work/alone1.log"; }
check "the launcher of a stopped rank kills it, with no other rank in its pod" wait_for 120 ended_it
check "... and shows what it does" grep -q "thread $victim (main): stopped" "$work/alone1.log"
check "... and starts it again" wait_for 120 grep -q "failed at .*: it gave no sign of life, and was killed" "$work/alone1.log"
lost_one() { grep -q "a peer was lost .*all local ranks start again" "$work/alone0.log"; }
check "... as does the other" wait_for 120 lost_one
check "the new ranks of both make steps" wait_for 120 goes_on
names_rank_1() { grep -qE "warning rank 1 \(.*process $victim\) hung in phase .* at step [0-9]+; its last collective: [0-9]+, .*; all ranks of its pod were stopped" "$work/alone0.log"; }
check "... whose rank 0 names the hang that only the launcher saw" wait_for 120 names_rank_1
check "... and tells whoever asks, as the operator" wait_for 120 last_hang /progress lastHang 1
check "it has told of its own steps" wait_for 120 has_told 0
victim=$(only_rank "$run")
kill -STOP "$victim"
ended_first() { grep -qE "shoal-agent: rank 0 \(local rank 0, pid $victim\) hangs: it has been stopped for " "$work/alone0.log"; }
check "rank 0's does so, too" wait_for 120 ended_first
check "... and both make steps again" wait_for 120 goes_on
check "... whose rank 0 tells of the one before it" wait_for 120 last_hang /progress lastHang 0
kill -TERM "$run" "$other"
code=0
wait "$run" || code=$?
wait "$other" || code=$code,$?
check "both end as ever" test "$code" = 143,143

begin ignored --hang_action=none
check "a run without a watch makes steps" wait_for 120 has_stepped
check "it has no word of ranks" answers_no grep -q '"ranks"' <(get /status)
end
check "that one ends as ever, too" test "$code" = 143
tap_done
