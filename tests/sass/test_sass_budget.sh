#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets BUILD and work
# The machine code of the hot kernels against tests/sass/budget.txt: registers, spills, static shared memory, instructions of
# the kernel and of its hot loop. And that what would cost time on a GPU is found: spills, other instructions, lost kernels.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
table=tests/sass/budget.txt
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
if [ -z "$nvcc" ]; then
    skip "machine code of the hot kernels" "no nvcc"
    tap_done
    exit
fi
release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
recorded=$(sed -n 's/^# CUDA //p' "$table")
if [ "$release" != "$recorded" ]; then
    skip "machine code of the hot kernels" "nvcc is of CUDA $release, the table of $recorded: another compiler has other numbers"
    tap_done
    exit
fi

budget() { tests/sass/budget.py check "${1:-$table}" "$release" "${2:-build/sass}"; } # [TABLE [CUBINS]]
differs() { fails 1 "$1" budget "${@:2}"; }                                           # TEXT [TABLE [CUBINS]]

check "hot kernels compile" make --no-print-directory --silent sass
check "the hot kernels cost what is recorded" budget

# what is compiled otherwise
mkdir -p "$work/spilt"
cp -r build/sass/80 "$work/spilt"
check "a kernel is compiled for fewer registers" "$nvcc" -std=c++17 -O3 -I. -cubin -arch=sm_80 -maxrregcount=24 \
    -o "$work/spilt/80/adam.cubin" kernels/cuda/adam.cu
check "its spills are found" differs "sm_80 adam.cu update_fp32<4, 2, adam_rule>: " "$table" "$work/spilt"
check "and said to be such" differs " bytes of spilled registers, recorded are 0" "$table" "$work/spilt"
check "and told of its hot loop" differs " accesses to spilled registers in the hot loop, recorded are 0" "$table" "$work/spilt"

# tables that are not of this code
edited() { sed -E "$1" "$table" >"$work/table"; } # SED
edited '/^80 .* attention_forward<64, false>$/ s/ 128 / 144 /'
check "lost products are found" differs "attention_forward<64, false>: 128 HMMA, recorded are 144" "$work/table"
edited '/rms_norm_forward<float, 4>$/d'
check "a new kernel is found" differs "rms_norm_forward<float, 4>: not in the table" "$work/table"
edited 's/rms_norm_forward<float, 4>$/rms_norm_sideways/'
check "a kernel that is gone is found" differs "rms_norm_sideways: no such kernel was compiled" "$work/table"
edited '/^[^#]/d'
check "no kernels at all are no success" fails 1 "0 kernels" budget "$work/table" "$work/none"
tap_done
