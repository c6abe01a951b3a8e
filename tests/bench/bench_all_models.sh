#!/bin/bash
# bench_models.sh for each of tests/bench/models, one run each unless RUNS says more.
#   tests/bench/bench_all_models.sh [torch|eager]
set -eu
cd "$(dirname "$0")/../.."
for model in tests/bench/models/*; do
    printf '\n%s\n' "$(basename "$model")"
    RUNS=${RUNS:-1} tests/bench/bench_models.sh "$(basename "$model")" "$@"
done
