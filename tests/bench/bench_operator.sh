#!/bin/bash
# shellcheck disable=SC2119 # operator_start without flags is meant so
# How fast and how small the operator is, against a real API server on this machine (etcd and API server share its
# cores): start to ready and memory, alone, beside pods of others and with many jobs; pods/s of one job; the first pod of a
# new job behind many; API requests of a job's life and of passes that change nothing; writes of the status of each job.
#   tests/bench/bench_operator.sh [JOBS [ready]]     how many jobs, of 8 pods each, and pods of others many are; 1000 unless
#                                                    stated. ready: only what is about many jobs, the start beside them above all
set -u
BUILD=${BUILD:-$PWD/build/release}
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
# shellcheck source=tests/bench/jobs.sh
. tests/bench/jobs.sh
jobs=${1:-1000}

total() { metric shoal_operator_pods; }
requests() { metric shoal_operator_api_requests_total; }
cpu_ms() { awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) * 1000 / ticks) }' "/proc/$1/stat"; } # PID
server_cpu_ms() { cpu_ms "$(<"$cluster/run/$1.pid")"; }                                                                         # NAME

took_ms=0 # the last start
start() { # WITH FLAGS...: starts an operator; WITH: with what there is
    local begin server etcd
    server=$(server_cpu_ms kube-apiserver) etcd=$(server_cpu_ms etcd)
    begin=$(now_ms)
    operator_start "${@:2}"
    wait_for 120 curl -sf "http://127.0.0.1:$health/readyz" || {
        tail -n 20 "$work/operator-$((${#operators[@]} - 1)).log" >&2
        die "the operator is not ready after 2 minutes"
    }
    took_ms=$(($(now_ms) - begin))
    row "start to ready, $1" "$took_ms ms"
    row "... processor time of the operator; API server; etcd" "$(cpu_ms "$operator"); $(($(server_cpu_ms kube-apiserver) - server)); $(($(server_cpu_ms etcd) - etcd)) ms"
}
starts() { # NUMBER WITH FLAGS...: that many further starts, each with the API server at rest
    local all=()
    for _ in $(seq "$1"); do
        until_at_rest
        operator_stop
        sleep 5
        start "${@:2}"
        all+=("$took_ms")
    done
    row "median of these $1 starts" "$(printf '%s\n' "${all[@]}" | sort -n | sed -n "$((($1 + 1) / 2))p") ms"
}
memory() { # WHEN
    row "memory, $1" "$(awk '/^VmRSS/ { printf "%.1f", $2 / 1024 }' "/proc/$operator/status") MiB"
}

# Pods without our labels, which nobody runs, in a namespace of their own.
pods_of_others() { # NUMBER
    kubectl create namespace others >/dev/null
    wait_for 30 kubectl get serviceaccount default --namespace others # which the API server gives to pods
    yes /api/v1/namespaces/others/pods | head -n "$1" |
        each_path POST application/json '{"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "other-"},
            "spec": {"containers": [{"name": "c", "image": "image:1"}]}}'
}
# Jobs that succeeded long ago and whose pods are gone, in a namespace of their own, as an operator finds them.
finished_jobs() { # NUMBER
    local path=/apis/kubeflow.org/v1/namespaces/finished/pytorchjobs i
    kubectl create namespace finished >/dev/null
    wait_for 30 kubectl get serviceaccount default --namespace finished
    for i in $(seq "$1"); do job_json "old-$i" 8; done | jq -c . | post_all "$path"
    for i in $(seq "$1"); do echo "$path/old-$i/status"; done |
        each_path PATCH application/merge-patch+json '{"status": {"conditions": [{"type": "Created", "status": "True"},
            {"type": "Succeeded", "status": "True"}], "completionTime": "2026-01-01T00:00:00Z"}}'
}

first_pod() { # NAME NAMESPACE WHEN
    local begin end=$((SECONDS + 120))
    begin=$(now_ms)
    api POST "/apis/kubeflow.org/v1/namespaces/$2/pytorchjobs" "$(job_json "$1" 8)" >/dev/null
    until api GET "/api/v1/namespaces/$2/pods/$1-worker-0" >/dev/null 2>&1; do # which is cheap, beside a list of thousands
        [ "$SECONDS" -lt "$end" ] || die "no pod of $1 after 2 minutes"
    done
    row "first pod of a new job, $3" "$(($(now_ms) - begin)) ms"
}
one_job() { # WORKERS
    local begin took
    begin=$(now_ms)
    make_job "wide-$1" "$1"
    took=$(($(now_ms) - begin))
    row "$1 pods: from the job to the last pod" "$took ms"
    row "$1 pods: pods/s" "$(($1 * 1000 / took))"
}
passed_since() { [ $(($(metric shoal_operator_passes_total) - $1)) -ge "$jobs" ]; }
touch_all() { # changes of every job what is nothing to us, until there was a pass for each
    local before i
    before=$(metric shoal_operator_passes_total)
    for i in $(seq "$jobs"); do echo "$jobs_path/many-$i"; done |
        each_path PATCH application/merge-patch+json '{"metadata": {"annotations": {"touched": "1"}}}' &&
        wait_for 60 passed_since "$before"
}

# What the operators wrote stays, whatever became of the run.
logs=build/bench-operator
keep_logs() {
    rm -rf "$logs" && mkdir -p "$logs"
    cp "$work"/operator-*.log "$work/up.log" "$cluster/log/kube-apiserver" "$logs"
    echo "bench: what the operators and the API server wrote is in $logs" >&2
}
trap 'keep_logs; operator_world_end' EXIT

beginnings() { # beside nothing, pods of others, finished jobs
    start "nothing there"
    memory "right after that start"
    until_at_rest
    memory "idle"
    requests_row "$jobs pods of others are made" pods_of_others "$jobs"
    memory "idle, $jobs pods of others there"
    operator_stop
    start "$jobs pods of others there"
    until_at_rest
    memory "idle, after that start"
    operator_stop

    finished_jobs "$jobs" || die "no finished jobs"
    start "$jobs jobs that somebody else finished" --namespace finished
    first_pod first finished "right after that start"
    until_at_rest
    operator_stop
    start "$jobs finished jobs" --namespace finished
    first_pod new finished "right after that start"
    until_at_rest
    first_pod newer finished "behind $jobs finished ones"
    until_at_rest
    memory "$jobs finished jobs"
    operator_stop
}
lives() { # of one job, and of a burst
    local workers
    for workers in 1 8 64 512; do requests_row "$workers pods, until they are there" one_job "$workers"; done
    requests_row "8 pods, made, run and finished; they stay" life_until_done
    requests_row "8 pods, made, run, finished and removed with their job" whole_life
    until_at_rest
    burst 50
}

operator_world
row "load of this machine of $(nproc) cores at the start" "$(cut -d' ' -f1 /proc/loadavg)"
[ "${2-}" = ready ] || beginnings
operator_start --namespace default
operator_ready
[ "${2-}" = ready ] || lives
make_jobs many "$jobs"
begin=$(now_ms)
until_at_rest
row "... from the last pod to rest" "$(($(now_ms) - begin)) ms"
memory "$jobs jobs with 8 pods each, after making them"
requests_row "... all pods run, which each job's status tells" run_pods many "$jobs"
until_at_rest
memory "$jobs jobs with 8 running pods each"
requests_row "... at rest for 10 s" sleep 8
requests_row "... an annotation of each is changed, which is a pass for each" touch_all
operator_stop
start "$jobs jobs with 8 pods each" --namespace default
first_pod late default "right after that start"
until_at_rest
memory "$jobs jobs with 8 pods each, after that start"
starts 7 "$jobs jobs with 8 pods each" --namespace default
row "load of this machine at the end" "$(cut -d' ' -f1 /proc/loadavg)"
