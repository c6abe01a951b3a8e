#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets BUILD
# Products and attention in bf16 where the machine has no matrix unit, or no bf16: oneDNN is told so, and the emulated GPU
# is of before 8.0.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
for test in linear attention; do
    for isa in AVX512_CORE_BF16 AVX2; do
        check "$test with $isa" env ONEDNN_MAX_CPU_ISA=$isa "$BUILD/tests/kernels/test_$test"
    done
done
export SHOAL_CUDA_LIBRARY=$BUILD/emulation/libshoal_cuda.so SHOAL_CUDA_LIBRARY_PATH=$BUILD/emulation
for test in linear linear_gelu attention cross_entropy; do
    if [ -e "$SHOAL_CUDA_LIBRARY" ]; then
        check "$test with compute capability 7.5" env SHOAL_TEST_DEVICE=cuda SHOAL_EMULATION=gpus=4,capability=75 "$BUILD/tests/kernels/test_$test"
    else
        skip "$test with compute capability 7.5" "this build has no emulated GPU"
    fi
done
tap_done
