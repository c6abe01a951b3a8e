#!/bin/bash
# A storm over real pods: six blows, each beside a checkpoint, in an order that a seed decides. The job ends with the weights of
# one to which nothing happened.
# shellcheck source=tests/pods/node.sh
. "$(dirname "$0")/node.sh"
# shellcheck source=tests/pods/jobs.sh
. tests/pods/jobs.sh
seed=${SEED:-20261123}
kinds=(rank launcher stopped-rank pod operator server)
mapfile -t blows < <(PYTHONDONTWRITEBYTECODE=1 python3 tests/storm/schedule.py "$seed" "${#kinds[@]}" 2 "${kinds[@]}")
echo "# seed $seed: ${blows[*]}"
check "there is a blow of each kind" test "${#blows[@]}" -eq "${#kinds[@]}"
keeps='workers(1) | containers(.args += ["--memory_every_steps=1", "--memory_buddies"] | .env += [{name: "PET_MAX_RESTARTS", value: "20"}])'
check "calm: apply" apply calm "$keeps"
check "storm: apply" apply storm "held | $keeps"
mkdir "$work/storm/go" && chmod 777 "$work/storm/go"

# pass STEPS: beyond that checkpoint, and those that a pod makes which is asked to end before the next
pass() { local n; for n in 0 1 2 3; do touch "$work/storm/go/mnist_cnn-$(($1 + n))steps"; done; }
at() { compgen -G "$work/storm/*/mnist_cnn-$1steps/COMPLETE"; } # STEPS
uid() { kubectl get pod "storm-$1" -o jsonpath='{.metadata.uid}'; }
blow() { # KIND POD STEPS: and lets the run go on
    case $1 in
    rank | launcher) kill -KILL "$(victim "$(uid "$2")" "$1")" ;;
    stopped-rank)
        local pid
        pid=$(victim "$(uid "$2")" rank) && kill -STOP "$pid" && pass "$3" && sleep 2 && kill -CONT "$pid"
        ;;
    pod) kubectl delete pod "storm-$2" --wait=false ;;
    operator) kill -KILL "$(processes shoal-operator "$(kubectl -n shoal-system get lease shoal-operator -o jsonpath='{.spec.holderIdentity}' | sed 's/_.*//')" --namespace shoal-system | head -n 1)" ;;
    server)
        cluster_stop kube-apiserver KILL
        pass "$3"
        cluster_start kube-apiserver
        cluster_wait 300 kube-apiserver kubectl get --raw /readyz
        ;;
    esac
    local result=$?
    pass "$3"
    return "$result"
}
step=0
pods=(master-0 worker-0)
for line in "${blows[@]}"; do
    step=$((step + 4))
    read -r kind number <<<"$line"
    pod=${pods[number]}
    row storm "step $step is saved" wait_for 400 at "$step"
    test_clock
    began=$now
    row storm "$kind of $pod" blow "$kind" "$pod" "$step"
    row storm "... the run goes on to step $((step + 4))" wait_for 400 at $((step + 4))
    test_clock
    echo "# $kind: $((now - began)) s to the end of the fourth step after it"
done
rm -r "$work/storm/go" && touch "$work/storm/go"
row storm "the job succeeds" ends storm Succeeded
row calm "the job succeeds" ends calm Succeeded
row storm "the weights are those of the undisturbed run" same storm calm
tap_done
