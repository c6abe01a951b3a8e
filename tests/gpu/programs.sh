#!/bin/bash
# The test programs that run on whatever device SHOAL_TEST_DEVICE names, a line each: "kernels/test_linear". In a bundle,
# which has no sources, the list was made with it.
#   tests/gpu/programs.sh [emulated]      emulated: without those that would take minutes on an emulated GPU
cd "$(dirname "$0")/../.." || exit
if [ -e tests/gpu/programs ]; then
    cat tests/gpu/programs
else
    grep -lE 'world_setup|support_device|language_open' tests/*/test_*.c tests/*/*/test_*.c | xargs grep -L 'device_open("cpu"' |
        sed 's,^tests/,,; s,\.c$,,'
    [ "${1:-}" = emulated ] || echo agent/test_parity
fi
