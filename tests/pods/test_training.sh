#!/bin/bash
# Training in real pods: what README and docs/install.md say, on a node of this machine, and through kills of whatever can
# be killed. Whatever happened in between, a job that succeeds has the weights of one to which nothing happened.
# shellcheck source=tests/pods/node.sh
. "$(dirname "$0")/node.sh"
image_mib() { echo $(($(stat -c %s "build/image/$1.tar") >> 20)); }
check "the operator's image is small ($(image_mib shoal-operator) MiB)" test "$(image_mib shoal-operator)" -le 25

# shellcheck source=tests/pods/jobs.sh
. tests/pods/jobs.sh
fate() { kubectl get pytorchjob "$1" -o jsonpath='{.status.conditions[*].message}' | grep -F -- "$2"; }

# ---- a whole life
check "kubectl apply -k of the MNIST overlay" apply whole
# three more: one to compare with, what fails again and again, and what goes when it is done
check "two: apply" apply two 'workers(1)'
check "limited: apply, with the document's backoffLimit" apply limited \
    'del(.spec.runPolicy.backoffLimit) | .spec.backoffLimit = 1 | del(.spec.pytorchReplicaSpecs.Worker) | runs("exit 3")'
check "expires: apply, with a time to live" apply expires \
    '.spec.runPolicy.ttlSecondsAfterFinished = 2 | del(.spec.pytorchReplicaSpecs.Worker) | runs("exit 0")'
waits() { kubectl get pod whole-worker-0 -o jsonpath='{.spec.initContainers[0].args}{.spec.initContainers[0].command}' | grep whole-master-0; }
row whole "a worker waits for its master's name" wait_for 120 waits
headless() { kubectl get service whole-master-0 --no-headers | grep -qE 'ClusterIP +None .*23456/TCP'; }
row whole "services are headless" wait_for 120 headless
row whole "the job succeeds" ends whole Succeeded
row whole "the master's log has the tutorial's lines" wait_for 60 logs whole $'^Train Epoch: 6 \tLoss: '
row whole "kubectl get shows NAME STATE AGE" bash -c "kubectl get pytorchjob whole --no-headers | grep -qE '^whole +Succeeded +[0-9]+'"
row whole "kubectl describe tells the story" bash -c "kubectl describe pytorchjob whole | grep -q 'Created pod: whole-worker-2'"
row whole "... with the first step" bash -c "kubectl describe pytorchjob whole | grep -q 'TrainingStarted.* trains on 4 ranks: step '"
row whole "kubectl get -o wide shows the last step of all, which its pod left behind" bash -c "kubectl get pytorchjob whole -o wide --no-headers | grep -E ' ([1-9][0-9]*)/\\1 '"
row two "the job succeeds" ends two Succeeded

# ---- kill -9 of the agent, in the master and in a worker, under each policy; two pods a job
# Each line: JOB POLICY SCOPE VICTIM WHO. First those that never end, last those that could start again where they must not.
# WHO is killed: an agent that is alone in its container, which leaves restarts to the kubelet and the operator; a launcher,
# whose container ends while its peers' go on; a rank, after which no container ends.
killed() {
    cat <<END
always-master Always Replica master-0 alone
always-worker Always Replica worker-0 alone
on-failure-master OnFailure Replica master-0 alone
on-failure-worker OnFailure Replica worker-0 alone
exit-code-master ExitCode Replica master-0 alone
exit-code-worker ExitCode Replica worker-0 alone
launcher-master OnFailure Replica master-0 launcher
launcher-worker ExitCode Replica worker-0 launcher
group-master OnFailure Job master-0 alone
group-worker ExitCode Job worker-0 launcher
rank-master OnFailure Replica master-0 rank
rank-worker Never Job worker-0 rank
never-master Never Replica master-0 alone
never-worker Never Replica worker-0 alone
END
}
# strike JOB VICTIM WHO: kills it once there is a checkpoint; beside this shell, which struck() asks about it.
strike() {
    {
        wait_for 300 count "$1" 2 && uids "$1" >"$work/$1.uids" && wait_for 400 saved "$1" &&
            kill -KILL "$(victim "$(sed -n "s/^$1-$2 //p" "$work/$1.uids")" "$3")"
        echo $? >"$work/$1.struck"
        let_go "$1"
    } >"$work/$1.strike" 2>&1 &
}
struck() {
    wait_for 720 test -e "$work/$1.struck"
    cat "$work/$1.strike"
    [ "$(<"$work/$1.struck")" = 0 ]
}
lives_on() { # JOB VICTIM: as the same pod; more than 1 if the server does not tell
    local before now
    before=$(grep -F "$1-$2 " "$work/$1.uids") && now=$(uids "$1") || return 2
    grep -qF "$before" <<<"$now"
}
again() { lives_on "$1" "$2" && [ "$(restarts "$1-$2")" -ge 1 ]; }
another() { answers_no lives_on "$1" "$2"; }
group() { another "$1" master-0 && another "$1" worker-0 && [ "$(kubectl get pods -l "$(of_job "$1"),shoal.dev/restart-attempt=1" -o name | wc -l)" -eq 2 ]; }
untouched() { lives_on "$1" master-0 && lives_on "$1" worker-0 && [ "$(restarts "$1-master-0")$(restarts "$1-worker-0")" = 00 ]; }
never_done() { answers_no is_state "$1" Succeeded && kubectl delete pytorchjob "$1" --wait=false; }

lives() { # JOB POLICY SCOPE VICTIM WHO: after the kill
    if [ "$2/$5" = Never/alone ]; then
        row "$1" "the job fails" ends "$1" Failed
        row "$1" "... which is told" fate "$1" "PyTorchJob $1 is failed because"
        row "$1" "... and nothing starts again" untouched "$1"
        return
    fi
    if [ "$2" = Always ]; then # a success is started again, too, and so never the job's
        row "$1" "the model is saved all the same" wait_for 480 test -e "$work/$1/mnist_cnn.safetensors"
    else
        row "$1" "the job succeeds all the same" ends "$1" Succeeded
    fi
    case $2/$3/$5 in
    */rank) row "$1" "no container started again" untouched "$1" ;;
    */Job/*) row "$1" "all started again as attempt 1" group "$1" ;;
    ExitCode/*/*) row "$1" "another pod came" another "$1" "$4" ;;
    *) row "$1" "the same pod started again" wait_for 120 again "$1" "$4" ;;
    esac
    row "$1" "it resumed" wait_for 120 resumed "$1"
    row "$1" "the weights are those of the undisturbed run" wait_for 120 same "$1" two
    [ "$2" != Always ] || row "$1" "the job goes on" never_done "$1"
}

check "deleted: apply" apply deleted held
{
    wait_for 400 saved deleted && kubectl delete pod deleted-worker-0 --wait=false
    echo $? >"$work/deleted.struck"
    let_go deleted
} >"$work/deleted.strike" 2>&1 &
# A pod that is forgotten at once, as one of a lost node: another one comes while its containers may still be ending.
check "lost: apply" apply lost held
containers() { # JOB POD: of the others
    kubectl get pods -l "$(of_job "$1")" -o jsonpath='{range .items[*]}{.metadata.name} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}{"\n"}{end}' |
        grep -vF "$1-$2 "
}
told() { containers "$@" >"$work/told" && awk 'NF < 3 { exit 1 }' "$work/told"; } # a kubelet that is busy tells it later
{
    wait_for 400 saved lost && wait_for 60 told lost worker-1 && containers lost worker-1 >"$work/lost.containers" && uids lost >"$work/lost.uids" &&
        kubectl delete pod lost-worker-1 --grace-period=0 --force
    echo $? >"$work/lost.struck"
    let_go lost
} >"$work/lost.strike" 2>&1 &
killed >"$work/wave"
while read -r name policy scope victim who; do
    only=.
    [ "$who" != alone ] || only=alone
    check "$name: apply" apply "$name" "policy(\"$policy\") | scope(\"$scope\") | workers(1) | held | $only"
    strike "$name" "$victim" "$who"
done <"$work/wave"
row deleted "a checkpoint appears" wait_for 400 saved deleted
row deleted "kubectl delete pod" struck deleted
while read -r name policy scope victim who; do
    row "$name" "kill -9 of the agent in $victim ($who), under $policy" struck "$name"
    lives "$name" "$policy" "$scope" "$victim" "$who"
done <"$work/wave"

row limited "the job fails" ends limited Failed
row limited "... at its limit" fate limited "Job limited has failed because it has reached the specified backoff limit"
row limited "... after one restart of its container" test "$(restarts limited-master-0)" -ge 1
no_pods() { [ -z "$(kubectl get pods -l "$(of_job "$1")" -o name)" ]; }
gone() { fails 1 NotFound kubectl get pytorchjob "$1" && no_pods "$1"; }
row expires "the job goes after its time to live, and its pod" wait_for 180 gone expires

# ---- the pod that was deleted
row deleted "the job succeeds all the same" ends deleted Succeeded
row deleted "it resumed" wait_for 60 resumed deleted
row deleted "the weights are those of the undisturbed run" same deleted whole

# ---- the one that was lost
others_stay() { containers lost worker-1 | diff "$work/lost.containers" -; }
made() { kubectl get events --field-selector involvedObject.name=lost,reason=SuccessfulCreatePod -o json | jq -e "[.items[].count // 1] | add | ., . == $1"; }
row lost "kubectl delete pod --grace-period=0 --force" struck lost
row lost "the job succeeds all the same" ends lost Succeeded
row lost "another pod came" another lost worker-1
row lost "... the only one that was made again, of four" made 5
row lost "... the others stay in the containers that they had" others_stay
row lost "it resumed" wait_for 60 resumed lost
row lost "the weights are those of the undisturbed run" same lost whole

# ---- a pause, and an API server that goes away meanwhile
# The kinds of a finished job's time add up to it: within 1 %, and 2 s, as times have whole seconds.
# shellcheck disable=SC2016 # the variables are jq's
adds_up() { # JOB
    kubectl get pytorchjob "$1" -o json | jq -e '((.status.completionTime | fromdate) - (.metadata.creationTimestamp | fromdate)) as $wall |
        (.status.training.seconds | add) as $sum | "\($sum) s of \($wall) s", .status.training.seconds, ($sum - $wall | fabs) <= $wall / 100 + 2'
}
suspend() { kubectl patch pytorchjob "$1" --type merge -p "{\"spec\": {\"runPolicy\": {\"suspend\": $2}}}"; }
check "paused: apply" apply paused held
row paused "a checkpoint appears" wait_for 400 saved paused
rank_killed() { uids "$1" >"$work/$1.uids" && kill -KILL "$(victim "$(sed -n "s/^$1-master-0 //p" "$work/$1.uids")" rank)"; }
row paused "kill -9 of a rank" rank_killed paused
again_by_launcher() { [ "$(kubectl get pytorchjob "$1" -o jsonpath='{.status.restarts} {.status.history.restarts}')" = "1 0" ]; }
row paused "... whose restart counts, though no container of it ended" wait_for 180 again_by_launcher paused
row paused "suspend" suspend paused true
let_go paused
cluster_stop kube-apiserver KILL
cluster_start kube-apiserver
check "paused: the API server is back" cluster_wait 300 kube-apiserver kubectl get --raw /readyz
row paused "its pods go" wait_for 180 no_pods paused
paused_for() { # JOB SECONDS: kinds of time are told in seconds, and these pods may end by themselves, at once
    local is since
    read -r is since < <(kubectl get pytorchjob "$1" -o jsonpath='{range .status.conditions[?(@.type=="Suspended")]}{.status} {.lastTransitionTime}{"\n"}{end}') &&
        [ "$is" = True ] && [ $(($(date +%s) - $(date -d "$since" +%s))) -ge "$2" ]
}
row paused "the pause lasts" wait_for 60 paused_for paused 2
row paused "resume" suspend paused false
row paused "the job succeeds all the same" ends paused Succeeded
row paused "it resumed" wait_for 60 resumed paused
row paused "the weights are those of the undisturbed run" same paused whole
row paused "its time adds up, with the kill and the pause in it" adds_up paused
has_kind() { [ "$(kubectl get pytorchjob "$1" -o jsonpath="{.status.training.seconds.$2}")" != "" ]; } # JOB KIND
row paused "... and the pause has a kind of its own" has_kind paused suspended
row rank-master "the time of a job whose rank was killed adds up, too" adds_up rank-master
row rank-master "... and its restart is counted" again_by_launcher rank-master
row lost "... of one whose pod was forgotten" adds_up lost
row limited "... and of one that is no agent's, and failed" adds_up limited
row deleted "... and of one whose pod was deleted" adds_up deleted
row group-worker "... and of one that all started again" adds_up group-worker

# ---- one of two operators is killed while it makes a job's pods: it may only make two of the four
holder() { kubectl -n shoal-system get lease shoal-operator -o jsonpath='{.spec.holderIdentity}'; } # POD_NUMBER
two_operators() { [ "$(kubectl -n shoal-system get deployment shoal-operator -o jsonpath='{.status.readyReplicas}')" -eq 2 ]; }
check "two operators are ready" wait_for 120 two_operators
kubectl create namespace few >/dev/null
kubectl config set-context --current --namespace few >/dev/null
kubectl create quota few --hard=pods=2 >/dev/null
check "halfway: apply" apply halfway
row halfway "two of its four pods are made" wait_for 120 count halfway 2
row halfway "... and the job says what stands in the way" wait_for 120 fate halfway "exceeded quota"
uids halfway >"$work/halfway.uids"
holder >"$work/holder"
kill_leader() { kill -KILL "$(processes shoal-operator "$(sed 's/_.*//' "$work/holder")" --namespace shoal-system | head -n 1)"; }
row halfway "the operator that makes them is killed" kill_leader
kubectl delete quota few >/dev/null
other_holder() { [ "$(holder)" != "$(<"$work/holder")" ]; }
row halfway "another one takes over" wait_for 120 other_holder
row halfway "... and makes the others" wait_for 120 count halfway 4
kept() { [ "$(uids halfway | grep -cFf "$work/halfway.uids")" -eq 2 ]; }
row halfway "... beside the two" kept

# ---- both operators are killed while the whole job restarts: its pods take their time to end
# shellcheck disable=SC2016 # expands in the pods, whose image has nothing but bash
rounds='
say() { echo "$1 $SHOAL_RESTART_COUNT $PET_RDZV_ID" >>/workspace/checkpoints/marks; }
pause() { read -rt "$1" <> <(:); }
trap "pause 20; say end; exit 0" TERM
say begin
lines=3; [ "$SHOAL_RESTART_COUNT" = 0 ] || lines=8
until mapfile -t marks </workspace/checkpoints/marks; [ "${#marks[@]}" -ge "$lines" ]; do pause 0.1; done
[ "$SHOAL_RESTART_COUNT" = 0 ] || exit 0
[ "$HOSTNAME" != rounds-worker-0 ] || exit 138
while :; do pause 1; done
'
check "rounds: apply" apply rounds "del(.spec.pytorchReplicaSpecs.Master) | scope(\"Job\") | runs(\$script) |
    .spec.elasticPolicy = {minReplicas: 3, maxReplicas: 3, rdzvId: \"blue\"}" --arg script "$rounds"
ending() { kubectl get pods -l "$(of_job rounds)" -o jsonpath='{.items[*].metadata.deletionTimestamp}' | grep -q .; }
row rounds "one fails, and all are asked to end" wait_for 120 ending
kill_operators() {
    local pod
    for pod in $(kubectl -n shoal-system get pods -l app.kubernetes.io/component=operator -o jsonpath='{.items[*].metadata.name}'); do
        kill -KILL "$(processes shoal-operator "$pod" --namespace shoal-system | head -n 1)" || return
    done
}
row rounds "both operators are killed" kill_operators
not_yet() { answers_no grep '^begin 1 ' "$work/rounds/marks"; }
row rounds "... before anything started again" not_yet
row rounds "the job succeeds" ends rounds Succeeded
in_order() { # all that began end before any begins again, in a rendezvous of its own
    printf '%s\n' 'begin 0 blue' 'begin 0 blue' 'begin 0 blue' 'end 0 blue' 'end 0 blue' \
        'begin 1 blue-1' 'begin 1 blue-1' 'begin 1 blue-1' | diff - "$work/rounds/marks"
}
row rounds "all had ended before the next attempt began, which has a rendezvous of its own" in_order
one_failure() { [ "$(kubectl get pytorchjob rounds -o jsonpath='{.status.history.failures}')" = 1 ]; }
row rounds "one failure is counted" one_failure
row halfway "the job succeeds" ends halfway Succeeded
row halfway "the weights are those of the undisturbed run" same halfway whole
row halfway "its time adds up, across two operators" adds_up halfway

# ---- ends
check "kubectl delete" kubectl delete pytorchjob --all --all-namespaces
none() { [ -z "$(kubectl get pods,services --all-namespaces -l training.kubeflow.org/operator-name -o name)" ]; }
check "removes all pods and services" wait_for 180 none
tap_done
