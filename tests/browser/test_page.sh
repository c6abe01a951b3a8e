#!/bin/bash
# shellcheck disable=SC2154 # alone.sh sets work and data
# The live page in Debian's Chromium.
# shellcheck source=tests/browser/alone.sh
. "$(dirname "$0")/alone.sh"
for program in chromium chromedriver; do
    command -v $program >/dev/null || {
        skip "the live page in Chromium" "this machine has no $program (deploy/deps.sh installs it)"
        tap_done
    }
done
python3 tests/browser/test_page.py "$work" "$data"
