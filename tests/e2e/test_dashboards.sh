#!/bin/bash
# shellcheck disable=SC2119,SC2154,SC2016 # operator.sh's and tap.sh's; the variables in quotes are jq's
# Every panel of every dashboard on a real Prometheus: Debian's, which finds operator and agents as deploy/monitoring says,
# asked as Grafana asks it. The API server and the operator are real; the test is the kubelet, and the agents are processes of
# this machine with the environment of their pods, on the CPU and on emulated GPUs, whose NVML is a fake.
# With TABLE=FILE, all panels and what they showed are written there (make dashboards-table).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
for program in prometheus prometheus-alertmanager kube-apiserver; do
    command -v $program >/dev/null || { skip "dashboards on a real Prometheus" "there is no $program"; tap_done; }
done
for part in emulation/libshoal_cuda.so emulation/libnccl.so.2 fakes/libnvidia-ml.so.1; do
    [ -e "$BUILD/$part" ] || { skip "dashboards on a real Prometheus" "this build has no emulated GPU: no $part"; tap_done; }
done
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
# shellcheck source=tests/e2e/tokens.sh
. tests/e2e/tokens.sh
few_images
agents=() prometheus=() # their processes
trap 'kill -KILL "${agents[@]}" "${prometheus[@]}" 2>/dev/null; operator_world_end' EXIT
monitoring=deploy/monitoring
network=127.$((RANDOM % 200 + 20)).$((RANDOM % 250)) # each pod has an address of its own there, so that ports are as in a cluster

# ---- the pods: of the operator as deploy/operator makes them, of three jobs as the operator does
operator_world
operator_start --metrics-bind-address="$network.1:8080" --progress-seconds=1
check "the operator is ready" operator_ready
gives_address() { # NAMESPACE POD ADDRESS
    wait_for 60 api PATCH "/api/v1/namespaces/$1/pods/$2/status" '{"status": {"phase": "Running", "podIP": "'"$3"'", "podIPs": [{"ip": "'"$3"'"}]}}'
}
operator_pod() {
    kubectl create namespace shoal-system && wait_for 60 kubectl get serviceaccount default --namespace shoal-system &&
        kubectl create --dry-run=client -o json -f deploy/operator/deployment.yaml | jq '{apiVersion: "v1", kind: "Pod", spec: .spec.template.spec,
            metadata: (.spec.template.metadata + {name: "shoal-operator-0", namespace: "shoal-system"})} | .spec.serviceAccountName = "default"' |
        kubectl create -f - && gives_address shoal-system shoal-operator-0 "$network.1"
}
check "the operator has a pod" operator_pod
job mnist 1 0 OnFailure
job llama 1 0 OnFailure
job dcgm 1 0 OnFailure
declare -A address=([mnist]="$network.2" [llama]="$network.3" [dcgm]="$network.4")
runs() { comes "$1-master-0" pods "$1" && play "$1-master-0" running && gives_address default "$1-master-0" "${address[$1]}"; } # JOB
check "a job on CPUs has a pod" runs mnist
check "a job on GPUs" runs llama
check "a job whose metrics are called as a DCGM exporter's" runs dcgm
ports=()
agent() { # JOB VARIABLE=VALUE... COMMAND...: in its pod's environment
    local pod=$1-master-0 at=${address[$1]} checkpoints=$work/$1 environment
    shift
    ports+=("$(free_port "${ports[@]}")")
    readarray -t environment < <(pod "$pod" '.spec.containers[0].env[] | select(.value) | "\(.name)=\(.value)"')
    env "${environment[@]}" HOSTNAME="$pod" MASTER_ADDR=127.0.0.1 MASTER_PORT="${ports[-1]}" "$@" --nproc_per_node 2 --epochs 1000000 \
        --prometheus_addr "$at" --checkpoint_dir "$checkpoints" >"$work/$pod.log" 2>&1 &
    agents+=($!)
}
agent mnist shoal-agent --preset mnist --device cpu --threads 1 --data.root "$data" --train_size 512 --eval_size 32 --batch_size 32 --save_steps 4
gpu() { # JOB ARG...
    agent "$1" SHOAL_CUDA_LIBRARY="$BUILD/emulation/libshoal_cuda.so" SHOAL_CUDA_LIBRARY_PATH="$BUILD/emulation:$BUILD/fakes" FAKE_NVML=xid \
        SHOAL_EMULATION="gpus=2,name=NVIDIA H100 (emulated)" shoal-agent --model.name_or_path "$PWD/tests/data/pretrained/llama_sharded" \
        --device=cuda --gpu_interval 0.5 --data.dataset "$work/tokens" --data.format llmc_bin --max_seq_length 16 --train_batch_size 2 \
        --eval_strategy steps --eval_steps 5 --eval_size 4 --save_steps 5 --mixed_precision no "${@:2}"
}
mkdir "$work/tokens"
cp "$work/tokens.bin" "$work/tokens/train.bin"
mv "$work/tokens.bin" "$work/tokens/validation.bin"
gpu llama
gpu dcgm --metric_names dcgm

# ---- what goes wrong: a rank dies, hardware is bad
rank_dies() { wait_for 120 contains "$work/mnist-master-0.log" "Checkpoint saved" && kill -KILL "$(pgrep --parent "${agents[0]}" | tail -n 1)"; }
check "a rank dies" rank_dies
bind() { api POST "$pods_path/$1/binding" '{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "'"$1"'"}, "target": {"kind": "Node", "name": "'"$2"'"}}'; }
node_is_left() { # its pod is made again, and stays without an address
    api POST /api/v1/nodes '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ill"}}' && job sick 1 0 OnFailure && comes sick-master-0 pods sick && bind sick-master-0 ill && play sick-master-0 hardware "GPU 3 reports Xid 79" &&
        tells sick "NodeAvoided Node ill"
}
check "a job leaves a node" node_is_left

# ---- pods that are not asked, and one at an IPv6 address, which is
pod_like() { # NAME PHASE ADDRESS [FILTER]: in namespace others, as mnist's; FILTER changes it
    kubectl get pod mnist-master-0 -o json | jq '{apiVersion, kind, spec, metadata: {name: "'"$1"'", namespace: "others", labels: .metadata.labels}}
            | del(.spec.nodeName, .spec.serviceAccountName, .spec.serviceAccount, .spec.volumes, .spec.containers[].volumeMounts,
                .spec.initContainers) | '"${4:-.}" |
        kubectl create -f - && wait_for 60 api PATCH "/api/v1/namespaces/others/pods/$1/status" \
        '{"status": {"phase": "'"$2"'", "podIP": "'"$3"'", "podIPs": [{"ip": "'"$3"'"}]}}'
}
others() {
    kubectl create namespace others && wait_for 60 kubectl get serviceaccount default --namespace others &&
        pod_like six Running fd00::6 && pod_like ended Succeeded "$network.10" && pod_like pending Pending "$network.11" &&
        pod_like foreign Running "$network.12" 'del(.metadata.labels["training.kubeflow.org/operator-name"])' &&
        pod_like portless Running "$network.13" '.spec.containers[].ports = [{containerPort: 80}]'
}
check "there are pods that are no agents" others

# ---- Prometheus, which finds the pods by asking the API server, with no more rights than docs/monitoring.md names. The jobs are as
# written but for a shorter interval, and for where the API server is, as it does not run in a pod.
may_read_pods() {
    kubectl create clusterrole prometheus --verb=get,list,watch --resource=pods &&
        kubectl create clusterrolebinding prometheus --clusterrole=prometheus --user=prometheus &&
        sed "s/^  user:\$/&\n    as: prometheus/" "$KUBECONFIG" >"$work/kubeconfig" && grep -q "as: prometheus" "$work/kubeconfig"
}
check "Prometheus may read pods" may_read_pods
sed '1,/^spec:/d; s/^  //' $monitoring/rules.yaml >"$work/rules.yaml" # as docs/monitoring.md says it
ports+=("$(free_port "${ports[@]}")")
alertmanager=127.0.0.1:${ports[-1]}
{
    echo 'global: {evaluation_interval: 1s}'
    echo 'rule_files: [rules.yaml]'
    echo "alerting: {alertmanagers: [{static_configs: [{targets: ['$alertmanager']}]}]}"
    sed "s/scrape_interval: 15s/scrape_interval: 1s/; s|{role: pod|{kubeconfig_file: $work/kubeconfig, role: pod|" $monitoring/prometheus.yaml
} >"$work/prometheus.yaml"
web=$(free_port "${ports[@]}")
at=http://127.0.0.1:$web
GOMAXPROCS=1 prometheus --config.file="$work/prometheus.yaml" --storage.tsdb.path="$work/tsdb" --web.listen-address="127.0.0.1:$web" \
    --web.max-connections=64 >"$work/prometheus.log" 2>&1 &
prometheus+=($!)
echo '{route: {receiver: nobody}, receivers: [{name: nobody}]}' >"$work/alertmanager.yaml"
GOMAXPROCS=1 prometheus-alertmanager --config.file="$work/alertmanager.yaml" --storage.path="$work/alertmanager" --web.listen-address="$alertmanager" \
    --cluster.listen-address= >"$work/alertmanager.log" 2>&1 &
prometheus+=($!)
check "Prometheus takes scrape configs and rules" wait_for 60 curl -sf "$at/-/ready"

# answer PATH PARAMETER...: of Prometheus' API; fails on an error.
answer() {
    local path=$1 parameter all=()
    shift
    for parameter; do all+=(--data-urlencode "$parameter"); done
    curl -sSfG "$at/api/v1/$path" "${all[@]}" | jq -e 'select(.status == "success") | .data'
}
series() { answer query "query=$1" | jq '.result | length'; } # EXPRESSION: how many it has now
pods_seen() { # what it asks, and what of others' it leaves alone
    answer targets | jq -r '.activeTargets[].scrapeUrl, (.droppedTargets[].discoveredLabels
        | select(.__meta_kubernetes_namespace == "others") | "not " + .__meta_kubernetes_pod_name)' | sort -u
}
asked=("http://$network".{1:8080,{2,3,4}:9401}/metrics "http://[fd00::6]:9401/metrics")
printf '%s\n' "${asked[@]}" not\ {ended,foreign,pending,portless} | sort >"$work/pods"
sees_all() { diff <(pods_seen) "$work/pods"; }
finds_all() { wait_for 120 sees_all >/dev/null || { sees_all; tail -n 5 "$work/prometheus.log"; return 1; }; }
check "... and finds operator and agents, and nothing else" finds_all
answered() { [ "$(series up)" = 4 ] && [ "$(series 'up == 1')" = 4 ]; }
is_answered() {
    kubectl delete pod six --namespace others --grace-period=0 --force || return # nobody is there
    wait_for 120 answered || { answer targets | jq '.activeTargets[] | {labels, health, lastError}'; tail -n 5 "$work"/*-0.log; return 1; }
}
check "... and gets an answer of each" is_answered

# ---- the panels, as Grafana asks for them
grafana() { jq -L tests/e2e/dashboards "$1" "${@:2}"; } # FILTER ...: with grafana.jq
# values FILE [JOB]: of a dashboard's variables, with all of each chosen, of jobs but JOB.
values() {
    local values='{}' name label selector chosen
    while read -r name label selector; do
        selector=$(grafana -rn --arg s "$selector" --argjson v "$values" 'include "grafana"; $s | filled($v; "4s")')
        chosen=$(answer "label/$label/values" "match[]=$selector" | jq -c .) || return
        [ "$chosen" != '[]' ] || { echo "$1: the variable $name has no values"; return 1; }
        [ "$name" != job ] || [ -z "${2-}" ] || chosen="[\"$2\"]"
        values=$(jq -c --arg n "$name" --argjson c "$chosen" '.[$n] = $c' <<<"$values")
    done < <(grafana -r 'include "grafana"; variables' "$1")
    echo "$values"
}
# asked FILE [JOB]: prints all that a dashboard's panels ask for, with the answers' newest numbers. A scrape a second makes
# $__rate_interval 4 s. Of a JOB, only what may have a DCGM exporter's names.
asked() {
    local now=$EPOCHSECONDS some=.
    [ -z "${2-}" ] || some='map(select(.expr | test("DCGM_")))'
    rm -rf "$work/answers"
    mkdir "$work/answers"
    values "$@" >"$work/values" || { cat "$work/values"; return 1; }
    grafana --argjson v "$(<"$work/values")" 'include "grafana"; questions($v; "4s") | '"$some" "$1" >"$work/questions" || return
    grafana -r --arg at "$at" --argjson now "$now" --arg folder "$work/answers" 'include "grafana"; requests($at; $now - 20; $now; $folder)' \
        "$work/questions" >"$work/requests" || return
    curl -sS --config "$work/requests" || return
    grafana -c --arg job "${2-}" --slurpfile questions "$work/questions" -n 'include "grafana"; [inputs] as $answers | $questions[0] | to_entries[]
        | .value + ($answers[.key] | if .status == "success" then .data | shown else {error, series: 0} end)
        | if $job == "" then . else .dashboard += ", names of DCGM" end' \
        $(seq -f "$work/answers/%g.json" 0 $(($(jq length "$work/questions") - 1)))
}
all_asked() {
    local dashboard
    for dashboard in "$monitoring"/dashboards/*.json tests/e2e/dashboards/*.json; do asked "$dashboard" || return; done
    for dashboard in "$monitoring"/dashboards/*.json; do
        ! grep -q DCGM_ "$dashboard" || asked "$dashboard" dcgm || return
    done
}
nothing() { jq -r 'select(.series == 0) | "\(.dashboard) / \(.row) / \(.panel): \(.error // "no data"): \(.expr)"' "$work/panels"; }
have_data() { all_asked >"$work/panels" && [ -s "$work/panels" ] && [ -z "$(nothing)" ]; }
every_panel() { wait_for 120 have_data || { nothing || cat "$work/panels"; return 1; }; }
check "every panel of every dashboard has data" every_panel
page() {
    sed '/^## /,$d' docs/dashboards.md
    grafana -rs 'include "grafana"; group_by(.dashboard)[] | table' "$work/panels" | sed '$d'
}
listed() { grep '^[#|]' "$1" | cut -d'|' -f1-7; } # PAGE: its panels, without what they showed
page >"$work/page.md"
[ -z "${TABLE-}" ] || cp "$work/page.md" "$TABLE"
check "docs/dashboards.md lists them (make dashboards-table)" diff <(listed docs/dashboards.md) <(listed "$work/page.md")

# ---- the job that was left without a pod on a node: its time goes on, though nothing of it is written
waits() { [ "$(series 'increase(shoal_operator_job_seconds_total{job_name="sick", kind=~"pending|recovery|containerStart"}[10s]) > 5')" -ge 1 ]; }
check "a job that waits for a node counts while it waits" wait_for 60 waits

# ---- what dashboard 25617 says it needs: each family that a DCGM exporter has unless it is told otherwise, with the labels of a
# GPU and of whose it is. Licences of virtual GPUs are not an agent's to know.
families=(SM_CLOCK MEM_CLOCK MEMORY_TEMP GPU_TEMP POWER_USAGE TOTAL_ENERGY_CONSUMPTION PCIE_REPLAY_COUNTER GPU_UTIL MEM_COPY_UTIL ENC_UTIL DEC_UTIL
    XID_ERRORS FB_FREE FB_USED FB_RESERVED NVLINK_BANDWIDTH_TOTAL UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS ROW_REMAP_FAILURE)
has_families() {
    local family labels
    labels=$(printf '%s!="", ' gpu UUID Hostname hostname modelName exported_namespace exported_pod exported_container)
    for family in "${families[@]/#/DCGM_FI_DEV_}" DCGM_FI_PROF_{GR_ENGINE,PIPE_TENSOR,DRAM}_ACTIVE DCGM_FI_PROF_PCIE_{T,R}X_BYTES; do
        [ "$(series "$family{$labels exported_pod=\"dcgm-master-0\", exported_namespace=\"default\"}")" -gt 0 ] || { echo "no $family"; return 1; }
    done
}
check "every family of a DCGM exporter is there under its name" has_families

# ---- the alerts, as a Prometheus without its operator has them
rules_work() { # and there are some
    answer rules | jq -r '.groups[].rules[] | select(.health != "ok") | "\(.name): \(.lastError)"' | tee "$work/ill"
    [ ! -s "$work/ill" ] && [ "$(answer rules | jq '[.groups[].rules[]] | length')" -gt 10 ]
}
check "Prometheus can evaluate each alert" rules_work
fires() { [ "$(series "ALERTS{alertname=\"ShoalGpuXid\", alertstate=\"firing\", severity=\"critical\", job_name=\"$1\"}")" -gt 0 ]; } # JOB
check "a GPU that fell off the bus alerts" wait_for 60 fires llama
check "... by a DCGM exporter's name, too" wait_for 60 fires dcgm
told() {
    curl -sSf "http://$alertmanager/api/v2/alerts" | jq -e 'any(.[]; .labels.alertname == "ShoalGpuXid" and .labels.job_name == "llama"
        and .annotations.runbook == "docs/troubleshooting.md#alert-shoalgpuxid")'
}
is_told() { wait_for 120 told >/dev/null || { tail -n 5 "$work/alertmanager.log" "$work/prometheus.log"; return 1; }; }
check "... and Alertmanager has it, with its runbook" is_told
tap_done
