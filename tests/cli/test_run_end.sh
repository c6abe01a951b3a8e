#!/bin/bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # see jobs.sh; $NAME is for the container
# How a run ends, and that nothing outlives it. Every process of a job sleeps for $mark seconds.
. "$(dirname "$0")/jobs.sh"
mark=86400.$$
# a process, one of its own session, and one whose parent is gone
family="setsid sleep $mark & (sleep $mark &); touch \"\$DATA/\$HOSTNAME\"; sleep $mark; true"
began() { wait_for 120 test -e "$DATA/job-master-0" -a -e "$DATA/job-worker-0"; }

# ---- limits of the job
policy='activeDeadlineSeconds: 1'
job "$family" "$family" | run
check "activeDeadlineSeconds fails the job" ended_with 1
check "for that reason" says "Job job has failed because it was active longer than specified deadline"
check "and leaves nothing" nothing_left "$mark"

for clean in Running All; do
    policy="cleanPodPolicy: $clean"
    job "until [ -e \"\$DATA/job-worker-0\" ]; do sleep 0.05; done" "$family" | run
    check "cleanPodPolicy $clean: succeeds with its master" ended_with 0
    check "cleanPodPolicy $clean: stops the worker" summary job-worker-0 Stopped 0 143
done
policy='cleanPodPolicy: None'
job "touch \"\$DATA/done\"" "until [ -e \"\$DATA/done\" ]; do sleep 0.05; done; sleep 0.3; echo >\"\$DATA/late\"" | run
check "cleanPodPolicy None: a worker may end by itself" test -e "$DATA/late"
pod='terminationGracePeriodSeconds: 2'
job "until [ -e \"\$DATA/job-worker-0\" ]; do sleep 0.05; done" "$family" | run
check "but not for ever" summary job-worker-0 Stopped 0 '(143|137)' # which, is luck on a busy machine
check "the job has succeeded all the same" ended_with 0
pod= # who hears SIGTERM is not to be killed because the machine is busy

policy='ttlSecondsAfterFinished: 0'
job "until [ -e \"\$DATA/job-worker-0\" ]; do sleep 0.05; done" "$family" | run
check "ttlSecondsAfterFinished: the pods go with the job" summary job-worker-0 Stopped 0 143
check "which has succeeded" ended_with 0

# ---- a reader of stdout that stands still
rm -f "$work/out" # of the jobs before
mkfifo "$work/out"
exec 9<>"$work/out" # it is there, but reads nothing
policy=$'activeDeadlineSeconds: 1\ncleanPodPolicy: Running'
job 'yes' | start
check "nobody reads: the deadline holds" wait_for 120 contains "$work/err" "job: Running -> Failed"
check "and ends the job" wait_for 120 contains "$work/err" "job-master-0: Stopping -> Stopped"
kill -TERM "$pid"
finish
check "it can be stopped" ended_with 1
rm "$work/out"
mkfifo "$work/out"
exec 9<>"$work/out"
policy='backoffLimit: 1'
job 'seq 300000; [ $SHOAL_RESTART_COUNT = 1 ]' | start
wait_for 120 grep -q '^30000$' "$logs/job/job-master-0.log" # more than the pipes hold
exec 8<"$work/out" 9>&-
cat <&8 >"$work/late"
finish
exec 8<&-
rm "$work/out"
check "who reads late gets every byte, over a restart" cmp "$work/late" <(seq 300000; seq 300000)

# ---- asked to stop
policy='backoffLimit: 6'
for signal in HUP:129 INT:130 TERM:143; do
    job "$family" "$family" 2 | start
    began
    kill -"${signal%:*}" "$pid"
    finish
    check "SIG${signal%:*}: the exit code says so" ended_with "${signal#*:}"
    check "SIG${signal%:*}: the help tells it" contains <(shoal run --help) "${signal#*:}"
    check "SIG${signal%:*}: all were stopped" summary job-worker-1 Stopped 0 143
    check "SIG${signal%:*}: nothing is left" nothing_left "$mark"
done
deaf="trap '' TERM; $family"
pod='terminationGracePeriodSeconds: 1'
job "$deaf" "$deaf" | start
began
kill -INT "$pid"
finish
check "who does not hear SIGTERM is killed after the grace period" summary job-master-0 Stopped 0 137
pod='terminationGracePeriodSeconds: 3600'
job "$deaf" "$deaf" | start
began
kill -INT "$pid"
wait_for 120 contains "$work/err" "once more to kill it"
kill -INT "$pid"
finish
check "a second Ctrl-C does not wait" summary job-master-0 Stopped 0 137
check "and leaves nothing" nothing_left "$mark"
job "trap 'echo saved; exit 0' TERM; touch \"\$DATA/job-master-0\" \"\$DATA/job-worker-0\"; while :; do sleep 0.05; done" | start
began
kill -TERM "$pid"
finish
check "what is said on the way out is heard" contains "$work/out" saved

# ---- killed
job "$family" "$family" 2 | start
began
kill -KILL "$pid"
finish
check "SIGKILL of the run itself: nothing is left" wait_for 120 nothing_left "$mark"
members() { [ "$(pgrep -fc -- "sleep $mark")" -eq "$1" ]; } # 4 in each family: sh and its sleeps
job "$family" "$family" | start
wait_for 120 members 8
guard=$(pgrep -f "[s]leep $mark; true" | head -n 1 | xargs -I{} ps -o ppid= -p {})
kill -KILL "$guard"
wait_for 120 contains "$work/err" "Failed (exit code 137), restart 1 of 6"
check "SIGKILL of a guard: its family goes, another comes" wait_for 120 members 8
kill -TERM "$pid"
finish
check "SIGKILL of a guard is a failure of its container" says "Failed (exit code 137), restart 1 of 6"
check "and leaves nothing either" nothing_left "$mark"

# ---- two runs at once
job "$family" "$family" | start --keep-ports
began
check "the manifest's port is not there twice" fails 2 \
    ": job job: service job-master-0: port 23456 is in use on this machine" \
    shoal run -f "$work/job.yaml" --keep-ports --log-dir "$work/other"
check "a second run of the same job is refused" fails 2 "job job is being run already" \
    shoal run -f "$work/job.yaml" --log-dir "$logs"
check "unless its logs are elsewhere" test "$(sed "s/sleep $mark/true/g" "$work/job.yaml" |
    shoal run -f - --log-dir "$work/other" 2>&1 | tail -n 1 | cut -d' ' -f2)" = Succeeded
kill -KILL "$pid"
finish
wait_for 120 nothing_left "$mark"
tap_done
