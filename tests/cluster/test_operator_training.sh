#!/bin/bash
# shellcheck disable=SC2119 # operator_stop without arguments is meant so
# How a job's training goes, in its status on a real API server: the test plays the kubelet, an agent of this machine is
# what runs in the pod.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
few_images
operator_world
operator_start --progress-seconds=1
check "the operator is ready" operator_ready

training() { field "$1" ".status.training$2"; }
address() { api PATCH "$pods_path/$1/status" '{"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}' >/dev/null; }
asks() { metric shoal_operator_progress_requests_total; }
port=$(free_port)
rendezvous=$(free_port "$port")
agent=
agent() { # ARG...: in the place of the pod's
    CUDA_VISIBLE_DEVICES='' shoal-agent --preset=mnist --nproc_per_node=2 --threads=1 "--data.root=$data" --eval_size=64 --batch_size=32 \
        --master_port="$rendezvous" --prometheus_addr=127.0.0.1 --prometheus_port="$port" --dir="$work/checkpoints" --save_steps=8 "$@" \
        >>"$work/agent.log" 2>&1 &
    agent=$!
}
trap '[ -z "$agent" ] || kill -KILL "$agent" 2>/dev/null; operator_world_end' EXIT

# ---- what is no agent: this operator's own port of health answers 404
job stranger 1 0 OnFailure "" "" "ports: [{name: metrics, containerPort: $health}]"
check "a pod that is no agent" comes stranger-master-0 pods stranger
play stranger-master-0 running
check "... has an address" address stranger-master-0
check "... is asked" comes 1 asks
check "... once" stays 1 asks
check "... and nothing is known" is null training stranger .worldSize
check "... but that nobody tells what it does" comes untold training stranger .secondsKind
grows() { # JOB KIND: without a write
    local before after
    before=$(job_seconds "$1" "$2") && sleep 3 && after=$(job_seconds "$1" "$2") && echo "$before, then $after" && [ "${after%.*}" -gt "${before%.*}" ]
}
job_seconds() { curl -s "http://127.0.0.1:$metrics/metrics" | sed -n "s/^shoal_operator_job_seconds_total{job_namespace=\"default\",job_name=\"$1\",kind=\"$2\"} //p"; }
check "... which goes on in the metrics" wait_for 60 grows stranger untold

# ---- an agent
job llm 1 1 OnFailure "" "" "ports: [{name: metrics, containerPort: $port}]"
check "the job's pods" comes "llm-master-0 llm-worker-0" pods llm
play_all llm running
address llm-master-0
agent --train_size=4096 --epochs=1000
steps() { [ "$(training llm .step)" -ge 1 ]; }
check "the step is in the status" wait_for 120 steps
wide() { kubectl get pytorchjob llm -o wide | tail -n 1 | grep -qE ' [1-9][0-9]*/[1-9][0-9]* +[0-9.]+ '; }
check "... and in kubectl's wide columns" wait_for 60 wide
percent() { kubectl get pytorchjob llm -o wide | tail -n 1 | grep -qE ' [0-9.]+%$'; }
check "... with its goodput" wait_for 60 percent
check "whose names are" is "NAME STATE AGE WORKERS RESTARTS STEP LOSS TOK/S ETA GOODPUT" bash -c "kubectl get pytorchjob llm -o wide | head -n 1 | xargs"
as_story() { shoal get llm | grep -E 'training +step [1-9][0-9]*/[1-9][0-9]*, .*loss' && shoal get llm --json | jq -e '.replicas | length == 2'; }
check "shoal get tells it" wait_for 60 as_story
check "... with the job's events" bash -c "shoal get llm | grep -q 'TrainingStarted: PyTorchJob llm trains on 2 ranks'"
as_row() { shoal top --sort step | sed -n 2p | grep -E '^llm +default +.* [1-9][0-9]*/[1-9][0-9]* +[0-9.]+ '; }
check "... and shoal top has it first" wait_for 60 as_row
check "... of its namespace" is stranger bash -c "shoal top -n default --filter stranger --json | jq -r '.jobs[].name'"
check "a job that is not there" bash -c "shoal get lln 2>&1 | grep -q '^shoal get: no PyTorchJob lln in namespace default, which has 2;'"
check "plain columns stay" is "NAME STATE AGE" bash -c "kubectl get pytorchjob llm | head -n 1 | xargs"
check "ranks" is 2 training llm .worldSize
has_left() { training llm .timeLeft | grep -qE '^[0-9]+[dhms]'; }
check "the time left" wait_for 60 has_left
kept() { [ "$(training llm .lastCheckpointStep)" -ge 8 ]; }
check "the last checkpoint" wait_for 120 kept
check "an event tells of the first step" tells llm "TrainingStarted PyTorchJob llm trains on 2 ranks: step"
check "... and of the checkpoint" tells llm "CheckpointSaved A checkpoint is kept of step"

# ---- the live page has the same, and what only the operator remembers
page() { curl -s "http://127.0.0.1:$ui$1" | jq -c "$2"; } # PATH FILTER
shown() { page /api/v1/jobs/default/llm "$1"; }
check "the live page lists both jobs" comes '["llm","stranger"]' page /api/v1/jobs '[.jobs[].name] | sort'
check "... with progress and losses" comes true page /api/v1/jobs '.leading and (.jobs[] | select(.name == "llm") | .training.step >= 8 and (.losses | length) > 0)'
check "one job has its series" is true shown '.series | (.step | length) == (.loss | length) and .unit == "samplesPerSecond"'
check "... its timeline" is true shown '[.timeline[].kind] | index("step") != null'
check "... its pods" is '["llm-master-0","llm-worker-0"]' shown '[.pods[].name]'
check "... and events" is true shown '[.events[].reason] | index("TrainingStarted") != null'
check "nothing of its pod template" is '[]' shown '[.. | objects | .image, .env | values]'
check "another page's name is refused" is 403 curl -s -o /dev/null -w '%{http_code}' -H 'Host: evil.example' "http://127.0.0.1:$ui/api/v1/jobs"

# Of the pod's past the test says nothing, so that all before the process is its container's start.
# shellcheck disable=SC2016 # the variables are jq's
adds_up() { # JOB: what is accounted for is the time from the creation to what the agent told last, 20 s ago at most
    field "$1" '(now - (.metadata.creationTimestamp | fromdate)) as $age | (.status.training.seconds | add) as $sum |
        "\($sum) s of \($age) s", .status.training.seconds, .status.training.goodput, if $sum <= $age + 3 and $sum >= $age - 20 then "adds up" else "" end' |
        tee "$work/sum" | grep -x "adds up" || { cat "$work/sum"; return 1; }
}
check "the time adds up" adds_up llm
good() { training llm '.seconds.step > 1 and .status.training.goodput > 0 and .status.training.seconds.initialization > 0'; }
check "... and most kinds are known" is true good
spent() { curl -s "http://127.0.0.1:$metrics/metrics" | grep -c '^shoal_operator_training_seconds_total{job_namespace="default",kind="[a-zA-Z]*"} [0-9]'; }
check "... in the metrics, too" test "$(spent)" -ge 3

# ---- it dies: what it said last stays, as does what it left for its kubelet
kill -KILL "$agent"
wait "$agent" 2>/dev/null
agent=
rest() { [ "$(training llm .step)" = "$(sleep 2; training llm .step)" ]; }
check "nothing changes any more" wait_for 60 rest
check "the last numbers stay" steps
last='{"worldSize":2,"lastProgressTime":"2099-01-01T00:00:00Z","step":77777,"steps":80000,"loss":1.5,"restarts":0}'
api PATCH "$pods_path/llm-master-0/status" '{"status": {"phase": "Running", "containerStatuses": [{"name": "pytorch",
    "image": "image:1", "imageID": "", "ready": true, "restartCount": 1, "state": {"running": {}}, "lastState": {"terminated":
    {"exitCode": 137, "message": '"$(jq -R . <<<"$last")"', "finishedAt": "2026-01-01T00:00:00Z"}}}]}}' >/dev/null
check "what the container left behind is newer" comes 77777/80000 training llm .progress
check "and how fast it went is not known" is null training llm .secondsLeft
check "it recovers" comes recovery training llm .secondsKind
check "... which goes on in the metrics" wait_for 60 grows llm recovery

# ---- a job that is at rest costs nothing, and another operator goes on
check "nothing is written" requests_rest
operator_stop
operator_start --progress-seconds=0
check "another operator is ready" operator_ready
check "it knows the same" is 77777/80000 training llm .progress
check "and asks nobody" stays 0 asks
check "what is asked for is said" bash -c "shoal-operator --help | grep -q -- --progress-seconds"
tap_done
