#!/bin/bash
# A storm of 20 blows: its schedule, and that the run it passes over ends with the bits of a calm one.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
check "the schedule and the ledger are what they say" env PYTHONDONTWRITEBYTECODE=1 python3 tests/storm/test_storm.py
storm() { env TMPDIR="$work" PYTHONDONTWRITEBYTECODE=1 tests/storm/storm.py "$@" >"$work/storm" 2>&1 || { cat "$work/storm"; return 1; }; }
check "ranks and launchers are killed, stopped and cut off 20 times" storm 20 1 2 20261123
check "... which ends with the bits of the calm run" contains "$work/storm" "equal to the calm run's"
check "... of which rank 0 was told more than once" grep -qE "^starts that went on: ([2-9]|[1-9][0-9]+) " "$work/storm"
tap_done
