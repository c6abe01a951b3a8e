#!/bin/bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # see jobs.sh; $NAME is for the container
# Restarts and their limits, seen from outside. Each start of a replica leaves a line in a file.
. "$(dirname "$0")/jobs.sh"
count='echo $SHOAL_RESTART_COUNT >>"$DATA/$HOSTNAME"'
wait_for_master='until [ -s "$DATA/job-master-0" ]; do sleep 0.05; done'
wait_for_worker='until [ -s "$DATA/job-worker-0" ]; do sleep 0.05; done'
until_restarted="until [ \"\$(wc -l <\"\$DATA/job-worker-0\")\" = 3 ]; do sleep 0.05; done"

job "$count; touch \"\$DATA/job-worker-0\"; $until_restarted" \
    "$count; [ \$SHOAL_RESTART_COUNT = 2 ] || exit 9" | run
check "OnFailure: a replica that fails twice is restarted twice" ended_with 0
check "it is told how often" same $'0\n1\n2' "$DATA/job-worker-0"
check "the others are left alone" same 0 "$DATA/job-master-0"
check "the table tells the restarts" summary job-worker-0 Succeeded 2 0
check "a line for each failure" says "job-worker-0: Running -> Failed (exit code 9), restart 1 of 6"
check "and the next" says "job-worker-0: Running -> Failed (exit code 9), restart 2 of 6"
check "the log goes on behind a mark" grep -qE '^--- .* job-worker-0: restart 2 of container pytorch ---$' \
    "$logs/job/job-worker-0.log"

for restart in OnFailure ExitCode Always; do
    for limit in 0 2; do
        policy="backoffLimit: $limit"
        job "$count; exit 200" | run
        check "$restart: backoffLimit $limit fails the job" ended_with 1
        check "$restart: backoffLimit $limit grants $limit restarts" lines $((limit + 1)) "$DATA/job-master-0"
        check "$restart: the table says Failed" summary job-master-0 Failed $limit 200
        check "$restart: the reason is told" says "it has reached the specified backoff limit"
    done
done

policy='backoffLimit: 0'
restart=Always
job "$count; [ \"\$(wc -l <\"\$DATA/job-master-0\")\" -lt 4 ] || exit 7" | run
check "Always: what succeeds is started again, past any limit" ended_with 1
check "Always: until something fails" lines 4 "$DATA/job-master-0"
check "Always: and each time is told" says "job-master-0: Running -> Succeeded (exit code 0), starts again"
check "Always: the failure is the one" says "job-master-0: Running -> Failed (exit code 7)"

policy='backoffLimit: 1'
restart=OnFailure
job "$count; [ \$SHOAL_RESTART_COUNT = 1 ] || { $wait_for_worker; exit 138; }" "$count; [ \$SHOAL_RESTART_COUNT = 1 ] || exit 9" | run
check "a peer that leaves with 138 is no failure beside the one that it lost" ended_with 0
check "and is restarted all the same" lines 2 "$DATA/job-master-0"
check "which is told" says "job-master-0: Running -> Failed (exit code 138), restart 1 of 1"

restart=OnFailure policy='cleanPodPolicy: None'
job 'until [ -e "$DATA/job-worker-0" ]; do sleep 0.05; done' "$count; exit 9" | run --default-backoff-limit -1 --restart-delay 3600
check "a restart that never came leaves a failure" grep -qE '^job-worker-0 +Failed +[01] +9 ' "$work/err"
job "$count; exit 1" | run --default-backoff-limit 1
check "--default-backoff-limit serves jobs without one" lines 2 "$DATA/job-master-0"
job "$count; [ \$SHOAL_RESTART_COUNT = 9 ] || exit 1" | run --default-backoff-limit -1
check "-1 is no limit" ended_with 0
policy='backoffLimit: 1'
job "$count; exit 1" "$wait_for_master; exit 1" | run
check "failures of all replicas count together" ended_with 1
check "the last line names the last of them" grep -qE "^job Failed in .* limit; last failure: job-[a-z]+-0 with exit code 1, see $logs/job/job-[a-z]+-0\\.log$" "$work/err"

restart=ExitCode policy='backoffLimit: 5'
job "$count; [ \$SHOAL_RESTART_COUNT = 1 ] || kill -KILL \$\$\$\$" | run
# $$$$: Kubernetes makes $$ of it
check "ExitCode: a signal is retried" ended_with 0
check "ExitCode: by a new pod of the same log" same $'0\n1' "$DATA/job-master-0"
check "ExitCode: 137 is told" says "Failed (exit code 137), restart 1 of 5"
job "$count; exit 127" | run
check "ExitCode: 127 is permanent" ended_with 1
check "ExitCode: so there is one start" lines 1 "$DATA/job-master-0"

restart=Never
job "exit 144" | run
check "144, of bad hardware, is a container's code, and the job's is 1" ended_with 1
check "... which the table tells" summary job-master-0 Failed 0 144
check "... and the help" contains <(shoal run --help) "144"
job "sleep 100" "$count; exit 200" | run
check "Never: the first failure fails the job" ended_with 1
check "Never: with one start" lines 1 "$DATA/job-worker-0"
check "Never: the others are stopped" summary job-master-0 Stopped 0 143

restart=OnFailure policy=$'backoffLimit: 3\nrestartScope: Job'
job "$count; [ \$SHOAL_RESTART_COUNT = 1 ] || sleep 100" \
    "$count; $wait_for_master; [ \$SHOAL_RESTART_COUNT = 1 ] || exit 138" | run
check "restartScope Job: succeeds" ended_with 0
check "restartScope Job: the master starts again too" same $'0\n1' "$DATA/job-master-0"
check "restartScope Job: with the worker" same $'0\n1' "$DATA/job-worker-0"
policy=$'backoffLimit: 1\nrestartScope: Job'
job "$count; sleep 100" "$count; $wait_for_master; exit 138" 3 | run
check "restartScope Job: an attempt counts once" lines 2 "$DATA/job-master-0"

policy='backoffLimit: 6'
pod="initContainers: [{name: init, image: any, command: [sh, -c, '[ -e \"\$DATA/again\" ] || { touch \"\$DATA/again\"; exit 3; }']}]"
job "$count" | run
check "a failing init container is restarted, too" ended_with 0
check "before the main container's first start" same 0 "$DATA/job-master-0"
check "and counts as a restart" summary job-master-0 Succeeded 1 0
restart=Never
job 'sleep 100' | run
check "one that is not restarted gives its exit code" summary job-master-0 Failed 0 3
pod=$'  - {name: side, image: any, command: [sh, -c, \'kill -SEGV $$$$\']}'
job 'until grep -q "runs on" "$DATA/../err"; do sleep 0.05; done' | run
check "a container that fails beside others is told" says "job-master-0: a container failed (exit code 139), its pod runs on"
check "and not as a restart" lacks "$work/err" "restart 0 of"
# ---- a clock that is set back two hours while a restart is awaited, as by the first answer of an NTP server
cat >"$work/clock.c" <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static const char *mark;
__attribute__((constructor)) static void begin(void)
{
    mark = getenv("CLOCK_SET_BACK");
    if (strcmp(program_invocation_short_name, "shoal") == 0)
        unsetenv("LD_PRELOAD"); /* its containers have the time of day */
}
int clock_gettime(clockid_t id, struct timespec *t)
{
    int result = (int)syscall(SYS_clock_gettime, id, t);
    if (id == CLOCK_REALTIME && mark && access(mark, F_OK) == 0)
        t->tv_sec -= 7200;
    return result;
}
END
restart=OnFailure pod='' policy='backoffLimit: 2'
sanitized() { case $BUILD in */asan | */tsan) ;; *) false ;; esac; } # which wants to be preloaded before all
if sanitized || ! "${CC:-cc}" -shared -fPIC -o "$work/clock.so" "$work/clock.c"; then
    skip "a clock that is set back" "nothing can be preloaded here"
else
    job "$count; [ \$SHOAL_RESTART_COUNT = 2 ] || exit 9" |
        CLOCK_SET_BACK=$work/back LD_PRELOAD=$work/clock.so start --restart-delay 5
    wait_for 120 says "restart 2 of 2" # the first does not wait
    touch "$work/back"
    check "a clock that is set back delays no restart" wait_for 120 says "Restarting -> Running (restart 2)"
    finish
    check "and the job succeeds" ended_with 0
    check "nor does it change how long the run took" grep -qE '^job Succeeded in ([5-9]\.[0-9]s|[0-9]{2}s|[0-9]+m[0-9]{2}s)' "$work/err"
fi
tap_done
