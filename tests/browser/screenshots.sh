#!/bin/bash
# shellcheck disable=SC2154 # alone.sh sets work and data
# Takes the pictures of the live page and of terminals that the pages in docs show (tests/browser/screenshots.py).
# shellcheck source=tests/browser/alone.sh
. "$(dirname "$0")/alone.sh"
python3 tests/browser/screenshots.py "$work" "$data"
