#!/bin/bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # see jobs.sh; $NAME is for the container
# Bad input: one line that says what, where and what to do; exit code 2; nothing started, nothing left.
. "$(dirname "$0")/jobs.sh"
good=$(job 'touch "$DATA/started"' 'touch "$DATA/started"')

# refuses WHAT MESSAGE [OPTION...]: the manifest on stdin
refuses() {
    local what=$1 message=$2
    shift 2
    run "$@"
    check "$what: exit code 2" ended_with 2
    check "$what: says so" grep -qxF -- "shoal: $message" "$work/err"
    check "$what: in one line" test "$(grep -cv '^shoal: note: ' "$work/err")" -eq 1
    check "$what: no debris" eval '[ ! -e "$logs" ] && [ ! -e "$DATA/started" ] && ! compgen -G "$work/shoal-*"'
}
with() { sed "$1" <<<"$good"; } # SED_SCRIPT

refuses "broken YAML" "-:3:9: while parsing a flow mapping: did not find expected ',' or '}'" <<'END'
kind: PyTorchJob
spec: {a: 1
metadata: x
END
with 's/^kind:.*/kind: TFJob/' | refuses "unknown kind" \
    "-: no PyTorchJob (kubeflow.org/v1) in it; -: document 1 (TFJob job): not a PyTorchJob, ignored"
with 's/replicas: 1/replicas: 2/' | refuses "two masters" \
    "-: document 1 (PyTorchJob job): spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1"
where='-: document 1 (PyTorchJob job): spec.pytorchReplicaSpecs[Master].template.spec.containers'
job 'true' | sed 's/name: pytorch/name: main/' | refuses "no container named pytorch" \
    "$where: Required value: must have at least one container with name pytorch"
with '0,/command: .*/s//command: [no-such-program]/' | refuses "command not found" \
    "pod job-master-0, container pytorch: command no-such-program: not found on the PATH"
with '0,/command: .*/s//command: [\/no\/such\/program]/' | refuses "program not there" \
    "pod job-master-0, container pytorch: command /no/such/program: not found on this machine"
job 'true' 'true' 2 | sed '/Worker:/,$s/command: .*/command: [no-such-program]/' | refuses "a worker's command not found" \
    "pod job-worker-0, container pytorch: command no-such-program: not found on the PATH"
with '0,/command: .*/s///' | refuses "no command" \
    "pod job-master-0, container pytorch: no command: images are not run here, so the entry point of any is not known; add command: [...]"
with '0,/image: any/s//image: any\n              workingDir: \/no\/such/' | refuses "no working directory" \
    "pod job-master-0, container pytorch: working directory /no/such: not found on this machine"
with '0,/image: any/s//image: any\n              env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]/' |
    refuses "a secret" \
        "pod job-master-0, container pytorch: env TOKEN comes from secret hub/token, which only a cluster has; state its value"
with 's/^  runPolicy:/  runPolicy:\n    suspend: true/' | refuses "suspended" \
    "job job is suspended: set spec.runPolicy.suspend to false to run it"
with 's/^  runPolicy:/  runPolicy:\n    managedBy: kueue.x-k8s.io\/multikueue/' | refuses "someone else's" \
    "job job is managed by kueue.x-k8s.io/multikueue: drop spec.runPolicy.managedBy"

echo "$good" >"$work/job.yaml"
refuses "the same job twice" "job job is there twice: give one another name" -f "$work/job.yaml" <<<"$good"

check "missing file" fails 2 "shoal: $work/none.yaml: No such file or directory" shoal run -f "$work/none.yaml"
check "missing folder" fails 2 "shoal: $work/none: No such file or directory" shoal run -k "$work/none"
touch "$work/file"
check "logs where no folder can be" fails 2 "make folder $work/file/logs for the logs: Not a directory; choose another --log-dir" \
    shoal run -f "$work/job.yaml" --log-dir "$work/file/logs"

# ---- the command line
check "no command" fails 2 "Usage: shoal COMMAND" shoal
check "unknown command" fails 2 "shoal: unknown command walk; there are --help --version run" shoal walk
check "unknown option" fails 2 "shoal run: unknown option --fast; there are --file --kustomize --log-dir" shoal run --fast
check "nothing to run" fails 2 "shoal run: nothing to run: give -f FILE or -k DIR" shoal run
check "option without value" fails 2 "shoal run: --file needs a value: FILE" shoal run -f
check "number out of range" fails 2 "--default-backoff-limit -2: must be a whole number from -1 to 2147483647" \
    shoal run -f x --default-backoff-limit=-2
check "no folder for the logs" fails 2 "shoal run: --log-dir: must name a folder; . is this one" shoal run -f x --log-dir ''
check "wrong choice" fails 2 "--progress often: must be one of auto always never" shoal run -f x --progress often
check "help" fails 0 "Usage: shoal run -f FILE | -k DIR" shoal run --help
check "version" fails 0 "shoal 0." shoal --version
tap_done
