#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets BUILD
# Products and attention in bf16 where the machine has no matrix unit, or no bf16: oneDNN is told so.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
for test in linear attention; do
    for isa in AVX512_CORE_BF16 AVX2; do
        check "$test with $isa" env ONEDNN_MAX_CPU_ISA=$isa "$BUILD/tests/kernels/test_$test"
    done
done
tap_done
