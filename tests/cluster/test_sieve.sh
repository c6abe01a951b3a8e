#!/bin/bash
# A drawn part of what `make sieve` tries: the operator behind a proxy that kills, refuses, loses, delays and cuts at one request or
# watch event of a scenario (docs/operator-proofs.md).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
check "the oracle and the names are what they say" python3 tests/sieve/test_oracle.py
operator_world podgc
check "an API for gangs" pod_groups scheduling.volcano.sh v1beta1
seed=${SIEVE_SEED:-$(seed)}
echo "# seed $seed; SIEVE_SEED=N draws others"
check "30 cases, drawn by seed $seed, end as the calm runs" tests/sieve/sieve.py --draw 30 --seed "$seed"
tap_done
