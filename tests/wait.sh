# shellcheck shell=bash
# How long scripts wait for what must come: on the test's own clock, whose seconds count as far as the machine let the
# test run in them (tests/runner/patience.c), so that no wait is in vain for a busy machine. A script that is run by hand
# has the wall clock.

# test_clock: sets $now, in seconds.
test_clock() {
    now=$SECONDS
    [ -z "${TEST_CLOCK:-}" ] || read -r now <"$TEST_CLOCK"
}

# longer COMMAND...: tries the command with one $limit, in seconds, after the other. For those that try whether what passes a
# limit is told: a busy machine may be too slow to do before a short one what must be done before it.
longer() {
    # shellcheck disable=SC2034 # the command reads it
    for limit in 4 16 64 256; do
        ! "$@" || return 0
    done
    return 1
}

# wait_for SECONDS COMMAND...: tries the command again and again until it succeeds. What did not come soon is asked for less
# often, as each try takes processors from what it waits for: at last every $wait_pause seconds.
wait_for() {
    local now end pauses=(0.05 0.05 0.05 0.05 0.1 0.1 0.1 0.2 0.2) tries=0
    test_clock
    end=$((now + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        test_clock
        [ "$now" -lt "$end" ] || { echo "in vain: $*"; return 1; }
        sleep "${pauses[tries++]:-${wait_pause:-0.4}}"
    done
}
