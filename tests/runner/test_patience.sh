#!/bin/bash
# shellcheck disable=SC2016 # for other shells
# What runs each test: it ends those that get nowhere, and only those.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
patience() { build/patience "$@" >>"$work/out"; }

check "the command's exit code" fails 7 "" patience sh -c 'exit 7'
check "... of a signal" fails 137 "" patience sh -c 'kill -KILL $$'
check "... of none" fails 127 "patience: nosuch: No such file" patience nosuch
check "without a command" fails 2 "usage: patience" patience --quiet 1
check "a background job's command heeds Ctrl-C" fails 130 "" bash -c 'build/patience sh -c "kill -INT \$\$; sleep 1000" & wait $!'

check "what hangs is ended" fails 124 "it printed nothing for 2 s of its own time. Its processes:" patience --quiet 2 sleep 1000
check "... what it was doing is told" fails 124 "s sleep 31001" patience --quiet 1 sh -c 'sleep 31001; true'
check "... what is stopped, too" fails 124 "printed nothing" patience --quiet 1 sh -c 'kill -STOP $$'
check "... what polls, too" fails 124 "printed nothing" patience --quiet 1 sh -c 'while sleep 0.05; do :; done'
check "... what is deaf to SIGTERM" fails 124 "printed nothing" patience --quiet 1 sh -c 'trap "" TERM; while :; do sleep 1000; done'
check "what prints goes on" patience --quiet 3 sh -c 'for i in 1 2 3 4 5 6; do sleep 1; echo; done'
check "an endless loop is ended, though it prints" fails 124 "it used 1 s of processors" patience --cpu 1 --cost "$work/cost" sh -c 'while :; do echo; done'
check "... and what it cost is told" awk '{ exit !($1 >= 1 && $1 < 100) }' "$work/cost"
check "... also of what is ended" fails 124 "it used 1 s of processors" patience --cpu 1 sh -c 'while :; do timeout 0.2 sh -c "while :; do :; done"; done'
# A processor that is nearly all another's: 6 s of the wall clock are a tenth of one here.
starved() {
    local core
    core=$(taskset -pc $$ | sed 's/.*[ ,-]//')
    taskset -c "$core" bash -c 'while :; do :; done' &
    local other=$! code=0
    patience --quiet 3 taskset -c "$core" nice -n 19 bash -c 'end=$((SECONDS + 6)); while [ $SECONDS -lt $end ]; do :; done' || code=$?
    kill "$other"
    return "$code"
}
check "what is only slow, because the machine is busy, is not" starved

# Of two that want the one processor, it leaves nearly all to the other.
spares() {
    local core other
    core=$(taskset -pc $$ | sed 's/.*[ ,-]//')
    build/patience --cost "$work/other" taskset -c "$core" bash -c 'while :; do :; done' &
    other=$!
    build/patience --cost "$work/spare" --spare taskset -c "$core" bash -c 'end=$((SECONDS + 3)); while [ $SECONDS -lt $end ]; do :; done'
    kill "$other"
    wait "$other"
    awk 'NR == FNR { spare = $1; next } { print spare, $1; exit !($1 > 0.5 && spare < $1 / 4) }' "$work/spare" "$work/other"
}
check "what takes the spare time leaves the rest to others" spares
check "... and is ended with its children, too" fails 143 "" bash -c 'build/patience --spare sh -c "sleep 31003; true" & sleep 0.5; kill $!; wait $!'
check "... all of them" fails 1 "" pgrep -f 'sleep 31003'

cleans_up() {
    patience --quiet 1 bash -c 'trap "echo >$1; exit" TERM; while :; do sleep 0.1; done' sh "$work/clean"
    [ -e "$work/clean" ]
}
check "it may clean up before" cleans_up
stopped() {
    local code=0
    build/patience sh -c "trap 'exit 9' TERM; touch $work/began; while :; do sleep 0.1; done" >/dev/null &
    wait_for 60 test -e "$work/began" && kill $! && wait $! || code=$?
    [ "$code" -eq 143 ]
}
check "who stops it stops the test" stopped
check "what it leaves behind" patience sh -c 'setsid sleep 31002 & (sleep 31002 &) ; sleep 0.5'
check "... is ended with it" fails 1 "" pgrep -f 'sleep 3100[12]'
patience --clock "$work/clock" sh -c "sleep 3; cp $work/clock $work/then"
check "its clock is there for its own waits" awk '{ exit !($1 >= 1 && $1 <= 4) }' "$work/then"

# The same from where tests are run.
cat >"$work/run" <<'END'
. tests/run_one.sh
run_one hangs sleep 1000
run_one passes echo "ok 1 - it"
run_end
END
check "a run goes on after what hangs" fails 1 "1 passed, 1 failed, 0 skipped" env TEST_LIMIT_S=1 bash "$work/run"
check "... and says so at its end" fails 1 "FAILED: hangs: patience: ended after" env TEST_LIMIT_S=1 bash "$work/run"

# In a copy, which nobody else runs: a runner that is older than its sources is none.
remakes() {
    local tree=$work/tree runner=build/patience
    mkdir -p "$tree" && cp -r --parents Makefile deploy/release/release.mk tests/emulation/emulation.mk base \
        tests/{run.sh,run_one.sh,environment.sh,runner,gpu} "$tree" &&
        cd "$tree" && mkdir build && cp /bin/true "$runner" && touch -d 2000-01-01 "$runner" || return
    tests/run.sh nosuchtest debug # of which there is none
    cmp -s /bin/true "$runner" && { echo "$runner is that of before"; return 1; }
    [ -x "$runner" ]
}
check "a run makes an old runner anew" remakes
tap_done
