#!/bin/bash
# What the targets for people say when they are asked for what is not there, and of the lines that were executed.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL CUDA_ARCHS

check "make fuzz without T names what there is" fails 2 "make fuzz: T=NAME must be one of answer arrow" make fuzz
check "make fuzz with another name, too" fails 2 "make fuzz: T=NAME must be one of answer arrow" make fuzz T=nosuch
one_test() { # the one that everybody has built, in this variant
    env -u CMOCKA_MESSAGE_OUTPUT make V="${BUILD##*/}" tests/base/test_str >"$work/one" 2>&1 && contains "$work/one" "PASSED"
}
check "make tests/ROOM/test_X builds and runs that test" one_test
check "... on the emulated GPU, too" contains <(make -n tests/kernels/test_linear@cuda) SHOAL_TEST_DEVICE=cuda
check "make has no rules of its own" fails 2 "No rule to make target 'base/str'" make base/str
check "... and leaves nothing where sources are" fails 2 "No rule to make target 'tests/deploy/test_make'" make tests/deploy/test_make
quiet() { make -n "$1" | grep -q '^[^ ]*make --silent .*V=release programs$'; } # "Nothing to be done" is no news
for demo in demo demo-llama demo-t5; do
    check "make $demo says nothing where all is built" quiet $demo
done
# which leaves alone what the run around this one is writing of the lines that it has executed
printf '#!/bin/sh\nexit 1\n' >"$work/gcovr" && chmod +x "$work/gcovr"
check "a filter that meets no test says so" fails 1 'no test has "nosuch" in its name' env PATH="$work:$PATH" tests/run.sh nosuch debug
# an nvcc of another toolkit, which is asked for what it knows
nvcc() { # NAME ARCHITECTURES
    printf '#!/bin/sh\nprintf "compute_%%s\\n" %s\n' "$2" >"$work/$1" && chmod +x "$work/$1"
}
nvcc old "75 80 86 89 90" && nvcc new "75 80 86 89 90 100 120"
gpu() { # COMPUTE_CAPABILITY: of the machine's GPU; "": it has none
    mkdir -p "$work/gpu" && printf '#!/bin/sh\n[ -z "%s" ] || echo "%s"\n' "$1" "$1" >"$work/gpu/nvidia-smi"
    chmod +x "$work/gpu/nvidia-smi"
}
plans() { # VARIANT NAME TEXT
    PATH=$work/gpu:$PATH make -n gpu V="$1" NVCC="$work/$2" >"$work/plan" && contains "$work/plan" "$3"
}
gpu ""
check "in a release an nvcc builds what it knows" plans release old "build/cuda/75-80-86-89-90a/libshoal_cuda.so"
check "... and says what is left out" contains "$work/plan" 'old knows no compute capability 100: built without'
check "a newer one builds all" plans release new "build/cuda/75-80-86-89-90a-100/libshoal_cuda.so"
check "in debug one, where there is no GPU" plans debug new "build/cuda/80/libshoal_cuda.so"
gpu 9.0
check "in debug the machine's GPU's" plans debug new "build/cuda/90a/libshoal_cuda.so"
check "a release asks for no GPU" plans release new "build/cuda/75-80-86-89-90a-100/libshoal_cuda.so"
gpu 7.5
check "... a T4's, too" plans debug new "build/cuda/75/libshoal_cuda.so"
gpu 7.0
check "... not of one that training does not use" plans debug new "build/cuda/80/libshoal_cuda.so"
gpu 12.0
check "in debug one, where nvcc does not know the GPU" plans debug old "build/cuda/80/libshoal_cuda.so"
check "without nvcc that is said" fails 0 "no nvcc (CUDA Toolkit): built without GPUs" make gpu NVCC=

# what gcovr would tell: 96 of 100 lines
mkdir "$work/bin" && cat >"$work/bin/gcovr" <<'END'
#!/bin/sh
printf '(WARNING) Unrecognized GCOV output\nfilename,line_total,line_covered,line_percent\nkernels/cuda/a.cu,60,60,1.0\nkernels/cuda/b.cu,40,36,0.9\n'
END
chmod +x "$work/bin/gcovr"
coverage() { PATH=$work/bin:$PATH tests/emulation/coverage.sh build "$@"; }
check "the share of CUDA source lines that were executed is told" fails 0 "CUDA source lines executed: 96 of 100 (96.0 %)" coverage
check "a share that is reached" fails 0 "96 of 100" coverage 96
check "one that is not, with the file" fails 1 "kernels/cuda/b.cu: 36 of 40 lines" coverage 97
printf '#!/bin/sh\necho "no gcov here"\nexit 1\n' >"$work/bin/gcovr"
check "and why it is not known" fails 1 "FAILED: gcovr: no gcov here" coverage 95
tap_done
