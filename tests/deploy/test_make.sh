#!/bin/bash
# What the targets for people say when they are asked for what is not there.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL CUDA_ARCHS

check "make fuzz without T names what there is" fails 2 "make fuzz: T=NAME must be one of arrow columns idx" make fuzz
check "make fuzz with another name, too" fails 2 "make fuzz: T=NAME must be one of arrow columns idx" make fuzz T=nosuch
check "a filter that meets no test says so" fails 1 'no test has "nosuch" in its name' tests/run.sh nosuch debug
# an nvcc of another toolkit, which is asked for what it knows
nvcc() { # NAME ARCHITECTURES
    printf '#!/bin/sh\nprintf "compute_%%s\\n" %s\n' "$2" >"$work/$1" && chmod +x "$work/$1"
}
nvcc old "80 86 89 90" && nvcc new "80 86 89 90 100 120"
plans() { make -n gpu NVCC="$work/$1" >"$work/plan" && contains "$work/plan" "$2"; } # NAME TEXT
check "an nvcc builds what it knows" plans old "build/cuda/80-86-89-90a/libshoal_cuda.so"
check "... and says what is left out" contains "$work/plan" 'old knows no compute capability 100: built without'
check "a newer one builds all" plans new "build/cuda/80-86-89-90a-100/libshoal_cuda.so"
tap_done
