#!/bin/bash
# Runs the test programs and scripts of the given build variants and prints one closing line.
#   tests/run.sh FILTER VARIANT...      FILTER: part of a test's name ("" = all)
set -u
cd "$(dirname "$0")/.." || exit
filter=$1
shift
. tests/run_one.sh

export CMOCKA_MESSAGE_OUTPUT=TAP OMP_NUM_THREADS=1
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp history_size=4"
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"

# the operator on a real API server runs under ASan if that is asked for
cluster_variant=$1
[[ " $* " != *" asan "* ]] || cluster_variant=asan

any_device=$(tests/gpu/programs.sh emulated)
for variant in "$@"; do
    find "build/$variant/emulation" -name '*.gcda' -delete 2>/dev/null
    for source in tests/*/test_*.c tests/*/test_*.cu; do
        # the Makefile says why there is no emulated GPU in it
        [[ $source != *.cu || $variant != tsan ]] || continue
        name=${source#tests/}
        name=${name%.*}
        # sanitizers have no business in NVIDIA's own library
        [[ $name != kernels/test_cudnn_plan || $variant == debug ]] || continue
        [[ $name != *"$filter"* ]] || run_one "$variant $name" "build/$variant/tests/$name"
        # what runs on any device runs on the emulated GPU, too; whole models there only once
        library=$PWD/build/$variant/emulation/libshoal_cuda.so
        if [[ "$name on cuda" == *"$filter"* && -e $library && ($name != agent/* || $variant == debug) ]] &&
            grep -qx "$name" <<<"$any_device"; then
            SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY=$library SHOAL_CUDA_LIBRARY_PATH=${library%/*} SHOAL_EMULATION=gpus=4 \
                run_one "$variant $name on cuda" "build/$variant/tests/$name"
        fi
    done
    for script in tests/*/test_*.sh; do
        [ -e "$script" ] || continue
        name=${script#tests/}
        [[ $name == *"$filter"* ]] || continue
        # once is enough where a whole cluster is started: real pods run the release build's images
        [[ $name != pods/* || $variant == "$1" ]] || continue
        [[ $name != cluster/* || $variant == "$cluster_variant" ]] || continue
        [[ $name != emulation/test_barriers.sh || $variant == debug ]] || continue
        [[ $name != e2e/test_emulated_gpu* || $variant != tsan ]] || continue # there is none, see above
        [[ $name != gpu/* || $variant == debug ]] || continue
        patience=1
        [[ $name != pods/* ]] || patience=3 # dozens of jobs: 7 minutes on a machine that has nothing else to do
        BUILD="$PWD/build/$variant" limit_s=$((patience * limit_s)) run_one "$variant $name" "$script"
    done
done
# of the kernels, by all that ran on the emulated GPU
for variant in "$@"; do
    emulation=build/$variant/emulation
    [ -n "$(find "$emulation/kernels" -name '*.gcda' 2>/dev/null | head -n 1)" ] || continue
    gcovr --root . --filter 'kernels/cuda/' "$emulation" --print-summary --output "$log" |
        sed -nE 's/^lines: ([0-9.]+)% \(([0-9]+) out of ([0-9]+)\)/CUDA source lines executed: \2 of \3 (\1 %)/p'
done
[ $((passed + failed + skipped)) -gt 0 ] || echo "no test has \"$filter\" in its name, as in cli/test_screen or deploy/" >&2
run_end
