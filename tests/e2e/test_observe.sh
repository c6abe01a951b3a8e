#!/bin/bash
# What a run tells while it runs and after: HTTP, the files, the lines of each style.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
few_images
port=$(free_port 26000)
at=http://127.0.0.1:$port

network=(--preset=mnist --nproc_per_node=2 "--data.root=$data" --eval_size=16 --batch_size=8
    --master_port="$(free_port 20000)")
train() { shoal-agent "${network[@]}" "$@"; } # ARG...
get() { curl -sf --max-time 10 "$at$1"; }

# ---- while it runs ----
shoal-agent "${network[@]}" --train_size=1024 --epochs=1000 --prometheus_addr=127.0.0.1 --prometheus_port="$port" \
    --dir="$work/ckpt" --save_steps=4 --max_restarts=1 >"$work/long.log" 2>&1 &
long=$!
has_stepped() { get /status | grep -q '"last_step":{"step":[1-9]'; }
check "the status tells of steps" wait_for 120 has_stepped
has_saved() { get /metrics | grep -q '^fsdp_checkpoint_last_step [1-9]'; }
check "the metrics tell of a checkpoint" wait_for 120 has_saved
has_bytes() { get /metrics | grep -qE '^fsdp_checkpoint_bytes [1-9]'; }
check "... and of its size" wait_for 120 has_bytes
get /metrics >"$work/metrics"
check "they tell of the model" contains "$work/metrics" 'fsdp_run_info{model="mnist_cnn",strategy="FULL_SHARD"'
check "of the loss" grep -qE '^fsdp_train_loss [0-9.]+$' "$work/metrics"
check "of both ranks' collectives" grep -qE '^fsdp_collective_operations_total\{op="reduce_scatter",rank="0".*\} [1-9]' "$work/metrics"
check "of where the time went" grep -qE '^fsdp_phase_seconds_total\{phase="backward",.*\} [0-9.]+$' "$work/metrics"
check "of the memory of each kind" grep -qE '^fsdp_memory_peak_bytes\{kind="optimizer",.*\} 4799552$' "$work/metrics"
if command -v promtool >/dev/null; then
    check "promtool finds nothing wrong" promtool check metrics <"$work/metrics"
else
    skip "promtool finds nothing wrong" "promtool is not installed"
fi
check "the run is healthy" test "$(get /healthz)" = ok
# a listener's first bytes: the answer to its handshake, then a frame with the last step
listens() {
    exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
    printf 'GET /steps HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n%s\r\n%s\r\n\r\n' \
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' 'Sec-WebSocket-Version: 13' >&3
    head -c 400 <&3 | tr -d '\0' >"$work/frames"
    exec 3>&-
    contains "$work/frames" "101 Switching Protocols" && contains "$work/frames" '{"step":'
}
check "steps are streamed over a WebSocket" listens
# The launcher starts both ranks again: what the page tells of the job's time goes on, with what that took.
page() { get "/api/v1/jobs${2-}" >"$work/page" && jq -re --arg began "${began-}" "$1" "$work/page"; } # FILTER [JOB]
began=$(page '.jobs[0].creationTimestamp')
went=$(page '.jobs[0].training.seconds.step')
name=$(page '.jobs[0] | "/\(.namespace | @uri)/\(.name | @uri)"')
check "a rank is killed" kill -KILL "$(pgrep -n -P "$long")"
recovered() { page '.jobs[0].training.seconds.recovery' && has_stepped; }
check "... the ranks start again in place" wait_for 120 recovered
check "... the page has the job's beginning" test "$(page '.jobs[0].creationTimestamp')" = "$began"
check "... and the steps of before" page ".jobs[0].training.seconds.step >= $went"
# shellcheck disable=SC2016 # jq's
check "... and what went by in order" page '(.timeline[0].from == ($began | fromdate)) and ([.timeline[].kind] |
    index("recovery") as $at | index("step") < $at and $at + 1 < length)' "$name"
kill -TERM "$long"
wait "$long"
check "a signal ends it as ever" test "$?" = 143
lacks_port() { # nobody listens there: curl's 7
    local got=0
    get /healthz || got=$?
    [ "$got" -eq 7 ]
}
check "and its server with it" lacks_port
interrupted() { # the exit code of a run that is stopped by Ctrl-C
    shoal-agent "${network[@]}" --train_size=1024 --epochs=1000 --prometheus_port=0 --dir="$work/interrupted" --save_steps=1 &
    wait_for 120 compgen -G "$work/interrupted/*steps" >/dev/null
    kill -INT $!
    wait $!
}
check "Ctrl-C is told as such" fails 130 "" interrupted

# ---- the files ----
files=(--train_size=64 --prometheus_port=0 --csv="$work/run.csv" --jsonl="$work/logs/run.jsonl"
    --tensorboard_dir="$work/tensorboard")
check "a run writes its files" train "${files[@]}" --epochs=1 --dir="$work/files"
check "and goes on in them" train "${files[@]}" --epochs=2 --dir="$work/files" --resume=latest
steps_are() { # FILE PATTERN: the steps of both runs, once each
    [ "$(grep -oE "$2" "$1" | grep -oE '[0-9]+' | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 " ] || { cat "$1"; return 1; }
}
check "the CSV file has one header" test "$(grep -c '^step,epoch,loss,' "$work/run.csv")" = 1
check "and a row per step" steps_are <(grep -E '^[0-9]+,[0-9.]+,[0-9.]+,' "$work/run.csv") '^[0-9]+'
check "the JSONL file has an object per step" steps_are <(grep '"loss"' "$work/logs/run.jsonl") '"step":[0-9]+'
check "and one per evaluation" test "$(grep -c '"eval_loss"' "$work/logs/run.jsonl")" = 2
check "each run has a TensorBoard file" test "$(find "$work/tensorboard" -name 'events.out.tfevents.*' | wc -l)" = 2
check "other columns are not mixed into it" fails 2 "has other columns" \
    train --train_size=16 --prometheus_port=0 --csv="$work/run.csv" --style=fabric

# ---- the record for Weights & Biases ----
check "a run leaves a record for wandb sync" train --train_size=64 --prometheus_port=0 --epochs=1 --wandb=offline \
    --wandb_dir="$work/board" --wandb_project=shoal-demo
record=$(find "$work/board" -path '*/wandb/offline-run-*/run-*.wandb')
check "one, though there are two ranks" test "$(wc -l <<<"$record")" = 1
check "it begins as its reader asks" test "$(head -c 4 "$record")" = ":W&B"
has_key() { grep -qaF "$1" "$record"; } # TEXT
check "it names the project" has_key shoal-demo
check "it has the configuration" has_key sharding_strategy
check "it has rows of steps" has_key _runtime

# ---- a TrainJob ----
trainer_port=$(free_port 27000)
trainer_post() { # the pod of a TrainJob: what its controller's server is sent; s_server sends on what comes by the pipe
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=trainer \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$work/trainer.key" -out "$work/trainer.crt" 2>"$work/openssl.log" || return
    echo the-token >"$work/token"
    mkfifo "$work/answers"
    openssl s_server -quiet -accept "127.0.0.1:$trainer_port" -cert "$work/trainer.crt" -key "$work/trainer.key" \
        <"$work/answers" >"$work/posts" 2>>"$work/openssl.log" &
    trainer=$!
    exec 4>"$work/answers"
    listening() { grep -q ":$(printf %04X "$trainer_port") 00000000:0000 0A" /proc/net/tcp; }
    wait_for 120 listening || return
    KUBEFLOW_TRAINER_SERVER_URL=https://127.0.0.1:$trainer_port/status KUBEFLOW_TRAINER_SERVER_CA_CERT=$work/trainer.crt \
        KUBEFLOW_TRAINER_SERVER_TOKEN=$work/token train --train_size=64 --prometheus_port=0 --epochs=1 &
    local run=$! number got=0
    for number in 1 2; do
        has_posts() { [ "$(grep -cF '"trainerStatus"' "$work/posts")" -ge "$number" ]; }
        wait_for 120 has_posts || got=1
        printf 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}' >&4
    done
    wait "$run" || got=$?
    exec 4>&-
    kill "$trainer"
    wait "$trainer"
    return "$got"
}
if command -v openssl >/dev/null; then
    check "a run in a TrainJob posts its progress" trainer_post
    check "... with the token" contains "$work/posts" 'Authorization: Bearer the-token'
    check "... and its end" contains "$work/posts" '"progressPercentage":100'
else
    skip "a run in a TrainJob posts its progress" "openssl is not installed"
fi

# ---- the lines ----
lines() { # STYLE
    train --train_size=64 --epochs=1 --prometheus_port=0 --style="$1" --logging_steps=2 --dir="$work/$1" >"$work/$1.log"
}
stamp='[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8},[0-9]{3} \[INFO\] __main__: '
check "the sample's style" lines adt
check "its steps" grep -qE "^${stamp}Batch 0 Loss: [0-9]+\.[0-9]{5}, Speed: [0-9]+\.[0-9]{2} samples/sec, lr: [0-9]\.[0-9]{6}$" "$work/adt.log"
check "every second one of them" test "$(grep -c 'Batch [02] Loss' "$work/adt.log")$(grep -c 'Batch [13] Loss' "$work/adt.log")" = 20
check "its evaluation" grep -qE "^${stamp}Batch 3 Validation loss: [0-9.]+$" "$work/adt.log"
check "its checkpoints" grep -qE "^${stamp}Completed checkpoint\.$" "$work/adt.log"
check "the Fabric scripts' style" lines fabric
check "their evaluation" grep -qE '^step 4: val loss [0-9]+\.[0-9]{4}, val time: [0-9]+\.[0-9]{2}ms$' "$work/fabric.log"
check "their end" grep -qE '^Training time: [0-9]+\.[0-9]{2}s$' "$work/fabric.log"
check "our own" lines plain
check "its steps" grep -qE '^Epoch 0\.50 \| Step 2/4 \| Loss: [0-9.]+ \| lr: 1 \| [0-9]+ ms \| [0-9]+ samples/s \| memory: ' "$work/plain.log"
tap_done
