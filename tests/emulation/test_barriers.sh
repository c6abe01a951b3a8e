#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets BUILD
# Is each barrier of the kernels, each call of hopper.h that orders, and each wait of a stream, watched by a test? Leaves out one at a time and runs the tests
# that tests/emulation/barriers names for its file: one must fail. A wait's place is the line that asks for it, past the
# functions that only pass it on. Of those that others make good for alone, all waits of the same two streams are left out.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
list=tests/emulation/barriers
barrier='__sync(threads|warp)[a-z_]*\(.*\);|hopper_(barriers_made|expect|arrive|wait|copy(_plain)?|fence|commit|wait_products<[0-9]+>)\(.*\);'
waits='stream_wait|shard_order|shard_wait|await_update|order|order_copies'
export SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY="$BUILD/emulation/libshoal_cuda.so" SHOAL_CUDA_LIBRARY_PATH="$BUILD/emulation"
export CMOCKA_MESSAGE_OUTPUT=TAP
gpus=gpus=4

run() { # SETTING PROGRAM[:TEST]
    local words
    IFS=: read -ra words <<<"$2"
    SHOAL_EMULATION=$1,$gpus build/patience --quiet 300 --cpu 300 "$BUILD/tests/${words[0]}" "${words[@]:1}"
}

# A test that fails need not run on.
passes() { # SETTING PROGRAM[:TEST]
    run "$@" 2>/dev/null | grep -qm 1 '^not ok'
    [ "${PIPESTATUS[0]}" -eq 0 ]
}

# needed SETTING TEST...: one of the tests fails with the setting, under one of a dozen orders: ranks are threads, so that one
# order finds it now and then only.
needed() {
    local setting=$1 seed test
    shift
    for seed in {1..12}; do
        for test in "$@"; do
            passes "$setting,seed=$seed" "$test" || return 0
        done
    done
    echo "without it all of these pass: $*"
    return 1
}

tests_of() { sed -n "/ together\$/d; s,^$1 ,,p" "$list" | paste -sd ' '; } # FILE, of one line or more

# The lines that ask for waits, as FILE:LINE FUNCTION.
asked() {
    local file
    grep -rlE --include='*.c' "\b($waits)\(" agent | sort | while read -r file; do
        awk -v pass="^($waits)\$" -v call="(^|[^a-z_])($waits)\\\\(" '
            { sub(/\/\*.*/, "") }
            /^[a-z].*\(/ { inside = $0; sub(/\(.*/, "", inside); sub(/.*[ *]/, "", inside) }
            /^ / && inside !~ pass && $0 ~ call { print FILENAME ":" FNR, inside }' "$file"
    done
}

# What a test told of the waits that it came to as it passed, as FILE:LINE PLACE WAITING<-RECORDED (events.cc).
told() { # PROGRAM[:TEST]
    local program=$BUILD/tests/${1%%:*} pair place
    sed -n 's/^wait: //p' "$work/${1##*/}.said" | while read -r pair place; do
        tr / ' ' <<<"$place" | xargs addr2line -f -i -e "$program" | paste - - | awk -v pass="^($waits)\$" -v wait="$place $pair" '
            $1 !~ pass { sub(/.*\/agent\//, "agent/", $2); print $2, wait; exit }'
    done
}

# A place is to be needed alone; of one that the list says another makes good for, the pairs of its streams.
check_wait() { # FILE:LINE FUNCTION
    local file=${1%%:*} tests test log pairs place
    read -ra tests < <(tests_of "$file")
    if [ ${#tests[@]} -eq 0 ]; then
        check "$list says who watches the waits of $file" false
        return
    fi
    test=${tests[-1]}
    log=$work/${test##*/}
    [ -e "$log" ] || told "$test" >"$log"
    pairs=$(sed -n "s,^$1 [^ ]* ,,p" "$log" | sort -u)
    if grep -qxF -e "$file $2 together" -e "$file $2 ${pairs//$'\n'/,} together" "$list"; then
        sed "/^$/d; s|$| ${tests[*]}|" <<<"$pairs" >>"$work/pairs"
        return
    fi
    place=$(sed -n "s,^$1 \([^ ]*\) .*,\1,p" "$log" | sort -u | paste -sd +)
    check "$1 is come to" [ -n "$place" ]
    check "$1 is needed" needed "skip_wait=$place" "${tests[@]}"
}

passes_as_it_is() { # PROGRAM[:TEST]
    local said=$work/${1##*/}.said got=0
    run seed=1,tell_waits=1 "$1" 2>"$said" || got=$?
    grep -v '^wait: ' "$said"
    return "$got"
}

if [ -e "$SHOAL_CUDA_LIBRARY" ] && [[ $BUILD == */debug ]]; then
    for test in $(sed 's/^#.*//; / together$/d; s/^[^ ]*//' "$list" | tr ' ' '\n' | sort -u); do
        check "$test passes as it is" passes_as_it_is "$test"
    done
    while read -r file; do
        read -ra tests < <(tests_of "$file")
        [ ${#tests[@]} -gt 0 ] || check "$list says who watches the barriers of $file" false
        while IFS=: read -r line _; do
            check "$file:$line is needed" needed "skip=$file:$line" "${tests[@]}"
        done < <(grep -nE "$barrier" "$file")
    done < <(grep -lE "$barrier" kernels/cuda/*)
    check "a stream's wait is needed" needed "skip_wait=b<-a" kernels/test_stream
    while read -r place function; do
        check_wait "$place" "$function"
    done < <(asked)
    while read -ra words; do
        check "${words[0]} is needed" needed "skip_wait=${words[0]}" "${words[@]:1}"
    done < <(sort -u "$work/pairs")
else
    skip "barriers and waits" "once is enough, in the debug build"
fi
tap_done
