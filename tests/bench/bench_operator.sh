#!/bin/bash
# shellcheck disable=SC2119 # operator_start without flags is meant so
# How fast and how small the operator is, against a real API server on this machine (etcd and API server share its
# cores): pods/s of one job, API calls of a job's life, start to ready and memory with many jobs.
#   tests/bench/bench_operator.sh [JOBS]     JOBS of 8 pods for the last rows; 1000 unless stated
set -u
BUILD=${BUILD:-$PWD/build/release}
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
jobs=${1:-1000}

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
pod_count() { pods "$1" | wc -w; }
memory_mib() { awk '/^VmRSS/ { printf "%.1f", $2 / 1024 }' "/proc/$operator/status"; }
row() { printf '%-58s %10s\n' "$1" "$2"; }
ready() { # the last one started; else its last words, and the end
    wait_for 120 curl -sf "http://127.0.0.1:$health/readyz" && return
    echo "bench: the operator is not ready after 2 minutes" >&2
    tail -n 20 "$work/operator-$((${#operators[@]} - 1)).log" >&2
    exit 1
}
until_is() { # NUMBER COMMAND...
    local end=$((SECONDS + 120))
    until [ "$("${@:2}")" = "$1" ]; do
        [ "$SECONDS" -lt "$end" ] || { echo "bench: not within 2 minutes: $*" >&2; exit 1; }
    done
}

# A job of this many workers and no master, as JSON.
job_json() { # NAME WORKERS
    printf '{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "%s"}, "spec": {"runPolicy":
        {"cleanPodPolicy": "None"}, "pytorchReplicaSpecs": {"Worker": {"replicas": %d, "restartPolicy": "Never", "template":
        {"spec": {"containers": [{"name": "pytorch", "image": "image:1"}]}}}}}}' "$1" "$2"
}

one_job() { # WORKERS
    local name=wide-$1 start end calls
    calls=$(metric shoal_operator_api_requests_total)
    start=$(now_ms)
    api POST "$jobs_path" "$(job_json "$name" "$1")" >/dev/null
    until_is "$1" pod_count "$name"
    end=$(now_ms)
    row "$1 pods: from the job to the last pod" "$((end - start)) ms"
    row "$1 pods: pods/s" "$(($1 * 1000 / (end - start)))"
    sleep 2 # what comes after the last pod is counted too
    row "$1 pods: API requests" "$(($(metric shoal_operator_api_requests_total) - calls))"
}

# Jobs that succeeded long ago, in a namespace of their own, as an operator finds them when it starts.
finished_jobs() { # NUMBER
    local path=/apis/kubeflow.org/v1/namespaces/finished/pytorchjobs i
    kubectl create namespace finished >/dev/null
    for i in $(seq "$1"); do job_json "old-$i" 8; done | jq -c . | post_all "$path"
    for i in $(seq "$1"); do
        printf 'url = "http://localhost%s/old-%d/status"\n' "$path" "$i"
    done >"$work/urls"
    curl -sS -o /dev/null --unix-socket "$socket" -X PATCH -H 'Content-Type: application/merge-patch+json' -K "$work/urls" \
        -d '{"status": {"conditions": [{"type": "Created", "status": "True"}, {"type": "Succeeded", "status": "True"}],
            "completionTime": "2026-01-01T00:00:00Z"}}' >/dev/null
}
post_all() { # PATH: each line of standard input is an object
    xargs -P 4 -d '\n' -n 1 curl -sS -o /dev/null --unix-socket "$socket" -X POST -H 'Content-Type: application/json' \
        "http://localhost$1" --data-binary
}

# What the operators wrote stays, whatever became of the run.
logs=build/bench-operator
keep_logs() {
    rm -rf "$logs" && mkdir -p "$logs"
    cp "$work"/operator-*.log "$work/up.log" "$cluster/log/kube-apiserver" "$logs"
    echo "bench: what the operators and the API server wrote is in $logs" >&2
}
trap 'keep_logs; operator_world_end' EXIT

operator_world
finished_jobs "$jobs"
start=$(now_ms)
operator_start --namespace finished
ready
row "start to ready, $jobs finished jobs" "$(($(now_ms) - start)) ms"
operator_stop
start=$(now_ms)
operator_start --namespace default
ready
row "start to ready, nothing there" "$(($(now_ms) - start)) ms"
row "memory, idle" "$(memory_mib) MiB"
for workers in 1 8 64 512; do one_job "$workers"; done

for i in $(seq "$jobs"); do job_json "many-$i" 8; done | jq -c . | post_all "$jobs_path"
total() { metric shoal_operator_pods; }
until_is $((jobs * 8 + 585)) total
row "memory, $jobs jobs with 8 pods each, after making them" "$(memory_mib) MiB"
at_rest() { # no request within two seconds
    local before
    before=$(metric shoal_operator_api_requests_total)
    sleep 2
    echo $(($(metric shoal_operator_api_requests_total) - before))
}
start=$(now_ms)
until_is 0 at_rest
row "$jobs jobs: from the last pod to rest" "$(($(now_ms) - start)) ms"
calls=$(metric shoal_operator_api_requests_total)
sleep 10
row "$jobs jobs at rest: API requests in 10 s" "$(($(metric shoal_operator_api_requests_total) - calls))"
operator_stop
start=$(now_ms)
operator_start --namespace default
ready
row "start to ready, $jobs jobs" "$(($(now_ms) - start)) ms"
row "memory right after that restart" "$(memory_mib) MiB"
start=$(now_ms)
api POST "$jobs_path" "$(job_json late 1)" >/dev/null
until_is 1 pod_count late
row "first pod of a new job right after that restart" "$(($(now_ms) - start)) ms"
