#!/bin/bash
# `make check-newer`: what a new API server has that an old one has not (test.sh), and the tests of the operator, on it. That is
# the whole kube-apiserver of KUBEBUILDER_ASSETS, if it is of 1.30 or later; else a server for custom resources alone, beside an old
# API server. Not part of `make check`: that server is built from Debian unstable, which moves.
#   tests/newer/check.sh [FILTER]      FILTER: part of a test's name
set -u
cd "$(dirname "$0")/../.." || exit
filter=${1:-}
. tests/run_one.sh
programs=$(tests/cluster/build.sh control-plane) || exit
version=$("$programs/kube-apiserver" --version) # "Kubernetes v1.36.2"
minor=${version#*.}
scripts=(tests/newer/test.sh tests/cluster/test_*.sh)
export BUILD="${BUILD:-$PWD/build/debug}"
unset SHOAL_TEST_KUBECONFIG # another cluster cannot be stopped, and has no such server beside it
if [ "${minor%%.*}" -ge 30 ]; then
    unset SHOAL_TEST_NEWER
    PATH=$programs:$PATH
    echo "$version, $(kubectl version --client 2>&1 | head -n 1)"
else
    SHOAL_TEST_NEWER=$(tests/newer/build.sh) || exit
    export SHOAL_TEST_NEWER
    PATH=$PATH:$programs
    echo "${SHOAL_TEST_NEWER##*/}, $("$SHOAL_TEST_NEWER/kubectl" version --client | head -n 1), beside $version"
    # every test of the operator, whatever its name, but that of installing, which puts the definition on the old server
    mapfile -t scripts < <(printf '%s\n' "${scripts[@]}" | grep -vx tests/cluster/test_install.sh)
fi
for script in "${scripts[@]}"; do
    name=${script#tests/}
    name=${name%.sh}
    [[ $name != *"$filter"* ]] || run_one "$name" "$script"
done
run_end
