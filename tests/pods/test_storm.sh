#!/bin/bash
# A storm over real pods: KILLS blows (6), each beside a checkpoint, in an order that a seed decides. The job ends with the weights of
# one to which nothing happened, and a ledger says what each blow cost.
# shellcheck source=tests/pods/node.sh
. "$(dirname "$0")/node.sh"
# shellcheck source=tests/pods/jobs.sh
. tests/pods/jobs.sh
export PYTHONDONTWRITEBYTECODE=1
seed=${SEED:-18} kills=${KILLS:-6} each=4 # steps between two blows
kinds=(rank stopped-rank cut-off-rank launcher pod operator stopped-operator cut-off-operator server stopped-server cut-off-server)
mapfile -t blows < <(python3 tests/storm/schedule.py "$seed" "$kills" 2 "${kinds[@]}")
echo "# seed $seed: ${blows[*]}"
check "there are $kills blows" test "${#blows[@]}" -eq "$kills"
# an epoch has 24 steps
keeps="workers(1) | containers(.args += [\"--memory_every_steps=1\", \"--memory_buddies\", \"--epochs=$((each * (kills + 2) / 24 + 2))\",
    \"--logging_steps=1\", \"--logging.jsonl=/workspace/checkpoints/steps.jsonl\"] | .env += [{name: \"PET_MAX_RESTARTS\", value: \"$((kills + 10))\"}])"
check "calm: apply" apply calm "$keeps"
check "storm: apply" apply storm "held | $keeps"
mkdir "$work/storm/go" && chmod 777 "$work/storm/go"
python3 tests/storm/steps.py "$work/storm/steps.jsonl" >"$work/steps" &
reader=$!

# pass STEPS: beyond that checkpoint, and those that a pod makes which is asked to end before the next
pass() { local n; for ((n = 0; n < each; n++)); do touch "$work/storm/go/mnist_cnn-$(($1 + n))steps"; done; }
at() { compgen -G "$work/storm/*/mnist_cnn-$1steps/COMPLETE"; } # STEPS
# the process of the operator that leads
operator() {
    local holder
    holder=$(kubectl -n shoal-system get lease shoal-operator -o jsonpath='{.spec.holderIdentity}') &&
        processes shoal-operator "${holder%%_*}" --namespace shoal-system | head -n 1
}
# strike KIND STEPS COMMAND...: notes when it came, and does it
strike() { echo "$(cut -d ' ' -f 1 /proc/uptime) $2 $1" >>"$work/blows" && "${@:3}"; }
# Lets the run on when the kubelet has asked the pod to end, which could not while its checkpoint is held; and is over when there is
# another pod: those that stand still next may be needed to make it.
replace() { # POD STEPS
    local old
    old=$(uid "storm-$1") && kubectl delete pod "storm-$1" --wait=false && wait_for 200 is_killed "$old" && pass "$2" && wait_for 400 is_new "$1" "$old"
}
is_new() { # POD UID
    local now
    now=$(kubectl get pod "storm-$1" -o jsonpath='{.metadata.uid} {.status.phase}') && [ "$now" != "$2 Running" ] && [[ $now == *" Running" ]]
}
# until the run has come to its next checkpoint, without what stands still
stand_still() { pass "$1" && wait_for 400 at $(($1 + each)); } # STEPS
ready() { cluster_wait 300 kube-apiserver kubectl get --raw /readyz; }
blow() { # KIND POD STEPS: and lets the run go on
    local pid server
    server=$(<"$cluster/run/kube-apiserver.pid")
    case $1 in
    *rank) pid=$(victim "$(uid "storm-$2")" rank) || return ;;
    launcher) pid=$(victim "$(uid "storm-$2")" launcher) || return ;;
    *operator) pid=$(operator) && [ -n "$pid" ] || return ;;
    esac
    case $1 in
    rank | launcher | operator) strike "$1" "$3" kill -KILL "$pid" ;;
    stopped-rank) strike "$1" "$3" kill -STOP "$pid" && pass "$3" && sleep 2 && kill -CONT "$pid" ;;
    cut-off-rank | cut-off-operator) strike "$1" "$3" wait_for 200 tests/storm/cut_off.py "$pid" ;;
    pod) strike "$1" "$3" replace "$2" "$3" ;;
    stopped-operator) strike "$1" "$3" kill -STOP "$pid" && stand_still "$3" && kill -CONT "$pid" ;;
    server) strike "$1" "$3" cluster_stop kube-apiserver KILL && stand_still "$3" && cluster_start kube-apiserver && ready ;;
    stopped-server) strike "$1" "$3" cluster_signal kube-apiserver STOP && stand_still "$3" && cluster_signal kube-apiserver CONT && ready ;;
    cut-off-server) strike "$1" "$3" tests/storm/cut_off.py "$server" && pass "$3" && ready ;;
    esac
    local result=$?
    pass "$3"
    return "$result"
}
step=0
pods=(master-0 worker-0)
for line in "${blows[@]}"; do
    step=$((step + each))
    read -r kind number <<<"$line"
    pod=${pods[number]}
    row storm "step $step is saved" wait_for 400 at "$step"
    row storm "$kind of $pod" blow "$kind" "$pod" "$step"
    row storm "... the run goes on to step $((step + each))" wait_for 400 at $((step + each))
done
rm -r "$work/storm/go" && touch "$work/storm/go"
row storm "the job succeeds" ends storm Succeeded
row calm "the job succeeds" ends calm Succeeded
kill "$reader"
ledger() { python3 tests/storm/ledger.py "$work/blows" "$work/steps" >"$work/ledger" || { cat "$work/blows" "$work/steps"; return 1; }; }
check "behind each blow is a step, and no start lost more than were in flight" ledger
sed 's/^/# /' "$work/ledger"
row storm "the weights are those of the undisturbed run" same storm calm
spent() { kubectl get pytorchjob storm -o json | python3 tests/storm/goodput.py >"$work/goodput"; }
row storm "each second has a kind, and they add up to the job's life within 1 %" spent
sed 's/^/# /' "$work/goodput"
for kind in step recovery; do row storm "... $kind among them" contains "$work/goodput" "$kind "; done
tap_done
