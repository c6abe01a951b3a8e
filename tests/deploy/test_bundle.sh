#!/bin/bash
# shellcheck disable=SC2154 # tap.sh sets work
# The folder that `make bundle` makes, for machines with GPUs where nothing else is installed, of this build's programs.
# Nothing in it takes a library of this machine's but glibc's and the driver's. Where no GPU can be used check-gpu and
# bench-gpu say so; where one can they end in time, whatever a test does.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
bundle=$work/bundle
if ! [ -e "$BUILD/libshoal_cuda.so" ]; then
    check "without the GPU backend there is none, which is said" fails 1 "built without nvcc" tests/gpu/bundle.sh "$BUILD" "$bundle"
    tap_done
fi

tests/gpu/bundle.sh "$BUILD" "$bundle" >"$work/log" 2>&1
check "it is made" [ $? = 0 ]
check "it is no larger than 45 MiB" [ "$(du -sm --apparent-size "$bundle" | cut -f1)" -le 45 ]

# alone COMMAND...: in the folder, where the environment says nothing of this machine and no GPU is to be seen
alone() { (cd "$bundle" && env -i PATH=/usr/bin:/bin CUDA_VISIBLE_DEVICES= "$@"); }
lines() { [ "$(alone "$1" 2>&1 | sed 's/^no GPU: .*/no GPU: .../')" = "$2" ] || { alone "$1"; return 1; }; } # COMMAND LINES
check "check-gpu says that there is no GPU, and skips" lines ./check-gpu $'no GPU: ...\n0 passed, 0 failed, 1 skipped'
check "bench-gpu does, too" lines ./bench-gpu $'no GPU: ...\nbench-gpu: skipped, nothing was measured'
check "so does first-gpu" lines ./first-gpu $'no GPU: ...\nfirst-gpu: skipped, nothing was measured'
check "first-gpu says what it would run, and what is predicted" fails 0 "predicted for llama on h100: " alone ./first-gpu --dry_run
check "the programs start" fails 0 "Usage" alone ./shoal-agent --help
own_cxx() {
    local all
    all=$(alone LD_DEBUG=libs ./shoal-agent --help 2>&1) && grep -q 'calling init: ' <<<"$all" && answers_no grep 'calling init: .*/lib/c++/' <<<"$all"
}
check "... with the machine's own C++ library, where it has one" own_cxx

# What is looked for outside of the folder, or in vain.
borrowed() {
    find "$bundle/build" "$bundle/lib" -type f \( -perm -u+x -o -name '*.so*' \) -exec \
        env "LD_LIBRARY_PATH=$bundle/lib:$bundle/lib/c++" ldd {} + | grep '=>' | grep -vF " $bundle/lib/" |
        grep -vE '^\s*(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|cuda))\.so\.[0-9]+ => /' | sort -u
}
check "there are programs, tests and benches" [ "$(find "$bundle/build" -perm -u+x -type f | grep -cE '/(shoal|shoal-agent|kernels/test_ops|agent/test_shard_devices|bench/language_bench)$')" = 5 ]
check "their libraries are in it" [ -z "$(borrowed)" ]

# Programs of our own in the place of the tests: as on a GPU, one hangs, another is not come to.
program() { mkdir -p "$bundle/build/release/tests/${1%/*}" && printf '#!/bin/sh\n%s\n' "$2" >"$bundle/build/release/tests/$1" && chmod +x "$bundle/build/release/tests/$1"; }
program gpu/gpu 'echo "GPU 0: none"'
program kernels/test_quick 'echo "ok 1 - it"'
program kernels/test_hangs 'exec sleep 1000'
program agent/test_after 'echo "ok 1 - it"'
rm "$bundle"/tests/gpu/test_*.sh "$bundle"/build/release/tests/gpu/test_* 2>/dev/null
printf '%s\n' agent/test_after kernels/test_hangs kernels/test_quick >"$bundle/tests/gpu/programs"
one_hangs() {
    alone CHECK_UNTIL_S="$limit" ./check-gpu >"$work/log" 2>&1
    [ $? = 1 ] && grep "^FAILED: gpu kernels/test_hangs: " "$work/log"
}
check "check-gpu ends with a failure where a test hangs, and names it" longer one_hangs
check "... and what it has left out" grep -E "^FAILED: gpu agent/test_after: left out, [0-9]+ s are over" "$work/log"
alone BENCH_UNTIL_S=0 ./bench-gpu --dry_run >"$work/log" 2>&1
check "bench-gpu fails where there is no time" [ $? = 1 ]
check "... and names what it has left out" contains "$work/log" "bench-gpu: left out, the time is over: build/release/shoal-agent --device cuda"
tap_done
