#!/bin/bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # see jobs.sh; $NAME is for the container
# What a job that goes well looks like from outside: output, logs, environment, containers.
. "$(dirname "$0")/jobs.sh"

printf 'a\000\377\nwithout an end' >"$work/bytes"
export BYTES=$work/bytes
job 'cat "$BYTES"' 'echo worker $RANK; echo its stderr >&2' 2 | run
check "a job that succeeds exits with 0" ended_with 0
check "the master's output is on stdout, byte for byte" cmp "$work/bytes" "$work/out"
check "and in its log" cmp "$work/bytes" "$logs/job/job-master-0.log"
check "a worker's log has both streams in order" same $'worker 2\nits stderr' "$logs/job/job-worker-1.log"
check "the table has every replica" summary job-worker-1 Succeeded 0 0
check "the last line says how it ended" grep -qE '^job Succeeded in ([0-9]\.[0-9]|[0-9hm]{2,})s$' "$work/err"
check "no socket is left" nothing_left "no such command line"

job '' 'echo worker $RANK $PET_NNODES' 2 | run
check "without a master the output is worker 0's" same "worker 2" "$work/out"

job 'echo for nobody' >"$work/job.yaml"
for closed in '<&-' '>&-' '<&- >&-'; do
    check "a run with $closed ends as any other" \
        eval "shoal run -f '$work/job.yaml' --log-dir '$logs' 2>'$work/err' $closed"
    check "and says so" says "job Succeeded"
done
check "output that is lost is told, and fails the run" \
    fails 1 "shoal: warning: write stdout: No space left on device; from here on the output is in the log only" \
    eval "shoal run -f '$work/job.yaml' --log-dir '$logs' 2>&1 >/dev/full"
job 'echo one' >"$work/job.yaml"
check "but not if its reader leaves early" eval "shoal run -f '$work/job.yaml' --log-dir '$logs' 2>/dev/null > >(true)"

# ---- environment
pod='terminationGracePeriodSeconds: 1'
show='env | grep -E "^(PYTHONUNBUFFERED|MASTER|WORLD|RANK|PET_|LOCAL|SHOAL|HOSTNAME)" | sed "s#=.*/progress#=SOCKET#" | sort >"$DATA/$HOSTNAME"'
again='echo SHOAL_RUN_ID=$SHOAL_RUN_ID >>"$DATA/$HOSTNAME"; [ $SHOAL_RESTART_COUNT = 1 ]'
run_id() { sed -n 's/^SHOAL_RUN_ID=//p' "$DATA/job-$1"; }
job "$again" "$again" | run
before=$(run_id master-0)
check "all starts of all replicas are told of one run" test "$(run_id worker-0)" = "$before" -a "$(uniq -c <<<"$before" | awk '{ print $1 }')" = 2
job "$show" "$show" 2 | SHOAL_RUN_ID=leaks SHOAL_JOB=lea/ks RANK=77 LOCAL_RANK=5 PET_RDZV_ID=leaks run
port=$(sed -n 's/^MASTER_PORT=//p' "$DATA/job-master-0")
check "... and those of the next run of another" test "$(grep -cvxF -e '' -e leaks -e "$before" <<<"$(run_id master-0)")" = 1
check "the port is a free one" test "$port" -ge 20000 -a "$port" -lt 32768
expected() { # NAME RANK
    cat <<END
HOSTNAME=$1
MASTER_ADDR=127.0.0.1
MASTER_PORT=$port
PET_MASTER_ADDR=127.0.0.1
PET_MASTER_PORT=$port
PET_NNODES=3
PET_NODE_RANK=$2
PET_NPROC_PER_NODE=auto
PYTHONUNBUFFERED=1
RANK=$2
SHOAL_JOB=default/job
SHOAL_PROGRESS_SOCKET=SOCKET
SHOAL_RESTART_COUNT=0
SHOAL_RUN_ID=$(run_id master-0)
WORLD_SIZE=3
END
}
check "environment of the master" same "$(expected job-master-0 0)" "$DATA/job-master-0"
check "environment of worker 0" same "$(expected job-worker-0 1)" "$DATA/job-worker-0"
check "environment of worker 1" same "$(expected job-worker-1 2)" "$DATA/job-worker-1"
job "$show" | run --keep-ports
check "--keep-ports keeps the manifest's" contains "$DATA/job-master-0" MASTER_PORT=23456

job '' "$show" 2 | run
check "workers without a master have no rank or address, as in a cluster" same "HOSTNAME=job-worker-0
PET_NNODES=2
PET_NPROC_PER_NODE=auto
PYTHONUNBUFFERED=1
SHOAL_JOB=default/job
SHOAL_PROGRESS_SOCKET=SOCKET
SHOAL_RESTART_COUNT=0
SHOAL_RUN_ID=$(run_id worker-0)" "$DATA/job-worker-0"

elastic() { job '' "$1" 2 | sed 's/^spec:/spec:\n  elasticPolicy: {minReplicas: 1, maxReplicas: 2}/'; }
elastic 'echo $PET_RDZV_ENDPOINT' | run
check "the rendezvous endpoint is on this machine" grep -qE '^127\.0\.0\.1:[23][0-9]{4}$' "$work/out"

# ---- containers
containers() {
    cat <<'END'
          containers:
            - name: pytorch
              image: any
              workingDir: /usr
              env:
                - {name: FIRST, value: one}
                - {name: SECOND, value: $(FIRST)-$(NONE)-$$(FIRST)}
                - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
                - {name: INDEX, valueFrom: {fieldRef: {fieldPath: "metadata.labels['training.kubeflow.org/replica-index']"}}}
              command: [sh, -c, 'echo "main $0 $1 $2 $(pwd)" >>"$DATA/order"; cat "$DATA/order"']
              args: [$(SECOND), $(POD), $(INDEX)]
            - name: sidecar
              image: any
              command: [sh, -c, 'until [ -s "$DATA/order" ]; do sleep 0.05; done; echo sidecar $RANK >>"$DATA/side"']
          initContainers:
            - {name: one, image: any, command: [sh, -c, 'sleep 0.2; echo init one >>"$DATA/order"']}
            - {name: two, image: any, command: [sh, -c, 'echo "init two ${RANK-no} ${SHOAL_JOB-no}" >>"$DATA/order"']}
END
}
job 'replaced' | sed '/^          containers:/,$d' | { cat; containers; } | run
check "a pod of several containers succeeds" ended_with 0
check "init containers come first and in order, without the job's variables, then the main one with its references expanded" \
    same $'init one\ninit two no no\nmain one-$(NONE)-$(FIRST) job-master-0 0 /usr' "$work/out"
check "sidecars run beside it, with the same environment" same "sidecar 0" "$DATA/side"

# ---- several jobs
{ job 'echo first'; echo ---; job 'echo second' | sed 's/name: job/name: next/'; } | run
check "several jobs run one after the other" same $'first\nsecond' "$work/out"
check "each has its own logs" contains "$logs/next/next-master-0.log" second
{ job 'exit 1' | sed 's/backoffLimit: 6/backoffLimit: 0/'; echo ---; job 'echo second' | sed 's/name: job/name: next/'; } | run
check "a job that fails ends the run" ended_with 1
check "so the next one is not begun" test ! -e "$logs/next"

few_files() { job 'echo fine' | (ulimit -S -n 12 && run && ended_with 0); }
check "a low soft limit of open files is raised" few_files
tap_done
