#!/bin/bash
# shellcheck disable=SC2119 # operator_start and operator_stop without arguments are meant so
# How the operator gets to its API server and what it may do there: kubeconfigs that are wrong, a missing
# CustomResourceDefinition, missing rights, exactly the rights of deploy/, a token that is replaced; and jobs that an
# older, more permissive CustomResourceDefinition let in.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
operator_world

# ---- kubeconfigs
quiet=(--health-probe-bind-address=0 --metrics-bind-address=0 --ui-bind-address=0)
refused() { # TEXT FLAGS...: it ends at once, with one line
    local text=$1
    shift
    fails 2 "$text" shoal-operator "${quiet[@]}" "$@" || return
    [ "$(shoal-operator "${quiet[@]}" "$@" 2>&1 | wc -l)" -eq 1 ]
}
variant() { # NAME SED_SCRIPT: prints the path of a changed kubeconfig
    sed "$2" "$KUBECONFIG" >"$work/$1.yaml"
    echo "$work/$1.yaml"
}
pki=$cluster/pki
expire() { # a client certificate whose time is over
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /O=system:masters/CN=late \
        -keyout "$work/late.key" -out "$work/late.csr" 2>/dev/null
    mkdir "$work/ca"
    : >"$work/ca/index"
    cat >"$work/ca/config" <<CONFIG
[ca]
default_ca = c
[c]
database = $work/ca/index
new_certs_dir = $work/ca
rand_serial = yes
default_md = sha256
policy = p
[p]
organizationName = optional
commonName = supplied
CONFIG
    openssl ca -batch -config "$work/ca/config" -cert "$pki/ca.crt" -keyfile "$pki/ca.key" -in "$work/late.csr" \
        -startdate 20200101000000Z -enddate 20200201000000Z -notext -out "$work/late.crt" 2>/dev/null
}
expire
openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=another \
    -keyout /dev/null -out "$work/another.crt" 2>/dev/null
check "no such kubeconfig" refused "$work/none: No such file" --kubeconfig "$work/none"
check "a folder for a kubeconfig" refused "$work: Is a directory" --kubeconfig "$work"
check "no such context" refused 'no context "none"' --kubeconfig "$KUBECONFIG" --context none
check "no such CA file" refused "certificate-authority: /no/ca.crt: No such file" \
    --kubeconfig "$(variant no-ca 's|certificate-authority-data: .*|certificate-authority: /no/ca.crt|')"
check "an expired client certificate" refused "client-certificate: " \
    --kubeconfig "$(variant late "s|client-certificate-data: .*|client-certificate: $work/late.crt|;
        s|client-key-data: .*|client-key: $work/late.key|")"
patient() { # TEXT KUBECONFIG: it says so once, is not ready and waits
    local log
    operator_start --kubeconfig "$2"
    log=$work/operator-$((${#operators[@]} - 1)).log
    wait_for 60 grep -F "$1" "$log" && sleep 1 && [ "$(grep -c ' warning ' "$log")" -eq 1 ] &&
        [ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$health/readyz")" = 503 ]
    local result=$?
    operator_stop
    cat "$log"
    [ "$result" -eq 0 ] && [ "$exit_code" -eq 0 ]
}
check "another CA: it waits" patient "SSL certificate problem" \
    "$(variant other-ca "s|certificate-authority-data: .*|certificate-authority: $work/another.crt|")"
check "nobody listens: it waits" patient "Connection refused" "$(variant deaf 's|server: .*|server: https://127.0.0.1:1|')"

# ---- no CustomResourceDefinition
remove_crd >/dev/null
operator_start
log=$work/operator-$((${#operators[@]} - 1)).log
check "without the CRD it says what to do" wait_for 60 grep -F \
    "CustomResourceDefinition pytorchjobs.kubeflow.org installed? (kubectl apply -k deploy/crd, or deploy/before-1.23/crd: see docs/install.md)" "$log"
code_of() { curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$health/$1"; }
check "it is alive" comes 200 code_of healthz
check "but not ready" is 503 code_of readyz
install_crd >/dev/null
kubectl apply -k deploy/operator >/dev/null # the rest of an installation
check "with it, it is" operator_ready
job crd 1 0 Never
check "and works" comes crd-master-0 pods crd
delete_job crd
operator_stop

# ---- rights: a kubeconfig with the token of the ServiceAccount in deploy/
account=/api/v1/namespaces/shoal-system/serviceaccounts
new_token() {
    wait_for 60 api POST $account/shoal-operator/token \
        '{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}' &&
        api POST $account/shoal-operator/token \
            '{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}' |
        jq -r .status.token >"$work/token.new" && mv "$work/token.new" "$work/token"
}
new_token
restricted=$(variant account "s|client-certificate-data: .*|tokenFile: $work/token|; /client-key-data/d")
role=/apis/rbac.authorization.k8s.io/v1/clusterroles/shoal-operator
rules=$(api GET $role | jq -c .rules)
may_not() { # GROUP RESOURCE[/SUBRESOURCE] VERB [NAMESPACE NAME]: as the API server sees it
    api POST /apis/authorization.k8s.io/v1/subjectaccessreviews "$(jq -n --arg g "$1" --arg r "$2" --arg v "$3" --arg n "${4-default}" --arg name "${5-}" '
        {apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec: {user: "system:serviceaccount:shoal-system:shoal-operator",
        resourceAttributes: ({group: $g, verb: $v, namespace: $n, name: $name} + ($r / "/" | {resource: .[0], subresource: .[1]}))}}')" |
        jq -e '.status.allowed | not'
}
take_rights() { # GROUP RESOURCE VERB [GROUP RESOURCE VERB ...]: of one role or several, none twice; returns when they are gone
    local left=$rules i
    for ((i = 1; i < $#; i += 3)); do
        left=$(jq -c --arg r "${*:i+1:1}" --arg v "${*:i+2:1}" 'map(
            if .resources | index($r) then (.resources -= [$r]), (.resources = [$r] | .verbs -= [$v]) else . end
            | select(.resources != [] and .verbs != []))' <<<"$left")
    done
    api PATCH $role "{\"rules\": $left}" >/dev/null
    wait_for 60 may_not "${@: -3}"
}
give_rights() { api PATCH $role "{\"rules\": $rules}" >/dev/null; }
says() { wait_for 60 grep -- "$1.*${2-}" "$log" || { tail -n 5 "$log"; return 1; }; }
restricted_start() { # FLAGS...
    operator_start --kubeconfig "$restricted" --leader-elect "$@"
    log=$work/operator-$((${#operators[@]} - 1)).log
}

take_rights "" pods create
restricted_start
check "ready without a right" operator_ready
job nopods 1 0 OnFailure
check "may not create pods: the event says so" tells nopods 'cannot create resource "pods" in API group ""'
check "and the log" says 'cannot create resource "pods" in API group ""'
give_rights
check "granted: the pod comes" wait_for 60 is nopods-master-0 pods nopods
take_rights kubeflow.org pytorchjobs/status update
play nopods-master-0 running
check "may not write status: the log says so" says 'cannot update resource "pytorchjobs/status" in API group "kubeflow.org"'
give_rights
check "granted: it is written" wait_for 60 is "Created Running" conditions nopods
take_rights "" pods delete
uid=$(pod nopods-master-0 .metadata.uid)
play nopods-master-0 exit 1
check "may not delete pods: the event says so" tells nopods 'cannot delete resource "pods" in API group ""'
check "and the condition" wait_for 60 waits_for nopods 'cannot delete resource "pods" in API group ""'
give_rights
check "granted: another pod comes" wait_for 60 is_new nopods-master-0 "$uid"
check "and the job waits no more" comes "Created Restarting" conditions nopods
operator_stop
take_rights "" pods list
restricted_start
job nosight 1 0 OnFailure
check "may not list pods: the job tells of it" tells nosight 'cannot list resource "pods" in API group ""'
check "as its state" comes "Created Waiting" conditions nosight
check "and so do the metrics" comes 1 metric 'shoal_operator_watch_failing{kind="pods"}'
give_rights
check "granted: its pod comes" wait_for 60 is nosight-master-0 pods nosight
check "and it waits no more" comes Created conditions nosight
check "the metrics too" comes 0 metric 'shoal_operator_watch_failing{kind="pods"}'
operator_stop
take_rights "" services watch
restricted_start
check "may not watch services: the log says so" says 'cannot watch resource "services" in API group ""'
check "it is ready, as it may list them" operator_ready
told=$(grep -c "services" "$log")
sleep 3
check "which is not said again and again" test "$(grep -c services "$log")" -le $((told + 1))
operator_stop
take_rights autoscaling horizontalpodautoscalers list
restricted_start
check "may not list autoscalers: the log says so" says 'cannot list resource "horizontalpodautoscalers"'
check "jobs go on" operator_ready
job scaled 0 1 OnFailure "" "$metered"
check "without autoscalers" comes scaled-worker-0 pods scaled
give_rights
play scaled-worker-0 running
check "granted: they are made" wait_for 60 is 3 autoscaler scaled .spec.maxReplicas
operator_stop

# ---- the Lease
lease=/apis/coordination.k8s.io/v1/namespaces/shoal-system/leases/shoal-operator
lease_role=/apis/rbac.authorization.k8s.io/v1/namespaces/shoal-system/roles/shoal-operator
lease_rules=$(api GET $lease_role | jq -c .rules)
lease_rights() { api PATCH $lease_role "{\"rules\": $1}" >/dev/null; }
lease_verbs() { lease_rights '[{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ['"$1"']}]'; }
api DELETE $lease >/dev/null
lease_verbs '"list"'
wait_for 60 may_not coordination.k8s.io leases get shoal-system shoal-operator
pod_groups scheduling.x-k8s.io v1alpha1 >/dev/null
restricted_start --gang-scheduler-name=coscheduler
check "may not read the Lease: the log says so" says 'leader election: ' 'cannot get resource "leases" in API group "coordination.k8s.io"'
lease_verbs '"get"'
check "may not make it: likewise" says 'leader election: ' 'cannot create resource "leases" in API group "coordination.k8s.io"'
check "it does not lead" comes 0 metric shoal_operator_leader
lease_verbs '"get", "create"'
check "may not renew it: likewise" says 'leader election: ' 'cannot update resource "leases" in API group "coordination.k8s.io"'
lease_rights "$lease_rules"
check "granted: it leads" comes 1 metric shoal_operator_leader

# ---- all other rights at once: a job that needs one is told of it, and comes to what it shall be when it is granted
# Each line: JOB | GROUP | RESOURCE | VERB | EDIT: of the spec, which needs the right | WAITS: the job's state says so, too |
# PATH | what is there in the end
metrics_json='[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]'
needs() {
    cat <<END
more||services|create|{"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}}|waits|$services_path/more-worker-2|Service
less||services|delete|{"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}|waits|$services_path/less-worker-1|404
a-new|autoscaling|horizontalpodautoscalers|create|{"elasticPolicy": {"minReplicas": 1, "maxReplicas": 3, "metrics": $metrics_json}}|waits|$autoscalers_path/a-new|3
a-more|autoscaling|horizontalpodautoscalers|patch|{"elasticPolicy": {"maxReplicas": 5}}|waits|$autoscalers_path/a-more|5
a-none|autoscaling|horizontalpodautoscalers|delete|{"elasticPolicy": {"metrics": null}}|waits|$autoscalers_path/a-none|404
g-new|scheduling.x-k8s.io|podgroups|create|{"runPolicy": {"suspend": false}}|waits|$groups_path/g-new|1
g-more|scheduling.x-k8s.io|podgroups|patch|{"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}|waits|$groups_path/g-more|2
g-none|scheduling.x-k8s.io|podgroups|delete|{"runPolicy": {"suspend": true}}||$groups_path/g-none|404
over|kubeflow.org|pytorchjobs|delete|{"runPolicy": {"ttlSecondsAfterFinished": 0}}||$jobs_path/over|404
END
}
there() { api GET "$1" | jq -r '.code // .spec.maxReplicas // .spec.minMember // .kind'; }
for name in more less a-new a-more a-none g-new g-more g-none over; do
    case $name in a-more | a-none) elastic=$metered ;; *) elastic= ;; esac
    manifest $name 0 2 OnFailure "schedulingPolicy: {minAvailable: 1}, suspend: $([ $name = g-new ] && echo true || echo false)" "$elastic"
done | kubectl create -f - >/dev/null
for name in more less a-new a-more a-none g-more g-none over; do wait_for 60 is "$name-worker-0 $name-worker-1" pods $name; done
for name in a-more a-none; do wait_for 60 is 3 there "$autoscalers_path/$name"; done
play_all over exit 0
check "jobs that want for nothing" comes "Created Succeeded" conditions over
mapfile -t taken < <(needs | awk -F'|' '{ print $2; print $3; print $4 }')
take_rights "${taken[@]}"
needs | while IFS='|' read -r name _ _ _ edit _; do edit_job "$name" "{\"spec\": $edit}"; done
while IFS='|' read -r name group resource verb _ waits _; do
    text="cannot $verb resource \"$resource\" in API group \"$group\""
    check "may not $verb $resource: the event says so" tells "$name" "$text"
    [ -z "$waits" ] || check "and the condition" wait_for 60 waits_for "$name" "$text"
done < <(needs)
give_rights
while IFS='|' read -r name _ resource verb _ _ path end; do
    check "granted: $verb $resource is done" wait_for 60 is "$end" there "$path"
done < <(needs)
operator_stop

# ---- exactly those rights, all of a job's life
restricted_start
check "ready with the rights of deploy/" operator_ready
job life 1 1 ExitCode "ttlSecondsAfterFinished: 1"
check "pods" comes "life-master-0 life-worker-0" pods life
check "services" comes "life-master-0 life-worker-0" services life
play_all life running
uid=$(pod life-worker-0 .metadata.uid)
play life-worker-0 exit 137
check "a restart" wait_for 60 is_new life-worker-0 "$uid"
edit_job life '{"spec": {"runPolicy": {"suspend": true}}}'
check "suspended" comes "" pods life
edit_job life '{"spec": {"runPolicy": {"suspend": false}}}'
check "resumed" comes "life-master-0 life-worker-0" pods life
edit_job scaled '{"spec": {"elasticPolicy": {"maxReplicas": 5}}}'
check "an autoscaler follows" comes 5 autoscaler scaled .spec.maxReplicas
play scaled-worker-0 exit 0
check "and goes" wait_for 60 gone "$autoscalers_path/scaled"

# ---- the token is replaced, and the old one is worth nothing
api DELETE $account/shoal-operator >/dev/null
api POST $account '{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "shoal-operator"}}' >/dev/null
new_token
play life-master-0 exit 0
check "another token: the job ends and is deleted" wait_for 60 gone "$jobs_path/life"
job again 0 1 OnFailure "" "$metered"
check "a new job" comes again-worker-0 pods again
check "and its autoscaler" comes 3 autoscaler again .spec.maxReplicas
check "no right is missing" lacks "$log" forbidden
operator_stop

# ---- jobs that an older CRD let in
crd_kubectl patch crd pytorchjobs.kubeflow.org --type=json -p '[{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema",
    "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]' >/dev/null
long=$(printf 'l%.0s' {1..60})
create_wrong() { wait_for 60 job "$@"; }
create_wrong two 2 1 OnFailure
job "$long" 1 1 OnFailure
job odd 1 1 Sometimes
job good 1 1 OnFailure
operator_start
check "ready with odd jobs" operator_ready
reason() { field "$1" '.status.conditions[-1] | .type + " " + .reason'; }
for name in two "$long" odd; do
    check "$name fails validation" comes "Failed PyTorchJobFailedValidation" reason "$name"
    check "$name has no pods" is "" pods "$name"
done
check "two masters: the field" tells two "spec.pytorchReplicaSpecs[Master].replicas"
check "a long name: the field" tells "$long" "metadata.name"
check "a policy unheard of: the field" tells odd "spec.pytorchReplicaSpecs[Worker].restartPolicy"
check "the job beside them" comes "good-master-0 good-worker-0" pods good
play_all good running
api POST "$pods_path" '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "good-worker-zz", "labels":
    {"training.kubeflow.org/operator-name": "pytorchjob-controller", "training.kubeflow.org/job-name": "good",
    "training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "zz"}}, "spec": {"containers":
    [{"name": "c", "image": "i:1"}]}}' >/dev/null
check "a pod of no index is nobody's" comes "Created Running" conditions good
play good-worker-zz exit 1
play good-master-0 exit 0
check "and does not disturb" comes "Created Running=False Succeeded" conditions good
operator_stop
check "all that time it was well" test "$exit_code" -eq 0

# ---- a stored job that breaks a rule made after it: before 1.30 nothing can be written into its status
job late 1 0 Sometimes
install_crd >/dev/null
strict() { # the server refuses the policy; another failure is none of its rules
    local said
    said=$(job probe 1 0 Sometimes 2>&1) || { grep -F "Unsupported value" <<<"$said"; return; }
    delete_job probe
    return 1
}
wait_for 60 strict
operator_start
log=$work/operator-$((${#operators[@]} - 1)).log
check "ready with a job that is invalid by now" operator_ready
if minds_old_faults; then
    check "it is told why nothing is done" tells late "FailedUpdateStatus Error updating status"
    check "with the field" tells late restartPolicy
    job beside 1 0 OnFailure
    check "another job comes to its pods" comes beside-master-0 pods beside
    check "said once" is 1 grep -c "warning default/late: " "$log"
    check "and it has none" is "" pods late
    edit_job late '{"spec": {"pytorchReplicaSpecs": {"Master": {"restartPolicy": "Never"}}}}'
    check "mended, it has" comes late-master-0 pods late
else
    check "it fails validation" comes "Failed PyTorchJobFailedValidation" reason late
    check "and has no pods" is "" pods late
fi
tap_done
