#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets BUILD and work
# The PTX that nvcc makes of the kernels with inline assembly, run by an interpreter: all rows of tests/kernels/attention_rows.c,
# and those of test_attention_hopper.c for what is made for sm_90a, must leave what the emulated GPU leaves, which runs the C++
# twins. And what is broken in the PTX is found; more of that does tests/ptx/mutations.sh.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
known=13.0 # release of nvcc whose PTX has nothing that the interpreter does not know
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
export SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY=$BUILD/ptx/libshoal_cuda.so SHOAL_CUDA_LIBRARY_PATH="$BUILD/emulation"

rows_of() { # KERNEL: the test with its rows
    case $1 in attention_hopper*) echo "test_attention_hopper test_rows" ;; *) echo test_attention ;; esac
}
compared() { # FOLDER OF PTX, KERNEL: the rows, and then a line a kernel of what was run
    local status test
    read -ra test < <(rows_of "$2")
    SHOAL_EMULATION=gpus=4,ptx=$1 build/patience --quiet 300 --cpu 300 "$BUILD/tests/kernels/${test[0]}" "${test[@]:1}" >"$work/log" 2>&1
    status=$?
    grep '^ptx: ' "$work/log" >>"$work/all"
    grep -E '^ptx: |^not ok|rror' "$work/log"
    return "$status"
}
all_run() { # the kernels of all logs so far, and all of their inline assembly
    local n kernels
    kernels=$(cat build/ptx/*.ptx | grep -c '^\.visible \.entry ')
    n=$(grep -cE '^ptx: .*: [1-9][0-9]* launches, .*, ([1-9][0-9]*) of \1 of inline assembly$' "$work/all")
    echo "$n of $kernels kernels"
    [ "$kernels" -gt 0 ] && [ "$n" -eq "$kernels" ]
}
broken() { # KERNEL TEXT SED: its PTX, edited, leaves something else, and the message has TEXT
    rm -rf "$work/ptx" && mkdir "$work/ptx"
    sed -E "$3" "build/ptx/$1.ptx" >"$work/ptx/$1.ptx"
    answers_no cmp -s "build/ptx/$1.ptx" "$work/ptx/$1.ptx" || return
    if compared "$work/ptx" "$1" >"$work/told"; then
        echo "nothing is found"
        return 1
    fi
    contains "$work/told" "$2"
}

if [ "$BUILD" != "$PWD/build/debug" ]; then
    skip "PTX" "once is enough, in the debug build"
    tap_done
    exit
fi
check "the interpreter is built" make --no-print-directory --silent V=debug ptx
check "instructions do what PTX says, and faults are told" "$BUILD/ptx/instructions"
if [ -z "$nvcc" ]; then
    skip "what nvcc makes of the inline assembly" "no nvcc"
    tap_done
    exit
fi
left_over() {
    mkdir -p "$work/old" && cp -p build/ptx/*.ptx "$work/old/" && touch "$work/old/gone.ptx"
    make --no-print-directory --silent V=debug PTX="$work/old" ptx && diff <(ls "$work/old") <(cd build/ptx && ls -- *.ptx)
}
check "what lies there of a source that is gone is removed" left_over

release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
status=0
mkdir -p "$work/hopper" && cp build/ptx/attention_hopper*.ptx "$work/hopper" # the rows run others, too: those have had theirs
told=$(compared build/ptx attention && compared "$work/hopper" attention_hopper) || status=$?
same() { printf '%s\n' "$told"; return "$status"; }
if [ "$status" -ne 0 ] && [ "$release" != "$known" ]; then
    why=$(grep '^ptx: ' <<<"$told" | grep -m 1 -v ' launches, ')
    skip "PTX and the emulation leave the same" "nvcc is of CUDA $release, not $known: ${why:-exit code $status}"
else
    check "PTX and the emulation leave the same" same
fi
if [ "$release" != "$known" ]; then
    skip "all of it ran, and what is broken is found" "nvcc is of CUDA $release: what is broken here is the text of $known"
    tap_done
    exit
fi
check "all kernels ran, and all of their inline assembly" all_run
twice() {
    mkdir -p "$work/twice"
    for copy in one other; do cp build/ptx/attention_keys.ptx "$work/twice/$copy.ptx"; done
    if compared "$work/twice" attention_keys >"$work/told"; then
        echo "nothing is found"
        return 1
    fi
    contains "$work/told" "$work/twice/one.ptx" && contains "$work/told" "$work/twice/other.ptx"
}
check "a kernel that is in two files is told" twice

differ='words of device memory differ'
check "a wait that is missing is found" broken attention_forward "$differ" '/cp\.async\.wait_all/d'
check "a transposition that is missing is found" broken attention_forward "$differ" 's/\.x4\.trans\./.x4./'
check "a product's swapped operands are found" broken attention_forward "$differ" '/^\tmma/s/\{(%r[0-9]+), (%r[0-9]+)\}/{\2, \1}/'
check "an unknown instruction is told with its line" broken attention_forward 'attention_forward.ptx:' 's/ex2\.approx\.ftz/lg2.approx.ftz/'
check "bytes that no copy brings are found" broken attention_hopper 'bytes are missing' '/expect_tx/s/, %r[0-9]+;/, 65536;/'
check "products' factors that have changed places are found" broken attention_hopper "$differ" 's/(\}, )(%rd[0-9]+), (%rd[0-9]+), adds/\1\3, \2, adds/'
tap_done
