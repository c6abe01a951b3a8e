#!/bin/bash
# A drawn part of what `make acto` tries: each field of a PyTorchJob set, changed, removed and spoilt (docs/operator-proofs.md).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
check "leaves, values and patches are what they say" python3 tests/acto/test_leaves.py
operator_world podgc
check "an API for gangs" pod_groups scheduling.volcano.sh v1beta1
check "and that of scheduler-plugins" pod_groups scheduling.x-k8s.io v1alpha1
seed=${ACTO_SEED:-$(seed)}
echo "# seed $seed; ACTO_SEED=N draws others"
check "8 leaves, drawn by seed $seed, do what they say and stop nobody" tests/acto/acto.py --draw 8 --seed "$seed"
tap_done
