#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets work
# tests/gpu/attention_table.sh: rows of a bench's output come into the table in place of those of their compute capability.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
if [ "${BUILD##*/}" != debug ]; then
    skip "the table of attention" "once is enough, in the debug build"
    tap_done
fi
export TABLE=$work/table.c
cp kernels/attention_table.c "$TABLE"

row() { # COMPUTE_CAPABILITY DIRECTION T OURS CUDNN
    printf '    {%d, ATTENTION_%s, 64, ATTENTION_CAUSAL, %d, %.4f, %.4f}, /* 8 x 12/12 heads: 90, 100 TFLOP/s: 1.11 x */\n' "$@"
}
write() { tests/gpu/attention_table.sh --from "$1"; }
# what the compiler makes of the table: a line for each row of a compute capability
rows_of() {
    cat >"$work/print.c" <<'END'
#include "kernels/attention_choice.h"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    for (const struct attention_measured *row = attention_table; argc == 2 && row->compute_capability; row++)
        if (row->compute_capability == atoi(argv[1]))
            printf("%d %lld %g %g\n", row->direction, (long long)row->T, row->ours_ms, row->cudnn_ms);
}
END
    gcc -std=gnu17 -Wall -Wextra -Werror -I. -o "$work/print" "$work/print.c" "$TABLE" && "$work/print" "$1"
}
has_rows() { # COMPUTE_CAPABILITY LINES
    local rows
    rows=$(rows_of "$1") || return
    [ "$rows" = "$2" ] || { echo "not $2 but $rows"; return 1; }
}

log() { cat && echo "attention: complete"; } # what the bench says, to its end
{ echo "attention, bf16: ..."; row 73 FORWARD 512 2 1; row 73 BACKWARD 512 4 3; } | log >"$work/73"
{
    row 74 FORWARD 1024 7 5
    echo "warning attention: backward is done by our own kernels, not by cuDNN: a plan: ..."
    echo "    BACKWARD, 64, CAUSAL, 1024, 8 x 12/12 heads: ours 9.0000 ms, 90 TFLOP/s; cuDNN: none"
} | log >"$work/74"
row 73 FORWARD 2048 6 5 | log >"$work/73-again"
check "rows are put there" write "$work/73"
check "and read by the compiler" has_rows 73 $'0 512 2 1\n1 512 4 3'
check "rows of another compute capability are put beside them" write "$work/74"
check "they are there, without the one that cuDNN did not do" has_rows 74 "0 1024 7 5"
check "and the first ones, too" has_rows 73 $'0 512 2 1\n1 512 4 3'
check "rows of the same compute capability" write "$work/73-again"
check "take the place of the old ones" has_rows 73 "0 2048 6 5"
check "and of no others" has_rows 74 "0 1024 7 5"

cp "$TABLE" "$work/before"
{ row 74 FORWARD 1024 7 7; echo "warning attention: forward is done by our own kernels, not by cuDNN: libcudnn.so.9 ..."; } | log >"$work/absent"
{ row 73 FORWARD 512 2 1; row 74 FORWARD 512 2 1; } | log >"$work/two"
row 0 FORWARD 512 2 1 | log >"$work/cpu"
echo "attention, bf16: ..." | log >"$work/none"
row 73 FORWARD 512 2 1 >"$work/cut"
check "what cuDNN did not do is refused" fails 1 "cuDNN was not measured (libcudnn.so.9" write "$work/absent"
check "two GPUs at once are refused" fails 1 "not one compute capability but these: 73 74" write "$work/two"
check "the CPU is refused" fails 1 "not one compute capability but these: 0" write "$work/cpu"
check "no rows are refused" fails 1 "no row in" write "$work/none"
check "a log that was cut off is refused" fails 1 'has no line "attention: complete"' write "$work/cut"
check "and leave the table as it is" cmp "$TABLE" "$work/before"
tap_done
