#!/bin/bash
# Runs on a real GPU what `make check` runs on the emulated one, then some of it under compute-sanitizer.
#   tests/gpu/check.sh [BUILD]      BUILD: where the programs are; build/release
# CHECK_PARTS: "tests", "sanitizer", or both, which is the default.
# Without a GPU it says why, and skips. Takes less than 8 minutes: what is left then is named, and has failed.
set -u
cd "$(dirname "$0")/../.." || exit
build=$(realpath -m -- "${1:-build/release}")
. tests/run_one.sh
# plenty for a program: a kernel that hangs must not take the machine's time
limit_s=${TEST_LIMIT_S:-120}
until_s=${CHECK_UNTIL_S:-450} # for all
run_limited() { exec timeout --kill-after=10 "$limit_s" env --default-signal=INT,QUIT "$@"; } # the wall clock's: it is paid for
parts=${CHECK_PARTS:-tests sanitizer}
sanitizer_until_s=${SANITIZER_UNTIL_S:-$((until_s - limit_s))} # no new one after this
export CMOCKA_MESSAGE_OUTPUT=TAP OMP_NUM_THREADS=2 SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY="$build/libshoal_cuda.so"

export CUDA_MODULE_LOADING=EAGER # tests run ranks as threads: loading a kernel late may wait for another rank's, which waits for us

if [ $# -gt 1 ] || ! [ -x "$build/tests/gpu/gpu" ]; then
    echo "check-gpu: there are no tests in \"${*:-$build}\", which is to be a build's folder: make check-gpu builds them" >&2
    exit 2
fi
timeout --kill-after=10 60 "$build/tests/gpu/gpu"
case $? in
0) ;;
77)
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
    ;;
124 | 137)
    echo "check-gpu: the GPUs did not answer within 60 s" >&2
    exit 1
    ;;
*) exit 1 ;;
esac

# run_one with what is left of the time.
run_timed() { # NAME COMMAND...
    local left=$((until_s - SECONDS)) limit=$limit_s
    if [ "$left" -le 0 ]; then
        echo "$1: left out, $until_s s are over"
        echo "FAILED: $1: left out, $until_s s are over" >>"$results/failed"
        echo "0 1 0" >>"$results/count"
        return
    fi
    [ "$limit_s" -le "$left" ] || limit_s=$left
    run_one "$@"
    limit_s=$limit
}

any_device=$(tests/gpu/programs.sh | sort -r) # kernels before what is made of them
# a kernel that stops for its data is what the sanitizer looks for
kernels=$(grep '^kernels/' <<<"$any_device" | grep -vx kernels/test_data_error)
if [[ " $parts " = *" tests "* ]]; then
    for name in $any_device; do
        run_timed "gpu $name" "$build/tests/$name"
    done
    # other tests of tests/gpu are scripts and programs of their own
    for test in tests/gpu/test_*.sh "$build"/tests/gpu/test_*; do
        [ ! -x "$test" ] || [[ $test == *.d ]] || [[ $test == *.o ]] || BUILD=$build run_timed "gpu ${test##*/}" "$test"
    done
fi

PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer
if [[ " $parts " != *" sanitizer "* ]]; then
    :
elif command -v compute-sanitizer >/dev/null; then
    for name in $kernels; do
        for tool in memcheck racecheck; do
            if [ "$SECONDS" -gt "$sanitizer_until_s" ]; then
                run_skip "$tool $name: skipped, $sanitizer_until_s s are over"
                continue
            fi
            run_timed "$tool $name" compute-sanitizer --tool "$tool" --error-exitcode 99 --print-limit 5 "$build/tests/$name"
        done
    done
else
    run_skip "compute-sanitizer is not here: memcheck and racecheck skipped"
fi
run_end
