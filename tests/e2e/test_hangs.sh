#!/bin/bash
# A rank that stands still is named, with its pod, phase and collective, and shows its stacks; a calm run says nothing.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
few_images
port=$(free_port 26000)
at=http://127.0.0.1:$port
network=(--preset=mnist --nproc_per_node=4 "--data.root=$data" --train_size=4096 --eval_size=64 --batch_size=32
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
check "no rank hangs" is_hung 0
check "... and the log has no word of one" answers_no grep -E 'hangs|straggler' "$work/stopped.log"
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
check "... and the log says so" grep -qE "info rank 2 \(.*\) goes on" "$work/stopped.log"
check "it was told once" test "$(grep -c hangs "$work/stopped.log")" = 1
end
check "the run ends as ever" test "$code" = 143

# ---- a rank that is heard, and makes no progress: nobody reads what rank 0 prints, and the pipe is soon full ----
mkfifo "$work/blocked.out"
exec 3<>"$work/blocked.out"
head -c 61000 /dev/zero >&3
begin blocked --logging_steps=1 --style=plain
check "a rank that waits for a pipe is counted" wait_for 120 is_hung 1
check "it is named" grep -qE "warning rank 0 \(.*\) hangs in phase (first )?step at step [0-9]+: no progress for .*; 3 ranks wait in collective " \
    "$work/blocked.log"
wrote() { grep -A9 "rank 0: thread $(rank 0) (main), called from:" "$work/blocked.log" | grep -q write; }
check "it writes its stacks: where it waits" wait_for 60 wrote
cat <&3 >/dev/null &
reader=$!
check "it goes on when the pipe is read" wait_for 120 is_hung 0
end
check "that run ends as ever" test "$code" = 143
kill "$reader"
exec 3>&-

# ---- runtime.hang_action ----
begin restarted --hang_action=restart --max_restarts=1 --dir="$work/ckpt" --save_steps=2 --resume=latest
has_saved() { get /metrics | grep -q '^fsdp_checkpoint_last_step [1-9]'; }
check "a run saves" wait_for 120 has_saved
kill -STOP "$(rank 1)"
resumed() { grep -q "Resumed at step" "$work/restarted.out"; }
check "a rank that hangs is replaced" wait_for 120 resumed
check "the log says why" grep -qE 'error rank 1 is killed, .*\(runtime.hang_action=restart\): hangs in phase' "$work/restarted.log"
check "the run goes on" wait_for 120 has_stepped
end
check "and ends as ever" test "$code" = 143
begin ignored --hang_action=none
check "a run without a watch makes steps" wait_for 120 has_stepped
check "it has no word of ranks" answers_no grep -q '"ranks"' <(get /status)
end
check "that one ends as ever, too" test "$code" = 143
tap_done
