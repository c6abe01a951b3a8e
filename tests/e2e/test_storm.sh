#!/bin/bash
# A storm of 20 blows, and one of nine over an elastic run: their schedule, and that the run they pass over ends with the bits of a
# calm one.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
check "the schedule and the ledger are what they say" env PYTHONDONTWRITEBYTECODE=1 python3 tests/storm/test_storm.py
storm() { env TMPDIR="$work" PYTHONDONTWRITEBYTECODE=1 tests/storm/storm.py "$@" >"$work/storm" 2>&1 || { cat "$work/storm"; return 1; }; }
check "ranks and launchers are killed, stopped and cut off 20 times" storm 20 1 4 20261123
check "... which ends with the bits of the calm run" contains "$work/storm" "equal to the calm run's"
check "... of which rank 0 was told more than once" grep -qE "^starts that went on: ([2-9]|[1-9][0-9]+) " "$work/storm"
elastic() { ELASTIC=1 storm "$@"; }
check "an elastic run shrinks and grows back beside that" elastic 9 1 3 5
check "... of which its launchers tell" grep -qE "^times that the run went on with 2 launchers of 3: [1-9]" "$work/storm"
check "... and ends with the bits of one whose size never changed" contains "$work/storm" "equal to the calm run's"
tap_done
