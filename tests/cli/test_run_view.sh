#!/bin/bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # see jobs.sh; $NAME is for the container
# The live view from outside: below everything else while the job runs, gone when it ends.
. "$(dirname "$0")/jobs.sh"
escape=$'\033'

job 'printf "one\ntwo"; exit $((SHOAL_RESTART_COUNT == 0))' | run --progress always
check "the job succeeds" ended_with 0
check "there is a view" says "${escape}["
check "that shows the replicas" grep -qE '^  job-master-0  Running' "$work/err"
check "a failure stays above it" says "job-master-0: Running -> Failed (exit code 1), restart 1 of 6"
check "but what goes as it should is left to the view" lacks "$work/err" "Pending -> Running"
check "stdout has the job's bytes only" cmp "$work/out" <(printf 'one\ntwoone\ntwo')

# screen FILE: what a terminal shows in the end, when "up N lines" and "clear from here on" have done their work
screen() {
    awk -v up="^\r$escape\\\\[[0-9]+A$escape\\\\[J" '
        { while (match($0, up)) { count -= substr($0, 4) + 0; $0 = substr($0, RLENGTH + 1) } line[count++] = $0 }
        END { for (i = 0; i < count; i++) print line[i] }' "$1"
}
check "at the end it is gone" same "job-master-0: Running -> Failed (exit code 1), restart 1 of 6
REPLICA       STATE       RESTARTS  EXIT CODE  LOG
job-master-0  Succeeded          1          0  $logs/job/job-master-0.log
job Succeeded" <(screen "$work/err" | sed 's/ in [0-9.]*s$//')

for when in auto never; do
    job 'echo quiet' | TERM=xterm run --progress $when
    check "--progress $when: no view where there is no terminal" lacks "$work/err" "$escape"
    check "--progress $when: lines instead" says "job-master-0: Pending -> Running"
done

# ---- from beside: `shoal top --local`
beside() { shoal top --local "$@" >"$work/top" 2>&1; }
sees() { beside "$@" && grep -qE '^job +default +Running +' "$work/top"; }
job 'until [ -e "$DATA/go" ]; do sleep 0.05; done' 'until [ -e "$DATA/go" ]; do sleep 0.05; done' | start
check "shoal top --local sees the run" wait_for 120 sees
beside --json
check "... as JSON, too" same "default job Running 2" <(jq -r '.jobs[] | "\(.namespace) \(.name) \(.state) \(.replicas)"' "$work/top")
check "... and filters it" answers_no sees --filter others
touch "$DATA/go"
finish
check "the job succeeds" ended_with 0
check "a run that is over is not there any more" answers_no sees
check "which is said" grep -qx "shoal top: no such jobs on this machine" "$work/top"
tap_done
