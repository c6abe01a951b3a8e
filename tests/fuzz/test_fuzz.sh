#!/bin/bash
# Every fuzz target on its corpus and a fixed number of mutations (FUZZ_ITERATIONS, FUZZ_SEED). TAP.
set -u
targets=(tests/fuzz/fuzz_*.c)
echo "1..${#targets[@]}"
number=0 failed=0
# races do not depend on the input as reads beyond it do, and an instrumented mutation costs ten plain ones
iterations=20000
[[ $BUILD != */tsan ]] || iterations=2000
for source in "${targets[@]}"; do
    number=$((number + 1))
    name=$(basename "$source" .c)
    seed=${FUZZ_SEED:-1}
    if "$BUILD/tests/fuzz/$name" "tests/fuzz/corpus/${name#fuzz_}" "${FUZZ_ITERATIONS:-$iterations}" "$seed"; then
        echo "ok $number - $name, seed $seed"
    else
        echo "not ok $number - $name, seed $seed"
        failed=1
    fi
done
exit "$failed"
