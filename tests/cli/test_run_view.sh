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

# ---- from beside: `shoal top --local`, `shoal get --local`
beside() { shoal top --local "$@" >"$work/top" 2>&1; }
sees() { beside "$@" && grep -qE '^job +default +Running +' "$work/top"; }
job 'until [ -e "$DATA/go" ]; do sleep 0.05; done' 'until [ -e "$DATA/go" ]; do sleep 0.05; done' | start
check "shoal top --local sees the run" wait_for 120 sees
beside --json
check "... as JSON, too" same "default job Running 2" <(jq -r '.jobs[] | "\(.namespace) \(.name) \(.state) \(.replicas)"' "$work/top")
check "... and filters it" answers_no sees --filter others
story() { shoal get --local "$@" >"$work/story" 2>"$work/story.err"; }
tells() { story job && grep -qE "$1" "$work/story"; } # PATTERN
check "shoal get --local tells of it" tells "^job in namespace default: Running for "
check "... and of its replicas" grep -qE "^job-worker-0  Running  $(uname -n) +0 +[0-9]+s$" "$work/story"
check "... and what happened" grep -qE '^ +[0-9]+s ago  SuccessfulCreatePod: Created pod: job-worker-0$' "$work/story"
check "... and what to look at" grep -qx "Next: tail -n 50 -f $logs/job/job-master-0.log" "$work/story"
story --json job
check "... as JSON, too" same "Running job-master-0 job-worker-0 $logs/job/job-worker-0.log" <(jq -r '[.job.state, .replicas[].name, .replicas[1].log] | join(" ")' "$work/story")
refuses() { story "${@:2}"; [ $? -eq 2 ] && grep -qF "$1" "$work/story.err"; } # TEXT ARG...
check "of one that is not there it names the nearest" refuses \
    'no `shoal run` of a job jobb (the nearest is job) on this machine, which has 1; `shoal top --local` lists all' jobb
check "... or the namespace" refuses 'no `shoal run` of a job job in namespace others on this machine, which has 1;' job -n others
shoal run -f "$work/job.yaml" --log-dir "$work/logs2" >/dev/null 2>&1 &
second=$!
check "of two of one name it tells the one that began last, and says so" wait_for 120 tells "$work/logs2/job/job-master-0.log"
check "... in one line" grep -qx "shoal get: note: 2 runs are at a job job: this is the one that began last; -n names a namespace" "$work/story.err"
touch "$DATA/go"
finish
wait "$second"
check "the job succeeds" ended_with 0
check "a run that is over is not there any more" answers_no sees
check "which is said" grep -qx "shoal top: no such jobs on this machine" "$work/top"
job 'exit 3' | start --restart-delay 600 --restart-delay-max 600
check "a replica that waits for its next start says so as in a cluster" wait_for 120 tells "^    CrashLoopBackOff: starts again after exit code 3$"
check "... and its log is what to look at" tells "^Next: tail -n 50 .*$logs/job/job-master-0.log$"
kill -INT "$pid"
finish
tap_done
