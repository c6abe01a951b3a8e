#!/bin/bash
# The rows of docs/gpu.md's table of predictions as the programs on the PATH make them now; test_plan.sh compares. Who
# changes the model of time, or makes a step faster, puts them there:
#   PATH=$PWD/build/debug:$PATH tests/cli/predicted_rows.sh
set -eu
cd "$(dirname "$0")/../.."

# Tokens/s of a GPU, of images images/s, with commas; "-" where the plan does not fit.
per_gpu() { # GPU FLAGS...
    shoal plan "${@:2}" --device "$1" --json 2>/dev/null | sed 's/.*"time"//' | tr ',' '\n' | awk -F: '
        /"fits":false/ { none = 1 }
        /"tokens_per_second_per_gpu"/ { tokens = $2 }
        /"samples_per_second"/ { samples = $2 }
        END {
            rate = sprintf("%.0f", tokens > 0 ? tokens : samples)
            while (match(rate, /[0-9][0-9][0-9][0-9](,|$)/))
                rate = substr(rate, 1, RSTART) "," substr(rate, RSTART + 1)
            print none ? "-" : rate
        }'
}

grep -E '^\| `--preset' docs/gpu.md | while IFS='`' read -r _ flags _; do
    row="| \`$flags\` |"
    for gpu in h100 h200 a100 b200 l40s; do
        # shellcheck disable=SC2086 # flags are words
        row="$row $(per_gpu "$gpu" $flags) |"
    done
    echo "$row"
done
