#!/bin/bash
# From manifest to trained model, and through kills: `shoal run` with the real agent on real data.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
few_images

# manifest NAME POLICY WORKERS FLAGS...: 1 master and some workers of the MNIST network on a part of the data. With `held` set
# it stands still after a checkpoint until there is the file NAME/go; `restarts` is how often its launchers start ranks again.
held='' restarts=3 run_policy='backoffLimit: 20' nproc=1
manifest() {
    local name=$1 policy=$2 workers=$3 flag env="{name: PET_MAX_RESTARTS, value: '$restarts'}"
    shift 3
    [ -z "$held" ] || env+=", {name: LD_PRELOAD, value: $held}, {name: HOLD_UNTIL, value: $work/$name/go},
                {name: ASAN_OPTIONS, value: \"${ASAN_OPTIONS-}:verify_asan_link_order=0\"}"
    cat <<EOT
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: $name}
spec:
  runPolicy: {$run_policy}
  nprocPerNode: "$nproc"
  pytorchReplicaSpecs:
EOT
    for type in Master Worker; do
        cat <<EOT
    $type:
      replicas: $([ "$type" = Master ] && echo 1 || echo "$workers")
      restartPolicy: $policy
      template:
        spec:
          terminationGracePeriodSeconds: 20
          containers:
          - name: pytorch
            image: shoal-agent
            workingDir: $work/$name
            env: [$env]
            command: [shoal-agent]
            args:
            - --preset=mnist
            - --data.root=$data
            - --train_size=32
            - --eval_size=16
            - --batch_size=2
            - --epochs=2
            - --save-model=$work/$name/mnist_cnn.safetensors
EOT
        for flag in "$@"; do echo "            - $flag"; done
    done
}

# run NAME: runs the manifest of that name; the output goes to NAME.log.
run() { shoal run -f "$work/$1.yaml" --log-dir "$work/$1/logs" --progress never >"$work/$1.log" 2>&1; }

start() { # NAME POLICY WORKERS FLAGS...
    mkdir -p "$work/$1"
    manifest "$@" >"$work/$1.yaml"
}

start plain OnFailure 3
check "a 1 + 3 job trains and succeeds" run plain

# adds_up NAME: the time of the run, by kind, is all of it; each is cut to a second or a tenth.
adds_up() {
    awk 'function seconds(text,   sum) {
            sum = 0
            while (match(text, /^[0-9.]+[hms]/)) {
                sum += substr(text, 1, RLENGTH - 1) * (text ~ /^[0-9.]+h/ ? 3600 : text ~ /^[0-9.]+m/ ? 60 : 1)
                text = substr(text, RLENGTH + 1)
            }
            return sum
        }
        /^Where .* went: goodput [0-9.]+%$/ { whole = seconds($2); kinds = NR }
        kinds && /^  [a-zA-Z]+ +[0-9.hms]+ +[0-9.]+%$/ { sum += seconds($2); count++ }
        kinds && / (Succeeded in|was stopped after) / { run = seconds($NF) }
        END { print whole, sum, run; exit !(count >= 3 && sum > whole - count - 1 && sum <= whole + 1 && whole > run - 3 && whole < run + 3) }' "$work/$1.log"
}
check "where its time went adds up" adds_up plain
check "the epoch line is the tutorial's" grep -qE $'^Train Epoch: 1 \tLoss: [0-9]+\\.[0-9]{6}$' "$work/plain.log"
check "the test line is the tutorial's" \
    grep -qE '^Test set: Average loss: [0-9]+\.[0-9]{4}, Accuracy: [0-9]+/16 \([0-9]+\.[0-9]{2}%\)$' "$work/plain.log"
check "the elapsed time is told" grep -qE '^CPU elapsed time on training loop [0-9.]+sec$' "$work/plain.log"
check "the module tree shows the unit" contains "$work/plain.log" "FullyShardedDataParallel("
check "the model is written" test -s "$work/plain/mnist_cnn.safetensors"

# The reference: the same run with checkpoints and no kill.
start whole OnFailure 3 --checkpoint_dir="$work/whole/ck" --save_steps=3
check "an uninterrupted run with checkpoints" run whole
check "checkpoints do not change the result" cmp "$work/plain/mnist_cnn.safetensors" "$work/whole/mnist_cnn.safetensors"

# A replica's launcher or the rank that it started: by the environment, in which only ranks have LOCAL_RANK.
agent_of() { # JOB WHO RANK
    local pid variables
    for pid in $(pgrep -x shoal-agent); do
        variables=$(tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ")
        grep -qx "RANK=$3" <<<"$variables" || continue
        [ "$2" = "$(grep -q '^LOCAL_RANK=' <<<"$variables" && echo rank || echo launcher)" ] || continue
        [ "$(readlink "/proc/$pid/cwd")" = "$work/$1" ] && echo "$pid" && return
    done
    return 1
}
agent_or_end() { agent_of "$1" "$2" "$3" || ! kill -0 "$4"; } # JOB WHO RANK PID: of the run
has_checkpoint() { compgen -G "$work/$1/ck/*steps/COMPLETE"; }

# killed NAME POLICY WHO RANK SIGNAL: kills a launcher, and with it its pod, or a rank alone, once there is a checkpoint, and compares
# the end with the reference.
check "a run can be held" gcc -D_GNU_SOURCE -shared -fPIC -o "$work/hold.so" tests/e2e/hold.c -ldl
killed() {
    local name=$1 policy=$2 who=$3 rank=$4 signal=$5 pid victim held=$work/hold.so
    start "$name" "$policy" 3 --checkpoint_dir="$work/$name/ck" --save_steps=3
    run "$name" &
    pid=$!
    wait_for 300 agent_or_end "$name" "$who" "$rank" "$pid"
    check "$name: a checkpoint appears" wait_for 200 has_checkpoint "$name"
    victim=$(agent_of "$name" "$who" "$rank")
    check "$name: $who $rank gets $signal" kill "-$signal" "$victim"
    touch "$work/$name/go"
    wait "$pid"
    check "$name: the job succeeds all the same" test $? -eq 0
    check "$name: it resumed" contains "$work/$name.log" "Resumed at step"
    check "$name: the weights are those of the uninterrupted run" \
        cmp "$work/whole/mnist_cnn.safetensors" "$work/$name/mnist_cnn.safetensors"
}
pod_restarts() { contains "$work/$1.log" ", restart 1 of 20"; }
killed kill-worker OnFailure launcher 2 KILL
check "... the pod's container starts again" pod_restarts kill-worker
killed kill-master OnFailure launcher 0 KILL
check "... the pod's container starts again" pod_restarts kill-master
lost() { grep -qE '^  recovery +[0-9]' "$work/$1.log" && adds_up "$1"; }
check "... and what that took is told" lost kill-master
killed kill-exitcode ExitCode launcher 1 KILL
check "... another pod comes" pod_restarts kill-exitcode
killed kill-rank OnFailure rank 2 KILL
check "... no container starts again" answers_no pod_restarts kill-rank
check "... which the table counts, as shoal top does" grep -qE '^ranks in place +- +1 +- +-$' "$work/kill-rank.log"
check "... and a line tells" contains "$work/kill-rank.log" "kill-rank: ranks restarted in place (restart 1)"
check "... the ranks do, each once" test "$(grep -c 'all local ranks start again, ' "$work"/kill-rank/logs/*/*.log | grep -c ':1$')" -eq 4

# Stopped: tests/operator/job/test_goodput.c has what nobody has told by then.
held=$work/hold.so
start stopped OnFailure 1 --checkpoint_dir="$work/stopped/ck" --save_steps=3
held=
env --default-signal=INT shoal run -f "$work/stopped.yaml" --log-dir "$work/stopped/logs" --progress never >"$work/stopped.log" 2>&1 &
pid=$!
check "stopped: a checkpoint appears" wait_for 200 has_checkpoint stopped
kill -INT "$pid"
touch "$work/stopped/go"
wait "$pid"
check "stopped: it was" test $? -eq 130
check "... and where its time went adds up all the same" adds_up stopped

# No restart in place is left: the container of a killed rank ends with its code, the other with 138, as it lost a peer. That is
# one failure, and one is granted.
once() { # NAME POLICY
    local name=$1 pid held=$work/hold.so restarts=0 nproc=2
    start "$name" "$2" 1 --checkpoint_dir="$work/$name/ck" --save_steps=3
    run "$name" &
    pid=$!
    wait_for 300 agent_or_end "$name" rank 3 "$pid"
    check "$name: a checkpoint appears" wait_for 200 has_checkpoint "$name"
    check "$name: a rank is killed" kill -KILL "$(agent_of "$name" rank 3)"
    touch "$work/$name/go"
    wait "$pid"
    check "$name: the job succeeds by the one restart that it has" test $? -eq 0
    check "$name: it resumed" contains "$work/$name.log" "Resumed at step"
    check "$name: the weights are those of the uninterrupted run" \
        cmp "$work/whole/mnist_cnn.safetensors" "$work/$name/mnist_cnn.safetensors"
}
lost_peer() { contains "$work/$1.log" "$1-master-0: Running -> Failed (exit code 138), restart 1 of 1"; }
run_policy='backoffLimit: 1'
once anew ExitCode
check "... though the other container ended, too, with 138" lost_peer anew
run_policy='backoffLimit: 1, restartScope: Job'
once together OnFailure

none_left() { answers_no grep -vw "$$" < <(pgrep -af "$work"); }
check "nothing is left behind" none_left
tap_done
