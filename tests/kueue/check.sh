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
version=$("$programs/kube-apiserver" --version) # "Kubernetes v1.36.2"
minor=${version#*.}
[ "${minor%%.*}" -ge 30 ] || {
    echo "check-kueue: Kueue needs a kube-apiserver of 1.30 or later, and $programs has $version:" \
        "set \$KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl" >&2
    exit 2
}
export BUILD="${BUILD:-$PWD/build/debug}"
unset SHOAL_TEST_KUBECONFIG SHOAL_TEST_NEWER # all of Kueue is installed: never in another cluster than the tests' own
PATH=$programs:$PATH
echo "$version, a real Kueue in $KUEUE_ASSETS"
for name in queues admission settings; do
    [[ $name != *"$filter"* ]] || run_one "kueue/$name" "tests/kueue/$name.sh"
done
run_end
