# shellcheck shell=bash disable=SC1091,SC2001,SC2034,SC2154
# For tests of `shoal run`: . tests/cli/jobs.sh. Manifests of small shell scripts, and what became of their runs.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
shopt -s lastpipe # `job ... | run` sets variables here
export TMPDIR=$work XDG_RUNTIME_DIR=
logs=$work/logs
mkdir "$work/data" # where the scripts leave their marks: $DATA
export DATA=$work/data

# replica TYPE COUNT SCRIPT: one entry of pytorchReplicaSpecs; $restart is its policy, $pod more lines of its pod.
replica() {
    cat <<END
    $1:
      replicas: $2
      restartPolicy: ${restart:-OnFailure}
      template:
        spec:
          containers:
            - name: pytorch
              image: any
              command: [sh, -c]
              args:
                - |
$(sed 's/^/                  /' <<<"$3")
$(sed 's/^/          /' <<<"${pod:-terminationGracePeriodSeconds: 30}")
END
}

# job MASTER_SCRIPT [WORKER_SCRIPT [WORKERS]]: a manifest; no master if its script is empty. $policy: lines of runPolicy.
job() {
    cat <<END
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: job
spec:
  runPolicy:
$(sed 's/^/    /' <<<"${policy:-backoffLimit: 6}")
  pytorchReplicaSpecs:
END
    [ -z "$1" ] || replica Master 1 "$1"
    [ -z "${2-}" ] || replica Worker "${3:-1}" "$2"
}

# run [OPTION...]: runs the manifest on stdin; its stdout and stderr are then in $work/out and $work/err, its exit code in
# $code.
run() {
    rm -rf "$logs" "${DATA:?}"/*
    code=0
    shoal run -f - --log-dir "$logs" --restart-delay 0 "$@" >"$work/out" 2>"$work/err" || code=$?
}

# start [OPTION...]: the same in the background, heeding Ctrl-C and SIGHUP all the same; $pid is the program's.
start() {
    rm -rf "$logs" "${DATA:?}"/*
    cat >"$work/job.yaml"
    env --default-signal=INT,HUP shoal run -f "$work/job.yaml" --log-dir "$logs" --restart-delay 0 "$@" >"$work/out" 2>"$work/err" &
    pid=$!
}
finish() { # waits for it; sets $code
    code=0
    wait "$pid" || code=$?
}

ended_with() { [ "$code" -eq "$1" ] || { echo "exit code $code, not $1"; cat "$work/err"; return 1; }; }
# summary REPLICA STATE RESTARTS EXIT_CODE: the row of the closing table
summary() { grep -qE "^$1 +$2 +$3 +$4 " "$work/err" || { cat "$work/err"; return 1; }; }
says() { contains "$work/err" "$1"; }
# same EXPECTED FILE: the file holds just these lines
same() { diff -u <(printf '%s\n' "$1") "$2"; }
lines() { [ "$(wc -l <"$2")" -eq "$1" ] || { echo "$(wc -l <"$2") lines, not $1"; cat "$2"; return 1; }; }
# nothing_left MARK: no process has MARK in its command line, no socket folder is there
nothing_left() {
    ! pgrep -af -- "$1" || return 1
    ! compgen -G "$work/shoal-*" || return 1
}
