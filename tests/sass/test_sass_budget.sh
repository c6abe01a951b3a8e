#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets BUILD and work
# The machine code of the hot kernels against tests/sass/budget.txt: registers, spills, static shared memory, instructions of
# the kernel and of its hot loop. And that what would cost time on a GPU is found: spills, other instructions, lost kernels.
# Kernels for compute capability 7.5 are compiled alone: in a test run nothing else does it.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
table=tests/sass/budget.txt
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
if [ -z "$nvcc" ]; then
    skip "machine code of the hot kernels" "no nvcc"
    tap_done
    exit
fi
make_sass() { make --no-print-directory --silent "$@"; }
check "hot kernels, and all for compute capability 7.5, compile without a warning" make_sass sass
echo '__global__ void of_older(int *p) { int unused; *p = 1; }' >"$work/unused.h"
warned() { NVCC_PREPEND_FLAGS="-include $work/unused.h" make_sass SASS="$work/sass" "$work/sass/75/sum_of_squares.cubin"; }
check "a warning ends it" fails 2 'variable "unused" was declared but never referenced' warned

version=$("$nvcc" --version | sed -n 's/.*, V\([0-9.]*\)$/\1/p')
recorded=$(sed -n 's/^# nvcc //p' "$table")
if [ "$version" != "$recorded" ]; then
    skip "machine code of the hot kernels" "nvcc is $version, the table of $recorded: another compiler has other numbers"
    tap_done
    exit
fi

mapfile -t cubins < <(make_sass sass-cubins)
budget() { tests/sass/budget.py check "$1" "$version" "${@:2}"; } # TABLE CUBIN...
differs() { fails 1 "$1" budget "${@:2}"; }                       # TEXT TABLE CUBIN...

check "the hot kernels cost what is recorded" budget "$table" "${cubins[@]}"
check "a table of another patch of nvcc is told" fails 3 "$table is of nvcc $version" \
    tests/sass/budget.py check "$table" "$version.1" "${cubins[@]}"
left_over() {
    mkdir -p "$work/old/80" && touch "$work/old/80/gone.cubin"
    make_sass SASS="$work/old" sass-cubins >"$work/named" && contains "$work/named" "$work/old/80/adam.cubin" && lacks "$work/named" gone
}
check "what lies there of a source that is gone is not looked at" left_over

# what is compiled otherwise
mkdir -p "$work/spilt"
cp -r build/sass/80 "$work/spilt"
check "a kernel is compiled for fewer registers" "$nvcc" -std=c++17 -O3 -I. -cubin -arch=sm_80 -maxrregcount=24 \
    -o "$work/spilt/80/adam.cubin" kernels/cuda/adam.cu
check "its spills are found" differs "sm_80 adam.cu update_fp32<4, 2, adam_rule>: " "$table" "$work"/spilt/80/*.cubin
check "and said to be such" differs " bytes of spilled registers, recorded are 0" "$table" "$work"/spilt/80/*.cubin
check "and told of its hot loop" differs " accesses to spilled registers in the hot loop, recorded are 0" "$table" "$work"/spilt/80/*.cubin
less() { # attention_hopper.cu with a wait less, and its header with a product and copies less
    mkdir -p "$work/less/90a" "$work/less/kernels/cuda"
    sed '/hopper_wait(&r.v_full\[last\]/d' kernels/cuda/attention_hopper.cu >"$work/less/attention_hopper.cu"
    sed 's/hopper_multiply_rows<HD>(y/if (k) &/; s/column < HD;/column < HOPPER_COLUMNS;/' \
        kernels/cuda/attention_hopper.h >"$work/less/kernels/cuda/attention_hopper.h"
    "$nvcc" -std=c++17 -O3 -I. -cubin -arch=sm_90a -o "$work/less/90a/attention_hopper.cubin" "$work/less/attention_hopper.cu"
}
check "a kernel for warpgroups is compiled that does less" less
for told in "<64>: 3 loop:SYNCS, recorded are 4" "<64>: 11 loop:HGMMA, recorded are 12" "<128>: 3 UTMALDG, recorded are 6"; do
    check "it is found: $told" differs "sm_90a attention_hopper.cu attention_hopper$told" "$table" "$work/less/90a/attention_hopper.cubin"
done

# tables that are not of this code
edited() { sed -E "$1" "$table" >"$work/table"; } # SED
edited '/^80 .* attention_forward<64, false>$/ s/ 128 / 144 /'
check "lost products are found" differs "attention_forward<64, false>: 128 HMMA, recorded are 144" "$work/table" "${cubins[@]}"
edited '/rms_norm_forward<float, 4>$/d'
check "a new kernel is found" differs "rms_norm_forward<float, 4>: not in the table" "$work/table" "${cubins[@]}"
edited 's/rms_norm_forward<float, 4>$/rms_norm_sideways/'
check "a kernel that is gone is found" differs "rms_norm_sideways: no such kernel was compiled" "$work/table" "${cubins[@]}"
edited '/^[^#]/d'
check "no kernels at all are no success" fails 1 "0 kernels" budget "$work/table"
tap_done
