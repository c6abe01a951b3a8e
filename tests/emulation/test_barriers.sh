#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets BUILD
# Is each barrier of the kernels, and each wait of a stream, watched by a test? Leaves out one barrier at a time and runs
# the tests that tests/emulation/barriers names: one must fail; then all waits of one stream for another, of the engine's and
# of the input's, of which their tests tell.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
list=tests/emulation/barriers
barrier='__syncthreads[a-z_]*\(.*\);'
export SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY="$BUILD/emulation/libshoal_cuda.so" SHOAL_CUDA_LIBRARY_PATH="$BUILD/emulation"
gpus=gpus=4

# needed SETTING TEST...: one of the tests fails with the setting, under one of a few orders.
needed() {
    local setting=$1 seed test
    shift
    for seed in 1 2 3; do
        for test in "$@"; do
            SHOAL_EMULATION=$setting,seed=$seed,$gpus timeout 60 "$BUILD/tests/$test" >/dev/null 2>&1 || return 0
        done
    done
    echo "without it all of these pass: $*"
    return 1
}

passes_as_it_is() { timeout 60 "$BUILD/tests/$1"; }

if [ -e "$SHOAL_CUDA_LIBRARY" ] && [[ $BUILD == */debug ]]; then
    for test in $(sed 's/^#.*//; s/^[^ ]*//' "$list" | tr ' ' '\n' | sort -u); do
        check "$test passes as it is" passes_as_it_is "$test"
    done
    while read -r file; do
        read -ra tests < <(sed -n "s,^$file ,,p" "$list")
        [ ${#tests[@]} -gt 0 ] || check "$list says who watches the barriers of $file" false
        while IFS=: read -r line _; do
            check "$file:$line is needed" needed "skip=$file:$line" "${tests[@]}"
        done < <(grep -nE "$barrier" "$file")
    done < <(grep -lE "$barrier" kernels/cuda/*)
    check "a stream's wait is needed" needed "skip_wait=b<-a" kernels/test_stream
    for test in agent/test_shard_devices agent/test_feed; do
        mapfile -t waits < <(SHOAL_EMULATION=tell_waits=1,$gpus "$BUILD/tests/$test" 2>&1 | sed -n 's/^wait: //p')
        check "$test has streams that wait" [ ${#waits[@]} -gt 0 ]
        for wait in "${waits[@]}"; do
            check "$wait is needed" needed "skip_wait=$wait" "$test"
        done
    done
else
    skip "barriers and waits" "once is enough, in the debug build"
fi
tap_done
