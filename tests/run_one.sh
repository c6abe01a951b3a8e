# shellcheck shell=bash
# For scripts that run tests: run_one NAME COMMAND... for each, then run_end, which prints what failed and the closing
# line. Every test speaks TAP. The output of a program is shown only if something in it failed; a program that crashes or
# gets nowhere counts as one failure. Several run_one may run at once, in subshells.
# A test is ended when it has printed nothing for $limit_s, or has used processors for $cpu_limit_s: the first is a hang, the
# second an endless loop. Both are limits on its progress, in time that the machine has let it run (tests/runner/patience.c):
# one on the wall clock says more about the machine, which may be busy, than about the test.
limit_s=${TEST_LIMIT_S:-600} cpu_limit_s=3600
spare= # if not empty, tests get only what processors are left by others
results=$(mktemp -d) # count: a line a test, "passed failed skipped"; failed: what the closing lines tell of failures
run_pid= # of the test that runs
trap '[ -z "$run_pid" ] || kill "$run_pid"; rm -rf "$results"' EXIT
touch "$results/count" "$results/failed" "$results/costs" # costs: a line a test, "CPU_SECONDS NAME"

run_limited() { # COMMAND...: the test of the log "$log"
    TEST_CLOCK=$log.clock exec build/patience ${spare:+--spare} --quiet "$limit_s" --cpu "$cpu_limit_s" --clock "$log.clock" --cost "$log.cost" "$@"
}

run_one() { # NAME COMMAND...
    local name=$1 log status ok bad skip cpu_s='' begin=$SECONDS
    shift
    log=$results/log.$BASHPID
    run_limited "$@" >"$log" 2>&1 </dev/null &
    run_pid=$!
    wait "$run_pid"
    status=$?
    run_pid=
    [ ! -e "$log.cost" ] || read -r cpu_s <"$log.cost"
    read -r ok bad skip < <(awk '/^(not )?ok / { if (/# SKIP/) skip++; else if ($1 == "ok") ok++; else bad++ }
        END { print ok + 0, bad + 0, skip + 0 }' "$log")
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    elif [ $((ok + bad + skip)) -eq 0 ]; then
        bad=1
        echo "no test was run" >>"$log"
    fi
    {
        flock 9
        echo "$ok $bad $skip" >&9
        [ -z "$cpu_s" ] || echo "$cpu_s $name" >>"$results/costs"
        run_report
        [ "$bad" -eq 0 ] || run_failures >>"$results/failed"
    } 9>>"$results/count"
    rm -f "$log" "$log.clock" "$log.cost"
}

run_report() { # of run_one's test
    printf '%-44s %4d ok' "$name" "$ok"
    [ "$skip" -eq 0 ] || printf ', %d skipped' "$skip"
    [ $((SECONDS - begin)) -lt 10 ] || printf ', %d s%s' $((SECONDS - begin)) "${cpu_s:+ ($cpu_s s of processors)}" # where the time goes
    if [ "$bad" -eq 0 ]; then
        printf '\n'
        [ "$skip" -eq 0 ] || grep -E '# SKIP' "$log" | sed 's/^/    /'
    else
        printf ', %d FAILED (exit code %d)\n' "$bad" "$status"
        # without what passed, which may be long behind what failed; its last line shows how far a crash came
        { sed '/^ok /d' "$log"; grep '^ok ' "$log" | tail -n 1; } | sed 's/^/    /' | tail -n 150
    fi
}

# At the very end, where a log that was cut still has it: which tests failed, and how each began to.
run_failures() {
    case $status in
    124) echo "FAILED: $name: $(grep '^patience: ' "$log" || echo "not done after $limit_s s")" ;;
    *) echo "FAILED: $name: exit code $status" ;;
    esac
    { grep -A 3 -E '^not ok ' "$log" || tail -n 3 "$log"; } | head -n 4 | cut -c 1-300 | sed 's/^/    /'
}

run_skip() { # TEXT: what else there is, and why it is not run
    echo "$1"
    echo "0 0 1" >>"$results/count"
}

# Fails unless something passed and nothing failed.
run_end() {
    local passed failed skipped
    read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$results/count")
    cat "$results/failed"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
