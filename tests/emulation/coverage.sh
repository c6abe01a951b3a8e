#!/bin/bash
# Says in one line how many lines of the CUDA sources were executed on the emulated GPU.
#   tests/emulation/coverage.sh BUILD [LEAST]     LEAST: fails, and names the files, if it is a smaller share than so many %
set -euo pipefail
cd "$(dirname "$0")/../.."
# Ranks that are threads count what the host does without atomics: a count may be lost, and gcov then tells of a branch
# that was taken -1 times. Lines are what is asked for here.
table=$(gcovr --root . --filter 'kernels/cuda/' --gcov-ignore-parse-errors --csv - "$1/emulation" 2>&1) || {
    printf 'FAILED: gcovr: %s\n' "$table"
    exit 1
}
awk -F , -v least="${2:-0}" '
    /^kernels\/cuda\// {
        all += $2
        done += $3
        if ($3 < $2)
            files = files sprintf("    %s: %d of %d lines\n", $1, $3, $2)
    }
    END {
        share = all ? 100 * done / all : 0
        printf "CUDA source lines executed: %d of %d (%.1f %%)\n", done, all, share
        if (share < least)
            printf "FAILED: fewer than %s %% of the CUDA source lines were executed; not whole:\n%s", least, files
        exit share < least
    }' <<<"$table"
