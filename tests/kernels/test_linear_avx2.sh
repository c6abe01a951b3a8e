#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets BUILD
# Linear layers where bf16 is no number of the machine's: oneDNN is told that it is on such a one.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
check "bf16 products through fp32" env ONEDNN_MAX_CPU_ISA=AVX2 "$BUILD/tests/kernels/test_linear"
tap_done
