#!/bin/bash
# tests/acto/run.sh ARGUMENTS...: tests/acto/acto.py on a control plane of its own, which ends with it.
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/tap.sh
. tests/tap.sh
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
heed_arguments tests/acto/acto.py "$@"
operator_world podgc
pod_groups scheduling.volcano.sh v1beta1 >/dev/null
pod_groups scheduling.x-k8s.io v1alpha1 >/dev/null
python3 tests/acto/acto.py "$@"
