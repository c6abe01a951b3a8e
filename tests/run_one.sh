# shellcheck shell=bash
# For scripts that run tests: run_one NAME COMMAND... for each, then run_end, which prints the closing line. Every test
# speaks TAP. The output of a program is shown only if something in it failed; a program that crashes or runs out of
# time counts as one failure.
limit_s=${TEST_LIMIT_S:-600}
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

run_one() { # NAME COMMAND...
    local name=$1 status ok bad skip begin=$SECONDS
    shift
    timeout --kill-after=10 "$limit_s" "$@" >"$log" 2>&1 </dev/null
    status=$?
    skip=$(grep -cE '^(not )?ok .*# SKIP' "$log")
    ok=$(grep -E '^ok ' "$log" | grep -cv '# SKIP')
    bad=$(grep -E '^not ok ' "$log" | grep -cv '# SKIP')
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    elif [ $((ok + bad + skip)) -eq 0 ]; then
        bad=1
        echo "no test was run" >>"$log"
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    printf '%-44s %4d ok' "$name" "$ok"
    [ "$skip" -eq 0 ] || printf ', %d skipped' "$skip"
    [ $((SECONDS - begin)) -lt 10 ] || printf ', %d s' $((SECONDS - begin)) # where the time goes
    if [ "$bad" -eq 0 ]; then
        printf '\n'
        grep -E '# SKIP' "$log" | sed 's/^/    /'
    else
        printf ', %d FAILED (exit code %d)\n' "$bad" "$status"
        # without what passed, which may be long behind what failed; its last line shows how far a crash came
        { sed '/^ok /d' "$log"; grep '^ok ' "$log" | tail -n 1; } | sed 's/^/    /' | tail -n 150
    fi
}

# Fails unless something passed and nothing failed.
run_end() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
