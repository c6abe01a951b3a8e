# shellcheck shell=bash
# shellcheck disable=SC2154 # jobs_path, pods_path, socket: of operator.sh
# What the benches of an operator do with jobs on a real API server, and how they count. Source tap.sh, lib.sh and operator.sh before. The
# sourcing script says how an operator counts itself: requests, the API requests that it has sent, and total, the pods that it has.

pod_count() { pods "$1" | wc -w; }
now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
row() { printf '%-70s %10s\n' "$1" "$2"; }
die() {
    echo "bench: $*" >&2
    exit 1
}
until_is() { # NUMBER COMMAND...
    local end=$((SECONDS + 300))
    until [ "$("${@:2}")" = "$1" ]; do
        [ "$SECONDS" -lt "$end" ] || die "not within 5 minutes: $*"
    done
}
requests_row() { # WHAT COMMAND...: how many API requests are sent while it runs and in the two seconds after it
    local before
    before=$(requests)
    "${@:2}" || die "in vain: ${*:2}"
    sleep 2 # the page is published once a second
    row "$1: API requests" "$(($(requests) - before))"
}
requests_in_two_seconds() {
    local before
    before=$(requests)
    sleep 2
    echo $(($(requests) - before))
}
until_at_rest() { until_is 0 requests_in_two_seconds; }

# A job of this many workers and no master, as JSON.
job_json() { # NAME WORKERS [RUN_POLICY: the inside of an object]
    printf '{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "%s"}, "spec": {"runPolicy":
        {%s}, "pytorchReplicaSpecs": {"Worker": {"replicas": %d, "restartPolicy": "Never", "template":
        {"spec": {"containers": [{"name": "pytorch", "image": "image:1"}]}}}}}}' "$1" "${3-}" "$2"
}
post_all() { # PATH: each line of standard input is an object
    xargs -P 4 -d '\n' -n 1 curl -sS -o /dev/null --unix-socket "$socket" -X POST -H 'Content-Type: application/json' \
        "http://localhost$1" --data-binary
}
# The same request to every path of standard input, over one connection.
each_path() { # METHOD TYPE BODY
    sed 's|.*|url = "http://localhost&"\noutput = "/dev/null"|' |
        curl -sS --fail --fail-early --unix-socket "$socket" -X "$1" -H "Content-Type: $2" --data-binary "$3" -K -
}

make_job() { # NAME WORKERS [RUN_POLICY]: and wait for all its pods
    api POST "$jobs_path" "$(job_json "$@")" >/dev/null
    until_is "$2" pod_count "$1"
}
life_until_done() { # what it leaves stays
    make_job ended 8 '"cleanPodPolicy": "None"'
    play_all ended running
    until_is Running field ended '.status.conditions[-1].type'
    play_all ended exit 0
    until_is Succeeded field ended '.status.conditions[-1].type'
}
whole_life() { # from the job to the time when nothing is left of it
    make_job life 8 '"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 1'
    play_all life running
    until_is Running field life '.status.conditions[-1].type'
    play_all life exit 0
    wait_for 60 gone "$jobs_path/life"
}
run_pods() { # NAME JOBS: every pod of NAME-1 to NAME-JOBS runs, as its kubelet would say
    local i worker
    for i in $(seq "$2"); do for worker in {0..7}; do echo "$pods_path/$1-$i-worker-$worker/status"; done; done |
        each_path PATCH application/merge-patch+json '{"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "pytorch", "image": "image:1", "imageID": "",
            "ready": true, "restartCount": 0, "state": {"running": {}}}]}}'
    until_is Running field "$1-$2" '.status.conditions[-1].type'
}
make_jobs() { # NAME JOBS: of 8 pods each, and wait for the last pod
    local begin before i took
    before=$(total) begin=$(now_ms)
    for i in $(seq "$2"); do job_json "$1-$i" 8; done | jq -c . | post_all "$jobs_path"
    until_is $((before + $2 * 8)) total
    took=$(($(now_ms) - begin))
    row "$2 jobs with 8 pods each: from the first job to the last pod" "$took ms"
    row "... pods/s" "$(($2 * 8 * 1000 / took))"
}
# as the API server counts them: ours are PUTs, and nobody else's
status_writes() {
    curl -sS --unix-socket "$socket" http://localhost/metrics |
        awk '/^apiserver_request_total{/ && /resource="pytorchjobs"/ && /subresource="status"/ && /verb="PUT"/ { sum += $NF } END { print sum + 0 }'
}
burst() { # JOBS
    local before
    before=$(status_writes)
    make_jobs burst "$1"
    run_pods burst "$1"
    until_at_rest
    row "... and until all run: status writes a job" "$(awk -v n="$(($(status_writes) - before))" -v jobs="$1" 'BEGIN { printf "%.1f", n / jobs }')"
}
