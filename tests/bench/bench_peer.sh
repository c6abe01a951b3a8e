#!/bin/bash
# shellcheck disable=SC2119 # operator_start and operator_stop without arguments are meant so
# bench_peer.sh PROGRAM CRD: the real training operator (tests/cluster/peer/peer.sh) and ours in turn, twice, on the same API server: requests
# of a job's life, and a burst of 50 jobs of 8. Its limits of requests are lifted. As root. Done by hand: no test needs it.
# shellcheck source=tests/cluster/peer/peer.sh
. "$(dirname "$0")/../cluster/peer/peer.sh"
peer_alone "$@"
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
# shellcheck source=tests/bench/jobs.sh
. tests/bench/jobs.sh

total() { api GET "$pods_path?limit=1" | jq '.metadata.remainingItemCount + (.items | length)'; }
requests_of_peer() { # every answer that its client for the API server had
    curl -sf "http://127.0.0.1:$peer_metrics/metrics" | awk '/^rest_client_requests_total{/ { sum += $NF } END { print sum + 0 }'
}
no_jobs() {
    kubectl delete pytorchjobs --all --wait=false >/dev/null
    until_is 0 total
    until_at_rest
}
lives() { # WHO
    echo "$1"
    until_at_rest
    requests_row "8 pods, made, run and finished; they stay" life_until_done
    requests_row "8 pods, made, run, finished and removed with their job" whole_life
    burst 50
    no_jobs
}

peer_world >"$work/world.log" 2>&1 || { cat "$work/world.log"; exit 1; }
row "load of this machine of $(nproc) cores at the start" "$(cut -d' ' -f1 /proc/loadavg)"
for _ in 1 2; do
    requests() { requests_of_peer; }
    kubectl replace --validate=false -f "$peer_crd" >/dev/null || exit
    peer_start --kube-api-qps=2000 --kube-api-burst=2000 || exit
    lives "training operator"
    peer_stop
    requests() { metric shoal_operator_api_requests_total; }
    install_crd >"$work/crd.log" 2>&1 || { cat "$work/crd.log"; exit 1; }
    operator_start
    operator_ready || exit
    lives "Shoal"
    operator_stop
done
row "load of this machine at the end" "$(cut -d' ' -f1 /proc/loadavg)"
