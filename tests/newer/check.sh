#!/bin/bash
# `make check-newer`: on a new API server for custom resources what is new there (test.sh), and what the tests of the
# operator look at on the old one. Not part of `make check`: it is built from Debian unstable, which moves.
#   tests/newer/check.sh [FILTER]      FILTER: part of a test's name
set -u
cd "$(dirname "$0")/../.." || exit
filter=${1:-}
. tests/run_one.sh
SHOAL_TEST_NEWER=$(tests/newer/build.sh) || exit
old=$(tests/cluster/build.sh control-plane) || exit
export SHOAL_TEST_NEWER BUILD="${BUILD:-$PWD/build/debug}"
unset SHOAL_TEST_KUBECONFIG # another cluster has no such server beside it
PATH=$PATH:$old
echo "${SHOAL_TEST_NEWER##*/}, $("$SHOAL_TEST_NEWER/kubectl" version --client | head -n 1), beside $("$old/kube-apiserver" --version)"
# every test of the operator, whatever its name, but that of installing, which puts the definition on the old server
for script in tests/newer/test.sh tests/cluster/test_*.sh; do
    [[ $script != tests/cluster/test_install.sh ]] || continue
    name=${script#tests/}
    name=${name%.sh}
    [[ $name != *"$filter"* ]] || run_one "$name" "$script"
done
run_end
