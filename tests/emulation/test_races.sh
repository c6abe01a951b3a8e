#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets BUILD
# Do kernels race? Runs their tests with the library that sees each access (tests/emulation/races.h): nothing may be found.
# Then it leaves out each barrier of the kernels in turn, and sees each atomic as an ordinary access: a race must be found,
# whatever the values. `tests/emulation/test_races.sh FILE` leaves out those of one file.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
list=tests/emulation/barriers
barrier='__sync(threads|warp)[a-z_]*\(.*\);|[^a-z]atomic[A-Z][A-Za-z]*\('
more='kernels/test_elementwise kernels/test_optimizers'
library=$BUILD/races/libshoal_cuda.so
export SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY=$library SHOAL_CUDA_LIBRARY_PATH="$BUILD/emulation" CMOCKA_MESSAGE_OUTPUT=TAP

run() { SHOAL_EMULATION=$1,gpus=4 build/patience --quiet 300 --cpu 300 "$BUILD/tests/$2" 2>&1; } # SETTING TEST

# FILE. The list has tests of their own for some files, which have no such library: of attention_tile.h's barriers one is for
# callers that kernels are not, so there are none. Those of attention_hopper* are for barriers in shared memory, which no
# access is seen of: their twins tell.
tests_of() {
    case $1 in
    */attention_tile.h | */attention_hopper*) ;;
    */numbers.h) printf '%s\n' kernels/test_ops kernels/test_cross_entropy ;;
    *) sed -n "s,^$1 ,,p" "$list" | tr ' ' '\n' ;;
    esac
}

# found SETTING TEST...: one of the tests finds a race. It need not run on.
found() {
    local setting=$1 test
    shift
    for test in "$@"; do
        if run "$setting" "$test" | grep -m 1 ': race: '; then
            return 0
        fi
    done
    echo "no race is found by: $*"
    return 1
}

if [[ $BUILD != */debug ]] || ! make --no-print-directory --silent V=debug races; then
    skip "races" "once is enough, in the debug build"
    tap_done
    exit
fi
if [ $# -eq 0 ]; then
    # (not of attention_hopper*: minutes, for rows of their own in shared memory)
    for test in $(sed -n 's,^kernels/[^ ]* ,,p' "$list" | tr ' ' '\n' | grep '^kernels/' | grep -v '^kernels/test_attention_hopper' | sort -u) $more; do
        check "no race in $test" run seed=1 "$test"
    done
fi
files=("$@")
[ $# -gt 0 ] || files=(kernels/cuda/*)
while read -r file; do
    readarray -t tests < <(tests_of "$file")
    [ ${#tests[@]} -gt 0 ] || continue
    while IFS=: read -r line _; do
        check "without $file:$line there is a race" found "skip=$file:$line" "${tests[@]}"
    done < <(grep -nE "$barrier" "$file" | grep -vE '^[0-9]+: *(/?\*|//)')
done < <(grep -lE "$barrier" "${files[@]}")
tap_done
