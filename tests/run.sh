#!/bin/bash
# Runs the test programs and scripts of the given build variants and prints one closing line.
#   tests/run.sh FILTER VARIANT...      FILTER: part of a test's name ("" = all)
# Every test speaks TAP. The output of a program is shown only if something in it failed; a program that
# crashes or runs out of time counts as one failure.
set -u
cd "$(dirname "$0")/.." || exit
filter=$1
shift
limit_s=${TEST_LIMIT_S:-600}
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

export CMOCKA_MESSAGE_OUTPUT=TAP OMP_NUM_THREADS=1
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp history_size=4"
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"

# the operator on a real API server runs under ASan if that is asked for
cluster_variant=$1
[[ " $* " != *" asan "* ]] || cluster_variant=asan

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
        sed 's/^/    /' "$log" | tail -n 80
    fi
}

for variant in "$@"; do
    find "build/$variant/emulation" -name '*.gcda' -delete 2>/dev/null
    for source in tests/*/test_*.c tests/*/test_*.cu; do
        # the Makefile says why there is no emulated GPU in it
        [[ $source != *.cu || $variant != tsan ]] || continue
        name=${source#tests/}
        name=${name%.*}
        [[ "$name on cuda" == *"$filter"* ]] || continue
        run_one "$variant $name" "build/$variant/tests/$name"
        # what runs on any device runs on the emulated GPU, too
        library=$PWD/build/$variant/emulation/libshoal_cuda.so
        if [ -e "$library" ] && grep -qE 'world_setup|support_device' "$source"; then
            SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY=$library \
                run_one "$variant $name on cuda" "build/$variant/tests/$name"
        fi
    done
    for script in tests/*/test_*.sh; do
        [ -e "$script" ] || continue
        name=${script#tests/}
        [[ $name == *"$filter"* ]] || continue
        # once is enough where a whole cluster is started: real pods run the release build's images
        [[ $name != pods/* || $variant == "$1" ]] || continue
        [[ $name != cluster/* || $variant == "$cluster_variant" ]] || continue
        BUILD="$PWD/build/$variant" run_one "$variant $name" "$script"
    done
done
# of the kernels, by all that ran on the emulated GPU
covered=$(find build/*/emulation/kernels -name '*.gcda' 2>/dev/null | head -n 1)
if [ -n "$covered" ]; then
    gcovr --root . --filter 'kernels/cuda/' "${covered%%/kernels/*}" --print-summary --output /dev/null |
        sed -nE 's/^lines: ([0-9.]+)% \(([0-9]+) out of ([0-9]+)\)/CUDA source lines executed: \2 of \3 (\1 %)/p'
fi
[ $((passed + failed + skipped)) -gt 0 ] || echo "no test has \"$filter\" in its name, as in cli/test_screen or deploy/" >&2
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
