#!/bin/bash
# Writes what our attention and cuDNN's take into the table that the choice between them is made by, in place of the rows
# of the same compute capability. Rows without a number of cuDNN's are none. To be committed, the message naming the GPU, the driver, cuDNN's version and the date.
#   tests/gpu/attention_table.sh BUILD        checks cuDNN's path on this machine's GPU (test_cudnn), then measures
#   tests/gpu/attention_table.sh --from LOG   takes what tests/bench/attention_bench said elsewhere (build/bench/kernels-attention.log)
# TABLE: the file (kernels/attention_table.c)
set -euo pipefail
cd "$(dirname "$0")/../.."
table=${TABLE:-kernels/attention_table.c}
row='^    \{([0-9]+), ATTENTION_(FORWARD|BACKWARD|BACKWARD_NONDETERMINISTIC), (64|128), ATTENTION_(FULL|CAUSAL), [0-9]+, [0-9.]+, [0-9.]+\}, /\* [^*]* \*/$'

stop() {
    echo "attention_table.sh: $*: $table is left as it is" >&2
    exit 1
}

measure() { # BUILD LOG
    "$1/tests/gpu/gpu" || stop "no GPU"
    SHOAL_TEST_DEVICE=cuda "$1/tests/kernels/test_cudnn" >"$2" 2>&1 || stop "cuDNN's results are wrong ($(tail -n 5 "$2"))"
    "$1/tests/bench/attention_bench" cuda >"$2" 2>&1 || stop "attention_bench failed ($(tail -n 5 "$2"))"
}

log=${2:-}
if [ "${1:-}" != --from ]; then
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    export SHOAL_CUDA_LIBRARY=${SHOAL_CUDA_LIBRARY:-$(realpath -m "$1")/libshoal_cuda.so}
    measure "$1" "$log"
fi
cat "$log"
grep -qx 'attention: complete' "$log" || stop "$log has no line \"attention: complete\": the bench was cut off, and a part of a table is none"
! reason=$(grep -m 1 'attention: forward is done by our own kernels' "$log") || stop "cuDNN was not measured (${reason#*cuDNN: })"
rows=$(grep -E "$row" "$log") || stop "no row in $log"
capability=$(sed -E "s@$row@\1@" <<<"$rows" | sort -u)
[[ $capability =~ ^[1-9][0-9]+$ ]] || stop "not one compute capability but these: ${capability//$'\n'/ }"
new=$(grep -v "^    {$capability," "$table" | rows=$rows awk '/^    \{0\}/ { print ENVIRON["rows"] } { print }')
printf '%s\n' "$new" >"$table"
echo "$table has $(wc -l <<<"$rows") rows of compute capability $capability"
