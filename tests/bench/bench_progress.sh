#!/bin/bash
# shellcheck disable=SC2119 # operator_stop without arguments is meant so
# What it costs the operator that jobs show how their trainings go (status.training), against a real API server on this
# machine: requests to pods and to the API server, memory and CPU time, of jobs whose every answer is news.
#   tests/bench/bench_progress.sh [JOBS [SECONDS [ANSWERS]]]     1000 jobs, asked every 15 s, until each has answered 5 times, unless
#                                                                stated; 43 answers fill the page's charts of 1000 jobs
set -u
BUILD=${BUILD:-$PWD/build/release}
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
jobs=${1:-1000}
every=${2:-15}
seconds=60
answers=${3:-$((seconds / every + 1))}
scrapes=10
row() { printf '%-70s %22s\n' "$1" "$2"; }
die() {
    echo "bench: $*" >&2
    exit 1
}
[ $((every * answers)) -ge $seconds ] || die "$answers answers, every $every s, come in less than the $seconds s in which it is measured"
memory_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$operator/status"; }
own_kib() { awk '/^RssAnon/ { print $2 }' "/proc/$operator/status"; } # without pages of programs and libraries
cpu_ms() { awk '{ print ($14 + $15) * 10 }' "/proc/$operator/stat"; }
requests() { metric shoal_operator_api_requests_total; }
asks() { metric shoal_operator_progress_requests_total; }
running() { [ "$(metric 'shoal_operator_jobs_in_state{state="Running"}')" = "$jobs" ]; }
pods_are_there() { [ "$(metric shoal_operator_pods)" = "$jobs" ]; }
at_rest() {
    local before
    before=$(requests)
    sleep 2
    [ "$(requests)" = "$before" ]
}

# An agent of all jobs: each answer is another step, another loss and more time, in the fields of a real one's.
port=$(free_port)
python3 - "$port" <<'END' &
import http.server, json, sys, time
BEGIN = time.time()
def rfc3339(at, digits=""):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + digits + "Z"
class Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        now = time.time()
        step, gone = int(now * 10) % 1000000, now - BEGIN
        seconds = {"initialization": 1.5, "peerWait": 0.5, "checkpointRestore": 0.2, "lostWork": 0.01,
                   "dataLoading": 0.01 * gone, "step": 0.9 * gone, "evaluation": 0.03 * gone, "checkpointSave": 0.05 * gone}
        body = json.dumps({"steps": 1000000, "step": step, "epoch": step / 1e4, "loss": 2 + 1 / (step + 1), "tokensPerSecond": step,
                           "mfu": 0.4, "secondsLeft": 1000000 - step, "evalLoss": 2.5, "worldSize": 8, "restarts": 0,
                           "lastCheckpointStep": step, "lastCheckpointTime": "2026-01-01T00:00:00Z", "lastProgressTime": rfc3339(now),
                           "processStartTime": rfc3339(BEGIN, ".123456"), "resumedStep": 0,
                           "seconds": {kind: round(spent, 3) for kind, spent in seconds.items()}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
Server(("127.0.0.1", int(sys.argv[1])), Agent).serve_forever()
END
agent=$!
trap 'kill "$agent"; operator_world_end' EXIT

operator_world
row "load of this machine of $(nproc) cores at the start" "$(cut -d' ' -f1 /proc/loadavg)"
operator_start --progress-seconds=0
operator_ready
for i in $(seq "$jobs"); do
    jq -nc --arg name "many-$i" --argjson port "$port" '{apiVersion: "kubeflow.org/v1", kind: "PyTorchJob", metadata: {name: $name}, spec:
        {pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {containers: [{name: "pytorch", image: "image:1", ports:
        [{name: "metrics", containerPort: $port}]}]}}}}}}'
done | xargs -P 4 -d '\n' -n 1 curl -sS --fail -o /dev/null --unix-socket "$socket" -X POST -H 'Content-Type: application/json' \
    "http://localhost$jobs_path" --data-binary
wait_for 300 pods_are_there || die "no pods"
for i in $(seq "$jobs"); do printf 'url = "http://localhost%s/many-%s-master-0/status"\noutput = "/dev/null"\n' "$pods_path" "$i"; done |
    curl -sS --fail --fail-early --unix-socket "$socket" -X PATCH -H 'Content-Type: application/merge-patch+json' -K - --data-binary '{"status":
        {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}], "containerStatuses": [{"name": "pytorch", "image": "image:1",
        "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}]}}' || die "pods do not run"
wait_for 300 running || die "jobs do not run"
operator_stop

scrape() { # leaves seconds of some ("MEDIAN; WORST") in $scrape_s, bytes of the worst in $scrape_bytes, and a scrape's lines in $series
    local page
    read -r scrape_bytes scrape_s <<<"$(for _ in $(seq "$scrapes"); do
        curl -sS --fail -o /dev/null -w '%{time_total} %{size_download}\n' "http://127.0.0.1:$metrics/metrics"
    done | sort -g | awk '{ s[NR] = $1; bytes = $2 } END { print bytes, s[int((NR + 1) / 2)] "; " s[NR] }')"
    page=$(curl -sS --fail "http://127.0.0.1:$metrics/metrics") || die "no /metrics"
    series=$(grep -vc '^#' <<<"$page")
}
measure() { # FLAGS...: leaves what was measured in $kib, $own, $api, $asked and $cpu, and what scrape leaves
    operator_start "$@"
    operator_ready
    wait_for 60 running
    if [ "${*: -1}" = --progress-seconds=0 ]; then
        sleep $((every + 5))
        wait_for 120 at_rest
    else
        sleep $((every * answers + 5 - seconds)) # the rest of the answers come while it is measured
    fi
    local api_before asks_before cpu_before
    api_before=$(requests) asks_before=$(asks) cpu_before=$(cpu_ms)
    sleep "$seconds"
    api=$(($(requests) - api_before)) asked=$(($(asks) - asks_before)) cpu=$(($(cpu_ms) - cpu_before)) kib=$(memory_kib) own=$(own_kib)
    scrape
    operator_stop
}
per_second() { awk "BEGIN { printf \"%.1f\", $1 / $seconds }"; }
mib() { awk "BEGIN { printf \"%.1f MiB\", $1 / 1024 }"; }
measure --progress-seconds=0
before=$kib own_before=$own
row "$jobs running jobs, none asked, with the page served: memory" "$(mib "$before")"
row "... API requests/s" "$(per_second "$api")"
measure --progress-seconds="$every"
row "$jobs running jobs, asked $answers times, every $every s, with the page served: memory" "$(mib "$kib")"
row "... more than before" "$(mib "$((kib - before))")"
row "... of its own, without pages of programs and libraries: before; now" "$(mib "$own_before"); $(mib "$own")"
row "... the asker's requests to pods/s" "$(per_second "$asked")"
row "... API requests/s" "$(per_second "$api")"
row "... CPU time, ms a second" "$(per_second "$cpu")"
row "... /metrics over HTTP, $scrapes times: seconds, median; worst" "$scrape_s"
row "... bytes; series" "$scrape_bytes; $series"
row "load of this machine at the end" "$(cut -d' ' -f1 /proc/loadavg)"
