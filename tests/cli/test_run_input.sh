#!/bin/bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # see jobs.sh; $NAME is for the container
# Bad input: one line that says what, where and what to do; exit code 2; nothing started, nothing left.
. "$(dirname "$0")/jobs.sh"
good=$(job 'touch "$DATA/started"' 'touch "$DATA/started"')

# refuses WHAT MESSAGE [OPTION...]: the manifest on stdin
# More messages may stand before the options: a line for each, in this order.
refuses() {
    local what=$1 messages="shoal: $2"
    shift 2
    while [ $# -gt 0 ] && [[ $1 != -[a-z-]* ]]; do
        messages+=$'\n'"shoal: $1"
        shift
    done
    run "$@"
    check "$what: exit code 2" ended_with 2
    check "$what: says so, and no more" same "$messages" <(grep -v '^shoal: note: ' "$work/err")
    check "$what: no debris" eval '[ ! -e "$logs" ] && [ ! -e "$DATA/started" ] && answers_no compgen -G "$work/shoal-*"'
}
with() { sed "$1" <<<"$good"; } # SED_SCRIPT

refuses "broken YAML" "-:3:9: while parsing a flow mapping: did not find expected ',' or '}'" <<'END'
kind: PyTorchJob
spec: {a: 1
metadata: x
END
with 's/^kind:.*/kind: TFJob/' | refuses "unknown kind" \
    "-: no PyTorchJob (kubeflow.org/v1) in it; -:1: document 1 (TFJob job): not a PyTorchJob, ignored"
with 's/^kind:.*/kind: PytorchJob/' | refuses "a kind that is spelt wrong" \
    '-:2: document 1 (PytorchJob job): kind: Unsupported value: "PytorchJob": it is spelt PyTorchJob'
with 's/restartPolicy:/restartPolcy:/' | refuses "a misspelt policy" \
    "-:11: document 1 (PyTorchJob job): spec.pytorchReplicaSpecs[Master].restartPolcy: unknown field; the nearest is restartPolicy" \
    "-:24: document 1 (PyTorchJob job): spec.pytorchReplicaSpecs[Worker].restartPolcy: unknown field; the nearest is restartPolicy"
with 's/pytorchReplicaSpecs:/pytorchReplicaSpec:/' | refuses "a misspelling, and what is missing because of it" \
    "-:8: document 1 (PyTorchJob job): spec.pytorchReplicaSpec: unknown field; the nearest is pytorchReplicaSpecs" \
    "-:5: document 1 (PyTorchJob job): spec.pytorchReplicaSpecs: Required value: must have Master or Worker"
with 's/^  name: job/  name: {{ .Release.Name }}/' | refuses "a template" \
    "-:4:10: {{ is of a template: render it first (helm template)"
with 's/^      replicas:/\treplicas:/' | refuses "a tab" "-:10:1: a tab: YAML is indented with blanks only"
gzip -c <<<"$good" | refuses "a compressed manifest" "-: this is gzip, not text: unpack it first (gunzip)"
iconv -t UTF-16LE <<<"$good" | refuses "UTF-16" \
    "-: this is UTF-16, not UTF-8: convert it first (iconv -f UTF-16LE -t UTF-8)"
head -c 4000 "$BUILD/shoal" >"$work/program"
refuses "a program" "$work/program: this is a program (ELF), not text" -f "$work/program" <<<"$good"
with 's/replicas: 1/replicas: 2/' | refuses "two masters" \
    "-:10: document 1 (PyTorchJob job): spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1"
where='-:14: document 1 (PyTorchJob job): spec.pytorchReplicaSpecs[Master].template.spec.containers'
job 'true' | sed 's/name: pytorch/name: main/' | refuses "no container named pytorch" \
    "$where: Required value: must have at least one container with name pytorch"
with '0,/command: .*/s//command: [no-such-program]/' | refuses "command not found" \
    "-: pod job-master-0, container pytorch: command no-such-program: not found on the PATH"
with '0,/command: .*/s//command: [\/no\/such\/program]/' | refuses "program not there" \
    "-: pod job-master-0, container pytorch: command /no/such/program: not found on this machine"
job 'true' 'true' 2 | sed '/Worker:/,$s/command: .*/command: [no-such-program]/' | refuses "a worker's command not found" \
    "-: pod job-worker-0, container pytorch: command no-such-program: not found on the PATH"
with '0,/command: .*/s///' | refuses "no command" \
    "-: pod job-master-0, container pytorch: no command: images are not run here, so the entry point of any is not known; add command: [...]"
with '0,/image: any/s//image: any\n              workingDir: \/no\/such/' | refuses "no working directory" \
    "-: pod job-master-0, container pytorch: working directory /no/such: not found on this machine"
with '0,/image: any/s//image: any\n              env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]/' |
    refuses "a secret" \
        "-: pod job-master-0, container pytorch: env TOKEN comes from secret hub/token, which only a cluster has; state its value"
with 's/^  runPolicy:/  runPolicy:\n    suspend: true/' | refuses "suspended" \
    "-: job job is suspended: set spec.runPolicy.suspend to false to run it"
with 's/^  runPolicy:/  runPolicy:\n    managedBy: kueue.x-k8s.io\/multikueue/' | refuses "someone else's" \
    "-: job job is managed by kueue.x-k8s.io/multikueue: drop spec.runPolicy.managedBy"

with '/Worker:/,$s/replicas: 1/replicas: 9000/' | refuses "more replicas than a machine runs" \
    "-: job job: 9001 replicas: at most 512 run on one machine"

echo "$good" >"$work/job.yaml"
refuses "the same job twice" "$work/job.yaml: job job is in -, too: give one another name" -f "$work/job.yaml" <<<"$good"

# What lies under a log's name is emptied only if it is a file: not what a link leads to, and a FIFO holds up nobody.
for what in link "hard link" fifo "fifo with a reader" folder; do
    rm -rf "$logs"
    mkdir -p "$logs/job"
    case $what in
    link) echo precious >"$work/precious" && ln -s "$work/precious" "$logs/job/job-master-0.log" ;;
    hard*) echo precious >"$work/other" && ln "$work/other" "$logs/job/job-master-0.log" ;;
    fifo*) mkfifo "$logs/job/job-master-0.log" ;;
    folder) mkdir "$logs/job/job-master-0.log" ;;
    esac
    reader=
    [ "$what" != "fifo with a reader" ] || { cat "$logs/job/job-master-0.log" & reader=$!; }
    check "a $what in a log's place" fails 2 "$logs/job/job-master-0.log: " timeout -k 5 60 shoal run -f "$work/job.yaml" --log-dir "$logs"
    [ -z "$reader" ] || wait "$reader" || true
    check "a $what: nothing started" test ! -e "$DATA/started"
done
check "a link in a log's place: what it leads to is whole" same precious "$work/precious"
check "a hard link: its file is whole" same precious "$work/other"
rm -rf "$logs"
mkdir -p "$logs" "$work/elsewhere"
echo precious >"$work/elsewhere/job-master-0.log"
ln -s "$work/elsewhere" "$logs/job"
check "a link in place of the job's folder" fails 2 "folder $logs/job for the logs: there is a link or a file: remove it" \
    shoal run -f "$work/job.yaml" --log-dir "$logs"
check "... what lies there is whole" same precious "$work/elsewhere/job-master-0.log"
rm -rf "$logs"

check "missing file" fails 2 "shoal: $work/none.yaml: No such file or directory" shoal run -f "$work/none.yaml"
check "an address" fails 2 "not fetched: a manifest's commands run on this machine as you. Fetch it, read it, then run it: curl -fsSLo job.yaml https://example.com/job.yaml" \
    shoal run -f https://example.com/job.yaml
check "an address of a folder" fails 2 "then run it: git clone https://example.com/jobs" shoal run -k https://example.com/jobs
check "missing folder" fails 2 "shoal: $work/none: No such file or directory" shoal run -k "$work/none"
touch "$work/file"
check "logs where no folder can be" fails 2 "make folder $work/file/logs for the logs: Not a directory; choose another --log-dir" \
    shoal run -f "$work/job.yaml" --log-dir "$work/file/logs"

# ---- the command line
check "no command" fails 2 "Usage: shoal COMMAND" shoal
check "unknown command" fails 2 "shoal: unknown command walk; there are --help --version run" shoal walk
check "misspelled command" fails 2 "shoal: unknown command tpo (the nearest is top); there are" shoal tpo
check "unknown option" fails 2 "shoal run: unknown option --fast; there are --file --kustomize --log-dir" shoal run --fast
check "nothing to run" fails 2 "shoal run: nothing to run: give -f FILE or -k DIR" shoal run
check "option without value" fails 2 "shoal run: --file needs a value: FILE" shoal run -f
check "number out of range" fails 2 "--default-backoff-limit -2: must be a whole number from -1 to 2147483647" \
    shoal run -f x --default-backoff-limit=-2
check "no folder for the logs" fails 2 "shoal run: --log-dir: must name a folder; . is this one" shoal run -f x --log-dir ''
check "wrong choice" fails 2 "--progress often: must be one of auto always never" shoal run -f x --progress often
check "help" fails 0 "Usage: shoal run -f FILE | -k DIR" shoal run --help
check "version" fails 0 "shoal 0." shoal --version
# ---- launchers that only the agent's image brings
note="shoal: note: job job: container pytorch calls torchrun, which is not on the PATH: images are not run here, and only one named shoal-agent brings it: name such an image in place of any, or install it"
job $'echo >>"$DATA/starts"\n/usr/local/bin/torchrun --nnodes 1 train.py' 'sleep 1000' | run
check "a launcher that is not there is told before it fails" ended_with 2
check "... once, with where it comes from" same "$note" <(grep '^shoal: note: ' "$work/err")
check "... and again at the end, with the pod and its code" \
    says "shoal: -: job-master-0: exit code 127, command not found: ${note#shoal: note: }"
check "... which no restart puts off" lines 1 "$DATA/starts"
policy='backoffLimit: 1'
job 'echo >>"$DATA/starts"; nosuchcommand' | run
check "another command that is not found is restarted as ever" ended_with 1
check "... as often as the job says" lines 2 "$DATA/starts"
job 'echo >>"$DATA/starts"; : torchrun; exit 1' | run
check "... and so is what ends with another code" lines 2 "$DATA/starts"
policy='backoffLimit: 0'
job 'true # torchrunner, my.torchrun' | run
check "... and no other word" lacks "$work/err" "calls torchrun"
mkdir "$work/venv" && printf '#!/bin/sh\n' >"$work/venv/torchrun" && chmod +x "$work/venv/torchrun"
job 'torchrun --nnodes 1 train.py' | PATH=$work/venv:$PATH run
check "... nor one that is there" lacks "$work/err" "calls torchrun"
job 'type torchrun' | sed 's/image: any/image: registry\/shoal-agent:1/' | run
check "... nor one that the image brings" lacks "$work/err" "calls torchrun"
tap_done
