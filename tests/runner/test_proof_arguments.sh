#!/bin/bash
# The tools of docs/operator-proofs.md refuse what names nothing, and say so: exit code 2, never a run of nothing that passes.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/tests/world CMOCKA_MESSAGE_OUTPUT=STDOUT
unset KUBECONFIG
small=$BUILD/tests/operator/histories/test_small_histories
random=$BUILD/tests/operator/reconcile/test_simulation
watch=$BUILD/tests/operator/cache/test_watch_simulation

if [ "${BUILD##*/}" = debug ]; then # it has a malloc of its own (tests/run.sh)
    for words in typo --help 3 "all a b"; do
        # shellcheck disable=SC2086 # they are words
        check "small histories: $words" fails 2 "[all [NAME]]" "$small" $words
    done
    check "small histories: a row that is not there" fails 2 "a group restarts" "$small" all typo
    check "small histories: one that is" fails 0 "PASSED" "$small" all "a pod is deleted or evicted"
fi
for words in --help 0 -3 "3 0" "3 4 5"; do
    # shellcheck disable=SC2086
    check "random histories: $words" fails 2 "[HISTORIES [FROM]]" "$random" $words
done
check "random histories: from a seed on" fails 0 "3 random histories from seed 40 on: none" "$random" 3 40

# Those of a night.
nightly() { PART=5 tests/operator/reconcile/random_histories.sh "$@"; }
for words in "0 1 1" "5 many 1" "5 1 -1" "5 1 1234567890123456789"; do
    # shellcheck disable=SC2086
    check "random histories of a night: $words" fails 2 "must be a whole number from 1 on" nightly "$random" $words
done
check "random histories of a night: too few words" fails 2 "usage: random_histories.sh PROGRAM HISTORIES FROM PROCESSES" nightly "$random" 5
nightly "$random" 13 40 3 >"$work/night"
check "a night's parts, each seed once" diff <(printf '%s random histories from seed %s on: none breaks an invariant\n' 3 50 5 40 5 45) <(sort "$work/night")
cat >"$work/broken" <<'END'
#!/bin/bash
[ "$2" != 45 ] || { echo "seed 47: two pods" && exit 1; }
echo "$1 random histories from seed $2 on"
END
chmod +x "$work/broken"
check "a part that fails is told, with what it said" fails 1 "seed 47: two pods" nightly "$work/broken" 15 40 1
check "and the others go on" fails 1 "5 random histories from seed 50 on" nightly "$work/broken" 15 40 1
for program in "$random" "$watch"; do
    check "${program##*/}: a seed that is none" fails 2 "SIMULATION_SEED=abc: must be" env SIMULATION_SEED=abc "$program"
    check "${program##*/}: one that is" fails 0 "PASSED" env SIMULATION_SEED=3 "$program"
done

for tool in sieve acto; do
    for words in "--draw -3" "--draw 0" "--draw many" "--seats 0"; do
        # shellcheck disable=SC2086
        check "$tool: $words" fails 2 "must be a whole number from 1 on" "tests/$tool/$tool.py" $words
    done
    check "$tool: no API server" fails 2 "\$KUBECONFIG names no kubeconfig: set it, or use tests/$tool/run.sh" env -u PYTHONPATH "tests/$tool/$tool.py"
    check "$tool: no program" fails 2 "there is no program /nowhere/shoal-operator: make programs, or set \$BUILD" \
        env BUILD=/nowhere KUBECONFIG=x "tests/$tool/$tool.py"
    check "$tool: no program, before there is a cluster" fails 2 "there is no program /nowhere/shoal-operator: make programs" \
        env BUILD=/nowhere "tests/$tool/run.sh"
    check "$tool: wrong words, before there is a cluster" fails 2 "must be a whole number" "tests/$tool/run.sh" --draw 0
    "tests/$tool/$tool.py" --help >"$work/help"
    check "$tool: its help tells what each option does" diff /dev/null <(awk '/^$/ { bare = "" } bare && /^  -/ { print bare } { bare = "" }
        /^  --[a-z-]+( [A-Z. \[\]]+)?$/ { bare = $0 }' "$work/help")
    check "$tool: ... the seed's among them" contains "$work/help" "the same seed chooses the same"
    check "$tool: a word without a flag" fails 2 "unrecognized arguments: nonsense" "tests/$tool/$tool.py" nonsense
done
check "sieve: its help lists what --only takes" grep -qE "^  behind-soon +the same" <(tests/sieve/sieve.py --help)
check "sieve: a scenario that is not there" fails 2 "there is no scenario 'nonsense', only 'life of a job of 3 pods'" tests/sieve/sieve.py --only nonsense
check "sieve: a kind that is not there" fails 2 "there is no kind 'nonsense', only 'calm', 'kill'" tests/sieve/sieve.py --only "a gang" nonsense
check "sieve: a word too many" fails 2 "'more' is one word too many" tests/sieve/sieve.py --only "a gang" kill "LIST pods #1" more
check "acto: a rest that is not there" fails 2 "there is no rest 'asleep', only 'running'" tests/acto/acto.py --only spec asleep
check "acto: a word too many" fails 2 "'more' is one word too many" tests/acto/acto.py --only spec running more
check "acto: a path that is not there" fails 2 "no leaf has 'nonsense' in its path" python3 - <<'END'
import sys
sys.path.insert(0, "tests/acto")
import acto
import command_line
sys.argv = ["acto.py", "--only", "nonsense"]
try:
    acto.Acto(acto.arguments()).chosen([])
except command_line.Refused as refused:
    print(refused)
    sys.exit(2)
END
check "what an API server lacks is named" python3 tests/world/test_served.py
check "a connection that the API server may have closed is not used again" python3 tests/world/test_http1.py

# What a world leaves behind (tests/cluster/operator.sh): no word of bash about those that it has killed.
world() {
    bash -c '. tests/tap.sh && . tests/cluster/lib.sh && . tests/cluster/operator.sh
        sleep 1000 & proxy=$!
        sleep 1000 & operators+=($!)' >"$work/said" 2>&1
}
check "a world ends" world
check "... in silence" diff /dev/null "$work/said"
tap_done
