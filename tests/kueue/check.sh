#!/bin/bash
# `make check-kueue`: jobs in the queues of a real Kueue (server.sh). Nothing here can build or fetch one: KUEUE_ASSETS says
# where it is. Not part of `make check`, which does without.
set -u
filter=${1:-}
cd "$(dirname "$0")/../.." || exit
for name in manager manifests.yaml; do
    [ -e "${KUEUE_ASSETS:-}/$name" ] || {
        echo "check-kueue: \$KUEUE_ASSETS is to be a folder with manager, the program of a Kueue, and manifests.yaml of its release:" \
            "${KUEUE_ASSETS:-it is not set}${KUEUE_ASSETS:+ has no $name}" >&2
        exit 2
    }
done
. tests/run_one.sh
programs=$(tests/cluster/build.sh control-plane) || exit
export BUILD="${BUILD:-$PWD/build/debug}"
PATH=$programs:$PATH
echo "$("$programs/kube-apiserver" --version), a real Kueue in $KUEUE_ASSETS"
for name in queues admission settings; do
    [[ $name != *"$filter"* ]] || run_one "kueue/$name" "tests/kueue/$name.sh"
done
run_end
